"""Executors of many runs: here, in processes of this computer, or on a cluster.

An engine is a name with an optional argument, such as ``local:4``, and stands for a
`concurrent.futures.Executor`. An installed package adds its own through the entry-point
group ``simperf.executors``: a function that takes the argument and gives an executor.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any, TypeVar

from simperf.errors import InputError, Problem, UnknownNameError
from simperf.registry import Registry

__all__ = ["EXECUTORS", "Serial", "check_engine", "cores", "executor", "using", "workers_of"]

T = TypeVar("T")
Maker = Callable[[str], Executor]

#: processes that an engine may have
_MOST = 4096

#: Makers of executors by the engine's name; each takes what stands behind the colon, "" if nothing does.
EXECUTORS: Registry[Maker] = Registry("engine", package="simperf.study.executors", group="simperf.executors")


def executor(engine: str = "serial") -> Executor:
    """Make the executor that `engine` names; use it in a ``with``, so that its processes end.

    Parameters
    ----------
    engine : str
        ``"serial"``; ``"local"`` or ``"local:4"`` for so many processes (one a core if left out);
        ``"dask"`` or ``"dask:3"`` for a cluster of dask on this computer, ``"dask:tcp://host:8786"``
        for a scheduler elsewhere; or one that an installed package brings.

    Raises
    ------
    UnknownNameError
        No such engine.
    InputError
        The argument says nothing to it, or a library is missing.

    Examples
    --------
    >>> with executor("serial") as engine:
    ...     engine.submit(abs, -3).result()
    3
    """
    check_engine(engine)
    name, _, argument = engine.partition(":")
    return EXECUTORS[name](argument)


def check_engine(engine: str | Executor, *, chosen: str = "") -> None:
    """Refuse an engine that there is not, before anything is done and also where all that it would do is known already.

    Parameters
    ----------
    engine : str or Executor
    chosen : str
        Another name that is taken, for the engine that the caller chooses; none where it is empty.

    Raises
    ------
    UnknownNameError
        No such engine.
    InputError
        Its argument says nothing to it.
    """
    if not isinstance(engine, str) or (chosen and engine == chosen):
        return
    name, _, argument = engine.partition(":")
    if name not in EXECUTORS:
        raise UnknownNameError("engine", name, [*EXECUTORS, *([chosen] if chosen else [])])
    if name == "serial" and argument:
        raise _bad(name, argument, name)
    counted = name == "local" or (name == "dask" and argument.isdecimal())
    digits = argument.isdecimal() and len(argument) <= len(str(_MOST))
    if counted and argument and not (digits and 1 <= int(argument) <= _MOST):
        raise _bad(name, argument, f"a number of processes, such as {name}:4")


@contextmanager
def using(engine: str | Executor) -> Iterator[Executor]:
    """Use an engine, and end it if it was made here.

    Whatever goes wrong meanwhile, Ctrl-C among it, ends it without waiting: tasks that wait are not begun, and
    those at work are given up by an executor that has `abandon`, a method without arguments.
    """
    if isinstance(engine, Executor):
        yield engine
        return
    pool = executor(engine)
    try:
        yield pool
    except BaseException:
        abandon = getattr(pool, "abandon", None)
        abandon() if abandon else pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


def workers_of(engine: Executor) -> int:
    """Number of tasks that `engine` works on at a time, as far as it says; 1 if it does not."""
    return max(1, int(getattr(engine, "workers", getattr(engine, "_max_workers", 1))))


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Serial(Executor):
    """Does each task at once, in the process that submits it."""

    workers = 1

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Do the task; the future that comes back is done."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@EXECUTORS.register("serial")
def _serial(argument: str) -> Executor:
    return Serial()


@EXECUTORS.register("local")
def _local(argument: str) -> Executor:
    from simperf.study.processes import Processes

    return Processes(int(argument) if argument else cores())


@EXECUTORS.register("dask")
def _dask(argument: str) -> Executor:
    try:
        from simperf.study.dask_cluster import DaskCluster
    except ImportError:
        expected = "pip install distributed"
        raise InputError(Problem("dask.distributed is not installed", key="dask", expected=expected)) from None
    if argument and not argument.isdecimal():
        return DaskCluster(address=argument)
    return DaskCluster(int(argument) if argument else cores())


def _bad(name: str, argument: str, expected: str) -> InputError:
    return InputError(
        Problem("the engine cannot be read", key="--engine", value=f"{name}:{argument}", expected=expected)
    )
