"""Points of an architecture that was left out, which lie in the intervals that the other architectures give."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from simperf.accuracy.leave_out.kernels import catalogue_misses, elsewhere, kernel_parts
from simperf.accuracy.leave_out.measured_steps import DRAWS, MeasuredStep
from simperf.accuracy.leave_out.steps import kernel_figures, step_figures, step_miss, step_misses
from simperf.analysis.chance import interval
from simperf.calibrate.uncertainty.variance import gpu_spreads, half_width
from simperf.cost import Unseen


def kernel_coverage(cases: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], tuple[int, int, float]]:
    """Points in their 90 % intervals, points, and half of an interval, by sort and architecture.

    The interval of an architecture's points is made of the other architectures alone, each left out with it.
    """
    misses = catalogue_misses(cases)
    found = {}
    for name in sorted({name for boards in misses.values() for name in boards}):
        spreads = gpu_spreads(catalogue_misses(cases, without=name))
        for sort, boards in sorted(misses.items()):
            if name in boards:
                width, every = half_width(spreads[sort]), np.concatenate(boards[name])
                found[sort, name] = int((np.abs(every) <= width).sum()), len(every), math.expm1(width)
    return found


def step_coverage(
    cases: Sequence[Mapping[str, Any]], steps: Sequence[MeasuredStep]
) -> dict[str, tuple[int, int, float]]:
    """Steps in their 90 % intervals, steps, and the median of half an interval, by architecture.

    The interval of an architecture's steps is made of the other architectures' kernels and steps alone, of as many
    draws as `simperf run --samples 20` makes. The half-width is that of the logarithm [1].
    """
    found = {}
    for name in sorted({step.part.architecture for step in steps}):
        parts, figures = kernel_parts(cases, without=name), kernel_figures(cases, without=name)
        figures["steps"] = step_figures(step_misses(cases, steps, without=name))
        draws = [Unseen(draw=index, **figures) for index in range(DRAWS)]
        inside, widths = [], []
        for step in (one for one in steps if one.part.architecture == name):
            efficiency = elsewhere(parts, step.part)
            missed = step_miss(step, efficiency, ()).missed
            best = step.kernels(efficiency)
            logs = [
                math.log(step.kernels(efficiency, one) / best * one.step(step.model, step.precision, step.part.name))
                for one in draws
            ]
            low, high = interval(logs)
            inside.append(low <= missed <= high)
            widths.append((high - low) / 2)
        found[name] = sum(inside), len(inside), float(np.median(widths))
    return found
