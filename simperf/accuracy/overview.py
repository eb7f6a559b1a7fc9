"""Errors by question: of the figures that need a prediction, beside baselines on the same figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

import numpy as np
from numpy.typing import NDArray

from simperf.accuracy.kernel_figures import KernelFigures
from simperf.accuracy.questions import COLLECTIVES, KERNELS, LARGE_MEMORY, LARGE_TIME, ONE_GPU, QUESTIONS, SCALING
from simperf.accuracy.single_steps import STEPS_TITLE
from simperf.accuracy.summary import percentile_90
from simperf.accuracy.timed_passes import PASSES_TITLE
from simperf.accuracy.validation import ValidationRow
from simperf.analysis.questions import SIZE_CLASSES, STEP_METRICS, size_class

__all__ = [
    "PASSES",
    "STEPS",
    "ChoiceLine",
    "OverviewLine",
    "QuestionSummary",
    "summarize_choices",
    "summarize_families",
    "summarize_questions",
]

Array = NDArray[np.float64]

#: baselines of a question: attribute of a row, and name
_BASELINES: Mapping[str, Mapping[str, str]] = {
    ONE_GPU: {"simple": "share of the peak of other GPUs"},
    SCALING: {"linear": "linear", "ring": "one GPU + a ring"},
    COLLECTIVES: {"simple": "a ring, by data sheets"},
    LARGE_TIME: {"simple": "median FLOP/s of the family"},
    LARGE_MEMORY: {"simple": "states and activations by formula"},
}
#: parts of the figures of one GPU
STEPS, PASSES = "training steps", "passes from an idle device"


@dataclass(frozen=True, slots=True)
class OverviewLine:
    """Errors of one method on some figures.

    Parameters
    ----------
    name : str
        The method, or what tells the figures from others.
    points : int
    median, p90, bias : float
        Of the absolute errors, and the median of the signed ones, below 0 where it is too fast or too little
        memory, as the error of a time [1]; NaN without points.
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


@dataclass(frozen=True, slots=True)
class ChoiceLine:
    """Errors of the figures of a question that rest on a choice, and of the others.

    Parameters
    ----------
    choice, question : str
    points : int
        That rest on it.
    having, without : float
        Medians of the absolute errors of these, and of the question's other figures [1]; NaN without any.
    """

    choice: str
    question: str
    points: int
    having: float
    without: float


@dataclass(frozen=True, slots=True, eq=False)
class _Errors:
    """Signed errors of figures [1], and which way is slow.

    Parameters
    ----------
    signed, slower : ndarray
        Errors; and -1 where more of the quantity is faster, as of a rate, else 1.
    baselines : mapping of str to ndarray
        Errors of baselines.
    """

    signed: Array
    slower: Array
    baselines: Mapping[str, Array] = field(default_factory=dict)

    def line(self, name: str, baseline: str = "") -> OverviewLine:
        """The line of the prediction, or of a baseline."""
        signed = self.baselines[baseline] if baseline else self.signed
        if not signed.size:
            return OverviewLine(name, 0, math.nan, math.nan, math.nan)
        errors = np.sort(np.abs(signed)).tolist()
        nearer = float(np.mean(np.abs(self.signed) < np.abs(signed))) if baseline else math.nan
        bias = float(np.median(signed * self.slower))
        return OverviewLine(name, len(errors), median(errors), percentile_90(errors), bias, nearer)


def summarize_questions(rows: Iterable[ValidationRow], kernels: Sequence[KernelFigures] = ()) -> list[QuestionSummary]:
    """The errors of each question that has figures, in the order of `QUESTIONS`.

    Parameters
    ----------
    rows : iterable of ValidationRow
        Of any question and class.
    kernels : sequence of KernelFigures
        Kernels by shape, which all need a prediction.
    """
    every = list(rows)
    found = []
    for question in QUESTIONS:
        own = [row for row in every if row.question == question]
        asked = [row for row in own if row.kind == "predicted"]
        there = [row for row in asked if not math.isnan(row.error)]
        shapes = kernels if question == KERNELS else ()
        if own or shapes:
            pooled = np.concatenate([_errors(there).signed, *(one.error for one in shapes)])
            slower = np.concatenate([_errors(there).slower, *(np.ones_like(one.error) for one in shapes)])
            parts = (
                *_sorts(question, there),
                *_sizes(question, there),
                *_beside(question, there),
                *_without_choices(there),
                *_kernels(shapes),
            )
            found.append(
                QuestionSummary(
                    question,
                    _Errors(pooled, slower).line("all"),
                    parts,
                    sum(row.kind == "fitted" for row in own),
                    sum(row.kind == "nearly linear" for row in own),
                    len(asked) - len(there),
                )
            )
    return found


