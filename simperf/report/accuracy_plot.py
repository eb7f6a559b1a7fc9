"""The picture of accuracy: predicted against measured times of the figures that need a prediction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simperf.accuracy.questions import COLLECTIVES, KERNELS, LARGE_TIME, ONE_GPU, SCALING
from simperf.errors import InputError, Problem
from simperf.report.style import figure, heading, note

__all__ = ["MOST_POINTS", "draw_accuracy"]

Array = NDArray[np.float64]

#: points of a question that are drawn
MOST_POINTS = 300
#: bounds that are drawn beside the line on which predictions are right [1]
_BOUNDS = ((0.1, "--"), (0.3, ":"))
#: colour and mark of a question; what has most points is drawn first
_LOOKS = {
    KERNELS: ("#777777", "."),
    COLLECTIVES: ("#CC79A7", "v"),
    LARGE_TIME: ("#D55E00", "s"),
    SCALING: ("#009E73", "^"),
    ONE_GPU: ("#0072B2", "o"),
}
#: ratios of predicted to measured that are drawn [1]
_RATIOS = (0.2, 5.0)


def draw_accuracy(points: Mapping[str, tuple[Array, Array]]) -> Any:
    """Make the figure: on the left predicted against measured times, on the right their ratio.

    Parameters
    ----------
    points : mapping of str to two ndarray
        Measured and predicted times by question [s]; of many every so many-th is drawn, by the measured time.

    Raises
    ------
    InputError
        There is nothing to draw.
    """
    drawn = {question: _some(*points[question]) for question in _LOOKS if question in points}
    if not drawn:
        expected = "figures that need a prediction, in seconds or a second"
        raise InputError(Problem("no measured times to draw", expected=expected))
    times = np.concatenate([times for pair in drawn.values() for times in pair])
    ends = [float(times.min()) / 2, float(times.max()) * 2]

    def fill(made: Any) -> None:
        left, right = made.subplots(1, 2, width_ratios=[1, 1])
        heading(made, "Predicted against measured times, of figures that need a prediction")
        for question, (measured, predicted) in drawn.items():
            color, mark = _LOOKS[question]
            style = {
                "c": color,
                "marker": mark,
                "s": 20 if mark == "." else 9,
                "alpha": 0.6,
                "linewidths": 0,
                "label": question,
            }
            left.scatter(measured, predicted, **style)
            right.scatter(measured, np.clip(predicted / measured, *_RATIOS), **style)
        for axes, at in ((left, np.array(ends)), (right, np.ones(2))):
            axes.plot(ends, at, color="black", lw=0.8)
            for bound, dashes in _BOUNDS:
                for factor in (1 + bound, 1 - bound):
                    axes.plot(ends, factor * at, dashes, color="black", lw=0.6)
            axes.set(xscale="log", yscale="log", xlim=ends, xlabel="measured (s)")
        left.set(ylim=ends, ylabel="predicted (s)")
        right.set(ylim=(_RATIOS[0] * 0.95, _RATIOS[1] * 1.05), ylabel="predicted / measured")
        right.set_yticks([0.2, 0.5, 0.7, 0.9, 1.1, 1.3, 2, 5], ["0.2", "0.5", "0.7", "0.9", "1.1", "1.3", "2", "5"])
        right.minorticks_off()
        left.legend(fontsize=7, loc="upper left")
        note(left, _told(points, drawn))

    return figure(fill, width=9.0, height=4.6)


def _some(measured: Array, predicted: Array) -> tuple[Array, Array]:
    """At most `MOST_POINTS`, evenly by the measured time."""
    order = np.argsort(measured, kind="stable")
    if len(order) > MOST_POINTS:
        order = order[np.linspace(0, len(order) - 1, MOST_POINTS).round().astype(int)]
    return measured[order], predicted[order]


def _told(points: Mapping[str, tuple[Array, Array]], drawn: Mapping[str, tuple[Array, Array]]) -> str:
    """What the lines are, and how many points there are."""
    counts = []
    for question, (measured, _) in drawn.items():
        whole = len(points[question][0])
        counts.append(f"{question}: {len(measured)}" + (f" of {whole}" if whole > len(measured) else ""))
    told = "Dashed: 10 %, dotted: 30 % off. Rates are the time of a sample; ratios beyond an edge lie on it."
    return f"{told} Points drawn: {', '.join(counts)}."
