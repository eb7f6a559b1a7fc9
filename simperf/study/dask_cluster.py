"""Processes on this computer or many, by dask.distributed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Executor, Future
from importlib import import_module
from typing import Any, TypeVar

from simperf.errors import InputError, Problem
from simperf.study.processes import deaf_children

__all__ = ["DaskCluster"]

T = TypeVar("T")

_distributed: Any = import_module("distributed")  # its functions have no types

#: how long the scheduler may take to answer [s]
_PATIENCE = 20.0


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
    """

    def __init__(self, workers: int = 0, *, address: str = "") -> None:
        self.client: Any
        self.cluster: Any = None
        if address:
            try:
                self.client = _distributed.Client(address, timeout=_PATIENCE)
            except (OSError, ValueError) as error:
                expected = "the address of a scheduler of dask, such as dask:tcp://host:8786"
                raise InputError(
                    Problem(f"no scheduler answers: {error}", key="--engine", value=address, expected=expected)
                ) from None
        else:
            with deaf_children():
                self.cluster = _distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    dashboard_address=None,
                    host="127.0.0.1",
                    silence_logs=logging.CRITICAL + 1,  # a scheduler that is stopped tells of connections that break
                    # a scheduler listens for browsers even without a dashboard: here, and where nobody else does
                    scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                )
            self.client = _distributed.Client(self.cluster, timeout=_PATIENCE)
        self._inner = self.client.get_executor(pure=False)

    @property
    def workers(self) -> int:
        """Threads of all workers that are there now, 1 at least."""
        return max(1, int(sum(self.client.nthreads().values())))

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Have ``fn(*args, **kwargs)`` done by a worker."""
        return self._inner.submit(fn, *args, **kwargs)  # type: ignore[no-any-return]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks, and end the cluster if it was made here."""
        if cancel_futures:
            wait = False
        self._inner.shutdown(wait=wait)
        self.client.close()
        if self.cluster is not None:
            self.cluster.close()
