"""No row of the accuracy tables worsens by more than a point without a line that says why."""

import pytest

from tests.truth import ratchet
from tests.truth.ratchet import SECTIONS, Entry, present, read_errors, told, updated, worsened

pytest.importorskip("scipy")


@pytest.mark.truth
@pytest.mark.parametrize(
    "section", [pytest.param(one, marks=pytest.mark.long if one == "fits" else ()) for one in SECTIONS]
)
def test_no_row_worsens(section, truth):
    entries, now = read_errors(section), present(section, truth)
    found = worsened(entries, now)
    assert not found, "\n".join(told(section, found)[:30]) + '\npython -m tests.truth.ratchet update --why "..."'
    assert not set(now) - set(entries), "new rows: python -m tests.truth.ratchet update"


def test_a_row_is_worse_by_more_than_a_point_of_its_absolute_error():
    entries = {("t", name): Entry(error) for name, error in (("a", "-3.00"), ("b", "3.00"), ("c", "none"))}
    assert worsened(entries, {("t", "a"): "3.90", ("t", "b"): "-4.00", ("t", "c"): "none"}) == {}
    found = worsened(entries, {("t", "a"): "4.10", ("t", "b"): "none", ("t", "c"): "90.00"})
    assert found == {("t", "a"): ("-3.00", "4.10"), ("t", "b"): ("3.00", "none")}
    assert worsened(entries, {("t", "b"): "0.00", ("t", "c"): "none"}) == {("t", "a"): ("-3.00", "gone")}


def test_an_update_tightens_and_allows_with_a_reason():
    entries = {("t", name): Entry("5.00") for name in "abc"}
    now = {("t", "a"): "1.00", ("t", "b"): "5.90", ("t", "c"): "-9.00", ("t", "d"): "2.00"}
    once = updated(entries, now, "played")
    assert once["t", "a"] == Entry("1.00")
    assert once["t", "b"] == Entry("5.00"), "small steps do not add up"
    assert once["t", "c"] == Entry("-9.00", "5.00", "played")
    assert once["t", "d"] == Entry("2.00")
    twice = updated(once, now | {("t", "c"): "12.00"}, "latency")
    assert twice["t", "c"] == Entry("12.00", "5.00", "played; then latency")
    assert updated(twice, now | {("t", "c"): "4.00"}, "")["t", "c"] == Entry("4.00")
    gone = updated(entries, {("t", "a"): "5.00", ("t", "b"): "5.00"}, "no such table")
    assert gone["t", "c"] == Entry("gone", "5.00", "no such table")
    assert worsened(gone, {("t", "a"): "5.00", ("t", "b"): "5.00"}) == {}


def test_the_command_asks_for_a_reason(tmp_path, monkeypatch, capsys):
    rows = [("t", "a", 0.05), ("t", "a", 0.06)]
    monkeypatch.setattr(ratchet, "FOLDER", tmp_path)
    monkeypatch.setattr(ratchet, "truth_folder", lambda: tmp_path)
    monkeypatch.setattr(ratchet, "SECTIONS", {"kernels": lambda truth: iter(rows)})
    assert ratchet.main(["update"]) == ratchet.main(["check"]) == 0
    assert read_errors("kernels") == {("t", "a"): Entry("5.00"), ("t", "a (2)"): Entry("6.00")}
    rows[1] = ("t", "a", 0.08)
    assert ratchet.main(["check"]) == ratchet.main(["update"]) == 1
    assert "kernels: t | a (2): 6.00 % -> 8.00 %" in capsys.readouterr().out
    assert ratchet.main(["update", "--only", "other*", "--why", "nothing of it"]) == 0
    assert ratchet.main(["check"]) == 1, "other tables are left as they are"
    assert ratchet.main(["update", "--only", "t*", "--why", "a link"]) == ratchet.main(["check"]) == 0
    assert ratchet.main(["table"]) == 0
    assert "| kernels | t | a (2) | 6.00 % | 8.00 % | a link |" in capsys.readouterr().out
