"""The checkpoint interval that makes most of a job, found by simulating it.

All intervals of a sweep meet the same failures (common random numbers), so that they differ by
the interval and not by luck. What is left is that a failure falls early or late between two
checkpoints; a smooth curve through the sweep takes that out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simperf.engine.simulation import Simulation
from simperf.errors import InputError, Problem
from simperf.training.failures.checkpoint import daly, young
from simperf.training.failures.goodput import goodput
from simperf.training.failures.recovery import FailingRun

__all__ = ["BestInterval", "best_interval", "with_interval"]

#: degree of the smooth curve, in the logarithm of the interval
_DEGREE = 4
#: a sweep goes from its middle over this to its middle times this [1]
_REACH = 4.0
#: a goodput this much below the best is still as good as the best [1]
_FLAT = 1e-3


@dataclass(frozen=True, slots=True)
class BestInterval:
    """Result of a search for the best interval between checkpoints.

    Parameters
    ----------
    interval : float
        Best interval [s].
    goodput : float
        There, by the smooth curve [1].
    young, daly : float
        What the formulae give for this pause and this time between failures [s].
    sweep : sequence of (float, float)
        Interval [s] and goodput [1] of each point that was simulated.
    flat : (float, float)
        From which to which interval [s] the goodput is within 0.1 % of the best.
    """

    interval: float
    goodput: float
    young: float
    daly: float
    sweep: Sequence[tuple[float, float]]
    flat: tuple[float, float]


def with_interval(job: FailingRun, interval: float) -> FailingRun:
    """`job` with another time between checkpoints [s]."""
    return replace(job, checkpoint=replace(job.checkpoint, interval=interval))


def best_interval(
    job: FailingRun, *, seed: int = 0, runs: int = 16, points: int = 17, start: float = 0.0
) -> BestInterval:
    """Search the interval between checkpoints with the highest goodput.

    Parameters
    ----------
    job : FailingRun
        Its own interval is not used.
    seed : int
        Of the histories that every interval meets.
    runs : int
        Histories a point; some thousand failures in all are needed to tell intervals apart by some per cent.
    points : int
        Intervals a sweep.
    start : float
        Middle of the first sweep [s]; 0 takes Young's formula. A sweep whose best lies in
        its outer sixth is followed by one around that.

    Raises
    ------
    InputError
        Nothing fails or a checkpoint takes no time (there is no best interval), or too few points.
    """
    pause, mtbf = job.checkpoint.pause(job.nodes), job.mtbf
    problems = []
    if mtbf == math.inf:
        problems.append(
            Problem("nothing fails, so that the best checkpoint is none", key="causes", expected="a cause that strikes")
        )
    if pause <= 0.0:
        problems.append(
            Problem(
                "a checkpoint takes no time, so that the best interval is 0 s",
                key="checkpoint",
                expected="a checkpoint that takes time",
            )
        )
    if points < 2 * _DEGREE + 1:
        problems.append(Problem(f"{2 * _DEGREE + 1} points or more are expected", key="points"))
    if problems:
        raise InputError(problems)
    middle, longest = start or young(pause, mtbf), min(job.work, job.horizon)
    shortest = job.checkpoint.write(job.nodes)
    for _ in range(6):
        low, high = max(middle / _REACH, shortest), min(middle * _REACH, longest)
        grid = np.geomspace(min(low, high / 2), high, points)
        values = [goodput(with_interval(job, float(one)), Simulation(seed=seed).random, runs=runs).mean for one in grid]
        curve = np.polynomial.Polynomial.fit(np.log(grid), values, _DEGREE)
        fine = np.geomspace(grid[0], grid[-1], 4001)
        smooth = curve(np.log(fine))
        top = int(np.argmax(smooth))
        best = float(fine[top])
        inside = abs(math.log(best / middle)) <= math.log(_REACH) * 2 / 3
        if inside or (top == 0 and grid[0] <= shortest) or (top == len(fine) - 1 and grid[-1] >= longest):
            break
        middle = best
    good = fine[smooth >= smooth[top] * (1 - _FLAT)]
    sweep = tuple(zip(grid.tolist(), values, strict=True))
    flat = (float(good.min()), float(good.max()))
    return BestInterval(best, float(smooth[top]), young(pause, mtbf), daly(pause, mtbf), sweep, flat)
