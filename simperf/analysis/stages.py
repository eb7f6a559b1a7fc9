"""Runs whose ranks are stages of a pipeline: what each of them does is reported by itself.

Stages work at different times, so that some device computes at almost every instant whatever the bubble is. Where a
run has several stages, its time is therefore divided for each rank, and the mean over all ranks is reported. The bubble
is the time for which a stream that runs kernels waits for other ranks, while its device runs none and moves nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from simperf.analysis.timeline import Bools, Sweep, sweep
from simperf.engine.recorder import Category, Span
from simperf.engine.tracks import owner
from simperf.results import Result

__all__ = ["RankTimeline", "rank_timelines", "spans_of_others"]

_KERNELS: tuple[Category, ...] = ("compute", "memory")


class RankTimeline(NamedTuple):
    """Timeline of like ranks: `device` stands for a `share` of all [1]; they wait in the slices of `bubble`."""

    device: str
    share: float
    swept: Sweep
    bubble: Bools

    @property
    def kernels(self) -> Bools:
        """In which slices they run kernels."""
        return self.swept.any(*_KERNELS)


def rank_timelines(result: Result) -> Iterator[RankTimeline]:
    """Timelines of ranks of a run with stages, one for each class of like ranks."""
    of: dict[str, list[Span]] = defaultdict(list)
    for span in result.spans:
        of[owner(span)].append(span)
    total = sum(len(one.members) for one in result.ranks.values())
    for device, one in result.ranks.items():
        spans = of[device]
        computing = {span.track for span in spans if span.category in _KERNELS}
        own = [span for span in spans if span.category != "wait" or span.track in computing]
        swept = sweep(result, spans=own)
        moving = swept.any(*_KERNELS, "communication", "copy")
        yield RankTimeline(device, len(one.members) / total, swept, swept.any("wait") & ~moving)


def spans_of_others(result: Result) -> list[Span]:
    """Spans of what are no ranks: hosts and storage."""
    return [span for span in result.spans if owner(span) not in result.ranks]
