"""Output of `simperf plan`: the ranking, what was ruled out and why, one candidate in detail, the picture."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from simperf.json_format import json_text
from simperf.report.labels import name_points
from simperf.report.language import say
from simperf.report.lines import legend
from simperf.report.rows import rows_text
from simperf.report.studies import rows_view
from simperf.report.style import figure, heading, save
from simperf.report.sweeps import draw_front
from simperf.report.terminal import columns, to_text
from simperf.study.planning.planner import Candidate, TrainingPlan
from simperf.study.planning.precision import AUTO, precision_source
from simperf.study.planning.ranked import samples_per_second
from simperf.study.planning.rounding import dollars, hours
from simperf.units import format_quantity

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["GROUPS", "draw_plan", "format_candidate", "format_plan", "plan_output", "plot_plan"]

#: what the column of groups says
GROUPS = "group: number of the first candidate whose intervals overlap this one's"
#: columns of the ranking that are not aligned as numbers are
_LEFT = ("candidate", "time", "cost", "busiest", "verdict")
#: the least width of a line, and of the verdict where a candidate is a row [characters]
_NARROWEST, _VERDICT = 40, 30


def format_plan(found: TrainingPlan, *, most: int = 20, width: int = 0) -> str:
    """As text: the question, the ranked candidates (at most so many), and the others by the reason against them.

    Parameters
    ----------
    found : TrainingPlan
    most : int
        Candidates, and reasons, that are listed.
    width : int
        Of a line; 0 is that of the terminal, or 80 where standard output is none. Each candidate is a row where rows
        fit, and else has lines of its own.
    """
    from rich.console import Group
    from rich.text import Text

    request, width = found.request, max(width or columns(), _NARROWEST)
    asked = [f"{request.samples:.4g} samples of {request.model.name}"]
    asked += [] if request.precision == AUTO else [request.precision]
    asked += [f"in {hours(request.deadline)}"] if request.deadline != float("inf") else []
    asked += [f"for {dollars(request.budget)}"] if request.budget != float("inf") else []
    header, rows = found.rows()
    shown = rows[:most]
    parts: list[RenderableType] = [
        Text(request.title, style="bold"),
        Text(", ".join(asked)),
        Text(""),
        rows_view(header, shown, left=_LEFT)
        if _rows_fit(header, shown, width)
        else Text("\n".join(_blocks(header, shown, width))),
    ]
    if len(rows) > most:
        parts.append(Text(f"{len(rows) - most} more were simulated: --all lists them", style="dim"))
    if any(one.best for one in found.ranked):
        parts.append(Text("* Pareto-optimal in time and cost", style="dim"))
    parts += [Text(line)] if (line := found.precision_line()) else []
    if any(one.time_interval for one in found.ranked):
        parts.append(Text(GROUPS, style="dim"))
    parts.append(_lines(found.interval_lines(), width))
    if found.pruned:
        reasons: dict[str, list[str]] = {}
        for one in found.pruned:
            reasons.setdefault(one.reason, []).append(one.choice.name)
        lines = [f"{reason}: {_listed(names)}" for reason, names in reasons.items()]
        rest = len(lines) - most
        parts += [Text(""), Text(f"Not simulated ({len(found.pruned)})", style="bold"), _lines(lines[:most], width)]
        parts += [Text(f"{rest} more reasons: --all lists them", style="dim")] if rest > 0 else []
    prices = [f"{name}: {request.prices.told(name)} ({source})" for name, source in request.prices.sources.items()]
    parts += [Text(""), Text("Prices", style="bold"), _lines(prices, width)]
    return to_text(Group(*parts), width=width)


def _rows_fit(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether each candidate can be a row in which no cell but the verdict goes over several lines."""
    *others, _ = (max(map(len, column)) for column in zip(header, *rows, strict=True))
    return sum(size + 2 for size in others) + max(_VERDICT, *others) <= width


