"""A scheduler and workers of dask as processes of their own: a sweep by the scheduler's address outlives a worker."""

import json
import signal
from contextlib import ExitStack

import pytest

from simperf.cli import main
from tests.faults.processes import Command, wait_until

pytest.importorskip("distributed", reason="dask is not installed")
SWEEP = ["d2l/async", "--vary", "program.n=150000..150011:12", "--fast", "--no-cache"]


def test_a_worker_is_killed_and_the_table_has_the_same_bytes(tmp_path):
    assert main(["sweep", *SWEEP, "-o", str(tmp_path / "serial.jsonl")]) == 0
    where = tmp_path / "scheduler.json"
    with ExitStack() as stack:

        def start(*words):
            command = Command(["-m", *words, "--scheduler-file", where], tmp_path)
            stack.callback(command.clear)
            return command

        start("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        wait_until(lambda: where.exists() and where.read_text(), "a scheduler")
        address = json.loads(where.read_text())["address"]
        assert address.startswith("tcp://127.0.0.1:")
        worker = ("distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard")
        workers = [start(*worker, "--local-directory", tmp_path / f"worker{number}") for number in range(2)]
        words = ["-m", "simperf", "sweep", *SWEEP, "--engine", f"dask:{address}", "-o", "dask.jsonl"]
        sweep = Command(words, tmp_path)
        stack.callback(sweep.clear)
        journal = tmp_path / "dask.jsonl.journal"
        wait_until(lambda: journal.exists() and journal.read_bytes().count(b"\n") > 2, "two points")
        workers[0].process.send_signal(signal.SIGKILL)
        code, _, err = sweep.end()
        assert (code, workers[1].process.poll()) == (0, None), err
        assert workers[0].process.wait(10) == -signal.SIGKILL
    assert (tmp_path / "dask.jsonl").read_bytes() == (tmp_path / "serial.jsonl").read_bytes()
    assert not journal.exists()


def test_an_address_where_nobody_answers_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("simperf.study.dask_cluster._PATIENCE", 1.0)
    assert main(["sweep", *SWEEP, "--engine", "dask:tcp://127.0.0.1:1"]) == 2
    assert "--engine: no scheduler answers" in capsys.readouterr().err
