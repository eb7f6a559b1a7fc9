"""Engines: what is submitted is done, also when the processes that do it die."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

import pytest

from simperf.errors import InputError, UnknownNameError, WorkerDiedError
from simperf.study import processes
from simperf.study.executors import EXECUTORS, Serial, cores, executor, using, workers_of


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


def test_what_goes_wrong_ends_an_engine_at_once_also_what_is_at_work():
    futures = []

    def interrupted():
        with using("local:1") as engine:
            futures.append(engine.submit(square, 3))
            assert futures[0].result(60) == 9
            futures.extend(engine.submit(time.sleep, 600) for _ in range(5))
            raise KeyboardInterrupt

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert time.monotonic() - began < 60
    assert isinstance(futures[1].exception(), WorkerDiedError)
    assert futures[-1].cancelled()


def test_ctrl_c_while_a_process_starts_leaves_nobody_waiting(monkeypatch):
    @contextlib.contextmanager
    def interrupted():
        yield
        raise KeyboardInterrupt

    before = set(multiprocessing.active_children())
    monkeypatch.setattr(processes, "deaf_children", interrupted)
    with pytest.raises(KeyboardInterrupt), using("local:1") as engine:
        engine.submit(square, 3)
    assert not set(multiprocessing.active_children()) - before


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_request_to_end_waits_until_a_process_has_started(monkeypatch, name):
    """Else the process finds nothing to read, and says so on the terminal."""
    started, number = [], getattr(signal, name)

    class Starting(Locked):
        def submit(self, *_, **__):
            os.kill(os.getpid(), number)
            time.sleep(0.01)
            started.append(True)
            return super().submit()

    def ends(*_):
        raise KeyboardInterrupt

    before = {one: signal.signal(one, ends) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        monkeypatch.setattr(processes, "ProcessPoolExecutor", Starting)
        engine = processes.Processes(1)
        with pytest.raises(KeyboardInterrupt):
            engine.submit(square, 3)
        assert started
        assert all(signal.getsignal(one) is ends for one in before)
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


class Locked:
    """A pool that holds its lock while it says that it broke, as Python's own does from 3.12.1 on."""

    def __init__(self, *_, **__):
        self.lock, self.futures = threading.Lock(), []

    def submit(self, *_, **__):
        with self.lock:
            self.futures.append(Future())
        return self.futures[-1]

    def breaks(self):
        with self.lock:
            for future in self.futures:
                future.set_exception(BrokenProcessPool())

    def shutdown(self, *_, **__):
        pass


def test_a_pool_that_breaks_does_not_wait_for_who_hands_it_the_next_task(monkeypatch):
    monkeypatch.setattr(processes, "ProcessPoolExecutor", Locked)
    engine = processes.Processes(1)
    engine.submit(square, 3)
    breaking = threading.Thread(target=engine._pool.breaks, daemon=True)
    with engine._lock:  # as `submit` holds it while it waits for the pool's
        breaking.start()
        breaking.join(10)
        assert not breaking.is_alive()
    engine.abandon()


def test_a_process_that_cannot_be_started_fails_its_task(monkeypatch):
    def nothing(*_, **__):
        raise OSError("too many open files")

    monkeypatch.setattr(processes, "ProcessPoolExecutor", Locked)
    engine = processes.Processes(1)
    first = engine.submit(square, 3)
    monkeypatch.setattr(Locked, "submit", nothing)
    assert "too many open files" in str(engine.submit(square, 4).exception(60))
    engine._pool.breaks()  # the first one cannot be done again either
    assert "too many open files" in str(first.exception(60))
    engine.shutdown()


def until(condition):
    """Wait for what another thread does."""
    limit = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.01)


@pytest.fixture
def queued_again(monkeypatch):
    """An engine, and tasks: two whose processes died twice and that wait to be tried alone, and one at work."""
    monkeypatch.setattr(processes, "ProcessPoolExecutor", Locked)
    engine = processes.Processes(1)
    futures = [engine.submit(square, number) for number in range(3)]
    for deaths in (1, 2):
        pool = engine._pool
        pool.breaks()
        until(lambda pool=pool: engine._pool is not pool and engine._inside)
        until(lambda deaths=deaths: len(engine._alone) == (2 if deaths == 2 else 0) and engine._ends.empty())
    yield engine, futures
    engine._pool and engine._pool.breaks()
    engine.abandon()


def test_a_task_that_waits_again_can_be_cancelled(queued_again):
    _, (first, second, third) = queued_again
    assert not first.running()
    assert third.running()
    assert not third.cancel()
    assert first.cancel()
    assert first.cancelled()
    assert not second.done()


def test_tasks_that_wait_again_are_cancelled_when_all_is(queued_again):
    engine, (first, second, third) = queued_again
    engine.shutdown(wait=False, cancel_futures=True)
    assert not wait([first, second], 10).not_done
    assert first.cancelled()
    assert second.cancelled()
    assert not third.done()
    engine._pool.futures[0].set_result(4)
    assert third.result(10) == 4


