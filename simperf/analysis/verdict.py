"""Verdict on a result against the best one: by how much it loses, where, and whether that can be determined."""

from __future__ import annotations

from dataclasses import dataclass

from simperf.analysis.chance import beats, distinguishable
from simperf.analysis.comparison import compare
from simperf.analysis.limits import busiest
from simperf.analysis.ranking import common_answer, differing_work, same, work_of
from simperf.answer import Answer
from simperf.results import Result
from simperf.units import format_quantity

__all__ = ["Verdict", "verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict on a result against the best.

    Parameters
    ----------
    answer : Answer
        What ranks them.
    ratio : float
        Its value over the best one's [1].
    difference : float
        Its value less the best one's, in the metric's unit.
    category : str
        In which it loses most time; empty where it loses none, did other work, or has no timeline.
    loss : float
        There [s].
    resource : str
        That rests least in it.
    apart : bool or None
        Whether the intervals leave no doubt; None without intervals.
    chance : float or None
        That the best is the better one, by the draws of both [1].
    """

    answer: Answer
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
        if same(self.ratio, 1.0):
            return "the same"
        text = f"{self.ratio:.4g}x " + ("slower" if self.answer == Answer() else f"the {self.answer.metric}")
        if self.category:
            text += f"; +{format_quantity(self.loss, 's')} of {self.category}"
            text += f" ({self.resource} is busiest)" if self.resource else ""
        return text


def verdict(best: Result, other: Result) -> Verdict:
    """Hold `other` against `best` by what they are asked for."""
    answer, _ = common_answer([best.answer, other.answer])
    metric, limit = answer.metric, busiest(other)
    ours, theirs = best.number(metric).value, other.number(metric).value
    ratio = theirs / ours if ours else 1.0 if theirs == ours else float("inf")
    category, loss = "", 0.0
    if other.time > best.time and not differing_work([work_of(best), work_of(other)]):
        category, loss = compare(best, other).explained_by or ("", 0.0)
    apart = distinguishable(best, other, metric=metric)
    drawn = metric in best.draws and metric in other.draws
    chance = beats(best, other, metric=metric, better=answer.better).probability if drawn else None
    return Verdict(answer, ratio, theirs - ours, category, loss, limit.name if limit else "", apart, chance)
