"""How far another session of a machine will lie from what was fitted to several: intervals that know it.

What a session misses at the points of a model has a part that its points share, because they were measured within
seconds of each other, and a part of each point's own. The shared one is known from as few values as there are sessions,
so that a model whose sessions happen to agree would be thought surer than it is: variances of models of one sort are
drawn towards what is usual among them, as far as they differ by chance (G. K. Smyth, "Linear models and empirical Bayes
methods for assessing differential expression in microarray experiments", Statistical Applications in Genetics and
Molecular Biology 3(1), 2004, sections 3 and 6).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simperf.analysis.chance import NORMAL
from simperf.calibrate.dataset import Dataset
from simperf.calibrate.fit.model import Array, Data
from simperf.calibrate.fit.solve import Fit

__all__ = ["SessionSpread", "Usual", "misses", "spreads", "usual"]

#: a deviation below which no two sessions are told apart
_LEAST = 5e-3
#: variances of fewer models say nothing of what is usual
_FEW = 4


@dataclass(frozen=True, slots=True)
class SessionSpread:
    """How far sessions are apart, as standard deviations of the logarithm; nine of ten lie within 1.645 of them.

    Parameters
    ----------
    common : float
        Of what all points of a model share in a session [1].
    own : float
        Of what is left of each point, what the model misses in all sessions among it [1].
    """

    common: float = 0.0
    own: float = 0.0


@dataclass(frozen=True, slots=True)
class Usual:
    """What variances of one sort are like: of each model they are drawn as if `freedom` more had been seen.

    Parameters
    ----------
    variance : float
    freedom : float
        Infinite where they differ by chance alone.
    """

    variance: float
    freedom: float

    def drawn(self, variance: float, freedom: float) -> tuple[float, float]:
        """A variance with what is usual, and how much longer than a normal one an interval of 90 % is: Student's t.

        Parameters
        ----------
        variance : float
            Known from `freedom` deviations.
        freedom : float

        Examples
        --------
        >>> variance, longer = Usual(0.01, 4.0).drawn(0.04, 4.0)
        >>> round(variance, 3), round(longer, 2)
        (0.025, 1.13)
        """
        from scipy import stats

        every = freedom + self.freedom
        if math.isinf(every):
            return self.variance, 1.0
        drawn = (freedom * variance + self.freedom * self.variance) / every
        return drawn, float(stats.t.ppf(0.95, every)) / NORMAL


def usual(variances: Sequence[float], freedom: float | Sequence[float], *, least: float = _LEAST) -> Usual:
    """The scaled inverse chi-square distribution that variances were drawn from, each known from `freedom` deviations.

    By the moments of their logarithms (Smyth 2004, section 6.2). A few say nothing of each other.

    Parameters
    ----------
    variances : sequence of float
    freedom : float or sequence of float
        Of all, or of each.
    least : float
        Deviation below which none is told from another.

    Examples
    --------
    >>> usual([0.01, 0.01, 0.01, 0.01], 3).freedom, usual([0.01], 3).freedom
    (inf, 0.0)
    """
    from scipy import special

    if len(variances) < _FEW:
        return Usual(0.0, 0.0)
    logs = np.log(np.maximum(variances, least**2))
    half = np.asarray(freedom, dtype=float) / 2.0
    away = logs - special.digamma(half) + np.log(half)
    more = float(away.var(ddof=1)) - float(np.mean(special.polygamma(1, half)))
    if more <= 1e-6:
        return Usual(float(np.exp(away.mean())), math.inf)
    known = 2.0 * _trigamma_inverse(more)
    return Usual(float(np.exp(away.mean() + special.digamma(known / 2.0) - math.log(known / 2.0))), known)


def _trigamma_inverse(value: float) -> float:
    """By Newton's method on the reciprocal, which is nearly straight (Smyth 2004, appendix)."""
    from scipy import special

    found = 0.5 + 1.0 / value
    for _ in range(50):
        tri = float(special.polygamma(1, found))
        step = tri * (1.0 - tri / value) / float(special.polygamma(2, found))
        found += step
        if -step < 1e-8 * found:
            break
    return found


def misses(fit: Fit, away: Data | None, sessions: Sequence[Dataset]) -> Array:
    """Logarithms of what sessions read over what a fit predicts: sessions by points; NaN if not measured.

    Parameters
    ----------
    fit : Fit
    away : Data or None
        Points of the model that were not fitted.
    sessions : sequence of Dataset
    """
    tables = [{point.key: point.median for point in dataset} for dataset in sessions]
    found = []
    for data in (fit.data, away):
        if data is not None and data.keys:
            predicted = fit.predict(data)
            if len(data.keys) != len(data):  # one number for all readings
                predicted = np.full(len(data.keys), predicted[0])
            read = np.array([[table.get(key, 0.0) for key in data.keys] for table in tables])
            with np.errstate(divide="ignore"):
                found.append(np.where(read > 0, np.log(read / np.maximum(predicted, 1e-300)), np.nan))
    return np.concatenate(found, axis=1) if found else np.zeros((len(sessions), 0))


def spreads(tables: Mapping[str, Array]) -> dict[str, SessionSpread]:
    """How far a new session lies from what was fitted, by model.

    What a session shares is the median of its misses, so that a disturbed point moves nothing. A new session lies as
    far from the mean of these as they do, and that mean is not known either: sqrt(1 + 1/S); what was fitted lies
    beside that mean by a distance that is known. Of a point's own, nine of ten lie within 1.645 of what is written,
    however far the others do: disturbances make a session's readings longer by up to a factor of two, and no bell.

    Parameters
    ----------
    tables : mapping of str to ndarray
        Of `misses`, by name of the model; those of the same first word are of one sort.
    """
    shared = {name: _middles(table) for name, table in tables.items()}
    sorts: dict[str, dict[str, tuple[float, int]]] = {}
    for name, middle in shared.items():
        if len(middle) > 1:
            of = sorts.setdefault(name.partition(".")[0], {})
            of[name] = float(middle.var(ddof=1)), len(middle) - 1
    found = dict.fromkeys(tables, SessionSpread())
    for known in sorts.values():
        for freedom in dict.fromkeys(each for _, each in known.values()):
            names = [name for name, (_, each) in known.items() if each == freedom]
            like = usual([known[name][0] for name in names], freedom)
            for name in names:
                common = _further(known[name][0], freedom, like)
                offset = float(shared[name].mean())
                found[name] = SessionSpread(math.hypot(common, offset), _own(tables[name], shared[name]))
    return found


def _middles(table: Array) -> Array:
    """What each session shares; sessions without any of the points have none."""
    rows = [row[np.isfinite(row)] for row in table]
    return np.array([float(np.median(row)) for row in rows if len(row)])


def _further(variance: float, freedom: int, like: Usual) -> float:
    """Deviation of a new session from the mean of those known, as a normal one that holds nine of ten as well."""
    drawn, longer = like.drawn(variance, freedom)
    return longer * math.sqrt(drawn * (1.0 + 1.0 / (freedom + 1)))


def _own(table: Array, middles: Array) -> float:
    """Size that nine of ten of the points' own misses have, over 1.645."""
    rows = table[np.isfinite(table).any(axis=1)]
    count = len(rows)
    if rows.shape[1] < 2:
        return 0.0
    away = rows - middles[:, None]
    always = np.nanmean(away, axis=0)
    # the sessions' mean was fitted to: a new session lies further from it than they do
    further = math.sqrt((count + 1.0) / (count - 1.0))
    size = np.abs(always + further * (away - always))
    return float(np.quantile(size[np.isfinite(size)], 0.9, method="weibull")) / NORMAL
