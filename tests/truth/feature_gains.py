"""Gains of features that a source adds in turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from simperf.accuracy.large_grades import GAIN, LargeGrade
from simperf.workload.mixed import training_precision
from simperf.workload.transformers.flops import step_flops


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
