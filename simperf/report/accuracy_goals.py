"""Goals of accuracy as a table of docs/accuracy.md."""

from __future__ import annotations

import math
from collections.abc import Sequence

from simperf.accuracy.goals import AccuracyGoal, GradedGoal

__all__ = ["goals_markdown"]


def goals_markdown(goals: Sequence[GradedGoal]) -> str:
    """A line a goal: its bound, its figure, by how much the figure is outside and why, and the page that says more."""
    lines = ["| figure | goal | reached | outside by | reason |", "|---|--:|--:|--:|---|"]
    for one in goals:
        missed = _told(one.goal, one.missed_by, points=True) if one.missed_by else "met"
        why = one.goal.reason if one.missed_by else ""
        reached = _told(one.goal, one.reached, sign=-math.inf < one.goal.least < 0)
        if math.isnan(one.reached):
            reached, missed = "none", "no figure"
        lines.append(f"| [{one.goal.what}]({one.goal.page}) | {_bound(one.goal)} | {reached} | {missed} | {why} |")
    return "\n".join(lines)


def _bound(goal: AccuracyGoal) -> str:
    least, most = _told(goal, goal.least), _told(goal, goal.most)
    if math.isinf(goal.least):
        return f"at most {most}"
    return f"at least {least}" if math.isinf(goal.most) else f"{least.removesuffix(' %')} to {most}"


def _told(goal: AccuracyGoal, value: float, *, points: bool = False, sign: bool = False) -> str:
    if goal.count:
        return f"{value:.0f}"
    return f"{100 * value:{'+' if sign else ''}.3g} {'points' if points else '%'}"
