"""Resources: how much of each was used, which one limits, and how far the floor is."""

from __future__ import annotations

from typing import NamedTuple

from simperf.results import Result

__all__ = ["Headroom", "Limit", "busiest", "headroom", "threads", "utilisation"]


class Limit(NamedTuple):
    """The busiest resource: its name, kind (as of `ResourceUse`, or ``"thread"``) and utilisation [1]."""

    name: str
    kind: str
    utilisation: float


class Headroom(NamedTuple):
    """The highest floor: what sets it, its time [s], and the run's time over it [1]."""

    name: str
    floor: float
    ratio: float


def utilisation(result: Result) -> dict[str, float]:
    """Share of its capacity that each resource was used for [1], the busiest first."""
    shares = {name: use.utilisation(result.time) for name, use in result.resources.items()}
    return dict(sorted(shares.items(), key=lambda item: (-item[1], item[0])))


def threads(result: Result) -> dict[str, float]:
    """Share of the time for which each frontend thread worked itself [1], waits left out; by track."""
    work: dict[str, float] = {}
    if result.time > 0:
        for track, _, start, end, category in result.spans:
            if category in ("overhead", "host"):
                work[track] = work.get(track, 0.0) + max(0.0, min(end, result.time) - max(start, 0.0))
    return {track: min(1.0, work[track] / result.time) for track in sorted(work)}


def busiest(result: Result) -> Limit | None:
    """What has the least left: a device, host, link or thread (not memory, which is no rate); None if all rest.

    One thread can keep a run waiting on a host whose other cores are idle, so threads compete with the rest;
    on a tie the resource is named before the thread.
    """
    limits = [Limit(name, result.resources[name].kind, share) for name, share in utilisation(result).items()]
    limits = [limit for limit in limits if limit.kind != "memory"]
    limits += [Limit(track, "thread", share) for track, share in threads(result).items()]
    best = max(limits, key=lambda limit: round(limit.utilisation, 12), default=None)
    return best if best is not None and best.utilisation > 0 else None


def headroom(result: Result) -> Headroom | None:
    """How far the run is above its physical floor; None if no floor is known."""
    name, floor = result.floor
    return Headroom(name, floor, result.time / floor) if floor > 0 else None
