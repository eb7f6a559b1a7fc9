"""Measuring with a clock and tasks of our own: nothing here needs torch."""

import pytest

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.measure import session as sessions
from simperf.calibrate.measure.clock import FULL, QUICK, Care, doubts, sample
from simperf.calibrate.measure.session import Interrupted, MeasuringSession
from simperf.calibrate.measure.task import Task, check_families, note_text, point, tasks
from simperf.errors import InputError

MACHINE = {"cpu": "Test CPU 1", "cores": 2, "memory": 8_000_000_000}
VERSIONS = {"torch": "2.9.0", "python": "3.11"}


def measure(session, tasks):
    return session.run(tasks, tell=lambda *done: None)


def session(path, **more):
    given = {"machine": MACHINE, "versions": VERSIONS, "conditions": {"device": "cpu", "threads": 2}}
    return MeasuringSession(path, **{**given, **more})


def one(name, value, calls=None):
    def take():
        if calls is not None:
            calls.append(name)
        return [value] * 5

    return ("gemm", point("op/gemm", {"name": name}, take))


def test_sample_grows_the_block_until_the_clock_does_not_count_and_drops_warm_up():
    runs = []

    def timeit(number):
        runs.append(number)
        return (1.0 if len(runs) == 1 else 1e-6) * number  # the first run loads code

    readings = sample(timeit, Care(budget=0.02, block=1e-3, least=5, most=9))
    assert readings == pytest.approx([1e-6] * len(readings))
    assert 5 <= len(readings) <= 9
    assert runs[-1] * 1e-6 >= 1e-3


def test_long_runs_are_taken_a_few_times_only_and_each_alone():
    runs = []

    def timeit(number):
        runs.append(number)
        return 2.0 * number

    assert len(sample(timeit, FULL)) == FULL.few
    assert set(runs) == {1}
    assert QUICK.few < FULL.few
    assert QUICK.budget < FULL.budget


def test_wide_readings_are_doubted_as_torch_does():
    assert doubts([1.0, 1.01, 0.99, 1.0, 1.02]) == ()
    assert doubts([1.0, 1.1, 1.2, 0.9, 1.0])[0].startswith("uncertain")
    assert doubts([1.0, 2.0, 3.0, 4.0])[0].startswith("unstable")
    assert doubts([1.0, 9.0]) == ()


def test_a_second_run_measures_only_what_is_missing(tmp_path):
    path, calls = tmp_path / "m.json", []
    first = session(path).run([one("a", 1.0, calls)], tell=lambda *_: None)
    assert [p.at["name"] for p in first] == ["a"]
    again = session(path)
    assert again.resumed == 1
    both = measure(again, [one("a", 3.0, calls), one("b", 2.0, calls)])
    assert calls == ["a", "b"]
    assert [(p.at["name"], p.median) for p in both] == [("a", 1.0), ("b", 2.0)]
    assert Dataset.load(path).measurements == both.measurements


def test_fresh_begins_anew(tmp_path):
    path = tmp_path / "m.json"
    measure(session(path), [one("a", 1.0)])
    data = measure(session(path, fresh=True), [one("b", 2.0)])
    assert [p.at["name"] for p in data] == ["b"]


def test_an_interruption_keeps_what_was_measured_and_says_how_much(tmp_path):
    path = tmp_path / "m.json"

    def stop():
        raise KeyboardInterrupt

    bad = ("gemm", point("op/gemm", {"name": "slow"}, stop))
    with pytest.raises(Interrupted) as caught:
        session(path).run([one("a", 1.0), bad, one("never", 1.0)], tell=lambda *_: None)
    assert len(caught.value.dataset) == 1
    assert [p.at["name"] for p in Dataset.load(path)] == ["a"]
    whole = measure(session(path), [one("a", 9.0), one("slow", 2.0), one("never", 1.0)])
    assert [p.median for p in whole] == [1.0, 2.0, 1.0]


def test_a_task_of_several_points_is_resumed_in_its_middle(tmp_path):
    path, asked = tmp_path / "m.json", []
    places = tuple(("all-reduce/gloo", {"nbytes": n, "ranks": 2}) for n in (10, 20, 30))

    def run(wanted):
        asked.append(tuple(wanted))
        for index in wanted:
            if len(asked) == 1 and index == 1:
                raise KeyboardInterrupt
            yield Measurement(*places[index], (1e-3 * (index + 1),))

    with pytest.raises(Interrupted):
        measure(session(path), [("collective", Task(places, run))])
    data = measure(session(path), [("collective", Task(places, run))])
    assert asked == [(0, 1, 2), (1, 2)]
    assert [p.median for p in data] == [1e-3, 2e-3, 3e-3]


