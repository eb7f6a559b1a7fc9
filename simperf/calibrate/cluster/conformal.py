"""Conformal prediction intervals of points of a boxed cluster, from the errors of other recordings.

A bootstrap of the constants knows how readings scatter, but not what the simulation leaves out, nor that the machine is
another one an hour later. Both show in other recordings: there every point was predicted from the sends of its own
recording, so that its miss holds the errors of model, constants and readings at once. A point's interval is made of
the misses of the points most like it. What these share in a recording is distinguished from what is each one's own, as
in `simperf.calibrate.sessions`, because many points of two recordings are still two recordings. Where there is no other
recording, the points that constants were fitted to are all that is known.

Recordings are not alike: a machine on which something else runs is further off. What disturbs it shows in the sends
that constants are fitted to (`disturbance`), which are known before anything is predicted. The error of a point is what
the simulation leaves out there, in every recording, and by what disturbs this one; variances of causes that know
nothing of each other add. So misses are divided by the root of both, and what they make is multiplied by that of the
recording that is predicted: normalised conformal prediction (H. Papadopoulos, A. Gammerman, V. Vovk, "Normalized
nonconformity measures for regression conformal prediction", Artificial Intelligence and Applications, 2008).

The quantiles are those of conformal prediction (V. Vovk, A. Gammerman, G. Shafer, *Algorithmic Learning in a Random
World*, 2005, section 2.2), taken among neighbours (J. Lei and L. Wasserman, "Distribution-free prediction bands for
non-parametric regression", Journal of the Royal Statistical Society B 76(1), 2014).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from simperf.analysis.chance import NORMAL
from simperf.calibrate.cluster.accuracy import SMALL, PredictedPoint

__all__ = ["ErrorBands", "Scores", "disturbance", "span", "with_fit_residuals", "with_other_recordings"]

#: misses that make an interval: with fewer than 19 the outermost two hold less than nine of ten; and of a fit's own
#: points, which are so few that 19 would be nearly all
NEAREST, NEAREST_FITTED = 19, 8
#: differences that count as much as another series does: of the cores' load [1], and doublings of the payload
LOAD, DOUBLINGS = 0.15, 2.0
#: series that go by messages, and learn from each other
_MESSAGES = ("send", "round-trip", "send-train", "all-reduce")
#: standard deviation over median absolute deviation, and over interquartile range, of a normal distribution
_ABSOLUTE, _QUARTILES = 1.4826, 1.0 / 1.349
#: fewer sends do not tell how disturbed a recording is
_FEW = 4


@dataclass(frozen=True, slots=True)
class _Miss:
    """Error of a prediction: where its point lies, and the logarithm of measured over predicted [1]."""

    family: str
    series: str
    load: float
    doublings: float
    value: float

    @classmethod
    def of(cls, row: PredictedPoint) -> _Miss:
        at, series = row.point.at, row.point.series
        first = series.partition("/")[0]
        size = float(at.get("nbytes", at.get("bucket", 1.0)))
        value = math.log(row.point.median / row.predicted)
        return cls("message" if first in _MESSAGES else first, series, row.load, math.log2(max(size, 1.0)), value)

    def far(self, other: _Miss) -> float:
        between = abs(self.load - other.load) / LOAD + abs(self.doublings - other.doublings) / DOUBLINGS
        return between + (self.series != other.series)


def disturbance(rows: Iterable[PredictedPoint]) -> float | None:
    """Disturbance of a recording, by its own fitted sends: a standard deviation of logarithms [1].

    Of those that links hold back, not of what messages cost: how far apart what the fit misses of them is says what
    changes from one point to the next (what all have in common is no disturbance, but the model), and how far apart
    their readings are what changes from one repeat to the next. A point that is predicted has both.

    Parameters
    ----------
    rows : iterable of PredictedPoint
        Of one recording, predicted from its own sends.

    Returns
    -------
    float or None
        None if there are too few such sends.
    """
    sends = [row for row in rows if row.fitted and float(row.point.at.get("nbytes", 0.0)) >= SMALL]
    sends = [row for row in sends if row.point.median > 0]
    if len(sends) < _FEW:
        return None
    missed = np.array([_Miss.of(row).value for row in sends])
    apart = float(np.median(np.abs(missed - np.median(missed))))
    return math.hypot(_ABSOLUTE * apart, _QUARTILES * float(np.median([row.point.spread for row in sends])))


class ErrorBands:
    """Errors of recordings whose points were predicted and measured, and the interval of a new point.

    Parameters
    ----------
    recordings : iterable of sequence of PredictedPoint
        As `simperf.calibrate.cluster.accuracy.hold_against` gives them.
    nearest : int
        Misses that make an interval.
    """

    def __init__(self, recordings: Iterable[Sequence[PredictedPoint]], nearest: int = NEAREST) -> None:
        every = [([_Miss.of(row) for row in rows if row.point.median > 0], disturbance(rows)) for rows in recordings]
        self._recordings = [(misses, disturbed) for misses, disturbed in every if misses]
        self._each = math.ceil(nearest / max(1, len(self._recordings)))

    def band(self, row: PredictedPoint, disturbed: float | None = None) -> tuple[float, float] | None:
        """Between what nine of ten such points lie, as logarithms of measured over predicted [1]; None if unknown.

        Parameters
        ----------
        row : PredictedPoint
        disturbed : float, optional
            How much its recording is, of `disturbance` [1]. If that is not known, here or of any of the recordings, it
            is taken to be any of theirs.
        """
        like = _Miss.of(row)
        near, scales = [], []
        for misses, scale in self._recordings:
            known = sorted((one for one in misses if one.family == like.family), key=like.far)
            if known:
                near.append(np.array([one.value for one in known[: self._each]]))
                scales.append(scale)
        if sum(len(values) for values in near) < 2:
            return None
        told = [scale for scale in scales if scale is not None]
        if disturbed is None or len(told) < len(scales):
            return span(near)
        return Scores.of(near, told).band(disturbed)


@dataclass(frozen=True, slots=True)
class Scores:
    """Misses of alike points of recordings, as multiples of what is to be expected of each recording.

    Parameters
    ----------
    usual : float
        How far such points are off in all recordings: a standard deviation of logarithms [1].
    low, high : float
        Between what nine of ten lie, over the root of the squares of `usual` and of how disturbed a recording is [1].
    """

    usual: float
    low: float
    high: float

    @classmethod
    def of(cls, misses: Sequence[Sequence[float] | np.ndarray], disturbed: Sequence[float]) -> Scores:
        """Of each recording: logarithms of measured over predicted, and its `disturbance` [1]."""
        usual = _ABSOLUTE * float(np.median(np.abs(np.concatenate([np.asarray(values) for values in misses]))))
        sizes = [math.hypot(usual, one) or 1.0 for one in disturbed]
        return cls(usual, *span([np.asarray(values) / size for values, size in zip(misses, sizes, strict=True)]))

    def band(self, disturbed: float) -> tuple[float, float]:
        """Between what nine of ten lie in a recording that is so disturbed, as logarithms [1]."""
        size = math.hypot(self.usual, disturbed)
        return self.low * size, self.high * size


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
    middle, shared = float(middles.mean()), NORMAL * apart
    return middle - math.hypot(min(low, 0.0), shared), middle + math.hypot(max(high, 0.0), shared)


def with_other_recordings(
    rows: Sequence[PredictedPoint], recordings: Iterable[Sequence[PredictedPoint]]
) -> tuple[PredictedPoint, ...]:
    """Give each row the interval that the misses of other recordings make.

    Parameters
    ----------
    rows : sequence of PredictedPoint
    recordings : iterable of sequence of PredictedPoint
        Other ones, each predicted from its own sends; the errors of their constants are among their misses.
    """
    bands, disturbed = ErrorBands(recordings), disturbance(rows)
    found = []
    for row in rows:
        band = bands.band(row, disturbed)
        interval = None if band is None else (row.predicted * math.exp(band[0]), row.predicted * math.exp(band[1]))
        found.append(replace(row, interval=interval))
    return tuple(found)


def with_fit_residuals(rows: Sequence[PredictedPoint]) -> tuple[PredictedPoint, ...]:
    """Widen intervals that know the constants only by what the fit missed of its own points.

    It missed these by less than it will miss others: such intervals hold fewer than nine of ten points.

    Parameters
    ----------
    rows : sequence of PredictedPoint
        With intervals of drawn constants.
    """
    bands = ErrorBands([[row for row in rows if row.fitted]], NEAREST_FITTED)
    found = []
    for row in rows:
        band = bands.band(row)
        if row.interval is None or band is None:
            found.append(row)
            continue
        drawn = [math.log(end / row.predicted) for end in row.interval]
        low, high = math.hypot(min(drawn[0], 0.0), min(band[0], 0.0)), math.hypot(max(drawn[1], 0.0), max(band[1], 0.0))
        found.append(replace(row, interval=(row.predicted * math.exp(-low), row.predicted * math.exp(high))))
    return tuple(found)
