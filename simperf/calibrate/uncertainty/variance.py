"""Variance components of errors: how far another session, or another GPU, lies from what was fitted.

The error of a session at the points of a model has a part that its points share, because they were measured within
seconds of each other, and a part of each point's own. The shared part is known from as few values as there are
sessions. A model whose sessions happen to agree would be thought surer than it is. So variances of models of one kind
are shrunk towards a common value, as far as they differ by chance (G. K. Smyth, "Linear models and empirical Bayes
methods for assessing differential expression in microarray experiments", Statistical Applications in Genetics and
Molecular Biology 3(1), 2004, sections 3 and 6).

The scatter of readings about a fit of eight points is itself uncertain, and the median size of the residuals does not
show rare large errors. There the scatter is the mean square, with Student's t for the points that are left when the
constants are taken off, shrunk in the same way.

The error of a prediction for a GPU from the fits of others has the same two parts. Both are estimated from the other
GPUs, each predicted while it, too, was left out: variance components of a layout with GPUs as random effects
(S. R. Searle, G. Casella, C. E. McCulloch, *Variance Components*, 1992, chapter 3).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from simperf.analysis.chance import NORMAL
from simperf.calibrate.dataset import Dataset
from simperf.calibrate.fit.model import Array, Data
from simperf.calibrate.fit.solve import Fit
from simperf.calibrate.uncertainty.constants import log_residual

__all__ = [
    "ErrorSpread",
    "VariancePrior",
    "gpu_spreads",
    "half_width",
    "log_errors",
    "session_spreads",
    "variance_prior",
    "with_pooled_scatter",
]

#: deviation below which two sessions are not told apart [1]
_SMALLEST = 5e-3
#: the same of residuals of fits [1]: clocks of GPUs tick by a microsecond
_SMALLEST_SCATTER = 1e-4
#: number of variances below which they tell no common value
_FEWEST = 4


@dataclass(frozen=True, slots=True)
class ErrorSpread:
    """Spread of errors, as standard deviations of the logarithm; nine of ten lie within 1.645 of them.

    Parameters
    ----------
    common : float
        Of what all points of a model share in a session, or on a GPU [1].
    own : float
        Of what is left of each point, what the model misses in all sessions among it [1].
    """

    common: float = 0.0
    own: float = 0.0


@dataclass(frozen=True, slots=True)
class VariancePrior:
    """Common value of variances of one kind; each is shrunk to it as if `freedom` more deviations had been seen.

    Parameters
    ----------
    variance : float
    freedom : float
        Infinite where they differ by chance alone.
    """

    variance: float
    freedom: float

    def shrunk(self, variance: float, freedom: float) -> tuple[float, float]:
        """A variance shrunk to the common one, and by how much Student's t widens a 90 % interval beyond a normal one.

        Parameters
        ----------
        variance : float
            Known from `freedom` deviations.
        freedom : float

        Examples
        --------
        >>> variance, wider = VariancePrior(0.01, 4.0).shrunk(0.04, 4.0)
        >>> round(variance, 3), round(wider, 2)
        (0.025, 1.13)
        """
        from scipy import stats

        every = freedom + self.freedom
        if math.isinf(every):
            return self.variance, 1.0
        drawn = (freedom * variance + self.freedom * self.variance) / every
        return drawn, float(stats.t.ppf(0.95, every)) / NORMAL


def variance_prior(
    variances: Sequence[float], freedom: float | Sequence[float], *, least: float = _SMALLEST
) -> VariancePrior:
    """The scaled inverse chi-square distribution that variances were drawn from, each known from `freedom` deviations.

    By the moments of their logarithms (Smyth 2004, section 6.2). A few say nothing of each other.

    Parameters
    ----------
    variances : sequence of float
    freedom : float or sequence of float
        Of all, or of each.
    least : float
        Deviation below which none is distinguished from another.

    Examples
    --------
    >>> variance_prior([0.01, 0.01, 0.01, 0.01], 3).freedom, variance_prior([0.01], 3).freedom
    (inf, 0.0)
    """
    from scipy import special

    if len(variances) < _FEWEST:
        return VariancePrior(0.0, 0.0)
    logs = np.log(np.maximum(variances, least**2))
    half = np.asarray(freedom, dtype=float) / 2.0
    away = logs - special.digamma(half) + np.log(half)
    more = float(away.var(ddof=1)) - float(np.mean(special.polygamma(1, half)))
    if more <= 1e-6:
        return VariancePrior(float(np.exp(away.mean())), math.inf)
    known = 2.0 * _trigamma_inverse(more)
    return VariancePrior(float(np.exp(away.mean() + special.digamma(known / 2.0) - math.log(known / 2.0))), known)


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


def log_errors(fit: Fit, away: Data | None, sessions: Sequence[Dataset]) -> Array:
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


def session_spreads(tables: Mapping[str, Array]) -> dict[str, ErrorSpread]:
    """Spread of a new session around what was fitted, by model.

    What a session shares is the median of its misses, so that a disturbed point moves nothing. A new session lies as
    far from the mean of these as they do, and that mean is not known either: sqrt(1 + 1/S); what was fitted lies
    beside that mean by a distance that is known. Of a point's own, nine of ten lie within 1.645 of what is written,
    however far the others do: disturbances make a session's readings longer by up to a factor of two, and no bell.

    Parameters
    ----------
    tables : mapping of str to ndarray
        Of `log_errors`, by name of the model; those of the same first word are of one sort.
    """
    shared = {name: _middles(table) for name, table in tables.items()}
    sorts: dict[str, dict[str, tuple[float, int]]] = {}
    for name, middle in shared.items():
        if len(middle) > 1:
            of = sorts.setdefault(name.partition(".")[0], {})
            of[name] = float(middle.var(ddof=1)), len(middle) - 1
    found = dict.fromkeys(tables, ErrorSpread())
    for known in sorts.values():
        for freedom in dict.fromkeys(each for _, each in known.values()):
            names = [name for name, (_, each) in known.items() if each == freedom]
            like = variance_prior([known[name][0] for name in names], freedom)
            for name in names:
                common = _new_session(known[name][0], freedom, like)
                offset = float(shared[name].mean())
                found[name] = ErrorSpread(math.hypot(common, offset), _own(tables[name], shared[name]))
    return found


def _middles(table: Array) -> Array:
    """What each session shares; sessions without any of the points have none."""
    rows = [row[np.isfinite(row)] for row in table]
    return np.array([float(np.median(row)) for row in rows if len(row)])


def _new_session(variance: float, freedom: int, like: VariancePrior) -> float:
    """Deviation of a new session from the mean of those known, as a normal one that holds nine of ten as well."""
    shrunk, wider = like.shrunk(variance, freedom)
    return wider * math.sqrt(shrunk * (1.0 + 1.0 / (freedom + 1)))


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


def with_pooled_scatter(fits: Sequence[Fit]) -> list[Fit]:
    """The same fits of one sort of kernel, each with a scatter that its intervals of readings can be made of.

    Parameters
    ----------
    fits : sequence of Fit
        Of different points. Values, and intervals of constants, stay as they are.
    """
    known = []
    for one in fits:
        # constants at a bound, or that the points do not depend on, took nothing off the residuals
        free = sum(not constant.note for constant in one.constants.values())
        residual = log_residual(one.model, one.data, one.values)
        freedom = max(1, len(residual) - free)
        known.append((float(np.sum(residual**2)) / freedom, freedom))
    like = variance_prior(
        [variance for variance, _ in known], [freedom for _, freedom in known], least=_SMALLEST_SCATTER
    )
    found = []
    for one, (variance, freedom) in zip(fits, known, strict=True):
        shrunk, wider = like.shrunk(variance, freedom)
        found.append(replace(one, scatter=wider * math.sqrt(shrunk)))
    return found


def gpu_spreads(
    tables: Mapping[str, Mapping[str, Sequence[Array]]], *, alike: Collection[str] = frozenset()
) -> dict[str, ErrorSpread]:
    """Spread of a board around what is predicted for it from others, by sort of kernel.

    Let boards lie b apart from what all have in common. Predicted from the m - 1 others of m, a board has an error of
    m/(m-1) times its distance from their mean, so that m times the mean square of these misses estimates (m/(m-1))^2
    times m - 1 variances of b. The board that is to be predicted is m + 1st: its b counts, and the error of the mean.
    Sorts of kernels help each other, but what is usual among them is no surer than all the boards make it. What a board
    shares is the median of its misses, which a part of their own scatter moves: pi/2 of its variance over their number.
    That is in the common part, and not counted twice.

    Parameters
    ----------
    tables : mapping of str to mapping of str to sequence of ndarray
        By sort and board: logarithms of measured over predicted while the board was left out, an array an operation.
        At least two boards.
    alike : collection of str
        Boards whose readings scatter like those of the one that is to be predicted, as far as data sheets tell. Where a
        sort has none of them, all its boards count.

    Returns
    -------
    dict of str to ErrorSpread
        `common` is widened by Student's t, as a normal deviation that holds nine of ten as well.
    """
    known: dict[str, tuple[float, int]] = {}
    for sort, boards in tables.items():
        shared = [float(np.mean([np.median(row) ** 2 for row in rows])) for rows in boards.values()]
        count = len(shared)
        known[sort] = (1.0 - 1.0 / count) * float(np.mean(shared)), count - 1
    like = variance_prior([variance for variance, _ in known.values()], [freedom for _, freedom in known.values()])
    total = sum(freedom for _, freedom in known.values())
    if math.isinf(like.freedom):  # one variance, known from all deviations
        like = VariancePrior(sum(variance * freedom for variance, freedom in known.values()) / total, total)
    like = VariancePrior(like.variance, min(like.freedom, total))
    found = {}
    for sort, boards in tables.items():
        variance, freedom = known[sort]
        shrunk, wider = like.shrunk(variance, freedom)
        common = wider * math.sqrt(shrunk * (1.0 + 1.0 / (freedom + 1)))
        near = {board: rows for board, rows in boards.items() if board in alike} or boards
        own = [float(row.var(ddof=1)) for rows in near.values() for row in rows if len(row) > 1]
        points = float(np.mean([len(row) for rows in boards.values() for row in rows]))
        twice = 0.5 * math.pi / points * (1.0 + 1.0 / (freedom + 1))
        found[sort] = ErrorSpread(common, math.sqrt(float(np.mean(own)) * max(0.0, 1.0 - twice)) if own else 0.0)
    return found


def half_width(spread: ErrorSpread) -> float:
    """Half of the 90 % interval of a reading's logarithm [1].

    Examples
    --------
    >>> round(half_width(ErrorSpread(0.3, 0.4)), 3)
    0.823
    """
    return NORMAL * math.hypot(spread.common, spread.own)
