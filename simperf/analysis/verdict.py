"""Verdict on a result against the best one: by how much it loses, where, and whether that can be determined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from simperf.analysis.chance import beats, distinguishable
from simperf.analysis.comparison import compare
from simperf.analysis.limits import busiest
from simperf.analysis.ranking import common_answer, differing_work, same, work_of
from simperf.answer import Answer
from simperf.results import Result
from simperf.units import format_quantity, format_ratio

__all__ = ["Verdict", "verdict"]

#: share of the best one's time below which a difference is not explained [1]
_SMALLEST = 0.01
#: categories that a sentence names
_NAMED = 3


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
    slower : float
        Its time less the best one's [s].
    changes : mapping of str to float
        What the categories add to `slower` [s], the one of `loss` first, then by size: up to three that are 1 % of
        the best one's time or more, and the others together where they are. Empty where `category` is, or where
        `slower` is less than 1 %.
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
    slower: float = 0.0
    changes: Mapping[str, float] = field(default_factory=dict)
    resource: str = ""
    apart: bool | None = None
    chance: float | None = None

    def __str__(self) -> str:
        if self.apart is False:
            chance = "" if self.chance is None else f": better in {100 * self.chance:.0f} % of the draws"
            return f"not distinguishable{chance}"
        if same(self.ratio, 1.0):
            return "the same"
        text = f"{format_ratio(self.ratio)} " + ("slower" if self.answer == Answer() else f"the {self.answer.metric}")
        if self.changes:
            text += f"; +{format_quantity(self.slower, 's')}: {self.parts}"
            text += f" ({self.resource} is busiest)" if self.resource else ""
        return text

    @property
    def parts(self) -> str:
        """The changes in words: ``overhead +100.0 ms, compute -99.2 ms``."""
        signed = {
            name: ("+" if change > 0 else "") + format_quantity(change, "s") for name, change in self.changes.items()
        }
        return ", ".join(f"{name} {change}" for name, change in signed.items())


def verdict(best: Result, other: Result) -> Verdict:
    """Hold `other` against `best` by what they are asked for."""
    answer, _ = common_answer([best.answer, other.answer])
    metric, limit = answer.metric, busiest(other)
    ours, theirs = best.number(metric).value, other.number(metric).value
    ratio = theirs / ours if ours else 1.0 if theirs == ours else float("inf")
    category, loss, changes = "", 0.0, dict[str, float]()
    slower = other.time - best.time
    if slower > 0 and not differing_work([work_of(best), work_of(other)]):
        found = compare(best, other)
        category, loss = found.explained_by or ("", 0.0)
        if category and slower >= _SMALLEST * best.time:
            changes = {category: loss} | _largest(found.changes, _SMALLEST * best.time, without=category)
            rest = slower - sum(changes.values())
            changes |= {"other": rest} if abs(rest) >= _SMALLEST * best.time else {}
    apart = distinguishable(best, other, metric=metric)
    drawn = metric in best.draws and metric in other.draws
    chance = beats(best, other, metric=metric, better=answer.better).probability if drawn else None
    busy = limit.name if limit else ""
    return Verdict(answer, ratio, theirs - ours, category, loss, slower, changes, busy, apart, chance)


def _largest(changes: Mapping[str, float], smallest: float, *, without: str) -> dict[str, float]:
    """The changes of other categories, by size, that are not below `smallest` [s]."""
    order = sorted(changes, key=lambda name: -abs(changes[name]))
    others = [name for name in order if name != without and abs(changes[name]) >= max(smallest, 1e-15)]
    return {name: changes[name] for name in others[: _NAMED - 1]}
