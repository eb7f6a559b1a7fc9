"""The order of results by what answers the question: which is best, what ties with it, or why none can be named."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from simperf.analysis.chance import drawn_interval
from simperf.answer import Answer, better_of
from simperf.results import Result
from simperf.units import format_quantity

__all__ = [
    "Entrant",
    "Ranking",
    "common_answer",
    "differing_work",
    "rank",
    "rank_results",
    "same",
    "suggested",
    "work_of",
]

#: numbers closer than this are equal [1]
_ROUNDING = 1e-9
#: names of a tie that are written out
_NAMED = 3
#: metrics that answer most questions about work of different amounts, the first that is there counts
_USUAL = ("samples per second", "steps per second of all workers", "bandwidth", "busbw", "achieved")
Work = Mapping[str, tuple[float, str]]


class Entrant(NamedTuple):
    """One that is ranked.

    Parameters
    ----------
    name : str
    value : float or None
        Of the metric that ranks; None if there is none.
    interval : (float, float) or None
        Range that holds 90 % of its draws, in the metric's unit.
    work : mapping of str to (float, str)
        Amounts of work that it did, each with its SI unit; empty if unknown.
    """

    name: str
    value: float | None
    interval: tuple[float, float] | None = None
    work: Work = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Ranking:
    """Entrants by rank.

    Parameters
    ----------
    answer : Answer
        What ranks them.
    unit : str
        SI unit of its metric.
    entrants : tuple of Entrant
        In the order in which they were given.
    ranks : tuple of int or None
        One more than the number of entrants that are better beyond doubt; None where an entrant has no value, and
        everywhere if there is no winner.
    refusal : str
        Why no winner is named; empty if one is.
    """

    answer: Answer
    unit: str
    entrants: tuple[Entrant, ...]
    ranks: tuple[int | None, ...]
    refusal: str = ""

    @property
    def best(self) -> tuple[int, ...]:
        """Positions of the entrants that none is better than; more than one is a tie."""
        return tuple(place for place, rank in enumerate(self.ranks) if rank == 1)

    @property
    def reference(self) -> int | None:
        """Position of the best value, which the others are divided by; None without a winner."""
        values = {place: value for place in self.best if (value := self.entrants[place].value) is not None}
        if not values:
            return None
        return (max if self.answer.higher else min)(values, key=lambda place: values[place])

    def ratio(self, place: int) -> float | None:
        """Value of an entrant over the best one [1]; None if there is no such number."""
        reference, value = self.reference, self.entrants[place].value
        if reference is None or value is None:
            return None
        best = self.entrants[reference].value
        assert best is not None
        return value / best if best else 1.0 if value == best else None

    @property
    def by_intervals(self) -> bool:
        """Whether the best ones tie although their numbers differ: their intervals overlap."""
        values = [value for place in self.best if (value := self.entrants[place].value) is not None]
        return any(not same(values[0], value) for value in values[1:])

    @property
    def headline(self) -> str:
        """The answer in one line: the best with its value, a tie, or why there is none."""
        if self.refusal:
            return f"No winner: {self.refusal}"
        if self.reference is None:
            return ""
        names = [self.entrants[place].name for place in self.best]
        if len(names) > _NAMED + 1:
            names[_NAMED:] = [f"{len(names) - _NAMED} others"]
        one = self.entrants[self.reference]
        assert one.value is not None
        told = (" ~ " if self.by_intervals else " = ").join(names)
        text = f"{_superlative(self.answer)}: {told}, {format_quantity(one.value, self.unit)}"
        return text + ("; their intervals overlap" if self.by_intervals else "")


def _superlative(answer: Answer) -> str:
    if answer.is_time:
        return "Slowest" if answer.higher else "Fastest"
    return f"{'Highest' if answer.higher else 'Lowest'} {answer.metric}"


def same(one: float, two: float) -> bool:
    """Whether two numbers are equal to rounding."""
    return one == two or abs(one - two) <= _ROUNDING * max(abs(one), abs(two))


def rank(entrants: Sequence[Entrant], answer: Answer, *, unit: str, refusal: str = "", advice: str = "") -> Ranking:
    """Rank by values; times of different amounts of work are not ranked.

    Parameters
    ----------
    entrants : sequence of Entrant
    answer : Answer
    unit : str
        SI unit of the values.
    refusal : str
        Why no winner may be named, if that is known already.
    advice : str
        A metric that would rank different amounts of work, to be named in the refusal.
    """
    if not refusal and answer.is_time:
        differing = differing_work([one.work for one in entrants if one.value is not None])
        if differing:
            example = f'answer = {{ metric = "{advice}" }}' if advice else "answer = { metric = ... }"
            refusal = f"the amounts of work differ ({differing}), which time does not rank; set {example} in [scenario]"
    if refusal:
        return Ranking(answer, unit, tuple(entrants), (None,) * len(entrants), refusal)
    return Ranking(answer, unit, tuple(entrants), _ranks(entrants, answer))


def rank_results(results: Sequence[Result]) -> Ranking:
    """Rank results by what their scenarios ask for, by time if they do not say.

    One that asks for a metric that it does not have is left out, if another one has it.
    """
    answer, refusal = common_answer([result.answer for result in results])
    missing = [one for one in results if not one.has(answer.metric)]
    unasked = [one for one in missing if one.answer is None or len(missing) == len(results)]
    if unasked and not refusal:
        refusal = f"{answer.metric!r} is asked for, which {unasked[0].name!r} does not have"
    entrants, unit = [], "s"
    for result in results:
        work = work_of(result)
        if refusal or any(result is one for one in missing):
            entrants.append(Entrant(result.name, None, None, work))
            continue
        found = result.number(answer.metric)
        unit = found.unit
        entrants.append(Entrant(result.name, found.value, drawn_interval(result, answer.metric), work))
    units = [{name: metric.unit for name, metric in result.metrics.items()} for result in results]
    return rank(entrants, answer, unit=unit, refusal=refusal, advice=suggested(units))


def work_of(result: Result) -> Work:
    """Amounts of work that a run did, by what it is counted in."""
    return {name: (amount.value, amount.unit) for name, amount in result.work.items()}


def common_answer(answers: Sequence[Answer | None]) -> tuple[Answer, str]:
    """Answer that all ask for, and why there is no such thing; who does not say joins the others."""
    given = list(dict.fromkeys(answer for answer in answers if answer is not None))
    if len(given) > 1:
        return given[0], "the scenarios ask for different numbers: " + "; ".join(map(str, given))
    return (given[0] if given else Answer()), ""


def suggested(units: Sequence[Mapping[str, str]]) -> str:
    """A metric that all have and that does not grow with the amount of work; empty if none is known.

    Parameters
    ----------
    units : sequence of mapping of str to str
        SI units of each one's metrics, by name.
    """
    common = [name for name in (units[0] if units else {}) if all(name in one for one in units)]
    rates = [name for name in common if better_of(units[0][name]) == "higher"]
    return next((name for name in (*_USUAL, *rates) if name in common), "")


def _ranks(entrants: Sequence[Entrant], answer: Answer) -> tuple[int | None, ...]:
    """One more than the number of entrants whose whole range is better than that of each."""
    ranges: list[tuple[float, float] | None] = []  # from the best end to the worst one, the lower the better
    for one in entrants:
        if one.value is None or not math.isfinite(one.value):
            ranges.append(None)
            continue
        low, high = one.interval or (one.value, one.value)
        ranges.append((-high, -low) if answer.higher else (low, high))
    worst = sorted(ends[1] for ends in ranges if ends is not None)
    return tuple(
        None if ends is None else 1 + bisect_left(worst, ends[0] - _ROUNDING * abs(ends[0])) for ends in ranges
    )


def differing_work(works: Sequence[Work]) -> str:
    """Amounts of work in which these differ, in words; empty if they do not, or are unknown."""
    known = [work for work in works if work]
    told = []
    for name in dict.fromkeys(name for work in known for name in work):
        amounts = [work.get(name, (0.0, ""))[0] for work in known]
        if not all(same(amounts[0], amount) for amount in amounts):
            unit = next(work[name][1] for work in known if name in work)
            ends = [_amount(end, unit) for end in (min(amounts), max(amounts))]
            told.append(f"{name}: {ends[0]} to {ends[1]}")
    return "; ".join(told)


def _amount(amount: float, unit: str) -> str:
    return f"{amount:,.6g}" if unit == "1" else format_quantity(amount, unit)
