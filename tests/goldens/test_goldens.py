"""Every shipped scenario gives what its fixture says; a change of it is recorded there with its reason."""

import json

import pytest

from simperf.scenario import shipped_scenarios
from tests.goldens.__main__ import main, told
from tests.goldens.fixture import (
    FOLDER,
    changed,
    differences,
    equal,
    fixture_path,
    read_fixture,
    rounded_apart,
    write_fixture,
)
from tests.goldens.scenario_runs import marked, played
from tests.goldens.table import summary, table


@pytest.mark.parametrize("name", marked(shipped_scenarios()))
def test_a_scenario_gives_what_its_fixture_says(name):
    fixture = read_fixture(name)
    assert fixture, f"python -m tests.goldens make {name}"
    found = played(name)
    rows = differences(fixture["variants"], found.summaries, spans=found.recorded)
    told_rows = "\n".join(told(name, row) for row in rows[:20])
    assert not rows, f'{told_rows}\nif intended: python -m tests.goldens update --why "..." {name}'


def test_every_fixture_belongs_to_a_scenario():
    there = {path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.json")}
    assert there == set(shipped_scenarios())


def test_every_change_has_a_reason():
    for name in shipped_scenarios():
        for change in read_fixture(name)["changes"]:
            assert change["why"].strip(), (name, change["variant"], change["metric"])


def test_floats_are_equal_within_rounding_and_all_else_exactly():
    assert equal(1.0, 1.0 + 1e-13)
    assert not equal(1.0, 1.0 + 1e-11)
    assert equal([1.0, "s"], [1.0 + 1e-13, "s"])
    assert not equal([1.0, "s"], [1.0, "B"])
    assert not equal(3, 4)
    assert not equal("ring", "tree")
    assert not equal(None, 0.0)


def test_texts_that_another_rounding_of_sums_makes():
    assert rounded_apart("kernels at 2.737 times", "kernels at 2.738 times")
    assert not rounded_apart("kernels at 2.737 times", "kernels at 2.739 times")
    assert not rounded_apart("4 ranks", "5 ranks")
    assert not rounded_apart("at 2.737 times", "by 2.737 times")


def test_a_change_keeps_the_first_value_and_all_reasons():
    rows = [("ring", "time", 1.0, 2.0)]
    once = changed([], rows, "a link was missing")
    assert once == [{"variant": "ring", "metric": "time", "before": 1.0, "after": 2.0, "why": "a link was missing"}]
    twice = changed(once, [("ring", "time", 2.0, 3.0)], "latency")
    assert twice[0]["before"] == 1.0
    assert twice[0]["after"] == 3.0
    assert twice[0]["why"] == "a link was missing; then latency"
    assert changed(twice, [("ring", "time", 3.0, 1.0)], "back") == []


def test_what_is_there_on_one_side_only_is_a_difference():
    before = {"a": {"time": 1.0, "metrics": {"x": [1.0, "s", "simulated"]}}, "b": {"error": "no memory"}}
    now = {"a": {"time": 1.0, "metrics": {}}, "c": {"time": 2.0}}
    assert differences(before, now) == [
        ("a", "metrics.x", [1.0, "s", "simulated"], None),
        ("b", "variant", "no memory", None),
        ("c", "variant", None, 2.0),
    ]


def test_the_commands_make_check_update_and_tabulate(tmp_path, monkeypatch, capsys):
    name = "d2l/sync-160mb"
    monkeypatch.setattr("tests.goldens.fixture.FOLDER", tmp_path)
    assert main(["check", name]) == 1
    assert "no fixture" in capsys.readouterr().out
    assert main(["make", name]) == main(["check", name]) == 0
    fixture = read_fixture(name)
    variant = next(iter(fixture["variants"]))
    time = fixture["variants"][variant]["time"]
    fixture["variants"][variant]["time"] = time / 2
    write_fixture(name, fixture["variants"], [])
    assert json.loads(fixture_path(name).read_text("utf-8")) == fixture
    assert main(["check", name]) == 1
    assert f"{name} [{variant}] time: {time / 2} -> {time} (+1 of it)" in capsys.readouterr().out
    assert main(["update", "--why", "it was half", name]) == main(["check", name]) == 0
    (change,) = read_fixture(name)["changes"]
    assert change == {"variant": variant, "metric": "time", "before": time / 2, "after": time, "why": "it was half"}
    for lines in (table, summary):
        *_, row = lines([(name, read_fixture(name))])
        assert "it was half" in row
        assert "+100.000%" in row
