"""The critical path of a run: the chain of events, back from its end, each of which waited for the one before.

The walk starts at the end of the run, takes what ended there, goes to where that began, and takes what ended
there and let it begin: the launch that an arrow leads from, what ran before it on the same track, or else
what ended at that instant. Waits are no causes; where nothing was at work the gap is named by the wait that covers it.
Each step of the walk begins where the next one ends, so that the parts add up to the run's time exactly.

Where several things end at the same instant each of them may be the cause; the walk then prefers the same track, the
arrow, the node that the arrow leads from (without one, the same node), a device, in that order, and knows no better.
Communication begins when the last rank has come, and an arrow leads from that rank: the path continues there.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from simperf.analysis.breakdown import IDLE, PRIORITY
from simperf.engine.recorder import Span
from simperf.engine.tracks import owner, split_track
from simperf.results import Result

__all__ = ["CriticalPath", "PathPart", "Segment", "critical_path"]

#: instants closer than this share of the run are one
_SAME = 1e-12


class Segment(NamedTuple):
    """One segment of the path, from `start` to `end` [s]."""

    track: str
    name: str
    category: str
    start: float
    end: float


class PathPart(NamedTuple):
    """Part of the path of one category of one node: time [s], share of the run [1], and number of segments."""

    category: str
    owner: str
    time: float
    share: float
    segments: int


@dataclass(frozen=True)
class CriticalPath:
    """The path of a run.

    Parameters
    ----------
    segments : tuple of Segment
        From the start of the run to its end, without gaps.
    time : float
        Of the run [s].
    """

    segments: tuple[Segment, ...]
    time: float

    @property
    def parts(self) -> tuple[PathPart, ...]:
        """The path by category and node, the largest first; their times add up to the run's."""
        found: dict[tuple[str, str], list[float]] = {}
        for segment in self.segments:
            name = owner(Span(segment.track, "", 0.0, 0.0, segment.category)) if segment.track else ""  # type: ignore[arg-type]
            found.setdefault((segment.category, name), []).append(segment.end - segment.start)
        parts = [
            PathPart(category, name, math.fsum(times), math.fsum(times) / self.time, len(times))
            for (category, name), times in found.items()
        ]
        return tuple(sorted(parts, key=lambda part: (-part.time, part.category, part.owner)))

    def by_category(self) -> dict[str, float]:
        """Time of each category on the path [s], the largest first; they add up to the run's time."""
        found: dict[str, list[float]] = {}
        for segment in self.segments:
            found.setdefault(segment.category, []).append(segment.end - segment.start)
        times = {name: math.fsum(values) for name, values in found.items()}
        return dict(sorted(times.items(), key=lambda item: (-item[1], item[0])))


def critical_path(result: Result) -> CriticalPath:
    """Walk back from the end of a run.

    Parameters
    ----------
    result : Result
        With its timeline; without one there are no segments.

    Examples
    --------
    >>> spans = (Span("cpu0/python", "launch", 0.0, 2.0, "overhead"), Span("gpu0/stream0", "add", 2.0, 5.0, "compute"))
    >>> critical_path(Result("two", 6.0, spans=spans)).by_category()
    {'compute': 3.0, 'overhead': 2.0, 'idle': 1.0}
    """
    if not result.spans or result.time <= 0:
        return CriticalPath((), result.time)
    walk = _Walk(result)
    segments: list[Segment] = []
    now, last = result.time, None
    while now > walk.slack:
        segment, span = walk.before(now, last)
        if segments and span is None and (segments[-1].track, segments[-1].name) == (segment.track, segment.name):
            segments[-1] = segments[-1]._replace(start=segment.start)
        else:
            segments.append(segment)
        now, last = segment.start, span
    segments[-1] = segments[-1]._replace(start=0.0)
    return CriticalPath(tuple(reversed(segments)), result.time)


class _Walk:
    """The spans of a run by their ends, and the arrows by their effects."""

    def __init__(self, result: Result) -> None:
        self.slack = _SAME * result.time
        work = [span for span in result.spans if span.category != "wait" and span.end - span.start > self.slack]
        self.work = sorted(work, key=lambda span: span.end)
        self.ends = [span.end for span in self.work]
        self.waits = sorted((span for span in result.spans if span.category == "wait"), key=lambda span: span.end)
        self.wait_ends = [span.end for span in self.waits]
        self.causes: dict[tuple[str, float], str] = {}
        for arrow in result.arrows:
            if arrow.to_time - arrow.from_time <= self.slack:  # the effect began with its cause
                self.causes[arrow.to_track, arrow.to_time] = arrow.from_track

    def before(self, now: float, last: Span | None) -> tuple[Segment, Span | None]:
        """Segment that ended at `now` and let `last` begin; a gap if nothing did."""
        first, after = bisect_left(self.ends, now - self.slack), bisect_right(self.ends, now + self.slack)
        ended = [span for span in self.work[first:after] if span.start < now - self.slack]
        if ended:
            span = self._cause(ended, last)
            return Segment(span.track, span.name, span.category, max(span.start, 0.0), now), span
        begin = max((span.end for span in self._latest(first, now)), default=0.0)
        return self._gap(max(0.0, begin), now), None

    def _latest(self, first: int, now: float) -> Sequence[Span]:
        """The span that ended last before `now`, if there is one."""
        while first > 0:
            first -= 1
            if self.work[first].end < now - self.slack:
                return [self.work[first]]
        return []

    def _cause(self, ended: Sequence[Span], last: Span | None) -> Span:
        track = last.track if last is not None else ""
        arrow = self.causes.get((track, last.start), "") if last is not None else ""
        node = split_track(arrow or track)[0]

        def rank(span: Span) -> tuple[bool, bool, bool, int, str]:
            away = owner(span) != node
            return span.track != track, span.track != arrow, away, PRIORITY.index(span.category), span.track

        return min(ended, key=rank)

    def _gap(self, start: float, end: float) -> Segment:
        """Nothing was at work: the wait that covers the end of the gap says what for."""
        index = bisect_left(self.wait_ends, end - self.slack)
        for wait in self.waits[index : index + 64]:
            if wait.start < end - self.slack:
                return Segment(wait.track, wait.name, IDLE, max(start, wait.start), end)
        return Segment("", "nothing recorded", IDLE, start, end)
