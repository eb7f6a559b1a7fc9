"""Time of one rank by what its compute stream does and waits for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import simpy

from simperf.engine.device import Stream
from simperf.engine.items import Marker
from simperf.engine.recorder import Category
from simperf.engine.share import ShareUser
from simperf.execution.works import Communication
from simperf.training.pipelined.communicators import Dimension

__all__ = ["Hold", "HoldUntil", "Reading", "StageTime", "StepMark"]


@dataclass(frozen=True, slots=True)
class Reading:
    """The time of a rank by kind, as it stands at the end of a step.

    Parameters
    ----------
    time : float
        The clock [s].
    kernels : float
        Time of kernels so far [s].
    waiting : float
        Time for which the compute stream has waited for work of other ranks: the bubble [s].
    exposed, moving : mapping of str to float
        By dimension, the time for which it has waited for bytes that moved, and the time for which they did [s].
    slowed : float
        By how much longer kernels took beside collectives than alone, so far [s].
    """

    time: float
    kernels: float
    waiting: float
    exposed: Mapping[str, float]
    moving: Mapping[str, float]
    slowed: float = 0.0


#: communications of a rank that are over and are kept, the last ones: as many as one wait may lie behind
_KEPT = 1 << 12


class _Moved(NamedTuple):
    """A communication of the rank that is over: when its bytes moved [s], and what it counts for."""

    began: float
    ended: float
    dimension: Dimension


@dataclass(eq=False, slots=True)
class StageTime:
    """The time of a rank so far, by what it went to.

    Parameters
    ----------
    launched : float
        Of kernels that were launched one by one [s].
    kernels : float
        Of those of closed layers, when the device comes to them [s].
    waiting : float
        For work of other ranks [s].
    exposed : dict of str to float
        For bytes that moved, by dimension [s].
    moving : dict of str to float
        Of all communication, by dimension [s].
    slowed : float
        By how much longer kernels of closed layers took beside collectives than alone [s].
    readings : list of Reading
        At the end of each step.
    durations : dict of hashable to list of float
        Of each communication [s], by what the rank finds the communicator by, in the order in which it began them.
    losses : dict of int to float
        By how much longer a kernel took beside collectives than alone [s], by its number among the stream's items.
    """

    launched: float = 0.0
    kernels: float = 0.0
    waiting: float = 0.0
    exposed: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    moving: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    slowed: float = 0.0
    readings: list[Reading] = field(default_factory=list)
    durations: dict[Hashable, list[float]] = field(default_factory=dict)
    losses: dict[int, float] = field(default_factory=dict)
    _moved: deque[_Moved] = field(default_factory=lambda: deque(maxlen=_KEPT))

    def add(self, other: StageTime) -> None:
        """Count what another process has spent, too."""
        self.kernels += other.launched + other.kernels
        self.waiting += other.waiting
        self.slowed += other.slowed
        for mine, others in ((self.exposed, other.exposed), (self.moving, other.moving)):
            for dimension, time in others.items():
                mine[dimension] += time

    def listen(self, stream: Stream, first: int = 0) -> None:
        """Keep what kernels of a stream lose from now on; items are counted from the `first` one."""

        def told(task: ShareUser, loss: float) -> None:
            if task is stream.task:
                self.losses[stream.completed - first] = loss

        stream.device.share.told = told

    def watch(self, work: Communication, dimension: Dimension, key: Hashable) -> None:
        """Count the time for which the bytes of a communication move, and keep it under the communicator's `key`."""
        assert work.done.callbacks is not None
        kept = self.durations.setdefault(key, [])
        number = len(kept)
        kept.append(0.0)

        def count(event: simpy.Event) -> None:
            now = work.group.env.now
            kept[number] = now - work.began
            self.moving[dimension] += kept[number]
            self._moved.append(_Moved(work.began, now, dimension))

        work.done.callbacks.append(count)

    def hold(self, since: float, work: Communication, dimension: Dimension) -> None:
        """The compute stream has waited `since` a time [s] until now, when a communication has ended.

        While bytes of it move, that is exposed communication, and while it waits for other ranks the bubble. Before the
        rank itself came to it, the rank's communications before it along that dimension had to end, which are on its
        stream or on one that it waits for, and count in the same way.
        """
        now = work.group.env.now
        began = min(max(since, work.began), now)
        entered = min(max(since, work.entered), began)
        self.exposed[dimension] += now - began
        self.waiting += began - entered
        while self._moved and self._moved[0].ended <= since:
            self._moved.popleft()
        for before in reversed(self._moved):
            if before.dimension == dimension and before.began < entered and entered > since:
                start, end = max(since, before.began), min(before.ended, entered)
                self.waiting += entered - end
                self.exposed[dimension] += end - start
                entered = start
        self.waiting += entered - since

    def read(self, now: float, launched: float, lost: float = 0.0) -> None:
        """Take a reading at a time [s], when kernels of a time [s] were launched one by one, and `lost` so much."""
        kernels, slowed = launched + self.kernels, self.slowed + lost
        self.readings.append(Reading(now, kernels, self.waiting, dict(self.exposed), dict(self.moving), slowed))


class StepMark(Marker):
    """The end of a step on a compute stream: takes a reading of what was spent."""

    __slots__ = ("launched", "spent")

    launch: float | None = 0.0

    def __init__(self, env: simpy.Environment, spent: StageTime) -> None:
        super().__init__(env, "step done")
        self.spent, self.launched = spent, spent.launched

    def start(self, stream: Stream) -> None:
        """Say that all before it is done; takes no time."""
        self.spent.read(float(stream.device.env.now), self.launched, stream.device.share.lost)
        super().start(stream)


class HoldUntil(ABC):
    """An item that holds a stream until other work is over, and counts the time.

    Parameters
    ----------
    work : Communication or Marker
    spent : StageTime
        Gets the time.
    """

    __slots__ = ("spent", "work")

    holds = 0.0
    category: Category = "wait"
    launch: float | None = 0.0
    name = "wait"

    def __init__(self, work: Communication | Marker, spent: StageTime) -> None:
        self.work, self.spent = work, spent

    def start(self, stream: Stream) -> None:
        """Continue at once if it is over, or else when it is."""
        since = stream.device.env.now

        def proceed(event: simpy.Event) -> None:
            self.count(since, stream.device.env.now)
            stream.path = max(stream.path, self.work.path)
            stream.finish(event)

        if self.work.done.callbacks is None:
            proceed(self.work.done)
        else:
            self.work.done.callbacks.append(proceed)

    @abstractmethod
    def count(self, since: float, now: float) -> None:
        """Count the time from `since` to `now` [s]."""


class Hold(HoldUntil):
    """A hold of a stream until a communication is over."""

    __slots__ = ("dimension",)

    name = "wait: communication"
    work: Communication

    def __init__(self, work: Communication, spent: StageTime, dimension: Dimension) -> None:
        super().__init__(work, spent)
        self.dimension = dimension

    def count(self, since: float, now: float) -> None:
        """Count it as the bubble until bytes move, then as exposed communication."""
        if now > since:
            self.spent.hold(since, self.work, self.dimension)
