"""Routing of tokens to experts: how uneven it is, and how many rows an expert takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from simperf.errors import InputError, Problem
from simperf.units import Ratio

__all__ = ["Routing"]

#: experts that all get as many rows
_EVEN = "balanced"


@dataclass(frozen=True, slots=True)
class Routing:
    """How the tokens of a group of ranks are spread over its experts.

    Loads are those of `simperf.workload.expert_loads.expert_loads`, in every micro-batch.

    Parameters
    ----------
    load : str
        rows of the experts: balanced, power-law-EXPONENT or power-law-EXPONENT/DRAW, the same in all layers
    shares : tuple of float
        rows of each expert in parts of their sum instead, in any unit; none for those of the load
    capacity : float
        rows that an expert takes from a rank at most, over those of an even load, others are dropped; 0: no limit
    padded : bool
        every expert takes that many rows, some of them empty

    Raises
    ------
    InputError
        A capacity below 0, padding without one, shares that are no shares, or shares beside a load.
    """

    load: str = _EVEN
    shares: tuple[float, ...] = ()
    capacity: Ratio = 0.0
    padded: bool = False

    def __post_init__(self) -> None:
        problems = []
        if not 0.0 <= self.capacity < math.inf:
            message = "a factor of the even load is expected, or 0 for no limit"
            problems.append(Problem(message, key="capacity", value=f"{self.capacity:g}"))
        if self.padded and not self.capacity:
            message = "has no effect: experts take any number of rows"
            problems.append(Problem(message, key="padded", value="true", expected="a capacity, or false"))
        if self.shares and (min(self.shares) < 0.0 or not 0.0 < math.fsum(self.shares) < math.inf):
            message, expected = "shares of experts are expected", "numbers of 0 or more, some above 0"
            problems.append(Problem(message, key="shares", value=str(list(self.shares)), expected=expected))
        if self.shares and self.load != _EVEN:
            message = "the shares of the experts say it"
            problems.append(Problem(message, key="load", value=self.load, expected=f"{_EVEN}, or no shares"))
        if problems:
            raise InputError(problems)
