"""What the host of a virtual machine disturbed is measured again: on a pretended clock, by pretended shares."""

import pytest

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.measure import remeasure, session
from simperf.calibrate.measure.remeasure import AGAIN, PAUSE, ROUNDS, calmer, repeat
from simperf.calibrate.measure.session import LEAST, WAITING, Interrupted, MeasuringSession
from simperf.calibrate.measure.steal_time import STOLEN
from simperf.calibrate.measure.task import Task, point


class World:
    """A clock that tasks move on; shares that are told in turn, zero afterwards; looks at whether it is calm."""

    def __init__(self):
        self.time, self.calls, self.shares, self.calm, self.slept = 0.0, [], [], [], []

    def lap(self):
        return self.shares.pop(0) if self.shares else 0.0

    def calm_now(self):
        return self.calm.pop(0) if self.calm else True

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.time += seconds

    def session(self, path, **more):
        return MeasuringSession(path, {"cpu": "Test CPU 1"}, {"torch": "2.9.0"}, now=lambda: self.time, **more)

    def task(self, name, *values, takes=1.0):
        """A task of one point, whose readings are these values in turn."""
        left = list(values or [1.0])

        def take():
            self.calls.append(name)
            self.time += takes
            value = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(value, BaseException):
                raise value
            return [value] * 5

        return ("gemm", point("op/gemm", {"name": name}, take))


@pytest.fixture
def world(monkeypatch):
    made = World()
    monkeypatch.setattr(session, "Stolen", lambda: made)
    monkeypatch.setattr(remeasure, "calm_now", made.calm_now)
    monkeypatch.setattr(remeasure.time, "sleep", made.sleep)
    return made


def run(one, tasks, told=None):
    return one.run(tasks, tell=lambda *words: told.append(words) if told is not None else None)


def test_what_was_disturbed_is_measured_again_in_order_when_all_else_is_done(world, tmp_path):
    world.shares = [0.3, 0.0, 0.1]
    one, told = world.session(tmp_path / "m.json"), []
    data = run(one, [world.task("a"), world.task("b"), world.task("c")], told)
    assert world.calls == ["a", "b", "c", "a", "c"]
    assert [point.at["name"] for point in data] == ["a", "b", "c"]
    assert {point.stolen for point in data} == {0.0}
    assert not any(point.warnings for point in data)
    assert (len(one.repeated), one.late) == (2, 0)
    assert told[-2:] == [("gemm, again", "op/gemm, again", 0)] * 2
    assert sum(words[2] for words in told) == 3
    assert Dataset.load(tmp_path / "m.json").measurements == data.measurements


@pytest.mark.parametrize(
    ("shares", "stays"),
    [
        ([0.3, 0.1, 0.2], 9.0),
        ([0.1, 0.2, 0.3], 1.0),
        ([0.3, 0.2, 0.1], 5.0),
        ([0.3, 0.0, 0.3], 9.0),
        ([0.3, 0.2, STOLEN], 5.0),
    ],
)
def test_what_was_disturbed_least_is_kept_whatever_it_says(world, tmp_path, shares, stays):
    least, world.shares = min(shares), list(shares)
    (kept,) = run(world.session(tmp_path / "m.json"), [world.task("a", 1.0, 9.0, 5.0)])
    assert (kept.median, kept.stolen) == (stays, least)
    assert len(kept.warnings) == (least > STOLEN)
    assert len(world.calls) == (2 if shares[1] <= STOLEN else 1 + ROUNDS)


def test_the_steadier_is_kept_of_those_that_were_disturbed_alike():
    def made(stolen, *samples):
        return [Measurement("a", {}, samples, stolen=stolen), Measurement("b", {}, (1.0,))]

    steady, wide = made(0.0, 2.0, 2.0, 2.0, 2.0), made(STOLEN, 1.0, 2.0, 3.0, 4.0)
    assert calmer(wide, steady) is steady
    assert calmer(steady, wide) is steady
    torn = made(0.5, 2.0, 2.0, 2.0, 2.0)
    assert calmer(torn, wide) is calmer(wide, torn) is wide
    assert calmer(steady, made(None, 2.0, 2.0, 2.0, 2.0))[0].stolen is None  # the later of equals