def test_progress_is_told_point_by_point(tmp_path):
    """Collectives are one task of many points, which takes a minute."""
    places = tuple(("all-reduce/gloo", {"nbytes": n, "ranks": 2}) for n in (10, 20, 30, 40))
    failing = [True]

    def run(wanted):
        for index in wanted:
            if index == 2 and failing:
                raise RuntimeError("no answer")
            yield Measurement(*places[index], (1e-3,))

    told = []
    session(tmp_path / "m.json").run([("collective", Task(places, run))], tell=lambda *words: told.append(words[2]))
    assert told == [0, 1, 1, 2]
    failing.clear()
    told.clear()
    session(tmp_path / "m.json").run([("collective", Task(places, run))], tell=lambda *words: told.append(words[2]))
    assert told == [2, 1, 1, 0]


def test_what_fails_is_a_note_with_its_reason_and_the_rest_goes_on(tmp_path):
    def fails():
        raise RuntimeError("CUDA out of memory\nlong text")

    broken = ("conv", point("op/conv", {"kernel": 3}, fails))
    data = measure(session(tmp_path / "m.json"), [broken, one("b", 1.0), ("graph", note_text("graph", "no GPU"))])
    assert [p.at["name"] for p in data] == ["b"]
    assert data.notes == (
        "op/conv at kernel 3: not measured: RuntimeError: CUDA out of memory",
        "graph: not measured: no GPU",
    )


def test_a_point_that_is_measured_after_all_takes_its_note_away(tmp_path):
    path, fails = tmp_path / "m.json", [True]
    places = tuple(("all-reduce/gloo", {"nbytes": n, "ranks": 2}) for n in (10, 20, 30))

    def run(wanted):
        for index in wanted:
            if fails:
                raise OSError("No space left on device: '/home/ada/tmp/data'")
            yield Measurement(*places[index], (1e-3,))

    tasks = [("collective", Task(places, run)), ("graph", note_text("graph", "no GPU"))]
    first = measure(session(path), tasks)
    reason = "OSError: No space left on device: '.../data' (and 2 points more)"
    assert first.notes == (
        f"all-reduce/gloo at nbytes 10, ranks 2: not measured: {reason}",
        "graph: not measured: no GPU",
    )
    fails.clear()
    again = measure(session(path), tasks)
    assert len(again) == 3
    assert again.notes == ("graph: not measured: no GPU",)


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"machine": {**MACHINE, "cpu": "Other CPU"}}, "cpu"),
        ({"versions": {**VERSIONS, "torch": "2.10.0"}}, "torch"),
        ({"conditions": {"device": "cpu", "threads": 1}}, "threads"),
    ],
)
def test_another_machine_torch_or_setting_is_refused(tmp_path, change, key):
    path = tmp_path / "m.json"
    measure(session(path), [one("a", 1.0)])
    with pytest.raises(InputError, match="another machine or set-up") as caught:
        session(path, **change)
    assert [problem.key for problem in caught.value.problems] == [key]
    assert "--fresh" in caught.value.problems[0].expected


def test_a_little_more_or_less_memory_is_the_same_machine(tmp_path):
    path = tmp_path / "m.json"
    measure(session(path), [one("a", 1.0)])
    assert session(path, machine={**MACHINE, "memory": 7_999_000_000}).resumed == 1


def test_the_file_is_saved_while_it_goes_on(tmp_path):
    path, clock = tmp_path / "m.json", [0.0]
    seen = []

    def slow(name):
        def take():
            clock[0] += 10.0
            seen.append(len(Dataset.load(path)) if path.exists() else 0)
            return [1.0]

        return ("gemm", point("op/gemm", {"name": name}, take))

    data = measure(session(path, now=lambda: clock[0]), [slow("a"), slow("b"), slow("c")])
    assert seen == [0, 1, 2]
    assert data.made["seconds"] == 30.0


def test_unknown_families_are_refused_before_anything_runs():
    with pytest.raises(InputError, match="did you mean 'gemm'"):
        check_families(["gem"])
    with pytest.raises(InputError, match="no such family"):
        list(tasks(None, ["nothing"]))


def test_a_point_during_which_the_host_was_elsewhere_says_so(tmp_path, monkeypatch):
    shares = iter((0.0, 0.25))

    class Watch:
        def lap(self):
            return next(shares)

    monkeypatch.setattr(sessions, "Stolen", Watch)
    data = measure(session(tmp_path / "m.json"), [one("calm", 1.0), one("shared", 1.0)])
    assert [point.stolen for point in data] == [0.0, 0.25]
    assert [len(point.warnings) for point in data] == [0, 1]
    assert "25.0 %" in data.measurements[1].warnings[0]
