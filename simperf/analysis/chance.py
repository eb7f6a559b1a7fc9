"""Intervals of results, and how likely one of two is the better."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simperf.answer import TIME, Better, better_of
from simperf.errors import InputError, Problem
from simperf.results import Result

__all__ = ["COVERAGE", "NORMAL", "Duel", "beats", "distinguishable", "drawn_interval", "interval"]

#: share of the draws, or of new figures, that an interval holds [1]
COVERAGE = 0.9
#: what reaches as far to either side of a normal distribution's middle, over its standard deviation [1]
NORMAL = 1.645
#: two results closer than this are one [1]
_ROUNDING = 1e-12


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Range that holds the middle `COVERAGE` of `values`.

    Examples
    --------
    >>> low, high = interval(range(101))
    >>> round(low, 9), round(high, 9)
    (5.0, 95.0)
    """
    tail = (1.0 - COVERAGE) / 2
    low, high = np.quantile(np.asarray(values, dtype=np.float64), [tail, 1.0 - tail])
    return float(low), float(high)


def drawn_interval(result: Result, metric: str) -> tuple[float, float] | None:
    """The interval of a result's draws, by which it is distinguished from others; None if there are none.

    Two runs that are compared share a part of the errors of published figures, more or less, and blurs
    their order less than it does their times: intervals that are made of it are left out.
    """
    if metric in result.draws:
        return interval(result.draws[metric])
    return None if result.interval_sources else result.intervals.get(metric)


@dataclass(frozen=True, slots=True)
class Duel:
    """Comparison of two results: whether one is better than the other.

    Parameters
    ----------
    probability : float
        That the first is better [1]; ties count half.
    pairs : int
        Draws that were compared with each other; 0 if there are none and the numbers themselves decide.
    """

    probability: float
    pairs: int


def beats(first: Result, second: Result, *, metric: str = "time", better: Better | None = None) -> Duel:
    """Probability that `first` beats `second` in a metric, whose unit says which end is better if `better` does not.

    With the same number of samples, draw i of one is compared with draw i of the other; otherwise all against all.

    Raises
    ------
    InputError
        A result lacks the metric.
    """
    ours, theirs = _values(first, metric), _values(second, metric)
    more = (better or better_of(first.number(metric).unit)) == "higher"
    one, two = (np.asarray(values, dtype=np.float64) for values in (ours, theirs))
    if not (metric in first.draws and metric in second.draws):
        one, two = np.asarray([_value(first, metric)]), np.asarray([_value(second, metric)])
    elif len(one) != len(two):
        one, two = one[:, None], two[None, :]
    gap = (one - two) * (1.0 if more else -1.0)
    tie = np.abs(gap) <= _ROUNDING * np.maximum(np.abs(one), np.abs(two))
    share = float(np.mean(np.where(tie, 0.5, gap > 0)))
    pairs = int(gap.size) if metric in first.draws and metric in second.draws else 0
    return Duel(share, pairs)


def distinguishable(first: Result, second: Result, *, metric: str = "time") -> bool | None:
    """Whether the intervals of two results' draws leave no doubt which is better; None if one has no interval."""
    ends = [drawn_interval(result, metric) for result in (first, second)]
    if ends[0] is None or ends[1] is None:
        return None
    return ends[0][1] < ends[1][0] or ends[1][1] < ends[0][0]


def _value(result: Result, metric: str) -> float:
    if metric != TIME and metric not in result.metrics:
        raise InputError(Problem(f"{result.name} has no metric {metric!r}", expected=", ".join(result.metrics)))
    return result.number(metric).value


def _values(result: Result, metric: str) -> Sequence[float]:
    value = _value(result, metric)
    return result.draws.get(metric, (value,))
