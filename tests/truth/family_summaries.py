"""Errors of large models' grades, by family and quantity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from simperf.accuracy.large_grades import LargeGrade
from simperf.accuracy.summary import percentile_90


@dataclass(frozen=True, slots=True)
class FamilySummary:
    """Errors of a family's quantity.

    Parameters
    ----------
    family, quantity : str
    count : int
    median, p90, worst, bias : float
        Of the absolute errors, and the median of the signed ones [1].
    simple, peer : float
        Medians of the absolute errors of the simple model, and of the peer on its rows [1]; NaN without any.
    beside_peer : float
        Median of the absolute errors on the peer's rows [1].
    """

    family: str
    quantity: str
    count: int
    median: float
    p90: float
    worst: float
    bias: float
    simple: float
    peer: float
    beside_peer: float


def family_summaries(grades: Iterable[LargeGrade]) -> list[FamilySummary]:
    """Medians by family and quantity, in the order of the grades."""
    groups: dict[tuple[str, str], list[LargeGrade]] = {}
    for one in grades:
        groups.setdefault((one.case.family, one.quantity), []).append(one)
    return [_summary(*key, rows) for key, rows in groups.items()]


def _summary(family: str, quantity: str, rows: Sequence[LargeGrade]) -> FamilySummary:
    signed = [one.error() for one in rows]
    errors = sorted(map(abs, signed))
    with_peer = [one for one in rows if not math.isnan(one.peer)]
    return FamilySummary(
        family,
        quantity,
        len(rows),
        median(errors),
        percentile_90(errors),
        errors[-1],
        median(signed),
        _median(one.error("simple") for one in rows),
        _median(one.error("peer") for one in with_peer),
        _median(one.error() for one in with_peer),
    )


def _median(errors: Iterable[float]) -> float:
    found = [abs(error) for error in errors if not math.isnan(error)]
    return median(found) if found else math.nan
