"""Goals of accuracy, and by how much each is met or missed.

A goal is data (``data/goals.toml``): a bound for one figure of `simperf.accuracy.goal_figures`, the page that says more
of it, and where it is missed the reason in half a line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from simperf.files import read_toml

__all__ = ["AccuracyGoal", "GradedGoal", "accuracy_goals", "grade_goals"]

_DATA = Path(__file__).parent / "data" / "goals.toml"


@dataclass(frozen=True, slots=True)
class AccuracyGoal:
    """A bound that a figure should keep.

    Parameters
    ----------
    what : str
        What the figure is, for readers.
    figure : str
        Its name in `simperf.accuracy.goal_figures`.
    least, most : float
        Bounds [1]; minus or plus infinity where there is none.
    count : bool
        Whether the figure is a number of things, and not a share.
    page : str
        Where more is said, below docs.
    reason : str
        Why it is missed; empty where it is met.
    """

    what: str
    figure: str
    least: float
    most: float
    count: bool
    page: str
    reason: str


@dataclass(frozen=True, slots=True)
class GradedGoal:
    """A goal with the figure that was reached [1]."""

    goal: AccuracyGoal
    reached: float

    @property
    def missed_by(self) -> float:
        """Distance from the bound [1]; 0 where the goal is met, NaN where there is no figure.

        Examples
        --------
        >>> GradedGoal(AccuracyGoal("share", "x", 0.6, math.inf, False, "", ""), 0.5).missed_by
        0.1
        """
        if math.isnan(self.reached):
            return math.nan
        return max(0.0, round(self.goal.least - self.reached, 9), round(self.reached - self.goal.most, 9))


@cache
def accuracy_goals() -> tuple[AccuracyGoal, ...]:
    """Every goal of the list."""
    return tuple(
        AccuracyGoal(
            one["what"],
            one["figure"],
            float(one.get("least", -math.inf)),
            float(one.get("most", math.inf)),
            bool(one.get("count", False)),
            one["page"],
            one.get("reason", ""),
        )
        for one in read_toml(_DATA).data["goal"]
    )


def grade_goals(figures: Mapping[str, float]) -> list[GradedGoal]:
    """Goals whose figure is known, in the order of the list."""
    return [GradedGoal(one, figures[one.figure]) for one in accuracy_goals() if one.figure in figures]
