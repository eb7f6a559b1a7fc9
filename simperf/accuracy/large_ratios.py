"""Effects of one choice alone on a job: ratios between schedules, and gains of features that are added in turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from simperf.accuracy.large_grades import GAIN, LargeGrade
from simperf.workload.mixed import training_precision
from simperf.workload.transformers.flops import step_flops

__all__ = ["feature_gains", "schedule_ratios"]

#: what others are held against
_REFERENCE = "1f1b"


def schedule_ratios(grades: Iterable[LargeGrade]) -> Iterator[LargeGrade]:
    """Throughput and memory of schedules over those of 1F1B, where a source has several schedules of one job.

    Parameters
    ----------
    grades : iterable of LargeGrade
        Times, and memory of the rank that has most.

    Examples
    --------
    >>> list(schedule_ratios([]))
    []
    """
    jobs: dict[tuple[object, ...], list[LargeGrade]] = {}
    for one in grades:
        how = one.case.layout
        if one.stage < 0:
            batch = how.layout, how.batch, how.microbatch, how.recompute, how.precision
            key = one.case.family, one.quantity, one.case.model, one.case.machine.gpu.name, *batch
            jobs.setdefault(key, []).append(one)
    for several in jobs.values():
        first = next((one for one in several if one.case.layout.schedule == _REFERENCE), None)
        for one in several if first is not None else ():
            if one.case.layout.schedule != _REFERENCE:
                assert first is not None
                yield _ratio(one, first)


def _ratio(one: LargeGrade, first: LargeGrade) -> LargeGrade:
    if one.quantity == "time":
        measured, predicted = first.measured / one.measured, first.predicted / one.predicted
        return LargeGrade(one.case, "throughput ratio", -1, measured, predicted)
    measured, predicted = one.measured / first.measured, one.predicted / first.predicted
    return replace(one, quantity=f"{one.quantity} ratio", measured=measured, predicted=predicted)


def feature_gains(grades: Iterable[LargeGrade]) -> Iterator[LargeGrade]:
    """Gains in model FLOP utilisation of features that a source adds one after the other, in shares of the peak.

    FLOP are those of a step's products and of attention without its mask; windows count as far as they see.

    Parameters
    ----------
    grades : iterable of LargeGrade
        Times, in the order of the source.
    """
    jobs: dict[tuple[object, ...], list[LargeGrade]] = {}
    for one in grades:
        if one.quantity == "time" and one.case.feature:
            case = one.case
            key = case.family, case.machine.gpu.name, case.layout.layout, case.layout.batch, case.model.layers
            jobs.setdefault(key, []).append(one)
    for several in jobs.values():
        for before, one in pairwise(several):
            was, now = _utilisations(before), _utilisations(one)
            yield LargeGrade(one.case, GAIN, -1, now[0] - was[0], now[1] - was[1])


def _utilisations(one: LargeGrade) -> tuple[float, float]:
    """Model FLOP utilisation as measured and as predicted [1]."""
    case = one.case
    peak = float(case.machine.gpu.peak[training_precision(f"{case.layout.precision}-master").matrix])
    least = step_flops(case.model) * case.layout.batch / case.gpus / peak
    return least / one.measured, least / one.predicted
