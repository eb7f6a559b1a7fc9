"""A scheduler and workers of dask as processes of their own: a sweep by the scheduler's address outlives a worker."""

import json
import re
import signal
from contextlib import ExitStack

import pytest

from simperf.cli import main
from tests.faults.processes import Command
from tests.polling import wait_until

pytest.importorskip("distributed", reason="dask is not installed")
SWEEP = ["d2l/async", "--vary", "program.n=150000..150011:12", "--fast", "--no-cache"]


@pytest.fixture
def cluster(tmp_path):
    """A scheduler, two workers and a sweep by the scheduler's address, of which two points are done."""
    where, journal = tmp_path / "scheduler.json", tmp_path / "dask.jsonl.journal"
    with ExitStack() as stack:

        def start(*words):
            command = Command(["-m", *words], tmp_path)
            stack.callback(command.clear)
            return command

        alone = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        scheduler = start("distributed.cli.dask_scheduler", *alone, "--scheduler-file", where)
        wait_until(lambda: where.exists() and where.read_text(), "a scheduler")
        address = json.loads(where.read_text())["address"]
        assert address.startswith("tcp://127.0.0.1:")
        worker = ("distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard")
        own = [("--scheduler-file", where, "--local-directory", tmp_path / f"worker{number}") for number in range(2)]
        workers = [start(*worker, *words) for words in own]
        sweep = start("simperf", "sweep", *SWEEP, "--engine", f"dask:{address}", "-o", "dask.jsonl")
        wait_until(lambda: journal.exists() and journal.read_bytes().count(b"\n") > 2, "two points")
        yield scheduler, workers, sweep


@pytest.mark.long
def test_a_worker_is_killed_and_the_table_has_the_same_bytes(tmp_path, cluster):
    _, workers, sweep = cluster
    workers[0].process.send_signal(signal.SIGKILL)
    code, _, err = sweep.end()
    assert (code, workers[1].process.poll()) == (0, None), err
    assert workers[0].process.wait(10) == -signal.SIGKILL
    assert main(["sweep", *SWEEP, "-o", str(tmp_path / "serial.jsonl")]) == 0
    assert (tmp_path / "dask.jsonl").read_bytes() == (tmp_path / "serial.jsonl").read_bytes()
    assert not (tmp_path / "dask.jsonl.journal").exists()


@pytest.mark.long
def test_a_scheduler_is_killed_and_the_sweep_goes_on_elsewhere(tmp_path, cluster):
    scheduler, _, sweep = cluster
    scheduler.process.send_signal(signal.SIGKILL)
    code, _, err = sweep.end(within=120.0)
    assert code == 1, err
    told = (
        r"--engine: (the connection to its scheduler was lost|its scheduler did not answer .*) \(read: dask:tcp://127"
    )
    assert re.search(told, err), err
    assert "defect" not in err
    kept = (tmp_path / "dask.jsonl.journal").read_bytes()
    assert main(["sweep", *SWEEP, "-o", str(tmp_path / "dask.jsonl")]) == 0
    rows = [json.loads(line) for line in (tmp_path / "dask.jsonl").read_bytes().splitlines()]
    assert [(row["point"], row["error"]) for row in rows] == [(number, None) for number in range(12)]
    assert 3 <= kept.count(b"\n") < 13


def test_an_address_where_nobody_answers_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("simperf.study.dask_cluster.ANSWER_TIMEOUT", 1.0)
    assert main(["sweep", *SWEEP, "--engine", "dask:tcp://127.0.0.1:1"]) == 2
    assert "--engine: no scheduler answers" in capsys.readouterr().err
