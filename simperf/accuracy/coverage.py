"""Grades of intervals: how many published figures they hold that nothing of them was made of.

The interval of a figure is made of the errors of figures that share neither its family, nor, as is asked, its source or
its GPU. It is scored by the interval score (T. Gneiting, A. E. Raftery, "Strictly proper scoring rules, prediction, and
estimation", Journal of the American Statistical Association 102(477), 2007): its width, and 20 times what a figure
outside lies beyond its end. Beside it stands one width for all figures of a question, as much above as below the
prediction, made of the same errors.

Figures of one family have like errors, so that a binomial test of figures finds more than there is. The share that is
held therefore has a range: of families (sources, GPUs) that are drawn again, with replacement, each with all its
figures (B. Efron, R. Tibshirani, *An Introduction to the Bootstrap*, 1993; clusters: A. C. Davison, D. V. Hinkley,
*Bootstrap Methods and their Application*, 1997, section 3.8). A family of one question is another than that of the same
name of a second question, unless both are of one publication: then they are drawn together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Literal

import numpy as np

from simperf.analysis.chance import COVERAGE
from simperf.analysis.left_out import LeftOutError, spread

__all__ = ["CoverageGrade", "binomial_test", "drawn_share", "grade_intervals", "interval_score", "pooled"]

Label = Literal["family", "source", "gpu"]
#: bootstrap samples, and the share of them between the ends of a range
_DRAWS, _BETWEEN = 4000, 0.95
#: an error that lies at an end is held [1]
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class CoverageGrade:
    """The intervals of a question's figures.

    Parameters
    ----------
    question : str
    points, held : int
        Figures with an interval, and those that lie in theirs.
    without : int
        Figures without an interval: too few others were left, or each of them is less difficult.
    chance : float
        That as unlikely a number is held or a less likely one, if each is with a chance of nine in ten [1].
    width : float
        Upper over lower end, median [1].
    score, constant : float
        Mean interval scores of these intervals, and of one width, as logarithms [1].
    clusters : mapping of str to (int, int)
        Figures that are held and figures, of each family, source or GPU that was left out; by a name that figures of
        several questions share where they are of one publication.
    """

    question: str
    points: int
    held: int
    without: int
    chance: float
    width: float
    score: float
    constant: float
    clusters: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def share_range(self) -> tuple[float, float]:
        """95 % range of `share`, where `clusters` are drawn again [1]."""
        return drawn_share(tuple(self.clusters.values()))

    @property
    def share(self) -> float:
        """Of the figures that are held [1]."""
        return self.held / self.points if self.points else math.nan


def grade_intervals(question: str, errors: Sequence[LeftOutError], *, by: Label = "family") -> CoverageGrade:
    """Grade the intervals of a question's figures, each without its family and what shares its `by`.

    Parameters
    ----------
    question : str
    errors : sequence of LeftOutError
    by : {"family", "source", "gpu"}
    """
    without, widths, scores, constants = 0, list[float](), list[float](), list[float]()
    clusters: dict[str, tuple[int, int]] = {}
    for label in dict.fromkeys(getattr(one, by) for one in errors):
        out = [one for one in errors if getattr(one, by) == label]
        families = {one.family for one in out}
        rest = [one for one in errors if getattr(one, by) != label and one.family not in families]
        groups = dict.fromkeys(one.group for one in out)
        spreads = {group: spread(question, [one for one in rest if one.group == group]) for group in groups}
        half = _half_width(rest)
        for one in out:
            found = spreads[one.group]
            if found is None or found.beyond(one.difficulty, gpus=one.gpus):  # as of a run: it has none
                without += 1
                continue
            low, high = (math.log(end) for end in found.factors(one.difficulty, used=one.used))
            name = _cluster(question, one, by)
            held, points = clusters.get(name, (0, 0))
            clusters[name] = held + (low - _ROUNDING <= one.error <= high + _ROUNDING), points + 1
            widths.append(math.exp(high - low))
            scores.append(interval_score(low, high, one.error))
            constants.append(interval_score(-half, half, one.error))
    points, held = len(scores), sum(count for count, _ in clusters.values())
    mean = fmean(scores) if scores else math.nan
    return CoverageGrade(
        question,
        points,
        held,
        without,
        binomial_test(held, points),
        median(widths) if widths else math.nan,
        mean,
        fmean(constants) if constants else math.nan,
        clusters,
    )


def _cluster(question: str, one: LeftOutError, by: Label) -> str:
    """Name of what a figure is drawn with: the same in several questions only where it is of one publication."""
    return {"family": f"{one.source}: {one.family}", "source": one.source, "gpu": f"{question}: {one.gpu}"}[by]


def pooled(grades: Sequence[CoverageGrade]) -> CoverageGrade:
    """All figures of several questions together; scores are means over figures."""
    points, held = sum(one.points for one in grades), sum(one.held for one in grades)
    clusters: dict[str, tuple[int, int]] = {}
    for name, (inside, every) in (pair for one in grades for pair in one.clusters.items()):
        before = clusters.get(name, (0, 0))
        clusters[name] = before[0] + inside, before[1] + every
    told = [one for one in grades if one.points]

    def mean(values: Sequence[float]) -> float:
        return math.fsum(v * one.points for v, one in zip(values, told, strict=True)) / points if points else math.nan

    return CoverageGrade(
        "pooled",
        points,
        held,
        sum(one.without for one in grades),
        binomial_test(held, points),
        mean([one.width for one in told]),
        mean([one.score for one in told]),
        mean([one.constant for one in told]),
        clusters,
    )


def interval_score(low: float, high: float, value: float) -> float:
    """Interval score of a 90 % interval.

    Examples
    --------
    >>> interval_score(0.0, 1.0, 0.5), round(interval_score(0.0, 1.0, 1.5), 9)
    (1.0, 11.0)
    """
    beyond = max(0.0, low - value) + max(0.0, value - high)
    return high - low + 2.0 / (1.0 - COVERAGE) * beyond


def drawn_share(clusters: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """95 % range of the share that is held, where clusters are drawn again, each with all its figures [1].

    Parameters
    ----------
    clusters : sequence of (int, int)
        Figures that are held, and figures.

    Examples
    --------
    >>> drawn_share([(9, 10)] * 7), drawn_share([(0, 10), (10, 10)])
    ((0.9, 0.9), (0.0, 1.0))
    """
    if not clusters:
        return math.nan, math.nan
    held, points = np.array(clusters, dtype=np.float64).T
    drawn = np.random.default_rng(0).integers(len(clusters), size=(_DRAWS, len(clusters)))
    low, high = np.quantile(held[drawn].sum(1) / points[drawn].sum(1), [(1 - _BETWEEN) / 2, (1 + _BETWEEN) / 2])
    return float(low), float(high)


def binomial_test(held: int, points: int) -> float:
    """Chance of a number as unlikely as `held` or less likely, of `points` draws with chance `COVERAGE` each [1].

    Examples
    --------
    >>> binomial_test(9, 10), round(binomial_test(0, 2), 9)
    (1.0, 0.01)
    """
    if not points:
        return math.nan
    logs = [
        math.lgamma(points + 1)
        - math.lgamma(count + 1)
        - math.lgamma(points - count + 1)
        + count * math.log(COVERAGE)
        + (points - count) * math.log(1.0 - COVERAGE)
        for count in range(points + 1)
    ]
    return min(1.0, math.fsum(math.exp(log) for log in logs if log <= logs[held] + 1e-7))


def _half_width(errors: Sequence[LeftOutError]) -> float:
    """Half of the width that holds nine of ten new errors about 0, by its rank."""
    sizes = sorted(abs(one.error) for one in errors)
    return sizes[min(len(sizes) - 1, math.ceil(COVERAGE * (len(sizes) + 1)) - 1)] if sizes else math.nan
