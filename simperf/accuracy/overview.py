"""Errors by question: of the figures that need a prediction, beside baselines on the same figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from simperf.accuracy.questions import COLLECTIVES, QUESTIONS
from simperf.accuracy.summary import LARGE, SMALL
from simperf.accuracy.validation import ValidationRow

__all__ = ["OverviewLine", "QuestionSummary", "summarize_questions"]


@dataclass(frozen=True, slots=True)
class OverviewLine:
    """Errors of one method on some figures.

    Parameters
    ----------
    name : str
        The method, or what tells the figures from others.
    points : int
    median, p90, bias : float
        Of the absolute errors, and the median of the signed ones, above 0 where it is too fast [1]; NaN without points.
    nearer : float
        Share of the points at which the prediction is nearer than this baseline [1]; NaN where it is none.
    """

    name: str
    points: int
    median: float
    p90: float
    bias: float
    nearer: float = math.nan


@dataclass(frozen=True, slots=True)
class QuestionSummary:
    """Errors of a question's figures.

    Parameters
    ----------
    question : str
    whole : OverviewLine
        Of all figures that need a prediction.
    parts : tuple of OverviewLine
        Of some of them, and of baselines on the same.
    fitted, nearly_linear, failed : int
        Figures that are not counted, by class, and those that need a prediction and have none.
    """

    question: str
    whole: OverviewLine
    parts: tuple[OverviewLine, ...]
    fitted: int
    nearly_linear: int
    failed: int


def summarize_questions(rows: Iterable[ValidationRow]) -> list[QuestionSummary]:
    """The errors of each question that has figures, in the order of `QUESTIONS`.

    Parameters
    ----------
    rows : iterable of ValidationRow
        Of any question and class.
    """
    every = list(rows)
    found = []
    for question in QUESTIONS:
        own = [row for row in every if row.question == question]
        asked = [row for row in own if row.kind == "predicted"]
        there = [row for row in asked if not math.isnan(row.error)]
        if own:
            found.append(
                QuestionSummary(
                    question,
                    _line("all", there),
                    (*_sizes(question, there), *_beside(there), *_without_choices(there)),
                    sum(row.kind == "fitted" for row in own),
                    sum(row.kind == "nearly linear" for row in own),
                    len(asked) - len(there),
                )
            )
    return found


def _line(
    name: str, rows: Sequence[ValidationRow], value: Callable[[ValidationRow], float] | None = None
) -> OverviewLine:
    """Errors of the prediction, or of a baseline's `value` in its place."""
    signed = [row.error if value is None else row.error_of(value(row)) for row in rows]
    errors = sorted(map(abs, signed))
    if not errors:
        return OverviewLine(name, 0, math.nan, math.nan, math.nan)
    nearer = math.nan
    if value is not None:
        nearer = sum(abs(row.error) < abs(other) for row, other in zip(rows, signed, strict=True)) / len(rows)
    p90 = errors[min(len(errors) - 1, int(0.9 * len(errors)))]
    bias = median(-error if _of_time(row) else error for row, error in zip(rows, signed, strict=True))
    return OverviewLine(name, len(errors), median(errors), p90, bias, nearer)


def _of_time(row: ValidationRow) -> bool:
    """Whether less of the quantity is faster."""
    return row.unit == "s" or row.quantity.removeprefix("metrics.").startswith("time")


def _sizes(question: str, rows: Sequence[ValidationRow]) -> tuple[OverviewLine, ...]:
    """Collectives of small, middle and large payloads apart, where they have one payload."""
    if question != COLLECTIVES:
        return ()
    sizes = [(row.nbytes, row) for row in rows if not math.isnan(row.nbytes)]
    groups = {
        "8 KiB and below": [row for nbytes, row in sizes if nbytes <= SMALL],
        "between": [row for nbytes, row in sizes if SMALL < nbytes < LARGE],
        "64 MiB and above": [row for nbytes, row in sizes if nbytes >= LARGE],
    }
    return tuple(_line(name, own) for name, own in groups.items() if own)


def _beside(rows: Sequence[ValidationRow]) -> tuple[OverviewLine, ...]:
    """The prediction and both baselines on the figures for which both are defined."""
    both = [row for row in rows if not (math.isnan(row.linear) or math.isnan(row.ring))]
    if not both:
        return ()
    return (
        _line("where baselines are defined", both),
        _line("linear", both, lambda row: row.linear),
        _line("one GPU + a ring", both, lambda row: row.ring),
    )


def _without_choices(rows: Sequence[ValidationRow]) -> tuple[OverviewLine, ...]:
    """The figures apart that rest on a choice which was made after they were seen."""
    free = [row for row in rows if not row.rests_on]
    if len(free) == len(rows):
        return ()
    return (
        _line("without listed choices", free),
        _line("with listed choices", [row for row in rows if row.rests_on]),
    )
