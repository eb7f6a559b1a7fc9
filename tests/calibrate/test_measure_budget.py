"""A session's time, and its order, with a clock and tasks of our own: nothing here needs torch."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.measure import budget as budgets
from simperf.calibrate.measure.budget import RESERVE, Budget, OutOfTime, time_limit
from simperf.calibrate.measure.session import MeasuringSession
from simperf.calibrate.measure.task import Task, point
from simperf.calibrate.measure.training.order import FAMILIES, interleaved, spread
from simperf.errors import SimperfError

ROOT = Path(__file__).parents[2]


class Clock:
    def __init__(self):
        self.time = 100.0

    def __call__(self):
        return self.time


def one(clock, name, takes, *, expected=1.0, family="products"):
    """A point that takes so long on the clock."""

    def take():
        clock.time += takes
        return [1e-3] * 5

    return family, point("op/gemm", {"name": name}, take, seconds=expected)


def session(path, clock, seconds, **more):
    given = {"machine": {"cpu": "Test CPU 1"}, "versions": {"torch": "2.9.0"}, "now": clock}
    return MeasuringSession(path, budget=Budget(seconds, now=clock), **{**given, **more})


def names(data):
    return [one.at["name"] for one in data]


def test_the_time_is_kept_and_what_is_missing_is_counted_and_continued(tmp_path):
    clock, path = Clock(), tmp_path / "m.json"
    tasks = [one(clock, name, 1.0) for name in "abcdefgh"]
    first = session(path, clock, 4.0 + RESERVE)
    data = first.run(tasks, tell=lambda *_: None)
    assert names(data) == list("abcd")
    assert clock.time <= 100.0 + 4.0 + RESERVE
    assert first.unmeasured == {"op/gemm": 4}
    assert "op/gemm: not measured: 4 of its points: no time was left" in data.notes
    second = session(path, clock, 100.0)
    data = second.run(tasks, tell=lambda *_: None)
    assert (second.resumed, names(data), second.unmeasured) == (4, list("abcdefgh"), {})
    assert data.notes == ()


def test_a_point_that_does_not_fit_makes_way_for_one_that_does(tmp_path):
    clock = Clock()
    tasks = [one(clock, "long", 50.0, expected=50.0), one(clock, "short", 1.0)]
    assert names(session(tmp_path / "m.json", clock, 5.0).run(tasks, tell=lambda *_: None)) == ["short"]


def test_estimates_follow_what_points_really_take():
    clock = Clock()
    known = Budget(100.0, now=clock)
    _, task = one(clock, "a", 0.0)
    assert known.expected(task, 1) == pytest.approx(1.0)
    for _ in range(20):
        known.took(task, 1, 3.0)
    assert known.expected(task, 1) == pytest.approx(3.0, rel=0.1)
    assert known.fits(task, 10)
    assert not known.fits(task, 40)
    unknown = point("op/conv", {}, lambda: [1.0])
    assert known.expected(unknown, 2) == 2 * budgets.USUAL


def test_each_point_is_in_the_file_when_the_next_one_begins(tmp_path):
    clock, path, seen = Clock(), tmp_path / "m.json", []

    def take():
        seen.append(len(Dataset.load(path)) if path.exists() else 0)
        return [1.0]

    tasks = [("products", point("op/gemm", {"name": name}, take)) for name in "abcd"]
    session(path, clock, 100.0).run(tasks, tell=lambda *_: None)
    assert seen == [0, 1, 2, 3]


KILLED = """
import os, signal, sys
from simperf.calibrate.measure.session import MeasuringSession
from simperf.calibrate.measure.task import point

def take(name):
    if name == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
    return [1e-3]

tasks = [("products", point("op/gemm", {"name": name}, lambda name=name: take(name))) for name in "abcd"]
session = MeasuringSession(sys.argv[1], machine={"cpu": "Test CPU 1"}, versions={"torch": "2.9.0"})
print(session.resumed)
session.run(tasks, tell=lambda *_: None)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_kill_loses_the_running_point_alone_and_the_next_run_continues(tmp_path):
    path = tmp_path / "m.json"

    def run(stop):
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        words = [sys.executable, "-c", KILLED, str(path), stop]
        return subprocess.run(words, capture_output=True, text=True, env=environment, timeout=60, check=False)

    assert run("c").returncode == -9
    assert names(Dataset.load(path)) == ["a", "b"]
    done = run("never")
    assert (done.returncode, done.stdout.strip()) == (0, "2")
    assert names(Dataset.load(path)) == list("abcd")
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.json"]


