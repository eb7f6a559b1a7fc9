"""Processes on this computer or many, by dask.distributed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from concurrent.futures import wait as wait_for
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar

from simperf.errors import EngineError, InputError, Problem
from simperf.study.processes import deaf_children

__all__ = ["DaskCluster"]

T = TypeVar("T")

_distributed: Any = import_module("distributed")  # its functions have no types
_psutil: Any = import_module("psutil")  # which dask needs

#: how long a scheduler may take to answer at first [s]
ANSWER_TIMEOUT = 20.0
#: how long a scheduler may take to answer later, and how long it may have no worker [s]; a busy computer is slow
_GRACE = 300.0
#: how long processes may take to end [s]
_ENDING = 60.0
#: how long a client, and then its cluster, may take to give up [s]
_GIVING_UP = 10.0
#: how long after its failure a cluster may still start a process, which threads of its own do [s]
_AFTERMATH = 1.0


class DaskCluster(Executor):
    """An executor over dask.distributed; a task whose worker dies goes to another one.

    Parameters
    ----------
    workers : int
        Processes of a cluster that is made on this computer, without an address.
    address : str
        Of a scheduler that runs already; the simperf of its workers must be this one.

    Raises
    ------
    InputError
        Nothing answers at the address.
    EngineError
        The workers of this computer did not start in time.
    """

    def __init__(self, workers: int = 0, *, address: str = "") -> None:
        self.client: Any
        self.cluster: Any = None
        self._name = f"dask:{address or workers}"
        self._seen = time.monotonic()  # when there was a worker
        self._pending: set[Future[Any]] = set()
        self._open = True
        if address:
            try:
                self.client = _distributed.Client(address, timeout=ANSWER_TIMEOUT)
            except (OSError, ValueError) as error:
                expected = "the address of a scheduler of dask, such as dask:tcp://host:8786"
                raise InputError(
                    Problem(f"no scheduler answers: {error}", key="--engine", value=address, expected=expected)
                ) from None
            return
        self._others, others = _children(), _clusters()
        try:
            with deaf_children():
                self.cluster = _distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    dashboard_address=None,
                    host="127.0.0.1",
                    silence_logs=logging.CRITICAL + 1,  # a scheduler that is stopped tells of connections that break
                    # a scheduler listens for browsers even without a dashboard: here, and where nobody else does
                    scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                    death_timeout=_GRACE,
                )
            self.client = _distributed.Client(self.cluster, timeout=_GRACE)
        except BaseException as error:  # dask has many; and an interrupt
            for cluster in _clusters() - others:
                _leave_alone(cluster)
                _stop(cluster)
            _end_children(self._others)
            if not isinstance(error, Exception):
                raise
            why = f"{type(error).__name__} {error}".rstrip()
            raise self._lost(f"its {workers} processes did not start within {_GRACE:g} s: {why}") from None
        _leave_alone(self.cluster)

    @property
    def workers(self) -> int:
        """Threads of all workers that are there now, 1 at least."""
        return max(1, sum(self._threads().values()))

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Have ``fn(*args, **kwargs)`` done by a worker.

        Raises
        ------
        RuntimeError
            The executor is shut down.
        """
        if not self._open:
            raise RuntimeError("the executor is shut down")
        outcome: Future[T] = Future()
        self._pending.add(outcome)
        outcome.add_done_callback(self._pending.discard)
        self.client.loop.add_callback(self._settle, self.client.submit(fn, *args, pure=False, **kwargs), outcome)
        return outcome

    async def _settle(self, remote: Any, outcome: Future[Any]) -> None:
        """Give `outcome` whatever becomes of dask's future `remote`: one that is never set is waited for.

        The result of a task that is done may be lost with the scheduler while it is fetched.
        """
        result: Any = None
        wrong: BaseException | None = None
        try:
            result = await remote
        except (asyncio.CancelledError, _distributed.CancelledError):
            wrong = self._lost("the connection to its scheduler was lost")
        except BaseException as error:
            raised = remote.status == "error"  # by the task; else its result did not come
            wrong = error if raised else self._lost("the connection to its scheduler was lost")
        if not outcome.set_running_or_notify_cancel():
            return
        if wrong is None:
            outcome.set_result(result)
        else:
            outcome.set_exception(wrong)

    def check(self) -> None:
        """Refuse to wait any longer where nothing can come.

        Raises
        ------
        EngineError
            The scheduler does not answer, or has had no worker for a while.
        """
        found, now = self._threads(), time.monotonic()
        if found:
            self._seen = now
        elif now - self._seen > _GRACE:
            raise self._lost(f"its scheduler had no worker for {now - self._seen:.0f} s")

    def _threads(self) -> dict[str, int]:
        """Threads of each worker, as the scheduler says."""
        began = time.monotonic()
        asked = asyncio.run_coroutine_threadsafe(self.client.scheduler.ncores(), self.client.loop.asyncio_loop)
        try:
            return dict(asked.result(_GRACE))
        except OSError as error:  # a time-out is one
            asked.cancel()
            waited = time.monotonic() - began
            raise self._lost(f"its scheduler did not answer for {waited:.0f} s {error}".rstrip()) from None

    def _lost(self, what: str) -> EngineError:
        expected = "a scheduler that runs and has workers, or another engine, such as local"
        return EngineError(str(Problem(what, key="--engine", value=self._name, expected=expected)))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks, and end the cluster if it was made here."""
        self._open = False
        if wait and not cancel_futures:
            wait_for(list(self._pending))
        for outcome in list(self._pending):
            outcome.cancel()
        with suppress(TimeoutError):
            self.client.close()
        self._close_cluster()

    def abandon(self) -> None:
        """End at once: what waits is cancelled, and what is at work ends with its process.

        The tasks at work on a cluster that others run continue there, unheard.
        """
        self._open = False
        for outcome in list(self._pending):
            outcome.cancel()
        with suppress(TimeoutError):  # dask waits for minutes for a scheduler that is busy
            self.client.close(timeout=_GIVING_UP)
        workers = _workers(self.cluster) if self.cluster else set()
        self._close_cluster(_GIVING_UP)
        if any(worker.is_running() for worker in workers):
            _stop(self.cluster)
            _end(workers)
            # what dask does when it forgets them would wait for the loop that is stopped
            self.client.status, self.cluster.status = "closed", _distributed.Status.closed

    def _close_cluster(self, within: float = _ENDING) -> None:
        """End the processes; those that do not hear end with this one, which they watch."""
        if self.cluster is None:
            return
        try:
            with suppress(TimeoutError):
                self.cluster.close(timeout=within)
        except AssertionError:  # dask's, where a process is just starting
            _stop(self.cluster)
            _end_children(self._others)


def _clusters() -> set[Any]:
    """All clusters of dask that this process has made, those that are not whole too."""
    return set(_distributed.SpecCluster._instances)


def _leave_alone(cluster: Any) -> None:
    """Keep dask from ending a cluster at exit, which fails where a process is just starting: `DaskCluster` ends it."""
    cluster.shutdown_on_close = False


def _stop(cluster: Any) -> None:
    """Keep a cluster whose processes are about to be ended from starting others, and from telling that they failed."""
    cluster.loop.asyncio_loop.set_exception_handler(_say_nothing)
    cluster.loop.add_callback(cluster.loop.stop)


def _say_nothing(loop: object, context: object) -> None:
    """Handle what goes wrong in a cluster that is stopped."""


def _workers(cluster: Any) -> set[Any]:
    """The processes of a cluster on this computer."""
    numbers = {nanny.pid for nanny in list(cluster.workers.values())}
    return {child for child in _children() if child.pid in numbers}


def _end(processes: set[Any]) -> None:
    """End processes: by a request, and by force where it is not heard."""
    for process in processes:
        with suppress(_psutil.NoSuchProcess):
            process.terminate()
    for process in _psutil.wait_procs(processes, timeout=_AFTERMATH)[1]:
        with suppress(_psutil.NoSuchProcess):
            process.kill()


def _children() -> set[Any]:
    """All processes that this one has started, by threads of dask that are just starting one too."""
    return set(_psutil.Process().children())


def _end_children(others: set[Any]) -> None:
    """End the processes of a cluster that was never whole: all but `others`, those that are just starting too."""
    ended: set[Any] = set()
    last = time.monotonic()
    while time.monotonic() - last < _AFTERMATH:
        for child in _children() - others - ended:
            with suppress(_psutil.NoSuchProcess):
                child.terminate()
            ended.add(child)
            last = time.monotonic()
        time.sleep(0.02)
    _psutil.wait_procs(ended, timeout=_AFTERMATH)  # the one that keeps account of shared memory ends after all others
