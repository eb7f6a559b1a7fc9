"""Ratios between schedules of one job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from simperf.accuracy.large_grades import LargeGrade

__all__ = ["schedule_ratios"]

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
