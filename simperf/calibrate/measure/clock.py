"""Timing of repeated runs: warm-up, blocks of many runs, and doubts about what came out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "TRAINING", "Care", "doubts", "sample"]

#: interquartile range over the median from which a reading is called uncertain, and unstable; the limits that
#: torch.utils.benchmark warns at
WIDE, UNSTABLE = 0.1, 0.25


@dataclass(frozen=True, slots=True)
class Care:
    """Time that a point gets, and a session.

    Parameters
    ----------
    budget : float
        for all blocks of a point, warm-up aside [s]
    block : float
        shortest block: so much longer than a reading of the clock that this does not count [s]
    least, most : int
        Blocks; of runs longer than `budget`, `few` are enough.
    few : int
    session : float
        within which what was disturbed is measured again: ten minutes or two, less what it takes to start and end [s]
    """

    budget: float = 0.2
    block: float = 4e-3
    least: int = 9
    most: int = 21
    few: int = 4
    session: float = 570.0


FULL = Care()
QUICK = Care(budget=0.06, block=2e-3, least=5, most=9, few=3, session=105.0)
#: many points of a few milliseconds each: as many shapes as possible within the minutes that a session has
TRAINING = Care(budget=0.06, block=2e-3, least=7, most=15, few=4, session=float("inf"))


def sample(timeit: Callable[[int], float], care: Care = FULL) -> tuple[float, ...]:
    """Time of one run, once a block [s].

    Parameters
    ----------
    timeit : callable
        Runs the thing n times and says how long that took [s].
    care : Care

    Returns
    -------
    tuple of float
        A reading a block, in order [s].

    Notes
    -----
    As `torch.utils.benchmark.Timer.blocked_autorange`: the number of runs a block grows until a block takes
    `Care.block`. The first runs, which load code, choose algorithms and fill caches, are thrown away.
    """
    timeit(1)
    one = timeit(1)
    number = 1
    while one * number < care.block:
        number = min(math.ceil(1.2 * care.block / max(one, 1e-9)), 10 * number)
        one = timeit(number) / number
    least = care.least if one * number * care.least <= care.budget else min(care.least, care.few)
    readings: list[float] = []
    spent = 0.0
    while len(readings) < least or (spent < care.budget and len(readings) < care.most):
        block = timeit(number)
        spent += block
        readings.append(block / number)
    return tuple(readings)


def doubts(samples: Sequence[float]) -> tuple[str, ...]:
    """Reasons why readings should be doubted, in words.

    Examples
    --------
    >>> doubts([1.0, 1.01, 1.0, 0.99]), doubts([1.0, 2.0, 1.0, 2.0])
    ((), ('unstable: the interquartile range is 67 % of the median',))
    """
    if len(samples) < 4:
        return ()
    low, _, high = statistics.quantiles(samples, n=4)
    middle = statistics.median(samples)
    wide = (high - low) / middle if middle else math.inf
    if wide <= WIDE:
        return ()
    word = "unstable" if wide > UNSTABLE else "uncertain"
    return (f"{word}: the interquartile range is {100 * wide:.0f} % of the median",)
