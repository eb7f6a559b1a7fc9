"""How far measured points lie from their predictions: intervals that know what the simulation leaves out.

A bootstrap of the constants knows how readings scatter, but not what the simulation leaves out, nor that the machine is
another one an hour later. Both show in other recordings: there every point was predicted from the sends of its own
recording, so that its miss holds the errors of model, constants and readings at once. A point's interval is made of
the misses of the points most like it. What these share in a recording is told apart from what is each one's own, as in
`simperf.calibrate.sessions`, because many points of two recordings are still two recordings. Where there is no other
recording, the points that constants were fitted to are all that is known.

The quantiles are those of conformal prediction (V. Vovk, A. Gammerman, G. Shafer, *Algorithmic Learning in a Random
World*, 2005, section 2.2), taken among neighbours (J. Lei and L. Wasserman, "Distribution-free prediction bands for
non-parametric regression", Journal of the Royal Statistical Society B 76(1), 2014).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from simperf.calibrate.cluster.accuracy import Row

__all__ = ["Scatter", "span", "with_fitted", "with_others"]

#: misses that make an interval: with fewer than 19 the outermost two hold less than nine of ten; and of a fit's own
#: points, which are so few that 19 would be nearly all
NEAREST, NEAREST_FITTED = 19, 8
#: differences that count as much as another series does: of the cores' load [1], and doublings of the payload
LOAD, DOUBLINGS = 0.15, 2.0
#: series that go by messages, and learn from each other
_MESSAGES = ("send", "round-trip", "send-train", "all-reduce")
#: 95 % quantile of a normal distribution
_NORMAL = 1.645


@dataclass(frozen=True, slots=True)
class _Miss:
    """Where a point lies, and the logarithm of measured over predicted [1]."""

    family: str
    series: str
    load: float
    doublings: float
    value: float

    @classmethod
    def of(cls, row: Row) -> _Miss:
        at, series = row.point.at, row.point.series
        first = series.partition("/")[0]
        size = float(at.get("nbytes", at.get("bucket", 1.0)))
        value = math.log(row.point.median / row.predicted)
        return cls("message" if first in _MESSAGES else first, series, row.load, math.log2(max(size, 1.0)), value)

    def far(self, other: _Miss) -> float:
        between = abs(self.load - other.load) / LOAD + abs(self.doublings - other.doublings) / DOUBLINGS
        return between + (self.series != other.series)


class Scatter:
    """Misses of recordings whose points were predicted and measured.

    Parameters
    ----------
    recordings : iterable of sequence of Row
        As `simperf.calibrate.cluster.accuracy.hold_against` gives them.
    nearest : int
        Misses that make an interval.
    """

    def __init__(self, recordings: Iterable[Sequence[Row]], nearest: int = NEAREST) -> None:
        every = [[_Miss.of(row) for row in rows if row.point.median > 0] for rows in recordings]
        self._recordings = [misses for misses in every if misses]
        self._each = math.ceil(nearest / max(1, len(self._recordings)))

    def band(self, row: Row) -> tuple[float, float] | None:
        """Between what nine of ten such points lie, as logarithms of measured over predicted [1]; None if unknown."""
        like = _Miss.of(row)
        near = []
        for misses in self._recordings:
            known = sorted((one for one in misses if one.family == like.family), key=like.far)
            if known:
                near.append(np.array([one.value for one in known[: self._each]]))
        return span(near) if sum(len(values) for values in near) >= 2 else None


def span(misses: Sequence[Sequence[float] | np.ndarray]) -> tuple[float, float]:
    """Between what nine of ten of such misses lie, in one recording more [1].

    Parameters
    ----------
    misses : sequence of sequence of float
        Of each recording, logarithms of measured over predicted; at least two in all [1].
    """
    middles = np.array([float(np.median(values)) for values in misses])
    own = np.concatenate([np.asarray(values) - middle for values, middle in zip(misses, middles, strict=True)])
    low, high = (float(one) for one in np.quantile(own, (0.05, 0.95), method="weibull"))
    apart = float(middles.std(ddof=1)) * math.sqrt(1.0 + 1.0 / len(misses)) if len(misses) > 1 else 0.0
    middle, shared = float(middles.mean()), _NORMAL * apart
    return middle - math.hypot(min(low, 0.0), shared), middle + math.hypot(max(high, 0.0), shared)


def with_others(rows: Sequence[Row], recordings: Iterable[Sequence[Row]]) -> tuple[Row, ...]:
    """Give each row the interval that the misses of other recordings make.

    Parameters
    ----------
    rows : sequence of Row
    recordings : iterable of sequence of Row
        Other ones, each predicted from its own sends; the errors of their constants are among their misses.
    """
    scatter = Scatter(recordings)
    found = []
    for row in rows:
        band = scatter.band(row)
        interval = None if band is None else (row.predicted * math.exp(band[0]), row.predicted * math.exp(band[1]))
        found.append(replace(row, interval=interval))
    return tuple(found)


def with_fitted(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Widen intervals that know the constants only by what the fit missed of its own points.

    It missed these by less than it will miss others: such intervals hold fewer than nine of ten points.

    Parameters
    ----------
    rows : sequence of Row
        With intervals of drawn constants.
    """
    scatter = Scatter([[row for row in rows if row.fitted]], NEAREST_FITTED)
    found = []
    for row in rows:
        band = scatter.band(row)
        if row.interval is None or band is None:
            found.append(row)
            continue
        drawn = [math.log(end / row.predicted) for end in row.interval]
        low, high = math.hypot(min(drawn[0], 0.0), min(band[0], 0.0)), math.hypot(max(drawn[1], 0.0), max(band[1], 0.0))
        found.append(replace(row, interval=(row.predicted * math.exp(-low), row.predicted * math.exp(high))))
    return tuple(found)
