"""Two results against each other: how much faster, and which category explains it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from simperf.analysis.breakdown import PARTS, breakdown
from simperf.results import Result

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Changes from one run to another.

    Parameters
    ----------
    difference : float
        Other less base [s]; negative if the other is faster.
    ratio : float
        Time of other over that of base [1].
    changes : mapping of str to float
        Difference of each category of the breakdown [s]; they add up to `difference`.
        Empty if one of the runs has no timeline.
    """

    difference: float
    ratio: float
    changes: Mapping[str, float]

    @property
    def explained_by(self) -> tuple[str, float] | None:
        """The category that goes furthest in the direction of the difference, and its change [s]."""
        sign = math.copysign(1.0, self.difference)
        along = {name: change for name, change in self.changes.items() if change * sign > 0}
        if self.difference == 0 or not along:
            return None
        return max(along.items(), key=lambda item: abs(item[1]))


def compare(base: Result, other: Result) -> Comparison:
    """Compare `other` with `base`."""
    before, after = breakdown(base), breakdown(other)
    names = [name for name in PARTS if name in before or name in after]
    both = bool(before and after)
    changes = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in names} if both else {}
    ratio = other.time / base.time if base.time > 0 else math.inf if other.time > 0 else 1.0
    return Comparison(other.time - base.time, ratio, changes)
