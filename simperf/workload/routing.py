"""Routing of tokens to experts: how uneven it is, and how many rows an expert takes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from simperf.errors import InputError, Problem
from simperf.units import Ratio

__all__ = ["Routing"]

#: experts that all get as many rows
_EVEN = "balanced"
#: draws of loads at most: each has passes of its own
MOST_DRAWS = 1000
_ONE_LOAD = "kernels of DeepEP are simulated for the same load in all layers"
#: multiprocessors at most that an exchange may hold
MOST_BLOCKS = 64


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
    exchange : str
        what carries tokens between ranks: nccl sends a row for each choice of a token, deepep sends a token once to
        each server and from there once to each rank that has any of its experts
    exchange_blocks : int
        multiprocessors that a kernel of deepep holds [1]
    groups : int
        groups of neighbouring experts, of which a token has experts in some only; 0: in any. Even loads are the same
    groups_per_token : int
        how many of them

    Raises
    ------
    InputError
        A capacity below 0, padding without one, shares that are no shares, shares beside a load, or kernels of deepep
        with a capacity, several draws, or uneven loads of groups.
    """

    load: str = _EVEN
    shares: tuple[float, ...] = ()
    capacity: Ratio = 0.0
    padded: bool = False
    draws: int = 1
    exchange: Literal["nccl", "deepep"] = "nccl"
    exchange_blocks: int = 20
    groups: int = 0
    groups_per_token: int = 0

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
            message = "a number of samples is expected" if counts else "has no effect: loads by a power law are drawn"
            told, expected = str(self.draws), f"1 to {MOST_DRAWS}" if counts else "1, or a load by a power law"
            problems.append(Problem(message, key="draws", value=told, expected=expected))
        problems += self._exchange_problems()
        if problems:
            raise InputError(problems)

    @property
    def uneven(self) -> bool:
        """Whether experts get unequal loads, beyond a row that does not divide."""
        return self.load != _EVEN or len(set(self.shares)) > 1

    def _exchange_problems(self) -> list[Problem]:
        """What is wrong with how tokens travel."""
        problems, deepep = [], self.exchange == "deepep"
        if self.exchange not in ("nccl", "deepep"):
            message = "there is no such exchange"
            problems.append(Problem(message, key="exchange", value=self.exchange, expected="nccl or deepep"))
        given = (("exchange_blocks", self.exchange_blocks, 20), ("groups", self.groups, 0))
        for key, count, default in (*given, ("groups_per_token", self.groups_per_token, 0)):
            if not deepep and count != default:
                message = "has no effect: NCCL sends a row for each choice, wherever the experts are"
                expected = f'{default}, or expert_exchange = "deepep"'
                problems.append(Problem(message, key=key, value=str(count), expected=expected))
        if not deepep:
            return problems
        if not 2 <= self.exchange_blocks <= MOST_BLOCKS or self.exchange_blocks % 2:
            message, value = "one half of the blocks sends, the other receives", str(self.exchange_blocks)
            expected = f"an even number, 2 to {MOST_BLOCKS}"
            problems.append(Problem(message, key="exchange_blocks", value=value, expected=expected))
        if (self.groups or self.groups_per_token) and not 1 <= self.groups_per_token < self.groups:
            message = f"a token has experts in {self.groups_per_token} of {self.groups} groups"
            expected = "at least 1 of more groups, or 0 and no groups"
            problems.append(
                Problem(message, key="groups_per_token", value=str(self.groups_per_token), expected=expected)
            )
        if self.capacity:
            message, expected = "kernels of DeepEP are simulated without a limit", '0, or expert_exchange = "nccl"'
            problems.append(Problem(message, key="capacity", value=f"{self.capacity:g}", expected=expected))
        if self.draws > 1:
            expected = '1, or expert_exchange = "nccl"'
            problems.append(Problem(_ONE_LOAD, key="draws", value=str(self.draws), expected=expected))
        if self.groups and self.uneven:
            message = "all groups are as likely as each other: that is not so with uneven loads"
            problems.append(Problem(message, key="groups", value=str(self.groups), expected="0, or even loads"))
        return problems

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
        if self.exchange == "deepep":
            expected = f'{experts} numbers, or expert_exchange = "nccl"'
            raise InputError(Problem(_ONE_LOAD, key="expert_shares", value=f"{count} draws", expected=expected))
        if count > MOST_DRAWS:
            message, expected = "each draw has passes of its own", f"{experts} to {MOST_DRAWS * experts} numbers"
            raise InputError(Problem(message, key="expert_shares", value=f"{count} draws", expected=expected))
        parts = (self.shares[number * experts : (number + 1) * experts] for number in range(count))
        return tuple(replace(self, shares=part) for part in parts)
