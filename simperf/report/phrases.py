"""Words that a terminal and a page share: the answer, what limits a run, which cells of a table are numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from simperf.analysis.limits import busiest, headroom
from simperf.analysis.overlap import overlap
from simperf.analysis.regime import regime
from simperf.answer import TIME
from simperf.engine.recorder import Category
from simperf.report.language import say
from simperf.results import Result
from simperf.units import format_quantity, format_ratio

if TYPE_CHECKING:
    from simperf.analysis.ranking import Ranking

__all__ = ["against", "answer_note", "answer_words", "interval_words", "limit_words", "numbers", "percent"]

#: begins as a number does, but is no count of things, as in ``2 x dgx-1v``
_NUMBER = re.compile(r"[-+]?\d(?!\d* x )")


def answer_words(result: Result, *, interval: bool = True) -> str:
    """The number that answers the question, with its interval if it has one: the time, or a metric by its name."""
    name, number = result.headline
    told = str(number) if interval else format_quantity(number.value, number.unit)
    return told if name == TIME else f"{say(name)} {told}"


def answer_note(result: Result) -> str:
    """Note below an answer that is not the time: the time, and which end is better; empty if it is the time."""
    answer = result.answer
    if answer is None or answer.is_time or not result.answers:
        return ""
    return f"simulated time {result.number(TIME)}; {answer.metric}: {answer.better} is better"


def interval_words(result: Result, *, brief: bool = False) -> str:
    """The 90 % interval of the answer, with what it is made of (names alone if `brief`); or why there is none."""
    name, number = result.headline
    if name in result.intervals:
        low, high = (format_quantity(end, number.unit, digits=3) for end in result.intervals[name])
        told = (source if brief else f"{source}: {text}" for source, text in result.interval_sources.items())
        sources = ("; ", ", ")[brief].join(told)
        return f"90 % interval: {low} to {high}" + (f", from {sources}" if sources else "")
    why = result.no_interval
    if result.intervals:
        why = f"published figures are of {', '.join(result.intervals)}, not of {name}"
    if not why:  # a file that was saved before intervals were reported
        why = "the file reports none"
    return f"No 90 % interval: {why}"


def against(ranking: Ranking, place: int) -> str:
    """Comparison of a result's value with the best one."""
    from simperf.analysis.ranking import same

    best, ratio = ranking.best, ranking.ratio(place)
    if place in best and len(best) == 1:
        return "best"
    if ratio is None:
        return "-"
    return ("tie" if same(ratio, 1.0) else f"{format_ratio(ratio)} ~") if place in best else format_ratio(ratio)


def limit_words(result: Result) -> list[tuple[str, str]]:
    """Limits of a run: its regime, the busiest resource, the lower bound, what is hidden, each with its words."""
    rows = []
    bound, limit, room = regime(result), busiest(result), headroom(result)
    if result.spans:
        states = {"idle": "nothing is active", "bubble-bound": "stages wait for each other"}
        state = states.get(bound.name, "busy")
        rows.append(("regime", f"{bound.name} ({state} for {percent(bound.share)} of the time)"))
    if limit is not None:
        share = percent(limit.utilisation)
        state = f"{share} used" if limit.kind in ("link", "host") else f"at work for {share} of the time"
        rows.append(("busiest", f"{limit.name} ({limit.kind}), {state}"))
    if room is not None:
        above = (
            "the run takes no longer" if room.ratio < 1 + 1e-6 else f"the run takes {format_ratio(room.ratio)} as long"
        )
        if 1 + 1e-6 <= room.ratio < 1.01:
            above = f"the run takes {(room.ratio - 1) * 100:.2g} % longer"
        rows.append(("lower bound", f"{format_quantity(room.floor, 's')} ({room.name}); {above}"))
    moving: tuple[Category, ...] = ("communication", "copy")
    for category in moving:
        found = overlap(result, category)
        if found.total > 0:
            text = f"{percent(found.share)} of {format_quantity(found.total, 's')} hidden under kernels"
            rows.append((category, text))
    return rows


def numbers(cells: Iterable[object]) -> bool:
    """Whether all cells of a column that say something are numbers, with or without a unit.

    Examples
    --------
    >>> numbers(["1.5 ms", "-3 %", ""]), numbers(["1 x dgx-1v", "2 x dgx-1v"]), numbers(["ring", "2"])
    (True, False, False)
    """
    said = [str(cell) for cell in cells if str(cell) not in ("", "-")]
    return bool(said) and all(_NUMBER.match(cell) for cell in said)


def percent(share: float) -> str:
    """A share in percent, with three digits."""
    return f"{share * 100:.3g} %"