def test_unsteady_readings_alone_are_no_reason(world, tmp_path):
    wide = ("gemm", point("op/gemm", {"name": "wide"}, lambda: world.calls.append("wide") or [1.0, 2.0, 3.0, 4.0]))
    (kept,) = run(world.session(tmp_path / "m.json"), [wide])
    assert kept.warnings
    assert world.calls == ["wide"]


@pytest.mark.parametrize("share", [None, 0.0, STOLEN])
def test_calm_points_and_those_that_nobody_knows_of_are_never_taken_again(world, tmp_path, share):
    world.shares = [share] * 10
    tasks = [world.task("a"), world.task("b")]
    one = world.session(tmp_path / "m.json")
    run(one, tasks)
    run(world.session(tmp_path / "m.json"), tasks)
    assert world.calls == ["a", "b"]
    assert not one.repeated


def test_a_machine_that_stays_disturbed_makes_no_session_endless(world, tmp_path):
    world.shares, world.calm = [0.3] * 1000, [False] * 1000
    tasks = [world.task(name) for name in "abcdefgh"]
    one = world.session(tmp_path / "m.json")
    data = run(one, tasks)
    assert all(point.stolen == 0.3 for point in data)
    assert world.time <= 8.0 + LEAST
    assert len(one.disturbed(tasks)) == 8
    world.calm = []
    run(world.session(tmp_path / "m.json", fresh=True), tasks)
    assert len(world.calls) <= 2 * (1 + ROUNDS) * len(tasks)


def test_measuring_again_takes_half_of_the_time_of_the_first_round_at_most(world, tmp_path):
    world.shares = [0.3] * 1000
    tasks = [world.task(str(index), takes=20.0) for index in range(10)]
    one = world.session(tmp_path / "m.json")
    run(one, tasks)
    assert world.time == 200.0 * (1.0 + AGAIN)
    assert one.late == 10


@pytest.mark.parametrize("seconds", [90.0, 130.0, 165.0, 171.0, 1e9])
def test_what_does_not_fit_into_the_session_is_not_begun(world, tmp_path, seconds):
    world.shares = [0.3] * 1000
    tasks = [world.task("a", takes=60.0), world.task("b", takes=10.0), world.task("c", takes=50.0)]
    one = world.session(tmp_path / "m.json", seconds=seconds)
    run(one, tasks)
    assert world.time <= max(120.0, min(seconds, 120.0 * (1.0 + AGAIN)))
    repeated = {90.0: "", 130.0: "b", 165.0: "bb", 171.0: "bb", 1e9: "a"}[seconds]
    assert "".join(world.calls) == "abc" + repeated
    assert one.late > 0


def test_the_end_of_a_disturbance_is_waited_for_and_no_longer_than_there_is_time(world, tmp_path):
    world.shares, world.calm = [0.3, 0.3, 0.3], [False, False, True]
    told = []
    data = run(world.session(tmp_path / "m.json"), [world.task("a"), world.task("b")], told)
    assert world.slept == [PAUSE] * 2
    assert world.calls == ["a", "b", "a", "b", "a"]
    assert (WAITING, WAITING, 0) in told
    assert not any(point.warnings for point in data)
    world.shares, world.calm = [0.3] * 100, [False] * 1000
    world.time, world.calls = 0.0, []
    one = world.session(tmp_path / "n.json", seconds=20.0)
    run(one, [world.task("a"), world.task("b")])
    assert world.time <= 20.0
    assert one.late == 1
    assert world.slept[2:] == [PAUSE] * 3


def test_nobody_waits_when_nothing_is_left_to_measure(world, tmp_path):
    world.shares, world.calm = [0.3, 0.3, 0.3], [True, False, False, False]
    run(world.session(tmp_path / "m.json"), [world.task("a")])
    assert world.calls == ["a"] * 3
    assert world.slept == []


def test_the_same_command_takes_those_that_are_still_disturbed(world, tmp_path):
    path, tasks = tmp_path / "m.json", [world.task("a", takes=100.0), world.task("b"), world.task("c", takes=100.0)]
    world.shares = [0.3, 0.0, 0.2]
    first = world.session(path, seconds=210.0)
    run(first, tasks)
    assert (first.late, first.repeated) == (2, set())
    world.calls = []
    second = world.session(path, seconds=570.0)
    data = run(second, tasks)
    assert world.calls == ["a", "c"]
    assert not any(point.warnings for point in data)
    third = world.session(path)
    run(third, tasks)
    assert world.calls == ["a", "c"]
    assert third.resumed == 3


