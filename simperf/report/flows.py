"""Arrows of a timeline, from cause to effect: a launch to its kernel, a send to the arrival of its bytes.

Spans are named by where they are drawn, since two of them may be equal in everything else.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from simperf.engine.recorder import Span
from simperf.engine.tracks import split_track
from simperf.report.lanes import TimelineRow
from simperf.results import Result

__all__ = ["LAUNCHES", "FlowArrow", "Spot", "arrivals", "launches", "receiver"]

#: the row of a node on which arrivals are shown
_RECEIVE = "receive"
#: the rows on which launches are shown that take no time follow the name of their thread with this
LAUNCHES = "launches"
_TO = "to "
_SENT = frozenset(("communication", "copy"))

Spot = tuple[int, int]  # identity of the row, index of the span on it


class FlowArrow(NamedTuple):
    """One arrow; an end is None where no span on the timeline stands for it."""

    kind: str
    source: Spot | None
    target: Spot | None


def receiver(span: Span, lane: str) -> str:
    """Node that the bytes of a send go to, empty for any other span.

    Parameters
    ----------
    span : Span
    lane : str
        Its track within its owner, such as ``"to gpu1"`` or, with the target in the span's name, ``"send"``.
    """
    if span.category not in _SENT:
        return ""
    what = span.name if lane == "send" else lane
    return what.removeprefix(_TO) if what.startswith(_TO) else ""


def arrivals(layout: Sequence[TimelineRow]) -> tuple[list[TimelineRow], list[FlowArrow]]:
    """One row a node with the moments at which bytes have arrived there, and an arrow to each from its send."""
    found: dict[str, list[tuple[Span, Spot]]] = {}
    for row in layout:
        for index, span in enumerate(row.spans):
            target = receiver(span, row.name)
            if target and target != row.owner:
                name = f"from {row.owner}"
                if span.name != f"{_TO}{target}":
                    name = f"{span.name} {name}"
                moment = Span(f"{target}/{_RECEIVE}", name, span.end, span.end, span.category)
                found.setdefault(target, []).append((moment, (id(row), index)))
    received, flows = [], []
    for target, moments in found.items():
        row, there = _row(target, _RECEIVE, moments)
        received.append(row)
        flows += [FlowArrow("send", source, spot) for spot, source in there]
    return received, flows


def launches(result: Result, layout: Sequence[TimelineRow]) -> tuple[list[TimelineRow], list[FlowArrow]]:
    """Arrows that the engine recorded, each from what led to a kernel; rows with launches that are no spans.

    A kernel comes from its launch; where that takes no time, or has to wait for a place in the queue, from what the
    thread did until then. If it did nothing, its launch is a moment on a row of its own.
    """
    leave = {arrow.from_track for arrow in result.arrows}
    reach = {arrow.to_track for arrow in result.arrows}
    launched: dict[tuple[str, float, str], Spot] = {}
    ended: dict[tuple[str, float], Spot] = {}
    instants: dict[tuple[str, float, str], deque[Spot]] = {}
    begun: dict[tuple[str, float, str], Spot] = {}
    for row in layout:
        for index, span in enumerate(row.spans):
            spot, lasts = (id(row), index), span.end > span.start
            if span.track in leave and lasts:
                launched[span.track, span.end, span.name] = ended[span.track, span.end] = spot
            elif span.track in leave:
                instants.setdefault((span.track, span.end, span.name), deque()).append(spot)
            if span.track in reach and lasts:
                begun[span.track, span.start, span.name] = spot
    flows: list[FlowArrow] = []
    unseen: dict[str, list[tuple[Span, Spot]]] = {}
    for name, from_track, from_time, to_track, to_time in result.arrows:
        launch = from_track, from_time, f"launch {name}"
        target = begun.get((to_track, to_time, name))
        source = launched.get(launch) or ended.get((from_track, from_time))
        if source is None and launch in instants:  # one launch for each kernel, in order
            source = instants[launch].popleft() if len(instants[launch]) > 1 else instants[launch][0]
        if source is None and target is not None:
            moment = Span(from_track, f"launch {name}", from_time, from_time, "overhead")
            unseen.setdefault(from_track, []).append((moment, target))
        else:
            flows.append(FlowArrow("launch", source, target))
    found = []
    for track, moments in unseen.items():
        owner, lane = split_track(track, result.resources)
        row, there = _row(owner, f"{lane} {LAUNCHES}".strip(), moments)
        found.append(row)
        flows += [FlowArrow("launch", spot, target) for spot, target in there]
    return found, flows


def _row(owner: str, name: str, moments: list[tuple[Span, Spot]]) -> tuple[TimelineRow, list[tuple[Spot, Spot]]]:
    """A row of moments in order of time, and where each is, with what it belongs to."""
    moments.sort(key=lambda moment: moment[0].start)
    row = TimelineRow(owner, name, 0, [moment for moment, _ in moments])
    return row, [((id(row), index), other) for index, (_, other) in enumerate(moments)]
