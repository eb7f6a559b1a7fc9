"""Copies of a token that go to the ranks or servers of its experts, where it goes once to each that has any of them.

A token chooses k different experts, all choices as likely as each other. Of E experts, e are in none of the k choices
with the probability C(E - e, k) / C(E, k). Where choices are limited to some of the groups that experts are in, all
groups are as likely as each other and the choices of experts are among those of the chosen groups (DeepSeek-V3
Technical Report, 2024, section 2.1.2: four of eight groups).

Where experts are unequally likely, choices have the distribution of largest entropy with these likelihoods: k experts
are chosen with a probability in proportion to the product of their weights (S.-H. Chen, A. P. Dempster, J. S. Liu,
"Weighted finite population sampling to maximize entropy", Biometrika 81(3), 1994), so that none of a set is with
e_k(weights of the others) / e_k(all weights), e_k the elementary symmetric polynomial. Weights are fitted round by
round; of loads near all tokens for several experts the fit ends before that, up to 0.002 off in a share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

__all__ = ["TokenCopies"]


@dataclass(frozen=True, slots=True)
class TokenCopies:
    """Choices of experts by a token, and what part of tokens needs a part of the experts.

    Parameters
    ----------
    experts, chosen : int
        Of a layer, and of each token among them.
    groups, groups_chosen : int
        Groups of neighbouring experts, and those that a token's experts may be in; 0 for any experts.
    shares : tuple of float
        Of the tokens, what each expert gets, `chosen` in all [1]; none where all experts get as many.

    Examples
    --------
    >>> round(8 * TokenCopies(256, 8).reach(32), 3)
    5.295
    >>> round(8 * TokenCopies(256, 8, 8, 4).reach(32), 3)
    3.629
    >>> uneven = TokenCopies(4, 2, shares=(0.8, 0.6, 0.4, 0.2))
    >>> [round(one, 3) for one in uneven.reaches([[0], [1], [0, 1]], places=2)]
    [0.969, 0.569, 1.0]
    """

    experts: int
    chosen: int
    groups: int = 0
    groups_chosen: int = 0
    shares: tuple[float, ...] = ()

    def reach(self, part: int) -> float:
        """Probability that a token has at least one of `part` neighbouring experts, all as likely as each other [1].

        They are whole groups, or inside of one.
        """
        return _reach(self.experts, self.chosen, max(1, self.groups), self.groups_chosen or 1, part)

    def reaches(self, parts: Sequence[Sequence[int]], places: int) -> tuple[float, ...]:
        """Probabilities that a token has an expert on at least one of some places, for each of several such parts [1].

        Parameters
        ----------
        parts : sequence of sequence of int
            The places of each part.
        places : int
            All places, over which the experts are spread evenly, neighbours together.
        """
        each = self.experts // places
        if not self.shares:
            return tuple(self.reach(len(part) * each) for part in parts)
        inside = ([place * each + index for place in part for index in range(each)] for part in parts)
        return tuple(_uneven_reach(self.shares, self.chosen, tuple(experts)) for experts in inside)

    def splits(self, places: int) -> bool:
        """Whether one of so many places has parts of several groups, for which `reach` does not hold."""
        return self.groups > 0 and self.groups % places > 0 and places % self.groups > 0


@lru_cache(maxsize=1024)
def _reach(experts: int, chosen: int, groups: int, of_groups: int, part: int) -> float:
    group = experts // groups
    open_experts = of_groups * group
    if part < group:
        return of_groups / groups * (1.0 - comb(open_experts - part, chosen) / comb(open_experts, chosen))
    own, found = part // group, 0.0
    for met in range(1, min(own, of_groups) + 1):
        drawn = comb(own, met) * comb(groups - own, of_groups - met) / comb(groups, of_groups)
        found += drawn * (1.0 - comb(open_experts - met * group, chosen) / comb(open_experts, chosen))
    return found


@lru_cache(maxsize=4096)
def _uneven_reach(shares: tuple[float, ...], chosen: int, experts: tuple[int, ...]) -> float:
    always = {expert for expert, share in enumerate(shares) if share >= _ALWAYS}  # which every token has
    if always & set(experts):
        return 1.0
    others = [expert for expert in range(len(shares)) if expert not in always]
    weights = dict(zip(others, _weights(tuple(shares[one] for one in others), chosen - len(always)), strict=True))
    every, outside = (
        _polynomials([weight for expert, weight in weights.items() if expert not in left_out], chosen - len(always))
        for left_out in ((), set(experts))
    )
    return 1.0 - outside[-1] / every[-1]


#: share from which on every token has an expert [1]; largest error of shares in the fit of weights [1], and its rounds
_ALWAYS, _CLOSE, _ROUNDS = 0.999, 1e-7, 300


@lru_cache(maxsize=256)
def _weights(shares: tuple[float, ...], chosen: int) -> NDArray[np.float64]:
    """Weights by which `chosen` different experts of these shares are drawn; the largest is 1."""
    wanted = np.array(shares) * (chosen / sum(shares)) if sum(shares) else np.zeros(len(shares))
    weights = wanted.copy()
    for _ in range(_ROUNDS):
        found = _likelihoods(weights, chosen)
        if np.abs(found - wanted).max(initial=0.0) < _CLOSE:
            break
        odds = np.divide(wanted, found, out=np.zeros_like(wanted), where=found > 0.0)
        weights *= odds * np.divide(1.0 - found, 1.0 - wanted, out=np.ones_like(wanted), where=wanted < 1.0)
        weights /= weights.max()
    return weights


def _polynomials(weights: Sequence[float], chosen: int) -> list[float]:
    """Elementary symmetric polynomials of the weights, of degree 0 to `chosen`."""
    found = np.zeros(chosen + 1)
    found[0] = 1.0
    for weight in weights:
        found[1:] += weight * found[:-1]
    return [float(one) for one in found]


def _likelihoods(weights: NDArray[np.float64], chosen: int) -> NDArray[np.float64]:
    """Probability of each expert to be among `chosen` different ones that are drawn by weight [1]."""
    count = len(weights)
    before, behind = np.zeros((count + 1, chosen + 1)), np.zeros((count + 1, chosen + 1))
    before[0, 0] = behind[count, 0] = 1.0
    for index, weight in enumerate(weights):
        before[index + 1] = before[index]
        before[index + 1, 1:] += weight * before[index, :-1]
        back = count - 1 - index
        behind[back] = behind[back + 1]
        behind[back, 1:] += weights[back] * behind[back + 1, :-1]
    without = np.einsum("ij,ij->i", before[:-1, :chosen], behind[1:, chosen - 1 :: -1] if chosen else behind[1:, :0])
    return np.asarray(weights * without / before[count, chosen])