def _blocks(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Lines of each candidate: what it is, its time and cost, its pace and memory, and its verdict."""
    for cells in rows:
        row = dict(zip(header, cells, strict=True))
        facts = [f"{row['GPUs']} GPUs", *([row["precision"]] if "precision" in row else [])]
        facts += [f"group {row['group']}"] if row["group"] else []
        yield _fold(f"{row['candidate']} ({', '.join(facts)})", width, f"{row['#']:>4} ", " " * 5)
        pace = f"{row['samples/s']} samples/s, {row['memory/GPU']} per GPU, busiest: {row['busiest']}"
        for line in (f"{row['time']}  {row['cost']}", pace, row["verdict"]):
            yield _fold(line, width, " " * 5, " " * 5)


def _lines(texts: Iterable[str], width: int) -> RenderableType:
    """Texts, each on a line of its own; what does not fit follows indented."""
    from rich.text import Text

    return Text("\n".join(_fold(text, width, "", " " * 4) for text in texts))


def _fold(text: str, width: int, first: str, then: str) -> str:
    """Lines of a text, none longer than `width`; no word is broken that fits in one."""
    import textwrap

    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=then, break_on_hyphens=False)


def _listed(names: list[str]) -> str:
    return "; ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def format_candidate(found: TrainingPlan, number: int, limits: str, *, width: int = 0) -> str:
    """One candidate in detail.

    Parameters
    ----------
    found : TrainingPlan
    number : int
        Its rank.
    limits : str
        What `simperf.report.limits.format_limits` says of its steps.
    width : int
        Of a line; 0 is that of the terminal, or 80 where standard output is none.
    """
    one: Candidate = found.ranked[number - 1]
    request, width = found.request, max(width or columns(), _NARROWEST)
    price = request.prices.told(one.choice.instance)
    named = one.choice.instance in request.prices
    pace = f"{100 * one.goodput:.1f} % is training at {samples_per_second(one.rate)} samples/s"
    facts = [
        ("time", f"{hours(one.time)}, of which {pace}"),
        *_interval_facts(one),
        *([("cost", f"{dollars(one.cost)}: {one.choice.nodes} x {price} x {one.time / 3600:.3f} h")] if named else []),
        ("price", request.prices.sources[one.choice.instance]),
        ("memory", f"{format_quantity(one.memory, 'B')} on each GPU"),
        ("precision", f"{one.choice.precision} ({precision_source(request.precision)})"),
    ]
    if request.failures:
        failures = one.time * one.choice.nodes / request.failures.node_mtbf
        facts.append(("failures", f"{failures:.2g} expected on the way"))
    lines = [_fold(f"{one.choice.name}: {one.reason}", width, f"{one.number}  ", " " * 3)]
    lines += [_fold(text, width, f"{name:10}", " " * 10) for name, text in facts]
    return "\n".join(lines) + "\n\nSome steps of it:\n" + limits


def _interval_facts(one: Candidate) -> list[tuple[str, str]]:
    """The interval of a candidate's time and what it is made of, or why there is none."""
    if one.time_interval is None:
        return [("interval", f"none: {one.spread.why_not}")]
    low, high = map(hours, one.time_interval)
    return [
        ("interval", f"{low} to {high} (90 %)"),
        *(("", f"{name}: {text}") for name, text in one.spread.sources.items()),
    ]


def plan_output(found: TrainingPlan, form: Literal["table", "json", "csv"], *, all_rows: bool = False) -> str:
    """A plan as a table of its first candidates, or of all, or as JSON or CSV of all."""
    if form == "table":
        return format_plan(found, most=10**6 if all_rows else 20)
    document = found.to_dict()
    if form == "json":
        return json_text(document)
    units = {
        "time": "s",
        "time_interval": "s",
        "time_interval_apart": "s",
        "cost": "USD",
        "cost_interval": "USD",
        "price": "USD/h",
        "samples_per_second": "1/s",
        "memory": "B",
    }
    rows = [
        {**row, "interval_sources": _joined(row["interval_sources"])} for row in document["ranked"] + document["pruned"]
    ]
    return rows_text(rows, "csv", units=units)


def _joined(sources: Mapping[str, str]) -> str:
    """What an interval is made of, in one cell."""
    return "; ".join(f"{name}: {text}" for name, text in sources.items())


def plot_plan(found: TrainingPlan, path: str | os.PathLike[str]) -> None:
    """Write the picture; see `draw_plan`."""
    save(draw_plan(found), path)


def draw_plan(found: TrainingPlan) -> Any:
    """Make a figure of time and cost of all candidates, the Pareto front, deadline and budget.

    Those without a price are left out; if none has one, the figure has GPUs in place of cost.
    """
    from matplotlib.ticker import LogFormatter

    priced = [one for one in found.ranked if one.choice.instance in found.request.prices]
    shown = priced or found.ranked
    times = [one.time / 3600 for one in shown]
    costs = [one.cost if priced else float(one.choice.gpus) for one in shown]
    names = [f"{one.choice.nodes} x {one.choice.instance}" for one in shown]

    def fill(made: Any) -> None:
        axes = made.subplots()
        heading(made, say(found.request.title))
        front = draw_front(axes, times, costs)
        for one in found.ranked:
            if one.time_interval and one.cost_interval:
                axes.plot([end / 3600 for end in one.time_interval], list(one.cost_interval), color="#888888", lw=0.8)
        axes.set(xscale="log", yscale="log")
        for axis in (axes.xaxis, axes.yaxis):  # hours and dollars are read as numbers, not as powers of ten
            axis.set_major_formatter(LogFormatter())
            axis.set_minor_formatter(LogFormatter(minor_thresholds=(1.5, 0.5)))
        for value, line, name in (
            (found.request.deadline / 3600, axes.axvline, "deadline"),
            (found.request.budget, axes.axhline, "budget"),
        ):
            if value != float("inf"):
                line(value, ls="--", lw=0.9, color="#D55E00" if name == "deadline" else "#0072B2", label=say(name))
        axes.set_xlabel(say("time [{}]").format("h"))
        axes.set_ylabel(say("cost [{}]").format("USD") if priced else say("GPUs"))
        legend(axes)
        points = list(zip(times, costs, strict=True))
        name_points(axes, [(names[index], points[index]) for index in front], points)

    return figure(fill)
