"""A record of a run: spans on tracks, counters, and arrows from cause to effect.

The engine keeps a reference to a recorder or to None, and asks ``if recorder is not
None`` before it builds a record: a simulation that nobody watches pays nothing.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["CATEGORIES", "Arrow", "Category", "Recorder", "Sample", "Span"]

Category = Literal["compute", "memory", "overhead", "copy", "communication", "storage", "host", "wait"]

#: What a span's time was spent on. ``compute`` and ``memory``: a kernel, by what bounds it;
#: ``overhead``: the frontend launching; ``host``: other work on a host core; ``wait``: a
#: frontend blocked on a device.
CATEGORIES: tuple[Category, ...] = (
    "compute",
    "memory",
    "communication",
    "copy",
    "storage",
    "overhead",
    "host",
    "wait",
)


class Span(NamedTuple):
    """Something that took from `start` to `end` [s] on one track."""

    track: str
    name: str
    start: float
    end: float
    category: Category


class Sample(NamedTuple):
    """The value that a counter took at `time` [s] and kept until its next sample."""

    track: str
    name: str
    time: float
    value: float


class Arrow(NamedTuple):
    """A cause (a launch, a send) and its effect (a kernel, a receive); times in s."""

    name: str
    from_track: str
    from_time: float
    to_track: str
    to_time: float


class Recorder:
    """Collects spans, counter samples, arrows and memory by kind in the order in which they are reported.

    `families` are those of the kernels, by name (``"gemm"``, ``"normalization"``, ...).
    """

    __slots__ = ("arrows", "families", "memory", "samples", "spans")

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.samples: list[Sample] = []
        self.arrows: list[Arrow] = []
        self.memory: list[Sample] = []
        self.families: dict[str, str] = {}

    def span(self, track: str, name: str, start: float, end: float, category: Category) -> None:
        """Record a span; times in s."""
        self.spans.append(Span(track, name, start, end, category))

    def counter(self, track: str, name: str, time: float, value: float) -> None:
        """Record that a counter has `value` from `time` [s] on."""
        self.samples.append(Sample(track, name, time, value))

    def held(self, device: str, kind: str, time: float, nbytes: float) -> None:
        """Record that tensors of a kind hold `nbytes` [B] of a device from `time` [s] on."""
        self.memory.append(Sample(device, kind, time, nbytes))

    def arrow(self, name: str, from_track: str, from_time: float, to_track: str, to_time: float) -> None:
        """Record that what ended at `from_time` caused what starts at `to_time` [s]."""
        self.arrows.append(Arrow(name, from_track, from_time, to_track, to_time))
