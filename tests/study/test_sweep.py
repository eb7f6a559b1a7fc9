"""Sweeps: every point once, in order, whatever happens on the way."""

import json
import random
import signal
import subprocess
import sys
import time

import pytest

from simperf import load_scenario, make_scenario, run
from simperf.errors import InputError, UnknownNameError
from simperf.study.points import make_tasks, point_scenario, spawn_seed
from simperf.study.sweep import Progress, sweep


def quiet(own, **changes):
    return load_scenario(own, [f"program.{key}={value}" for key, value in changes.items()])


def test_points_are_runs_with_their_values_and_seeds(own):
    table = sweep(own, {"program.n": [1, 2, 3], "program.pause": ["1 ms", "2 ms"]})
    assert [row["set"]["program.n"] for row in table.rows] == [1, 1, 2, 2, 3, 3]
    assert len({row["seed"] for row in table.rows}) == 6
    again = run(load_scenario(own, ["program.n=2", "program.pause=2 ms", f"run.seed={spawn_seed(0, 3)}"]))
    assert table.rows[3]["time"] == again.time
    assert table.column("rate")[3] == again.metrics["rate"].value
    assert table.column("time")[3] == table.records()[3]["time"]


def test_a_point_that_fails_is_recorded_and_stops_nothing(own):
    table = sweep(own, ["program.n=12,13,14", "program.pause=1 ms"])
    assert [row["error"] for row in table.rows] == [None, "ValueError: 13 is not liked", None]
    assert [row["point"] for row in table.failed] == [1]


@pytest.mark.parametrize(
    ("vary", "words"),
    [
        ({"program.m": [1, 2]}, "no parameter 'm'"),
        ({"programm.n": [1, 2]}, "unknown table"),
        ({"program.n": ["x", "y"]}, "program.n"),
        ({}, "nothing is varied"),
        ({"speed.x": [1]}, "x"),
    ],
)
def test_keys_that_the_scenario_does_not_know(own, vary, words):
    with pytest.raises(InputError, match=words):
        sweep(own, vary)


def test_keys_that_only_go_together(tmp_path):
    base = make_scenario({"machine": {"use": "dgx-1v"}, "program": {"use": "all-reduce"}})
    table = sweep(base, {"program.algorithm": ["ring"], "machine.use": ["dgx-a100"]})
    assert table.rows[0]["error"] is None


def test_the_same_bytes_from_every_engine_with_a_worker_that_dies(own, tmp_path):
    names, found = ("serial", "local:3", "dask:3"), {}
    flag = tmp_path / "flag"
    for name in names:
        if name == "dask:3":
            pytest.importorskip("distributed")
        flag.unlink(missing_ok=True)
        if name == "serial":
            flag.touch()
        output = tmp_path / f"{name[:4]}.jsonl"
        scenario = quiet(own, kill=f"'{flag}'", slow=0.005)
        sweep(scenario, ["program.n=1..24"], engine=name, output=output, cache=False)
        assert flag.exists(), "nobody was killed"
        found[name] = output.read_bytes()
        assert not (tmp_path / f"{name[:4]}.jsonl.journal").exists()
    assert found["serial"] == found["local:3"] == found["dask:3"]
    rows = [json.loads(line) for line in found["serial"].splitlines()]
    assert [row["point"] for row in rows] == list(range(24))
    assert [row["program.n"] for row in rows if row["error"]] == [13]


KILLED = """
import sys
from simperf.study.sweep import sweep
from simperf import load_scenario
if __name__ == "__main__":
    scenario = load_scenario({path!r}, ["program.slow=0.004", "program.log=" + {log!r}])
    sweep(scenario, ["program.n=1..300"], engine={engine!r}, output={output!r}, cache=False)
"""


