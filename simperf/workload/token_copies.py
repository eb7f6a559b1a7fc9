"""Copies of a token that go to the ranks or servers of its experts, where it goes once to each that has any of them.

A token chooses k different experts, all choices as likely as each other. Of E experts, e are in none of the k choices
with the probability C(E - e, k) / C(E, k). Where choices are limited to some of the groups that experts are in, all
groups are as likely as each other and the choices of experts are among those of the chosen groups (DeepSeek-V3
Technical Report, 2024, section 2.1.2: four of eight groups).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb

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

    Examples
    --------
    >>> round(8 * TokenCopies(256, 8).reach(32), 3)
    5.295
    >>> round(8 * TokenCopies(256, 8, 8, 4).reach(32), 3)
    3.629
    """

    experts: int
    chosen: int
    groups: int = 0
    groups_chosen: int = 0

    def reach(self, part: int) -> float:
        """Probability that a token has at least one of `part` neighbouring experts [1]: whole groups, or inside one."""
        return _reach(self.experts, self.chosen, max(1, self.groups), self.groups_chosen or 1, part)

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
