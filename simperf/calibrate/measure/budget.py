"""A budget of time: which tasks still fit into it, by estimates that are corrected as tasks end."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from simperf.calibrate.measure.task import Task

__all__ = ["Budget", "OutOfTime", "time_limit"]

#: expected time of a point of which nothing is known [s]
USUAL = 1.5
#: time kept for the end of a session: the last save and the summary [s]
RESERVE = 1.5
#: weight of the estimates as they were given, against times that were taken [s]
_TRUST = 1.0


class OutOfTime(BaseException):
    """The time limit was reached; no `Exception`, so that no library takes it for a failure of its own."""


@dataclass
class Budget:
    """Time for a session, and what its tasks are expected to take of it.

    Parameters
    ----------
    seconds : float
        From `began` on [s].
    now : callable
        A clock [s].
    began : float
        On that clock; by default, when the budget is made.
    """

    seconds: float = float("inf")
    now: Callable[[], float] = time.monotonic
    began: float = -1.0
    _taken: dict[str, list[float]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.began < 0:
            self.began = self.now()

    @property
    def end(self) -> float:
        """When no task may run any more, on the clock [s]."""
        return self.began + self.seconds - RESERVE

    @property
    def left(self) -> float:
        """Time left for tasks [s]."""
        return self.end - self.now()

    @property
    def limited(self) -> bool:
        """Whether there is a limit at all."""
        return self.seconds < float("inf")

    def expected(self, task: Task, points: int) -> float:
        """Time of so many points of a task, by its estimate and by what others of its series took [s]."""
        estimate = _estimate(task, points)
        estimated, taken = self._taken.get(task.title, (0.0, 0.0))
        return estimate * (taken + _TRUST) / (estimated + _TRUST)

    def fits(self, task: Task, points: int) -> bool:
        """Whether so many points of a task are expected to end in time."""
        return self.expected(task, points) <= self.left

    def took(self, task: Task, points: int, seconds: float) -> None:
        """Remember how long so many points of a task took [s]."""
        sums = self._taken.setdefault(task.title, [0.0, 0.0])
        sums[0] += _estimate(task, points)
        sums[1] += seconds


def _estimate(task: Task, points: int) -> float:
    """Time of some points of a task before any was taken [s]."""
    each = task.seconds / max(len(task.points), 1) or USUAL
    return each * points


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `OutOfTime` in what runs longer than that [s]; without effect where the system has no such timer.

    A call into a library ends first: Python looks for signals between its own steps.
    """
    usable = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if not usable or not seconds < float("inf"):
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
