"""Errors of whole training steps beyond those of their kernels: medians of a precision, architectures, and steps.

Each measured step is predicted as if nobody had measured any GPU of its architecture. Its error contains the
errors of its kernels, and what no table of kernels has: the framework, and the algorithms that its libraries choose
(TF32, Winograd). The draws of its kernels say how large the first is; what is left is the second.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simperf.accuracy.leave_out.kernels import alike_of, catalogue_misses, elsewhere, kernel_parts
from simperf.accuracy.leave_out.measured_steps import DRAWS, MeasuredStep
from simperf.analysis.chance import NORMAL
from simperf.calibrate.fit.model import Array
from simperf.calibrate.uncertainty.variance import gpu_spreads
from simperf.cost import Miss, Unseen

__all__ = ["StepMiss", "kernel_figures", "step_figures", "step_miss", "step_misses"]


@dataclass(frozen=True, slots=True)
class StepMiss:
    """Error of a step whose GPU's architecture was left out, as logarithms.

    Parameters
    ----------
    architecture, sort : str
        Of the GPU; of the step, one of `simperf.cost.roofline_draws.STEPS`.
    missed : float
        Measured over predicted time [1].
    kernels : ndarray
        Draws of its kernels over what is predicted of them [1].
    """

    architecture: str
    sort: str
    missed: float
    kernels: Array


def kernel_figures(cases: Sequence[Mapping[str, Any]], *, without: str = "") -> dict[str, Any]:
    """Figures of kernels that draws need (`simperf.cost.Unseen`), from all architectures but one."""
    misses = catalogue_misses(cases, without=without)
    return {
        "misses": {sort: Miss(one.common, one.own) for sort, one in gpu_spreads(misses).items()},
        "alike": alike_of(misses),
    }


def step_misses(
    cases: Sequence[Mapping[str, Any]], steps: Iterable[MeasuredStep], *, without: str = ""
) -> list[StepMiss]:
    """Measured steps over those that are predicted while their architecture is left out.

    Parameters
    ----------
    cases : sequence of mapping
        Of ``cases.json``: what other architectures' kernels reach.
    steps : iterable of MeasuredStep
    without : str
        An architecture that nothing is taken from.
    """
    parts, figures = kernel_parts(cases, without=without), kernel_figures(cases, without=without)
    draws = [Unseen(draw=index, **figures) for index in range(DRAWS)]
    return [step_miss(step, elsewhere(parts, step.part), draws) for step in steps if step.part.architecture != without]


def step_miss(step: MeasuredStep, efficiency: Mapping[str, float], draws: Sequence[Unseen]) -> StepMiss:
    """Error of a step with the efficiencies of its kernels given, and its kernels' draws."""
    slower = math.log(step.kernels(efficiency) / step.kernels({}))
    return StepMiss(step.part.architecture, step.sort, step.missed - slower, step.drawn(efficiency, draws))


def step_figures(misses: Collection[StepMiss]) -> dict[str, Miss]:
    """Medians and deviations of whole steps beside their kernels, by sort of step.

    A step's miss is its sort's median, what its architecture lies apart from that, and its own. Architectures of all
    sorts together give the variance of the second, by the mean squares of their means about their sort's (S. R. Searle,
    G. Casella, C. E. McCulloch, *Variance Components*, 1992, chapter 3), and steps of one architecture that of the
    third. A sort's mean over n architectures is drawn towards 0 by n/(n + 1), as if sorts lay about the catalogue as
    far as architectures lie about their sort; a new architecture adds its own distance to what is not known of that
    mean. Kernels' draws have a part of that distance already, and only what is left beside it is given here, by
    Student's t as a normal deviation that holds nine of ten as well.

    Parameters
    ----------
    misses : collection of StepMiss
        Without two architectures of one sort they say nothing.
    """
    from scipy import stats

    cells: dict[str, dict[str, list[float]]] = {}
    for one in misses:
        cells.setdefault(one.sort, {}).setdefault(one.architecture, []).append(one.missed - float(one.kernels.mean()))
    every = [values for known in cells.values() for values in known.values()]
    own = sum(len(values) * float(np.var(values)) for values in every) / max(1, sum(len(one) - 1 for one in every))
    means = {sort: [float(np.mean(values)) for values in known.values()] for sort, known in cells.items()}
    freedom = sum(len(known) - 1 for known in means.values())
    chance = sum((1.0 - 1.0 / len(known)) * own / len(values) for known in cells.values() for values in known.values())
    if not freedom:
        return {}
    squares = sum(len(known) * float(np.var(known)) for known in means.values())
    apart = max(0.0, (squares - chance) / freedom)
    drawn = float(np.mean([one.kernels.var() for one in misses]))
    longer = float(stats.t.ppf(0.95, freedom)) / NORMAL
    found = {}
    for sort, known in sorted(means.items()):
        share = len(known) / (len(known) + 1.0)
        beside = apart * (1.0 + 1.0 / (len(known) + 1.0)) - drawn
        found[sort] = Miss(longer * math.sqrt(max(0.0, beside)), math.sqrt(own), share * float(np.mean(known)))
    return found