def test_points_of_a_file_whose_time_nobody_took_are_begun_only_if_their_readings_leave_time(world, tmp_path):
    path = tmp_path / "m.json"
    world.shares = [0.3]
    run(world.session(path, seconds=1.0), [world.task("a", 40.0, takes=200.0)])
    for seconds, calls in ((404.0, 1), (406.0, 2)):
        one = world.session(path, seconds=seconds)
        run(one, [world.task("a", 40.0, takes=200.0)])
        assert (len(world.calls), one.late) == (calls, 2 - calls)


def test_an_interruption_while_measuring_again_loses_nothing(world, tmp_path):
    path = tmp_path / "m.json"
    tasks = [world.task("a", 1.0, 2.0), world.task("b", 3.0, KeyboardInterrupt(), 4.0), world.task("c", 5.0, 6.0)]
    world.shares = [0.3, 0.2, 0.1]
    with pytest.raises(Interrupted) as caught:
        run(world.session(path), tasks)
    kept = Dataset.load(path)
    assert caught.value.dataset.measurements == kept.measurements
    assert [(point.median, point.stolen) for point in kept] == [(2.0, 0.0), (3.0, 0.2), (5.0, 0.1)]
    world.calls = []
    whole = run(world.session(path), tasks)
    assert world.calls == ["b", "c"]
    assert [point.median for point in whole] == [2.0, 4.0, 6.0]


def test_what_fails_when_measured_again_stays_as_it_was_and_is_told(world, tmp_path):
    world.shares = [0.3]
    session = world.session(tmp_path / "m.json")
    data = run(session, [world.task("a", 1.0, RuntimeError("out of memory"))])
    assert [(point.median, point.stolen) for point in data] == [(1.0, 0.3)]
    assert data.notes == ()  # which say what is not there
    assert list(session.failed.values()) == ["RuntimeError: out of memory"]


def test_what_failed_once_and_then_did_not_is_not_told(world, tmp_path):
    world.shares = [0.3]
    session = world.session(tmp_path / "m.json")
    data = run(session, [world.task("a", 1.0, RuntimeError("out of memory"), 2.0)])
    assert [(point.median, point.stolen) for point in data] == [(2.0, 0.0)]
    assert not session.failed


def several(asked, *, together):
    """A task of three points: readings say in which run they were made."""
    places = [("step/lenet", {"part": part}) for part in ("step", "forward", "backward")]

    def run(wanted):
        asked.append(tuple(wanted))
        now = float(len(asked))
        for index in wanted:
            yield Measurement(*places[index], (now,))

    return ("step", Task(places, run, together=together))


def test_points_of_the_same_runs_are_disturbed_and_kept_together(world, tmp_path):
    asked = []
    world.shares = [0.3, 0.1, 0.2]
    one = world.session(tmp_path / "m.json")
    data = run(one, [several(asked, together=True)])
    assert asked == [(0, 1, 2)] * 3
    assert [(point.median, point.stolen) for point in data] == [(2.0, 0.1)] * 3
    assert all(point.warnings for point in data)
    assert len(one.repeated) == 3


def test_points_that_are_read_one_by_one_are_taken_again_alone(world, tmp_path):
    asked = []
    world.shares = [0.0, 0.3, 0.0, 0.3, 0.0]
    data = run(world.session(tmp_path / "m.json"), [several(asked, together=False)])
    assert asked == [(0, 1, 2), (1,), (1,)]
    assert [point.median for point in data] == [1.0, 3.0, 1.0]


def test_rounds_go_on_with_what_is_left_and_end_early_when_nothing_is():
    left, taken = [3, 1, 2], []

    def take(item):
        taken.append(item)
        if taken.count(item) == (2 if item == 1 else 1):
            left.remove(item)
        return False

    assert repeat(lambda: list(left), take, until=1.0, now=lambda: 0.0) == 0
    assert taken == [3, 1, 2, 1]
    assert repeat(list, take, until=1.0, now=lambda: 0.0) == 0
    assert repeat(lambda: [1], take, until=1.0, now=lambda: 2.0) == 1
    assert taken == [3, 1, 2, 1]
