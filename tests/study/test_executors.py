"""Engines: what is submitted is done, also when the processes that do it die."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from simperf.errors import InputError, UnknownNameError
from simperf.study.executors import EXECUTORS, Serial, WorkerDiedError, cores, executor, workers_of


def square(number):
    return number * number


def die_once(flag, number):
    """Kill the process that works on this, the first time."""
    if not os.path.exists(flag):
        with open(flag, "w"):
            pass
        os.kill(os.getpid(), 9)
    return number


def die(_):
    os.kill(os.getpid(), 9)


def test_serial_does_each_task_at_once_and_keeps_its_error():
    with executor("serial") as engine:
        assert isinstance(engine, Serial)
        assert engine.submit(square, 3).result() == 9
        assert isinstance(engine.submit(square, "x").exception(), TypeError)
    assert workers_of(engine) == 1


def test_local_survives_deaths_and_names_the_task_that_kills(tmp_path):
    with executor("local:2") as engine:
        assert workers_of(engine) == 2
        before = [engine.submit(square, number) for number in range(10)]
        once, poison = engine.submit(die_once, str(tmp_path / "flag"), 7), engine.submit(die, 0)
        after = [engine.submit(square, number) for number in range(10)]
        wrong = engine.submit(square, "x")
        assert [future.result(60) for future in before + after] == [n * n for n in range(10)] * 2
        assert once.result(60) == 7
        assert isinstance(poison.exception(60), WorkerDiedError)
        assert isinstance(wrong.exception(60), TypeError)
    with pytest.raises(RuntimeError, match="shut down"):
        engine.submit(square, 1)


def test_local_lets_go_of_tasks_that_are_cancelled():
    with executor("local:1") as engine:
        futures = [engine.submit(square, number) for number in range(50)]
        engine.shutdown(cancel_futures=True)
    assert futures[-1].cancelled()
    assert futures[0].result(30) == 0


@pytest.mark.parametrize("engine", ["local:0", "local:x", "local:-1", "serial:2", "local:99999"])
def test_arguments_that_say_nothing(engine):
    with pytest.raises(InputError, match="the engine cannot be read"):
        executor(engine)


def test_unknown_engine_says_the_nearest():
    with pytest.raises(UnknownNameError, match="'local'"):
        executor("locl:2")


def test_an_installed_package_brings_an_engine(tmp_path, monkeypatch):
    (tmp_path / "threads.py").write_text(
        "from concurrent.futures import ThreadPoolExecutor\n\n\n"
        "def threads(argument):\n    return ThreadPoolExecutor(int(argument or 1))\n"
    )
    info = tmp_path / "threads-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: threads\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[simperf.executors]\nthreads = threads:threads\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(EXECUTORS, "_loaded", False)
    try:
        with executor("threads:3") as engine:
            assert isinstance(engine, ThreadPoolExecutor)
            assert workers_of(engine) == 3
            assert engine.submit(square, 4).result() == 16
    finally:
        EXECUTORS._entries.pop("threads", None)
        sys.modules.pop("threads", None)


def test_dask_that_is_not_installed_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "simperf.study.dask_cluster", None)
    with pytest.raises(InputError, match="not installed"):
        executor("dask")


def test_dask_scheduler_that_does_not_answer(monkeypatch):
    module = pytest.importorskip("simperf.study.dask_cluster", exc_type=ImportError)
    monkeypatch.setattr(module, "_PATIENCE", 0.5)
    with pytest.raises(InputError, match="no scheduler answers"):
        executor("dask:tcp://127.0.0.1:1")


def test_cores_are_those_of_this_process():
    assert 1 <= cores() <= (os.cpu_count() or 1)
