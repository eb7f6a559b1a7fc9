"""The report of what limits a run: what each resource would bring, where that changes, and the run in detail."""

from __future__ import annotations

from collections.abc import Sequence

from simperf.hardware import Machine
from simperf.report.html.contributions import influences_part
from simperf.report.html.page import PageSection, numeric, page, paragraphs, reproduction, table
from simperf.report.html.picture import on_page
from simperf.report.html.result import result_sections
from simperf.report.language import say
from simperf.report.limits import draw_limits, effective_rows
from simperf.report.phrases import answer_words, interval_words
from simperf.study.crossover import Flip
from simperf.study.limits import Limits, percent
from simperf.study.sensitivity import Sensitivity

__all__ = ["limits_report"]


def limits_report(
    found: Limits,
    *,
    flips: Sequence[Flip] | None = None,
    influences: Sensitivity | None = None,
    machine: Machine | None = None,
    command: str = "",
) -> str:
    """A page on limits.

    Parameters
    ----------
    found : Limits
    flips : sequence of Flip, optional
        Where the limit changes over a range; None if that was not asked for.
    influences : Sensitivity, optional
        Of the ranges of parameters.
    machine : Machine, optional
        What the run used.
    command : str
        What makes the page again.
    """
    result = found.result
    text = say("Change of the {} with each resource made faster, the most effective first.")
    text = text.format(say(found.answer.metric))
    header, shown, hidden = effective_rows(found)
    caption = "One resource faster at a time, then all at once"
    caption += f"; {hidden} more would change nothing" if hidden else ""
    numbers = table(header, shown, caption=caption, numbers=numeric(shown))
    picture = on_page(lambda: draw_limits(found), name="limits", text=text)
    sections = [PageSection("If one resource were faster", picture + numbers)]
    if flips is not None:
        told = [str(one) for one in flips] or ["What limits is the same over the whole range."]
        sections.append(PageSection("Where the limit changes", paragraphs(told)))
    if influences is not None:
        sections.append(PageSection("Influences", influences_part(influences)))
    sections += result_sections(result, machine=machine)
    lead = [f"{answer_words(result)}.", f"{interval_words(result)}."]
    sections += reproduction(command, f"Seed {result.seed}. The same scenario and seed give the same bytes.")
    return page(f"Limits of {result.name}", sections, question=result.question, answer=_answer(found), lead=lead)


def _answer(found: Limits) -> str:
    first = found.limiting
    if first is None:
        return "No single resource limits the run"
    faster = f"{100 * (first.factor - 1):.3g} % more speed"
    return f"Limited by {first.resource.name}: {faster} changes the {found.answer.metric} by {percent(first.change)}"
