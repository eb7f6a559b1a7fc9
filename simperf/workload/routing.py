"""Routing of tokens to experts: how uneven it is, and how many rows an expert takes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from simperf.errors import InputError, Problem
from simperf.units import Ratio

__all__ = ["Routing"]

#: experts that all get as many rows
_EVEN = "balanced"
#: draws of loads at most: each has passes of its own
MOST_DRAWS = 1000


@dataclass(frozen=True, slots=True)
class Routing:
    """The spread of the tokens of a group of ranks over its experts.

    Loads are those of `simperf.workload.expert_loads.expert_loads`. With several draws each layer has one of them in
    each micro-batch, at random.

    Parameters
    ----------
    load : str
        rows of the experts: balanced, power-law-EXPONENT or power-law-EXPONENT/DRAW
    shares : tuple of float
        rows of each expert in parts of their sum instead, in any unit; none for those of the load. Several times as
        many numbers as there are experts are as many draws
    capacity : float
        rows that an expert takes from a rank at most, over those of an even load, others are dropped; 0: no limit
    padded : bool
        every expert takes that many rows, some of them empty
    draws : int
        different loads by the power law, of which each layer has one in each micro-batch; 1: the same in all

    Raises
    ------
    InputError
        A capacity below 0, padding without one, shares that are no shares, or shares beside a load.
    """

    load: str = _EVEN
    shares: tuple[float, ...] = ()
    capacity: Ratio = 0.0
    padded: bool = False
    draws: int = 1

    def __post_init__(self) -> None:
        problems = []
        if not 0.0 <= self.capacity < math.inf:
            message = "a factor of the even load is expected, or 0 for no limit"
            problems.append(Problem(message, key="capacity", value=f"{self.capacity:g}"))
        if self.padded and not self.capacity:
            message = "has no effect: experts take any number of rows"
            problems.append(Problem(message, key="padded", value="true", expected="a capacity, or false"))
        if self.shares and (min(self.shares) < 0.0 or not 0.0 < sum(self.shares) < math.inf):
            message, expected = "shares of experts are expected", "0 or more each, whose sum is finite and above 0"
            problems.append(Problem(message, key="shares", value=str(list(self.shares)), expected=expected))
        if self.shares and self.load != _EVEN:
            message = "the shares of the experts say it"
            problems.append(Problem(message, key="load", value=self.load, expected=f"{_EVEN}, or no shares"))
        drawn = self.load.startswith("power-law-") and not self.shares
        if not 1 <= self.draws <= MOST_DRAWS or (self.draws > 1 and not drawn):
            counts = drawn or not 1 <= self.draws <= MOST_DRAWS
            message = "a number of draws is expected" if counts else "has no effect: loads by a power law are drawn"
            told, expected = str(self.draws), f"1 to {MOST_DRAWS}" if counts else "1, or a load by a power law"
            problems.append(Problem(message, key="draws", value=told, expected=expected))
        if problems:
            raise InputError(problems)

    def loads(self, experts: int) -> tuple[Routing, ...]:
        """Routing of each draw, for a layer with so many experts.

        Examples
        --------
        >>> [one.load for one in Routing("power-law-1.2", draws=3).loads(8)]
        ['power-law-1.2/0', 'power-law-1.2/1', 'power-law-1.2/2']
        >>> [one.shares for one in Routing(shares=(1.0, 2.0, 2.0, 1.0)).loads(2)]
        [(1.0, 2.0), (2.0, 1.0)]
        """
        if self.draws > 1:
            law, _, first = self.load.partition("/")
            if first and not first.isdecimal():  # which the loads refuse
                return (replace(self, draws=1),)
            own = int(first or 0)
            return tuple(replace(self, load=f"{law}/{own + number}", draws=1) for number in range(self.draws))
        count, rest = divmod(len(self.shares), max(1, experts))
        if count < 2 or rest:
            return (self,)
        if count > MOST_DRAWS:
            message, expected = "each draw has passes of its own", f"{experts} to {MOST_DRAWS * experts} numbers"
            raise InputError(Problem(message, key="expert_shares", value=f"{count} draws", expected=expected))
        parts = (self.shares[number * experts : (number + 1) * experts] for number in range(count))
        return tuple(replace(self, shares=part) for part in parts)
