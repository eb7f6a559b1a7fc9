"""Use of each rank's time: by pipeline stage, dimension of the layout, class of like ranks, and activity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from simperf.engine.recorder import CATEGORIES, Category, Span
from simperf.engine.tracks import owner

__all__ = ["RankClass", "TimeUse", "time_use"]

#: activities that the others are hidden under
_KERNELS: tuple[Category, ...] = ("compute", "memory")
#: digits to which times of ranks of one class agree
_DIGITS = 9

Intervals = list[tuple[float, float]]
_Rows = tuple[tuple[Category, float, float], ...]


class RankClass(NamedTuple):
    """Ranks that one simulated rank stands for.

    `members` are their devices; `dimension` is that of the layout along which they communicate (``"dp"``, ``"tp"``,
    ...), empty if it is not known; `stage` that of their pipeline, 0 without one.
    """

    members: tuple[str, ...]
    dimension: str = ""
    stage: int = 0


class TimeUse(NamedTuple):
    """Time that each of like ranks spent on an activity.

    `ranks` are devices, hosts or storage that did the same; `stage` is that of the pipeline, 0 without one; `dimension`
    that of the layout along which they communicate, empty for other activities and where it is not known. `time` [s]
    is the time for which the activity went on, `exposed` [s] the part of it in which the rank ran no kernel.
    """

    stage: int
    dimension: str
    ranks: tuple[str, ...]
    activity: Category
    time: float
    exposed: float


def time_use(spans: Iterable[Span], ranks: Mapping[str, RankClass] | None = None) -> tuple[TimeUse, ...]:
    """Add up spans by class of ranks.

    Parameters
    ----------
    spans : iterable of Span
    ranks : mapping of str to RankClass, optional
        By the device that was simulated. Others stand for themselves; those that did the same are put together.

    Examples
    --------
    >>> kernel = Span("gpu0/stream0", "f", 0.0, 3.0, "compute")
    >>> send = Span("gpu0/stream1", "all-reduce", 2.0, 4.0, "communication")
    >>> for row in time_use([kernel, send], {"gpu0": RankClass(("gpu0", "gpu1"), "dp")}):
    ...     print(row.dimension, row.ranks, row.activity, row.time, row.exposed)
     ('gpu0', 'gpu1') compute 3.0 3.0
    dp ('gpu0', 'gpu1') communication 2.0 1.0
    """
    known = ranks or {}
    busy: dict[str, dict[Category, Intervals]] = defaultdict(lambda: defaultdict(list))
    for span in spans:
        if span.end > span.start:
            busy[owner(span)][span.category].append((span.start, span.end))
    classes: dict[tuple[int, str, _Rows], tuple[_Rows, list[str]]] = {}
    for name, activities in busy.items():
        rows = tuple(_activities(activities))
        one = known.get(name, RankClass((name,)))
        told = tuple((activity, _rounded(time), _rounded(exposed)) for activity, time, exposed in rows)
        classes.setdefault((one.stage, one.dimension, told), (rows, []))[1].extend(one.members)
    return tuple(
        TimeUse(stage, dimension if activity == "communication" else "", tuple(members), activity, time, exposed)
        for (stage, dimension, _), (rows, members) in classes.items()
        for activity, time, exposed in rows
    )


def _activities(busy: Mapping[Category, Intervals]) -> Iterator[tuple[Category, float, float]]:
    """Time and exposed time of each activity of one owner, in the order of `CATEGORIES`."""
    kernels = _union([one for category in _KERNELS for one in busy.get(category, ())])
    for category in CATEGORIES:
        if category in busy:
            mine = _union(busy[category])
            time = sum(end - start for start, end in mine)
            hidden = 0.0 if category in _KERNELS else _common(mine, kernels)
            yield category, time, max(0.0, time - hidden)


def _union(intervals: Sequence[tuple[float, float]]) -> Intervals:
    """Intervals that do not overlap, in order, over the same time."""
    found: Intervals = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            if end > found[-1][1]:
                found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _common(one: Intervals, other: Intervals) -> float:
    """Time that two unions share [s]."""
    total, at = 0.0, 0
    for start, end in one:
        while at < len(other) and other[at][1] <= start:
            at += 1
        place = at
        while place < len(other) and other[place][0] < end:
            total += min(end, other[place][1]) - max(start, other[place][0])
            place += 1
    return total


def _rounded(time: float) -> float:
    return float(f"{time:.{_DIGITS}g}")
