"""The report of a search for layouts: the ranking, why each loses, and what was not simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simperf.hardware import Machine
from simperf.report.html.page import PageSection, numeric, page, paragraphs, reproduction, table
from simperf.report.html.picture import on_page
from simperf.report.html.result import detailed
from simperf.report.language import say
from simperf.report.layout_pictures import draw_layouts
from simperf.report.layout_plans import summary
from simperf.results import Result
from simperf.study.planning.rounding import hours
from simperf.units import format_quantity

if TYPE_CHECKING:
    from simperf.study.layouts import LayoutPlan, RankedLayout

__all__ = ["layouts_report"]

_ROWS = 500


def layouts_report(
    found: LayoutPlan, *, command: str = "", winner: Result | None = None, machine: Machine | None = None
) -> str:
    """A page on a search for layouts.

    Parameters
    ----------
    found : LayoutPlan
    command : str
        What makes the page again.
    winner : Result, optional
        A step of the winner (`LayoutPlan.scenario`), shown in detail.
    machine : Machine, optional
        The winner's.
    """
    request, first = found.request, found.winner
    text = say("Memory over time of a step, a mark for each layout that was simulated.")
    picture = on_page(lambda: draw_layouts(found), name="layouts", text=text)
    header, rows = _rows(found)
    caption = "Layouts that were simulated, in their order; a star: Pareto-optimal in time, cost and GPUs"
    ranking = table(header, rows[:_ROWS], caption=caption, numbers=numeric(rows), long=(len(header) - 1,))
    sections = [
        PageSection("Time and memory", picture),
        PageSection("Ranking", ranking),
        PageSection("The search", paragraphs(summary(found))),
    ]
    if winner is not None:
        sections.append(detailed("Winner", winner, machine=machine, prefix="w-"))
    step = format_quantity(first.step, "s")
    lead = [f"{request.name}, {request.batch} samples of {request.model.sequence} tokens per step."]
    lead += (
        ["90 % interval: {} to {}.".format(*(format_quantity(end, "s") for end in first.interval))]
        if (first.interval)
        else []
    )
    lead += [f"{first.reason[0].upper()}{first.reason[1:]}."] if first.reason else []
    sections += reproduction(command)
    return page(request.title, sections, answer=f"{_name(found, first)}: {step} per step", lead=lead)


def _rows(found: LayoutPlan) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the ranking; times and costs of the whole training where they were asked for."""
    whole, cost = found.winner.time is not None, any(one.cost is not None for one in found.ranked)
    header = ["#", "layout", "step", "MFU", "tokens/s", "memory per GPU"]
    header += ["time"] if whole else []
    header += ["cost"] if cost else []
    rows = []
    for one in found.ranked:
        step = format_quantity(one.step, "s", digits=4)
        if one.interval:
            step += " ({} to {})".format(*(format_quantity(end, "s", digits=3) for end in one.interval))
        row = [f"{one.number}{'*' if one.best else ''}", _name(found, one), step]
        row += [f"{100 * one.used:.3g} %" if one.used else "-", f"{one.tokens:,.0f}"]
        row.append(format_quantity(one.memory, "B", digits=3))
        row += [hours(one.time) if one.time is not None else "-"] if whole else []
        row += [f"{one.cost:,.2f} USD" if one.cost is not None else "-"] if cost else []
        rows.append([*row, one.reason])
    return [*header, "why"], rows


def _name(found: LayoutPlan, one: RankedLayout) -> str:
    where = f"{one.machine.gpus} x {one.machine.name}: " if len(found.request.machines) > 1 else ""
    return where + one.choice.name
