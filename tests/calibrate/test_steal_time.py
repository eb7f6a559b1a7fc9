"""Time that a virtual machine's host gave to others, as Linux counts it."""

import time
from pathlib import Path

import pytest

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.measure.steal_time import STOLEN, Stolen, calm_now, disturbed, taken_away
from simperf.errors import InputError


def stat(path, user, idle, steal, rest=""):
    path.write_text(f"cpu  {user} 0 10 {idle} 5 0 0 {steal} 7 0{rest}\ncpu0 1 2 3 4 5 6 7 8 9 10\n")


def test_a_lap_is_what_was_taken_of_the_time_that_was_wanted(tmp_path):
    path = tmp_path / "stat"
    stat(path, 100, 1000, 50)
    watch = Stolen(path)
    stat(path, 190, 9000, 60)
    assert watch.lap() == pytest.approx(10 / 100)
    stat(path, 290, 9500, 60)
    assert watch.lap() == 0.0
    assert watch.lap() == 0.0
    stat(path, 290, 9500, 61)
    assert watch.lap() == 1.0


def test_a_system_that_does_not_tell_is_no_calm_one(tmp_path):
    assert Stolen(tmp_path / "missing").lap() is None
    path = tmp_path / "stat"
    path.write_text("cpu  1 2 3 4\n")
    assert Stolen(path).lap() is None
    path.write_text("intr 5\n")
    assert Stolen(path).lap() is None


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="no /proc/stat: this system does not tell")
def test_this_machine_tells():
    watch = Stolen()
    assert sum(range(2_000_000)) > 0
    share = watch.lap()
    assert share is not None
    assert 0.0 <= share <= 1.0


def test_only_what_counts_is_a_warning():
    assert not taken_away(None)
    assert not taken_away(STOLEN)
    assert "5.4 %" in taken_away(0.054)[0]
    points = [Measurement("a", {}, (1.0,), stolen=share) for share in (None, 0.0, 0.5)]
    assert disturbed(points).startswith("on 1 of 3 points")
    assert disturbed(points[:2]) == ""


def test_a_file_keeps_the_share_and_refuses_what_is_none(tmp_path):
    path = tmp_path / "m.json"
    Dataset("", measurements=(Measurement("a", {}, (1.0,)), Measurement("b", {}, (1.0,), stolen=0.25))).save(path)
    assert [point.stolen for point in Dataset.load(path)] == [None, 0.25]
    good = path.read_text()
    for wrong in ("2", "-0.1", "true", '"half"'):
        path.write_text(good.replace("0.25", wrong))
        with pytest.raises(InputError, match="stolen must be a share"):
            Dataset.load(path)


def test_a_look_at_whether_it_is_calm_works_for_a_while(tmp_path):
    path = tmp_path / "stat"
    stat(path, 100, 1000, 50)
    begun = time.monotonic()
    assert calm_now(0.05, stat=path)
    assert time.monotonic() - begun >= 0.05
    assert calm_now(0.0, stat=tmp_path / "missing")
