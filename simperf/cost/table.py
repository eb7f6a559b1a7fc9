"""A measured table, read between its points."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from simperf.errors import InputError, Problem, SimperfError

__all__ = ["Estimate", "MeasuredTable"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A time read from a table.

    Parameters
    ----------
    time : float
        [s]
    extrapolated : bool
        Whether the size lies outside what was measured.
    """

    time: float
    extrapolated: bool


class MeasuredTable:
    """Times at measured sizes; between them a power law, that is a line in log-log.

    Outside the measured sizes `time` raises, so that nobody extrapolates unawares; `estimate`
    continues the outermost line and says so.

    Parameters
    ----------
    points : iterable of (float, float)
        size [B] (or any other amount) and time [s], both above 0; several times at one size give their median

    Raises
    ------
    InputError
        Fewer than two sizes, or a number that is not finite and above 0.

    Examples
    --------
    >>> table = MeasuredTable([(1e3, 1e-6), (1e5, 1e-4)])
    >>> round(table.time(1e4), 12)
    1e-05
    >>> table.estimate(1e6).extrapolated
    True
    """

    __slots__ = ("_sizes", "_times", "largest", "smallest")

    def __init__(self, points: Iterable[tuple[float, float]]) -> None:
        found: dict[float, list[float]] = {}
        problems = []
        for i, (size, time) in enumerate(points):
            found.setdefault(float(size), []).append(float(time))
            if not (np.isfinite(size) and np.isfinite(time) and size > 0 and time > 0):
                message = "sizes and times must be finite and above 0"
                problems.append(Problem(message, key=f"points[{i}]", value=f"({size}, {time})"))
        if len(found) < 2:
            problems.append(Problem("two sizes are needed at least", key="points", value=f"{len(found)} sizes"))
        if problems:
            raise InputError(problems)
        sizes = sorted(found)
        self.smallest, self.largest = sizes[0], sizes[-1]
        self._sizes = sizes
        self._times = [float(np.median(found[size])) for size in sizes]

    def estimate(self, size: float) -> Estimate:
        """Time at `size`, and whether it was extrapolated along the outermost pair of points."""
        if not (np.isfinite(size) and size > 0):
            raise InputError(Problem("must be finite and above 0", key="size", value=repr(size)))
        right = min(max(bisect_left(self._sizes, size), 1), len(self._sizes) - 1)
        low, high = self._sizes[right - 1], self._sizes[right]
        # log1p tells sizes apart whose logarithms are the same float
        share = math.log1p((size - low) / low) / math.log1p((high - low) / low)
        time = self._times[right - 1] * (self._times[right] / self._times[right - 1]) ** share
        return Estimate(time, not self.smallest <= size <= self.largest)

    def time(self, nbytes: float) -> float:
        """Time for `nbytes` [B] in seconds.

        Raises
        ------
        SimperfError
            The size was not measured, nor anything beyond it.
        """
        found = self.estimate(nbytes)
        if found.extrapolated:
            raise SimperfError(
                f"{nbytes:g} lies outside the measured sizes {self.smallest:g} to {self.largest:g}: "
                "measure there, or ask for an estimate that is marked as extrapolated"
            )
        return found.time
