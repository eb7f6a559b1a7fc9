"""The report of a plan: the winner, why the others lose, and some steps of the winner in detail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simperf.analysis.scaling import ScalingCurve, from_rates
from simperf.hardware import Machine
from simperf.report.html.page import PageSection, numeric, page, paragraphs, reproduction, table
from simperf.report.html.picture import on_page
from simperf.report.html.result import detailed
from simperf.report.html.scaling import scaling_part
from simperf.report.language import say
from simperf.report.plans import GROUPS, draw_plan
from simperf.results import Result
from simperf.study.planning.precision import AUTO
from simperf.study.planning.rounding import dollars, hours

if TYPE_CHECKING:
    from simperf.study.planning.planner import TrainingPlan

__all__ = ["plan_report"]

_ROWS = 500
_RANKED = f"Candidates that were simulated, best first; a star: Pareto-optimal in time and cost; {GROUPS}"
_LINES = 6
_NOT_COUNTED = (
    "reading and preparing the data, evaluation during training",
    "how many epochs a larger batch needs to reach the same accuracy",
    "storage and traffic in the cost: only the hours of the instances",
)


def plan_report(
    found: TrainingPlan, *, command: str = "", winner: Result | None = None, machine: Machine | None = None
) -> str:
    """A page on a plan.

    Parameters
    ----------
    found : TrainingPlan
    command : str
        What makes the page again.
    winner : Result, optional
        Some steps of the winner (`TrainingPlan.scenario`), shown in detail.
    machine : Machine, optional
        The winner's.
    """
    request = found.request
    header, rows = found.rows()
    text = say("Time and cost of every candidate, and the Pareto front.")
    picture = on_page(lambda: draw_plan(found), name="plan", text=text)
    sections = [
        PageSection("Time and cost", picture),
        PageSection("Ranking", table(header, rows[:_ROWS], caption=_RANKED, numbers=numeric(rows))),
    ]
    part = scaling_part(_scaling(found))
    sections += [PageSection("Scaling", part)] if part else []
    if found.pruned:
        cells = [(one.choice.name, one.reason) for one in found.pruned]
        caption = "Ruled out by a bound before any run"
        sections.append(PageSection("Not simulated", table(("candidate", "why"), cells[:_ROWS], caption=caption)))
    prices = [(name, request.prices.told(name), text) for name, text in request.prices.sources.items()]
    sections.append(
        PageSection("Prices", table(("instance", "price", "source"), prices, caption="Prices", numbers=(1,)))
    )
    if winner is not None:
        sections.append(detailed("Winner", winner, machine=machine, prefix="w-"))
    sections.append(PageSection("What is not counted", paragraphs(_NOT_COUNTED)))
    sections += reproduction(command)
    return page(request.title, sections, question=_question(found), answer=_answer(found), lead=_lead(found, winner))


def _question(found: TrainingPlan) -> str:
    request = found.request
    limits = [f"in {hours(request.deadline)}"] if request.deadline != float("inf") else []
    limits += [f"for {dollars(request.budget)}"] if request.budget != float("inf") else []
    asked = f"Which machines train {request.model.name} on {request.samples:.4g} samples"
    asked += "" if request.precision == AUTO else f", {request.precision}"
    return f"{asked}{', ' + ' and '.join(limits) if limits else ''}?"


def _answer(found: TrainingPlan) -> str:
    first = found.ranked[0] if found.ranked else None
    return f"{first.choice.name}: {hours(first.time)}, {dollars(first.cost)}" if first else "No candidate"


def _lead(found: TrainingPlan, winner: Result | None) -> list[str]:
    if not found.ranked:
        return []
    first = found.ranked[0]
    lines = [first.reason.capitalize() + "." if first.reason else ""]
    if first.time_interval:
        lines.append("90 % interval: {} to {}.".format(*(hours(end) for end in first.time_interval)))
    lines += [f"{line}." for line in (found.precision_line(), *found.interval_lines()) if line]
    lines += [f"Mostly limited by {first.limited_by}."] if first.limited_by else []
    return lines + (["For the details below some steps of the winner were simulated once more."] if winner else [])


def _scaling(found: TrainingPlan) -> list[ScalingCurve]:
    """The candidates that differ in the number of nodes only; lines of most points first."""
    lines: dict[str, dict[int, tuple[float, dict[str, float]]]] = {}
    ends: dict[str, dict[int, tuple[float, float]]] = {}
    for one in found.ranked:
        choice = one.choice
        label = f"{choice.instance}, {choice.strategy}, batch {choice.batch}"
        lines.setdefault(label, {})[choice.gpus] = (one.time, {"samples per second": one.rate})
        if one.time_interval:
            ends.setdefault(label, {})[choice.gpus] = one.time_interval
    made = [from_rates(rows, key="gpus", label=label, intervals=ends.get(label)) for label, rows in lines.items()]
    return sorted((line for line in made if line is not None), key=lambda line: -len(line.points))[:_LINES]
