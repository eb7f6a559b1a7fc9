"""How a result stands against the best one: by how much it loses, where, and whether that can be told."""

from __future__ import annotations

from dataclasses import dataclass

from simperf.analysis.chance import beats, distinguishable
from simperf.analysis.comparison import compare
from simperf.analysis.limits import busiest
from simperf.results import Result
from simperf.units import format_quantity

__all__ = ["Verdict", "verdict"]

#: times closer than this are the same [1]
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a result stands against the best.

    Parameters
    ----------
    ratio : float
        Its time over the best one's [1].
    difference : float
        [s]
    category : str
        In which it loses most; empty if no timelines are there.
    loss : float
        There [s].
    resource : str
        That rests least in it.
    apart : bool or None
        Whether the intervals leave no doubt; None without intervals.
    chance : float or None
        That the best is the better one, by the draws of both [1].
    """

    ratio: float
    difference: float
    category: str = ""
    loss: float = 0.0
    resource: str = ""
    apart: bool | None = None
    chance: float | None = None

    def __str__(self) -> str:
        if self.apart is False:
            chance = "" if self.chance is None else f": better in {100 * self.chance:.0f} % of the draws"
            return f"not distinguishable{chance}"
        if abs(self.ratio - 1.0) < _SAME:
            return "the same"
        text = f"{self.ratio:.4g} times as long"
        if self.category:
            text += f"; +{format_quantity(self.loss, 's')} of {self.category}"
            text += f" ({self.resource} is busiest)" if self.resource else ""
        return text


def verdict(best: Result, other: Result) -> Verdict:
    """Hold `other` against `best`."""
    found = compare(best, other)
    category, loss = found.explained_by or ("", 0.0)
    limit, apart = busiest(other), distinguishable(best, other)
    chance = beats(best, other).probability if "time" in best.draws and "time" in other.draws else None
    return Verdict(found.ratio, found.difference, category, loss, limit.name if limit else "", apart, chance)
