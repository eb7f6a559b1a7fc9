"""Coverage of the intervals of profiles of kernels by shape, on the half of each table that nothing was fitted to.

A graded call is drawn as a run with `--samples` draws it: its last kernel by the profile's spread, kernels around it as
those that no profile is of. The interval is the middle 90 % of the draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from simperf.accuracy.lattice_profile import MeasuredCalls, lattice_models
from simperf.cost import FittedRoofline, Roofline, UnseenRoofline
from simperf.scenario.calibration import unseen_draw

__all__ = ["IntervalGrade", "interval_grades"]


@dataclass(frozen=True, slots=True)
class IntervalGrade:
    """Intervals of one kind of kernel in one precision on one GPU.

    Parameters
    ----------
    gpu, title : str
        Name in the catalogue; what the kernels are.
    graded, held : int
        Calls of the half that is graded, and those in their interval.
    width : float
        Median half-width of the logarithm [1].
    """

    gpu: str
    title: str
    graded: int
    held: int
    width: float


def interval_grades(tables: Iterable[MeasuredCalls], *, draws: int = 100, every: int = 1) -> Iterator[IntervalGrade]:
    """Grade the intervals of every table that has enough rows to fit.

    Parameters
    ----------
    tables : iterable of MeasuredCalls
    draws : int
        Of each call.
    every : int
        Grade one call of so many.
    """
    for table in tables:
        found = lattice_models([table])
        if not found:
            continue
        (model,) = found.values()
        calls = [table.ops[i] for i in np.flatnonzero(~table.fitted)[::every]]
        measured = table.measured[~table.fitted][::every]
        roofline, name = Roofline(table.part), table.model.removeprefix("kernel.")
        times = np.empty((draws, len(calls)))
        for draw in range(draws):
            drawn = UnseenRoofline(roofline, unseen_draw(draw))
            played = FittedRoofline(table.part, {name: model.at(draw + 1)}, other=roofline, unseen=drawn)
            times[draw] = [sum(played.cost(op).time for op in call) for call in calls]
        low, high = np.quantile(times, (0.05, 0.95), axis=0)
        held = int(((low <= measured) & (measured <= high)).sum())
        width = float(np.median(np.log(high / low))) / 2.0 if calls else 0.0
        yield IntervalGrade(table.part.name, table.title, len(calls), held, width)
