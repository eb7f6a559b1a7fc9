"""Use of each rank's time: by pipeline stage, dimension of the layout, class of like ranks, and activity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from simperf.engine.recorder import CATEGORIES, Category, Span
from simperf.engine.tracks import owner, split_track

__all__ = ["LAUNCH_THREAD_BUSY", "PRECEDENCE", "RankClass", "TimeUse", "time_use"]

#: metric: share of a training run in which the rank that does so longest launches kernels
LAUNCH_THREAD_BUSY = "launch thread busy, max over ranks"
#: activities that the others are hidden under
_KERNELS: tuple[Category, ...] = ("compute", "memory")
#: dimensions in the order in which they claim an instant
PRECEDENCE = ("tp", "etp", "ep", "cp", "pp", "edp", "dp")
#: digits to which times of ranks of one class agree
_DIGITS = 9

Intervals = list[tuple[float, float]]
#: activity, dimension, time and exposed time
_Rows = tuple[tuple[Category, str, float, float], ...]


class RankClass(NamedTuple):
    """Ranks that one simulated rank stands for.

    `members` are their devices; `dimension` is that of the layout along which they communicate (``"dp"``, ``"tp"``,
    ...), empty if it is not known; `stage` that of their pipeline, 0 without one; `streams` are pairs of a stream and
    the dimension along which it communicates, where they have several. `numbers` are the members' numbers as ranks, and
    `mesh` has the dimensions of the layout with their sizes, that of neighbouring ranks first; empty where there are
    none.
    """

    members: tuple[str, ...]
    dimension: str = ""
    stage: int = 0
    streams: tuple[tuple[str, str], ...] = ()
    numbers: tuple[int, ...] = ()
    mesh: tuple[tuple[str, int], ...] = ()


class TimeUse(NamedTuple):
    """Time that each of like ranks spent on an activity.

    `ranks` are devices, hosts or storage that did the same; `stage` is that of the pipeline, 0 without one; `dimension`
    that of the layout along which they communicate, empty for other activities and where it is not known. `time` [s]
    is the time for which the activity went on, `exposed` [s] the part of it in which the rank ran no kernel. Where
    a rank communicates along several dimensions at a time, the instant is exposed for the first of them, so that
    exposed times add up.
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
    busy: dict[str, dict[tuple[Category, str], Intervals]] = defaultdict(lambda: defaultdict(list))
    for span in spans:
        if span.end > span.start:
            name = owner(span)
            dimension = _dimension(span, known[name]) if name in known else ""
            busy[name][span.category, dimension].append((span.start, span.end))
    classes: dict[tuple[int, _Rows], tuple[_Rows, list[str]]] = {}
    for name, activities in busy.items():
        rows = tuple(_activities(activities))
        one = known.get(name, RankClass((name,)))
        told = tuple((what, along, _rounded(time), _rounded(exposed)) for what, along, time, exposed in rows)
        classes.setdefault((one.stage, told), (rows, []))[1].extend(one.members)
    return tuple(
        TimeUse(stage, dimension, tuple(members), activity, time, exposed)
        for (stage, _), (rows, members) in classes.items()
        for activity, dimension, time, exposed in rows
    )


def _dimension(span: Span, ranks: RankClass) -> str:
    """The dimension along which a span communicates; empty for other activities."""
    if span.category != "communication":
        return ""
    return dict(ranks.streams).get(split_track(span.track)[1], ranks.dimension)


def _activities(busy: Mapping[tuple[Category, str], Intervals]) -> Iterator[tuple[Category, str, float, float]]:
    """Time and exposed time of each activity of one owner, in the order of `CATEGORIES`, and by dimension."""
    kernels = _union([one for (category, _), found in busy.items() if category in _KERNELS for one in found])
    active: dict[Category, Intervals] = defaultdict(lambda: kernels)
    for category, dimension in sorted(busy, key=lambda key: (CATEGORIES.index(key[0]), *_place(key[1]))):
        mine = _union(busy[category, dimension])
        time = sum(end - start for start, end in mine)
        hidden = 0.0 if category in _KERNELS else _common(mine, active[category])
        yield category, dimension, time, max(0.0, time - hidden)
        active[category] = _union([*active[category], *mine])


def _place(dimension: str) -> tuple[int, str]:
    """Place of a dimension among all: what is between kernels of a layer goes before what is beside whole passes."""
    return PRECEDENCE.index(dimension) if dimension in PRECEDENCE else len(PRECEDENCE), dimension


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