def summarize_families(rows: Iterable[ValidationRow]) -> list[list[OverviewLine]]:
    """Large models by family: the prediction, and the baselines on the figures that have them."""
    found = []
    own = [row for row in rows if row.question == LARGE_TIME and row.kind == "predicted" and not math.isnan(row.error)]
    for title in dict.fromkeys(row.title for row in own):
        family = [row for row in own if row.title == title]
        lines = [_errors(family).line(title.removeprefix("Large models: "))]
        for key, name in _BASELINES[LARGE_TIME].items():
            lines.append(_errors([row for row in family if not math.isnan(getattr(row, key))], (key,)).line(name, key))
        found.append(lines)
    return found


def summarize_choices(rows: Iterable[ValidationRow]) -> list[ChoiceLine]:
    """Each listed choice on which figures rest, by question."""
    found = []
    there = [row for row in rows if row.kind == "predicted" and row.question and not math.isnan(row.error)]
    for question in QUESTIONS:
        own = [row for row in there if row.question == question]
        for choice in dict.fromkeys(name for row in own for name in row.rests_on.split(", ") if name):
            having = [row for row in own if choice in row.rests_on.split(", ")]
            others = [row for row in own if choice not in row.rests_on.split(", ")]
            medians = (_errors(some).line("").median for some in (having, others))
            found.append(ChoiceLine(choice, question, len(having), *medians))
    return found


def _errors(rows: Sequence[ValidationRow], keys: Iterable[str] = ()) -> _Errors:
    return _Errors(
        np.array([row.error for row in rows]),
        np.array([1.0 if row.is_time or row.question == LARGE_MEMORY else -1.0 for row in rows]),
        {key: np.array([row.error_of(getattr(row, key)) for row in rows]) for key in keys},
    )


def _sorts(question: str, rows: Sequence[ValidationRow]) -> tuple[OverviewLine, ...]:
    """Figures of one GPU by what is timed: training steps, single passes, and what scenarios quote."""
    if question != ONE_GPU:
        return ()
    groups: dict[str, list[ValidationRow]] = {STEPS: [], PASSES: [], "others, of scenarios": []}
    for row in rows:
        starts = {STEPS: STEPS_TITLE, PASSES: PASSES_TITLE}
        other = STEPS if row.quantity.removeprefix("metrics.") in STEP_METRICS else "others, of scenarios"
        name = next((name for name, start in starts.items() if row.title.startswith(start)), other)
        groups[name].append(row)
    told = {name: own for name, own in groups.items() if own}
    return tuple(_errors(own).line(name) for name, own in told.items()) if len(told) > 1 else ()


def _sizes(question: str, rows: Sequence[ValidationRow]) -> tuple[OverviewLine, ...]:
    """Collectives of small, middle and large payloads apart, where they have one payload."""
    if question != COLLECTIVES:
        return ()
    sizes = [(size_class(row.nbytes), row) for row in rows if not math.isnan(row.nbytes)]
    groups = {name: [row for size, row in sizes if size == name] for name in SIZE_CLASSES}
    return tuple(_errors(own).line(name) for name, own in groups.items() if own)


def _beside(question: str, rows: Sequence[ValidationRow]) -> tuple[OverviewLine, ...]:
    """The prediction and all baselines on the figures for which each is defined."""
    names = _BASELINES.get(question, {})
    all_of = [row for row in rows if not any(math.isnan(getattr(row, key)) for key in names)]
    if not names or not all_of:
        return ()
    errors = _errors(all_of, names)
    where = "where a baseline is defined" if len(names) == 1 else "where baselines are defined"
    return (errors.line(where), *(errors.line(name, key) for key, name in names.items()))


def _without_choices(rows: Sequence[ValidationRow]) -> tuple[OverviewLine, ...]:
    """The figures apart that rest on a choice which was made after they were seen."""
    free = [row for row in rows if not row.rests_on]
    if len(free) == len(rows):
        return ()
    return (
        _errors(free).line("without listed choices"),
        _errors([row for row in rows if row.rests_on]).line("with listed choices"),
    )


def _kernels(shapes: Sequence[KernelFigures]) -> tuple[OverviewLine, ...]:
    """Kernels by shape: each group, and its baselines."""
    found = []
    for group in dict.fromkeys(one.group for one in shapes):
        own = [one for one in shapes if one.group == group]
        errors = np.concatenate([one.error for one in own])
        simple = {
            name: np.concatenate([getattr(one, key) for one in own])
            for key, name in (("one_rate", "one rate"), ("roofline", "a roofline"))
        }
        whole = _Errors(errors, np.ones_like(errors), simple)
        found += [whole.line(group), *(whole.line(name, name) for name in simple)]
    return tuple(found)
