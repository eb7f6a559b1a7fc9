"""Measured and predicted times of the figures that need a prediction, by question, for a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from simperf.accuracy.kernel_figures import KernelFigures
from simperf.accuracy.questions import KERNELS, QUESTIONS
from simperf.accuracy.validation import ValidationRow

__all__ = ["plotted_points"]

Array = NDArray[np.float64]


def plotted_points(
    rows: Iterable[ValidationRow], kernels: Sequence[KernelFigures] = ()
) -> Mapping[str, tuple[Array, Array]]:
    """Measured and predicted times by question, in the order of `QUESTIONS` [s].

    A rate counts as the time of one sample. Other quantities (bytes, ratios, efficiencies) have no times, and figures
    that restate what was given, are nearly linear or have no prediction are no points.

    Parameters
    ----------
    rows : iterable of ValidationRow
    kernels : sequence of KernelFigures

    Examples
    --------
    >>> row = ValidationRow("t", "v", "metrics.samples per second", "1/s", 4.0, 4.0, 5.0, question="Kernels")
    >>> plotted_points([row])["Kernels"]
    (array([0.25]), array([0.2]))
    """
    found: dict[str, list[tuple[float, float]]] = {question: [] for question in QUESTIONS}
    for row in rows:
        if row.kind != "predicted" or row.question not in found or not (row.low > 0 and row.predicted > 0):
            continue
        measured = min(max(row.predicted, row.low), row.high)
        if row.unit == "s":
            found[row.question].append((measured, row.predicted))
        elif row.unit == "1/s":
            found[row.question].append((1 / measured, 1 / row.predicted))
    for one in kernels:
        found[KERNELS] += zip(one.measured, one.measured * (1 + one.error), strict=True)
    made = {}
    for question, points in found.items():
        if points:
            measured, predicted = np.array(points).T
            made[question] = measured, predicted
    return made
