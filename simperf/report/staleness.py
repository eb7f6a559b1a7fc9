"""Staleness of gradients over the time of the run, and how often each age came."""

from __future__ import annotations

from typing import Any

import numpy as np

from simperf.errors import InputError, Problem
from simperf.report.language import say
from simperf.report.lines import panels
from simperf.report.style import NARROW, figure, figure_width, heading, time_scale
from simperf.results import Result

__all__ = ["ages", "draw_staleness"]

#: marks over time; more are thinned evenly
_MARKS = 4000


def ages(result: Result) -> list[tuple[float, float]]:
    """When each gradient was applied [s], and how many updates of others lay between; empty for synchronous runs."""
    return [(time, value) for _, name, time, value in result.samples if name == "staleness"]


def draw_staleness(result: Result) -> Any:
    """Make the figure.

    Raises
    ------
    InputError
        No gradient of the run has an age.
    """
    found = ages(result)
    if not found:
        expected = "an asynchronous or bounded run whose timeline was recorded"
        raise InputError(Problem(f"{result.name}: no gradient has an age", expected=expected))
    scale = time_scale(result.time)
    times, values = np.array(found).T
    step = -(-len(found) // _MARKS)

    def fill(made: Any) -> None:
        left, right = panels(made, (3, 2))
        heading(made, say("{}: mean staleness {}").format(result.name, f"{values.mean():.3g}"))
        left.plot(times[::step] / scale.factor, values[::step], ".", ms=3, color="#0072B2")
        left.set_xlabel(say("time ({})").format(scale.unit))
        left.set_ylabel(say("staleness (updates of others)"))
        left.set_ylim(bottom=0)
        number, count = np.unique(values, return_counts=True)
        right.bar(number, 100 * count / count.sum(), 0.8, color="#0072B2")
        right.axvline(
            values.mean(), ls="--", lw=0.9, color="#D55E00", label=say("mean {}").format(f"{values.mean():.3g}")
        )
        right.set_xlabel(say("staleness (updates of others)"))
        right.set_ylabel(say("share of gradients (%)"))
        right.legend(fontsize=7.5)

    return figure(fill, height=3.4 if figure_width() >= NARROW else 5.4)
