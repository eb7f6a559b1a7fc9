"""The picture of accuracy has the figures that need a prediction, and lines at 10 and 30 %."""

from dataclasses import replace

import numpy as np
import pytest

from simperf.accuracy.kernel_figures import KernelFigures
from simperf.accuracy.plotted_points import plotted_points
from simperf.accuracy.questions import COLLECTIVES, KERNELS, LARGE_MEMORY, SCALING
from simperf.accuracy.validation import ValidationRow
from simperf.errors import InputError
from simperf.report.accuracy_plot import MOST_POINTS, draw_accuracy

ROW = ValidationRow("t", "v", "time", "s", 1.0, 2.0, 3.0, question=COLLECTIVES)


def test_times_and_rates_are_points_and_other_quantities_are_not():
    rows = [
        ROW,
        replace(ROW, unit="1/s", low=4.0, high=4.0, predicted=5.0, question=SCALING),
        replace(ROW, unit="B", question=LARGE_MEMORY),
        replace(ROW, kind="fitted"),
        replace(ROW, predicted=float("nan")),
    ]
    shapes = KernelFigures("g", "h100", "products", np.array([2.0, 4.0]), np.array([0.5, 0.0]), *[np.zeros(2)] * 2)
    points = plotted_points(rows, [shapes])
    assert {question: tuple(map(list, pair)) for question, pair in points.items()} == {
        SCALING: ([0.25], [0.2]),
        COLLECTIVES: ([2.0], [3.0]),  # the nearest end of a range
        KERNELS: ([2.0, 4.0], [3.0, 4.0]),
    }


def test_each_question_has_its_points_and_many_are_thinned():
    many = np.linspace(1.0, 9.0, 5 * MOST_POINTS)
    made = draw_accuracy({KERNELS: (many, many), SCALING: (np.array([1e-3]), np.array([1e-2]))})
    left, right = made.axes
    assert [len(one.get_offsets()) for one in left.collections] == [MOST_POINTS, 1]
    assert right.collections[1].get_offsets()[0][1] == pytest.approx(5.0)  # ten times too long, at the edge
    bounds = sorted(line.get_ydata()[0] for line in right.lines)
    assert bounds == pytest.approx([0.7, 0.9, 1.0, 1.1, 1.3])
    assert f"Kernels: {MOST_POINTS} of {5 * MOST_POINTS}" in " ".join(made.get_supxlabel().split())


def test_nothing_to_draw_is_told():
    with pytest.raises(InputError, match="no measured times"):
        draw_accuracy({})
