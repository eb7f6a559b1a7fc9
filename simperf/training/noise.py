"""Noise of a divided job: what varies from kernel to kernel, from launch to launch, and now and then."""

from __future__ import annotations

import math
from dataclasses import dataclass

from simperf.errors import InputError, Problem
from simperf.training.field_types import refuse_types
from simperf.units import Ratio, Seconds

__all__ = ["DRAWS", "WIDEST", "Noise"]

#: steps that are drawn where nobody says how many
DRAWS = 64
#: largest deviation of a normal distribution whose part below 0 may be left out: 0.04 % of it
WIDEST = 0.3


@dataclass(frozen=True, slots=True)
class Noise:
    """Variations within a step of a divided job, for each rank by itself.

    Parameters
    ----------
    kernels : float
        standard deviation of the time of each kernel over its mean, normally distributed [1]
    launches : float
        the same of the time in which the host launches it [1]
    every : float
        mean time of kernels between two interruptions of a device, exponentially distributed [s]; 0 for none
    pause : float
        mean time of an interruption, exponentially distributed [s]
    draws : int
        steps that are drawn beside the one that is simulated; 0 for 64 where anything varies

    Raises
    ------
    InputError
        All that has no meaning, or no effect.
    """

    kernels: Ratio = 0.0
    launches: Ratio = 0.0
    every: Seconds = 0.0
    pause: Seconds = 0.0
    draws: int = 0

    def __post_init__(self) -> None:
        refuse_types(self)
        problems = [
            Problem("such a deviation is expected", key=key, value=f"{value:g}", expected=f"0 to {WIDEST:g}")
            for key, value in (("kernels", self.kernels), ("launches", self.launches))
            if not 0.0 <= value <= WIDEST
        ]
        problems += [
            Problem("a finite time of 0 s or more is expected", key=key, value=f"{value:g}")
            for key, value in (("every", self.every), ("pause", self.pause))
            if not 0.0 <= value < math.inf
        ]
        if not problems and (self.every > 0.0) != (self.pause > 0.0):
            key, other = ("pause", "every") if self.every else ("every", "pause")
            message = f"interruptions need it beside {other}"
            problems.append(Problem(message, key=key, value="0", expected="a time above 0 s"))
        if not problems and self.pause > self.every:
            message = "interruptions are longer than what they interrupt"
            expected = f"at most {self.every:g} s, as every"
            problems.append(Problem(message, key="pause", value=f"{self.pause:g}", expected=expected))
        if self.draws < 0:
            problems.append(Problem("a number of 0 or more is expected", key="draws", value=str(self.draws)))
        if problems:
            raise InputError(problems)

    @property
    def steady(self) -> bool:
        """Whether nothing varies."""
        return not (self.kernels or self.launches or self.every)
