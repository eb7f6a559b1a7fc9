"""Resources: how much of each was used, which one limits, and how far the lower bound is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from simperf.analysis.timeline import sweep
from simperf.engine.recorder import Category, Span
from simperf.engine.tracks import owner
from simperf.results import Result

__all__ = ["Headroom", "Limit", "activities", "busiest", "headroom", "utilisation"]

_KINDS: Mapping[Category, str] = {
    "compute": "device",
    "memory": "device",
    "copy": "copy engine",
    "storage": "storage",
    "overhead": "thread",
    "host": "thread",
}
#: A copy engine waits for its link and adds a little of its own: it is named only where it is busier by this.
_SLACK = {"copy engine": 0.01}
_ORDER = ("device", "link", "storage", "host", "copy engine", "thread")


class Limit(NamedTuple):
    """Possible limit of a run: name, kind (as of `ResourceUse`, or of `activities`) and share of the time [1]."""

    name: str
    kind: str
    utilisation: float


class Headroom(NamedTuple):
    """The highest lower bound: what sets it, its time [s], and the run's time over it [1]."""

    name: str
    floor: float
    ratio: float


def utilisation(result: Result) -> dict[str, float]:
    """Share of its capacity that each resource was used for [1], the busiest first."""
    shares = {name: use.utilisation(result.time) for name, use in result.resources.items()}
    return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))


def activities(result: Result) -> list[Limit]:
    """For how much of the time each node was at work on something, seen on the timeline, in order of name.

    A device's kernels (kind ``"device"``) and its copies (``"copy engine"``), the own work of each
    frontend or worker thread without its waits (``"thread"``), and each storage device (``"storage"``).
    A device that runs one small kernel after another is at work all the time, although its
    `utilisation` is low.
    """
    if result.time <= 0:
        return []
    groups: dict[tuple[str, str], list[Span]] = {}
    for span in result.spans:
        kind = _KINDS.get(span.category)
        if kind is not None:
            name = span.track if kind == "thread" else owner(span)
            groups.setdefault((f"{name} copies" if kind == "copy engine" else name, kind), []).append(span)
    found = []
    for name, kind in sorted(groups):
        swept = sweep(result, spans=groups[name, kind])
        found.append(Limit(name, kind, swept.time(swept.any(*_KINDS)) / result.time))
    return found


def busiest(result: Result) -> Limit | None:
    """Find what has the least rest; None if all rest.

    Links and hosts by their utilisation, all else by `activities`; memory is no rate and stays out.
    One thread can keep a run waiting on a host whose other cores are idle. On a tie a device is
    named before a link, and both before what feeds them.
    """
    seen = activities(result)
    timed = {(limit.name, limit.kind) for limit in seen}
    limits = seen + [
        Limit(name, result.resources[name].kind, share)
        for name, share in utilisation(result).items()
        if result.resources[name].kind != "memory" and (name, result.resources[name].kind) not in timed
    ]
    limits.sort(
        key=lambda limit: (_SLACK.get(limit.kind, 0.0) - round(limit.utilisation, 12), _ORDER.index(limit.kind))
    )
    return limits[0] if limits and limits[0].utilisation > 0 else None


def headroom(result: Result) -> Headroom | None:
    """Headroom of the run above its lower bound; None if no lower bound is known."""
    name, floor = result.floor
    return Headroom(name, floor, result.time / floor) if floor > 0 else None