def test_what_waits_for_a_task_that_fails_may_ask_another_thread(monkeypatch):
    found = []

    def take():
        found.append(engine._lock.acquire(timeout=5))
        if found[-1]:
            engine._lock.release()

    def ask(_):
        asking = threading.Thread(target=take, daemon=True)
        asking.start()
        asking.join()

    def nothing(*_, **__):
        raise OSError("too many open files")

    monkeypatch.setattr(processes, "ProcessPoolExecutor", Locked)
    engine = processes.Processes(1)
    future = engine.submit(square, 3)
    future.add_done_callback(ask)
    monkeypatch.setattr(Locked, "submit", nothing)
    engine._pool.breaks()
    assert "too many open files" in str(future.exception(60))
    until(lambda: found)
    assert found == [True]


def test_an_engine_that_nobody_waits_for_ends_after_its_last_task(monkeypatch):
    pools = []

    def made(*_, **__):
        pools.append(Locked())
        return pools[-1]

    monkeypatch.setattr(processes, "ProcessPoolExecutor", made)
    engine = processes.Processes(1)
    futures = [engine.submit(square, number) for number in range(5)]
    engine.shutdown(wait=False)
    for number in range(5):
        until(lambda number=number: len(pools[0].futures) > number)
        pools[0].futures[number].set_result(number * number)
    assert [future.result(10) for future in futures] == [0, 1, 4, 9, 16]
    engine._reader.join(10)
    assert not engine._reader.is_alive()
    assert engine._leash.closed
    assert len(pools) == 1


def test_nothing_is_begun_after_all_is_given_up(monkeypatch):
    monkeypatch.setattr(processes, "ProcessPoolExecutor", Locked)
    engine = processes.Processes(1)
    futures = [engine.submit(square, number) for number in range(5)]
    pool = engine._pool
    engine._leash.close()  # the first thing that `abandon` does
    pool.breaks()
    with pytest.raises(WorkerDiedError):
        futures[0].result(60)
    assert engine._pool in (None, pool)
    engine.abandon()
    assert all(future.done() for future in futures)


def test_an_engine_of_ones_own_is_left_open():
    with ThreadPoolExecutor(1) as mine:
        with pytest.raises(ZeroDivisionError), using(mine) as engine:
            assert engine.submit(square, 3).result(60) // 0
        assert mine.submit(square, 2).result(60) == 4


SLEEPER = """
import sys
import threading
import time
from simperf.study.executors import using

if __name__ == "__main__":
    with using(sys.argv[1]) as engine:
        waiting = [engine.submit(time.sleep, 600) for _ in range(8)]
        print("begun", flush=True)
        waiting[0].result()
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Ctrl-C reaches a group of processes on POSIX")
@pytest.mark.parametrize(("engine", "pause"), [("local:2", 0.0), ("local:2", 0.3), ("dask:2", 0.0)])
def test_ctrl_c_reaches_every_process_and_only_the_first_answers(tmp_path, engine, pause):
    if engine.startswith("dask"):
        pytest.importorskip("simperf.study.dask_cluster", exc_type=ImportError)
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    words = [sys.executable, "-X", "faulthandler", str(tmp_path / "sleeper.py"), engine]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as running:
        assert running.stdout.readline() == "begun\n"
        time.sleep(pause)
        os.killpg(running.pid, signal.SIGINT)
        try:
            err = running.communicate(timeout=60)[1]
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGABRT)  # faulthandler tells where it waits
            pytest.fail(running.communicate()[1])
    assert err.count("Traceback") == 1, err
    assert err.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.parametrize("engine", ["local:0", "local:x", "local:-1", "serial:2", "local:99999", "dask:0"])
def test_arguments_that_say_nothing(engine):
    with pytest.raises(InputError, match="the engine cannot be read"):
        executor(engine)


def test_unknown_engine_says_the_nearest():
    with pytest.raises(UnknownNameError, match="'local'"):
        executor("locl:2")


def test_a_program_from_standard_input_has_processes():
    task = "with Processes(1) as some:\n    print(some.submit(abs, -3).result())"
    program = f"from simperf.study.processes import Processes\n{task}"
    found = subprocess.run([sys.executable, "-"], input=program, capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout == "3\n"


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
    try:
        with EXECUTORS.temporary_entries(), executor("threads:3") as engine:
            assert isinstance(engine, ThreadPoolExecutor)
            assert workers_of(engine) == 3
            assert engine.submit(square, 4).result() == 16
    finally:
        sys.modules.pop("threads", None)


def test_dask_that_is_not_installed_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "simperf.study.dask_cluster", None)
    with pytest.raises(InputError, match="not installed"):
        executor("dask")


def test_dask_scheduler_that_does_not_answer(monkeypatch):
    module = pytest.importorskip("simperf.study.dask_cluster", exc_type=ImportError)
    monkeypatch.setattr(module, "ANSWER_TIMEOUT", 0.5)
    with pytest.raises(InputError, match="no scheduler answers"):
        executor("dask:tcp://127.0.0.1:1")


def test_cores_are_those_of_this_process():
    assert 1 <= cores() <= (os.cpu_count() or 1)


def test_two_clusters_at_once_are_in_nobodys_way():
    """Each listens on ports that are free, and to this machine alone."""
    module = pytest.importorskip("simperf.study.dask_cluster", exc_type=ImportError)
    both = []
    try:
        both += [module.DaskCluster(1), module.DaskCluster(1)]
        pages = [each.cluster.scheduler.http_server for each in both]
        assert {page.address for page in pages} == {"127.0.0.1"}
        assert pages[0].port != pages[1].port
        assert [each.submit(abs, -3).result() for each in both] == [3, 3]
    finally:
        for each in both:
            each.shutdown()