@pytest.mark.parametrize("engine", [pytest.param("serial", marks=pytest.mark.long), "local:2"])
def test_killed_at_random_moments_and_resumed(own, tmp_path, engine):
    log, output = tmp_path / "log", tmp_path / "out.jsonl"
    script = tmp_path / "script.py"
    script.write_text(KILLED.format(path=str(own), log=f"'{log}'", engine=engine, output=str(output)))
    journal, chance, kept = tmp_path / "out.jsonl.journal", random.Random(engine), b""
    kills = 10 if engine == "serial" else 1
    for _ in range(kills):
        process = subprocess.Popen([sys.executable, str(script)])
        began = kept.count(b"\n")
        while process.poll() is None and (not journal.exists() or journal.read_bytes().count(b"\n") <= max(1, began)):
            time.sleep(0.005)
        time.sleep(chance.random() * 0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        held = journal.read_bytes()
        assert held.startswith(kept), "a point that was kept is gone"
        kept = held[: held.rfind(b"\n") + 1]
    subprocess.run([sys.executable, str(script)], check=True)
    straight = tmp_path / "straight.jsonl"
    sweep(quiet(own, log=f"'{tmp_path / 'other'}'", slow=0.004), ["program.n=1..300"], output=straight, cache=False)
    assert output.read_bytes() == straight.read_bytes()
    points = [json.loads(line)["point"] for line in kept.splitlines()[1:]]
    assert 0 < len(points) == len(set(points)) < 300
    done = log.read_text().split()
    # what was under way when the process was killed is done again, and nothing else
    assert len(done) - len(set(done)) <= kills * (1 if engine == "serial" else 8)
    assert len(set(done)) == 299


def test_a_torn_line_is_done_again(own, tmp_path):
    output, journal = tmp_path / "out.csv", tmp_path / "out.csv.journal"
    seen = []

    def stop(progress):
        seen.append(progress)
        if progress.done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(own, ["program.n=1..9"], output=output, cache=False, progress=stop)
    journal.write_bytes(journal.read_bytes()[:-10])
    seen.clear()
    table = sweep(own, ["program.n=1..9"], output=output, cache=False, progress=seen.append)
    assert [(p.done, p.known, p.total, p.failed) for p in seen] == [(n, 4, 9, 0) for n in range(5, 10)]
    assert [row["point"] for row in table.rows] == list(range(9))
    assert not journal.exists()


def test_a_journal_of_another_sweep_is_refused_and_can_be_thrown_away(own, tmp_path):
    output = tmp_path / "out.jsonl"

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(own, ["program.n=1..9"], output=output, progress=stop)
    with pytest.raises(InputError, match="another study"):
        sweep(own, ["program.n=2..9"], output=output)
    assert len(sweep(own, ["program.n=2..9"], output=output, fresh=True)) == 8


def test_an_engine_that_there_is_not_is_refused_though_all_rows_are_known(own):
    sweep(own, ["program.n=2,3"])
    with pytest.raises(UnknownNameError, match="unknown engine 'loca'; did you mean 'local'"):
        sweep(own, ["program.n=2,3"], engine="loca")


def test_rows_are_taken_from_the_cache_until_a_file_changes(own, tmp_path):
    seen = []
    first = sweep(own, ["program.n=1..5"], progress=seen.append)
    again = sweep(own, ["program.n=1..5"], progress=seen.append)
    assert first.rows == again.rows
    assert [progress.known for progress in seen] == [0] * 5 + [1, 2, 3, 4, 5]
    (tmp_path / "work.py").write_text((tmp_path / "work.py").read_text().replace("n * pause", "2 * n * pause"))
    changed = sweep(own, ["program.n=1..5"])
    assert changed.rows[0]["time"] == pytest.approx(2 * first.rows[0]["time"])


def test_progress_has_an_eta():
    assert Progress(0, 10, 0, 0, 1.0).left is None
    assert Progress(6, 10, 0, 2, 8.0).left == pytest.approx(8.0)


def test_a_worker_that_always_dies_is_an_error_that_is_not_remembered(own, tmp_path):
    scenario = quiet(own, kill="'/dev/null/never'")
    table = sweep(scenario, ["program.n=6,7,8"], engine="local:1")
    assert [row["error"] is None for row in table.rows] == [True, False, True]
    text = table.rows[1]["error"]
    assert "NotADirectory" in text or "WorkerDied" in text


def test_tasks_are_plain_and_make_their_scenario(own):
    (task,) = make_tasks(load_scenario(own), [{"program.n": 5, "run.seed": 9}])
    assert json.loads(json.dumps(task)) == task
    assert point_scenario(task).parameters["n"] == 5
    assert point_scenario(task).seed == 9
