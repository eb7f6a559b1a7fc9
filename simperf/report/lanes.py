"""Layout of a timeline: rows of a machine, in an order that people expect, nothing overlapping on a row.

Spans of one track that overlap are put on lanes. What is nested stays on one lane, as
viewers draw it inside its parent; but transfers that happen at the same time are never nested
in each other, since neither is part of the other.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from simperf.engine.recorder import Span
from simperf.engine.tracks import split_track
from simperf.results import Result

__all__ = ["TimelineRow", "allocate", "natural", "ordered", "rows"]

_FLAT = frozenset(("communication", "copy", "storage", "compute", "memory"))
#: lanes of a track on which spans may be nested; each is looked at for every span
_NESTED = 16


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One lane of one track.

    Parameters
    ----------
    owner : str
        Node that it belongs to, such as ``"gpu0"``.
    name : str
        The track within the owner, such as ``"stream0"``; empty for the owner's own.
    lane : int
        0, or more where spans of the track overlap.
    spans : sequence of Span
        In order of time; a parent before what is nested in it.
    """

    owner: str
    name: str
    lane: int
    spans: Sequence[Span]

    @property
    def label(self) -> str:
        """Name of the row within its owner."""
        name = self.name or self.owner
        return f"{name} ({self.lane + 1})" if self.lane else name


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key by which ``gpu2`` comes before ``gpu10``."""
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", text) if part)


def _owner_order(owner: str) -> tuple[object, ...]:
    server, _, node = owner.rpartition("/")
    return natural(server), 0 if node.startswith("cpu") else 2 if node.startswith("gpu") else 1, natural(node)


def allocate(spans: Sequence[Span]) -> list[list[Span]]:
    """Lanes of one track: on each, any two spans are apart or properly nested.

    Every span keeps its times. Spans that follow one another stay on the first lane.
    """
    lanes: list[tuple[list[Span], list[Span]]] = []  # all spans, and what is open at the current time, outermost first
    further: list[tuple[float, int]] = []  # when those end that no spans are nested on, and where they are in `lanes`
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        for lane in lanes[:_NESTED]:
            stack = lane[1]
            while stack and stack[-1].end <= span.start:
                stack.pop()
            if not stack or _contains(stack[-1], span):
                break
        else:
            if len(lanes) < _NESTED:
                lanes.append(([], []))
                lane = lanes[-1]
            else:
                lane = _further(lanes, further, span)
        lane[0].append(span)
        lane[1].append(span)
    return [members for members, _ in lanes]


def _further(
    lanes: list[tuple[list[Span], list[Span]]], ends: list[tuple[float, int]], span: Span
) -> tuple[list[Span], list[Span]]:
    """The lane that ends first, if it does before the span, or a new one."""
    if ends and ends[0][0] <= span.start:
        index = ends[0][1]
        heapq.heapreplace(ends, (span.end, index))
    else:
        index = len(lanes)
        lanes.append(([], []))
        heapq.heappush(ends, (span.end, index))
    return lanes[index]


def _contains(parent: Span, child: Span) -> bool:
    same = parent.start == child.start and parent.end == child.end
    return child.end <= parent.end and not same and child.category not in _FLAT and parent.category not in _FLAT


def rows(result: Result) -> list[TimelineRow]:
    """All rows of a result: servers in order, in each hosts before storage before GPUs, streams by number."""
    tracks: dict[str, list[Span]] = {}
    for span in result.spans:
        tracks.setdefault(span.track, []).append(span)
    found: list[TimelineRow] = []
    for track, spans in tracks.items():
        storage = all(span.category == "storage" for span in spans)
        owner, name = (track, "") if storage else split_track(track, result.resources)
        found += [TimelineRow(owner, name, lane, members) for lane, members in enumerate(allocate(spans))]
    return ordered(found)


def ordered(found: Iterable[TimelineRow]) -> list[TimelineRow]:
    """Rows in the order in which people expect them."""
    return sorted(found, key=lambda row: (_owner_order(row.owner), natural(row.name), row.lane))
