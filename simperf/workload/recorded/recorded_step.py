"""Recorded steps: calls of each thread of the host, activities of each stream, and what they wait for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from simperf.workload.recorded.kernel_class import KernelClass

__all__ = ["HostCall", "RecordedActivity", "RecordedStep"]


class RecordedActivity(NamedTuple):
    """An activity of the GPU.

    Parameters
    ----------
    name : str
    stream : int
        From 0, in the order in which they are met.
    duration : float
        As recorded [s].
    latency, gap : float
        From its launch to its begin on an idle stream, and from the end of what it waits for to its begin [s].
    after : tuple of int
        Activities of other streams that it waits for.
    kind : KernelClass
    nbytes : float
        Of a copy [B].
    start : float
        As recorded, from the beginning of the step [s].
    """

    name: str
    stream: int
    duration: float
    latency: float
    gap: float
    after: tuple[int, ...]
    kind: KernelClass
    nbytes: float
    start: float


class HostCall(NamedTuple):
    """A call of the host that launches activities or waits for some.

    Parameters
    ----------
    thread : int
    after : int
        The call of another thread after which it begins; -1 for the one before it on its own.
    host : float
        Time of the host from then on [s].
    launches : tuple of int
        Activities.
    waits : tuple of int
        Activities that it waits for.
    first : bool
        Whether it waits before it launches.
    rest : float
        From the end of its waiting to its return [s].
    """

    thread: int
    after: int
    host: float
    launches: tuple[int, ...]
    waits: tuple[int, ...]
    first: bool
    rest: float


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """Calls and activities of one rank in one step of training, or several.

    Parameters
    ----------
    file, gpu : str
        Of the trace.
    rank, world : int
    steps : int
        Of the profiler; 1 if it counted none.
    time : float
        From the beginning of the first one to the end of all that it launched [s].
    origin : float
        Its beginning on the clock of the trace [s].
    calls : tuple of HostCall
        Of all threads, by begin.
    activities : tuple of RecordedActivity
        In the order of their launches; the first `running` were launched before.
    running : int
    streams, threads : int
    dropped : int
        Activities whose launch is not in the trace.
    """

    file: str
    gpu: str
    rank: int
    world: int
    steps: int
    time: float
    origin: float
    calls: tuple[HostCall, ...]
    activities: tuple[RecordedActivity, ...]
    running: int
    streams: int
    threads: int
    dropped: int

    @property
    def classes(self) -> Mapping[str, int]:
        """Number of activities of each class."""
        return Counter(one.kind.kind for one in self.activities)

    @property
    def end(self) -> float:
        """End of the last activity [s]."""
        return max((one.start + one.duration for one in self.activities), default=0.0)
