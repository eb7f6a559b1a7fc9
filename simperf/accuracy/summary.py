"""Errors of many figures in short: of a whole table, and of its ends over message sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from simperf.accuracy.validation import ValidationRow
from simperf.analysis.questions import SIZE_CLASSES, size_class

__all__ = ["FigureSummary", "SizeSummary", "percentile_90", "summarize_figures", "summarize_sizes"]


@dataclass(frozen=True, slots=True)
class FigureSummary:
    """Absolute errors of several figures.

    Parameters
    ----------
    predicted, failed : int
        Figures with a prediction, and without one.
    median, p90, worst : float
        Of the absolute relative errors [1]; NaN if nothing was predicted.
    """

    predicted: int
    failed: int
    median: float
    p90: float
    worst: float


@dataclass(frozen=True, slots=True)
class SizeSummary:
    """Errors of a table over message sizes.

    Parameters
    ----------
    title : str
    points : int
    large : float, optional
        Median error at 64 MiB and above [1]; None without such sizes.
    small : float, optional
        Median of predicted over measured at 8 KiB and below [1]; None without such sizes.
    least, largest : float
        Signed errors [1].
    """

    title: str
    points: int
    large: float | None
    small: float | None
    least: float
    largest: float


def percentile_90(ordered: Sequence[float]) -> float:
    """The 90th percentile of values in their order: the one that nine of ten lie below.

    Examples
    --------
    >>> percentile_90([1.0, 2.0, 3.0]), percentile_90(range(100))
    (3.0, 90)
    """
    return ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]


def summarize_figures(rows: Sequence[ValidationRow]) -> FigureSummary:
    """Median, 90th percentile and largest of the absolute errors."""
    errors = sorted(abs(row.error) for row in rows if not math.isnan(row.error))
    failed = len(rows) - len(errors)
    if not errors:
        return FigureSummary(0, failed, math.nan, math.nan, math.nan)
    return FigureSummary(len(errors), failed, median(errors), percentile_90(errors), errors[-1])


def summarize_sizes(rows: Sequence[ValidationRow]) -> list[SizeSummary]:
    """Both ends of each table, by the payloads of its rows."""
    found = []
    for title in dict.fromkeys(row.title for row in rows):
        own = [(size_class(row.nbytes), row) for row in rows if row.title == title]
        large = [row.error for size, row in own if size == SIZE_CLASSES[-1]]
        small = [row.predicted / row.low for size, row in own if size == SIZE_CLASSES[0]]
        errors = [row.error for _, row in own]
        found.append(
            SizeSummary(
                title,
                len(own),
                median(large) if large else None,
                median(small) if small else None,
                min(errors),
                max(errors),
            )
        )
    return found