@pytest.mark.skipif(os.name == "nt", reason="timers of POSIX")
def test_what_runs_past_the_end_is_stopped_and_named(tmp_path):
    def endless():
        while True:
            time.sleep(0.01)

    def tries():
        try:
            endless()
        except Exception:  # as libraries do
            return [1.0]

    tasks = [("layers", point("layer/gpt", {"name": "endless"}, tries, seconds=0.01))]
    begin = time.monotonic()
    kept = MeasuringSession(tmp_path / "m.json", machine={}, versions={}, budget=Budget(RESERVE + 0.3))
    data = kept.run(tasks, tell=lambda *_: None)
    assert time.monotonic() - begin < RESERVE + 1.0
    assert data.notes == ("layer/gpt at name endless: not measured: it was stopped at the end of the time",)
    with time_limit(60.0):
        pass
    with pytest.raises(OutOfTime), time_limit(0.01):
        endless()


@pytest.mark.parametrize("error", [RuntimeError("CUDA out of memory"), AttributeError("no enable_gqa"), MemoryError()])
def test_a_point_that_fails_is_named_the_device_made_usable_and_the_rest_goes_on(tmp_path, error):
    recovered, clock = [], Clock()

    def fails():
        raise error

    broken = ("products", point("op/gemm", {"name": "large"}, fails))
    kept = session(tmp_path / "m.json", clock, 100.0, recover=lambda: recovered.append(1))
    data = kept.run([broken, one(clock, "b", 1.0)], tell=lambda *_: None)
    assert names(data) == ["b"]
    assert recovered == [1]
    assert data.notes[0].startswith(f"op/gemm at name large: not measured: {type(error).__name__}: {error}".rstrip())


def test_a_device_that_is_lost_ends_the_session_and_the_point_comes_last_in_the_next(tmp_path):
    clock, path, calls = Clock(), tmp_path / "m.json", []

    def fails():
        calls.append("bad")
        raise RuntimeError("illegal memory access")

    def lost():
        raise SimperfError("the device no longer answers")

    tasks = [one(clock, "a", 1.0), ("products", point("op/gemm", {"name": "bad"}, fails)), one(clock, "b", 1.0)]
    for expected in (["a"], ["a", "b"]):
        with pytest.raises(SimperfError, match="no longer answers"):
            session(path, clock, 100.0, recover=lost).run(tasks, tell=lambda *_: None)
        assert names(Dataset.load(path)) == expected
    assert calls == ["bad", "bad"]


def test_rounds_come_in_order_and_families_take_turns_by_their_share_of_the_time():
    def task(name):
        return Task(((name, {}),), lambda wanted: iter(()), seconds=1.0)

    listed = [(number, "products", task(f"p{number}{index}")) for number in (1, 2) for index in range(8)]
    listed += [(number, "rows", task(f"r{number}{index}")) for number in (1, 2) for index in range(8)]
    found = [one.title for _, one in interleaved(listed)]
    assert len(found) == len(listed)
    assert [name[1] for name in found] == ["1"] * 16 + ["2"] * 16
    assert sum(name[0] == "p" for name in found[:5]) == 4  # four parts of five, as their shares say
    assert FAMILIES["products"][1] == 4 * FAMILIES["rows"][1]
    assert found[0] == "p10"


def test_any_beginning_of_a_grid_is_spread_over_each_factor():
    grid = spread(range(8), range(5), "abc")
    assert len(grid) == len(set(grid)) == 8 * 5 * 3
    for count in (8, 16, 32):
        low = sum(first < 4 for first, _, _ in grid[:count])
        assert abs(low - count / 2) <= 1
        assert len({second for _, second, _ in grid[:count]}) >= (4 if count == 8 else 5)
        assert {third for *_, third in grid[:count]} == set("abc")


def test_readings_of_several_parts_end_with_their_task(tmp_path):
    """What a task does after its last point, such as waiting for its processes, is done."""
    ended = []

    def run(wanted):
        for index in wanted:
            yield Measurement("layer/gpt", {"part": index}, (1.0,))
        ended.append(True)

    task = Task(tuple(("layer/gpt", {"part": index}) for index in range(3)), run)
    MeasuringSession(tmp_path / "m.json", machine={}, versions={}).run([("layers", task)], tell=lambda *_: None)
    assert ended == [True]
