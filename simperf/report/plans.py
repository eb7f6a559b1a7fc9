"""What `simperf plan` shows: the ranking, what was ruled out and why, one candidate in detail, the picture."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from simperf.json_format import json_text
from simperf.report.rows import rows_text
from simperf.report.studies import rows_view
from simperf.report.style import figure, heading, save
from simperf.report.sweeps import draw_front
from simperf.report.terminal import to_text
from simperf.study.planning.planner import Candidate, TrainingPlan
from simperf.study.planning.precision import AUTO, precision_source
from simperf.study.planning.rounding import dollars, hours
from simperf.units import format_quantity

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["GROUPS", "draw_plan", "format_candidate", "format_plan", "plan_output", "plot_plan"]

#: width where there is no terminal, and the least that holds rows of candidates [characters]
_WIDE, _ROWS = 240, 140
#: what the column of groups says
GROUPS = "group: candidates of one number cannot be told from its first, as their intervals overlap"


def format_plan(found: TrainingPlan, *, most: int = 20, width: int = 0) -> str:
    """As text: the question, the ranked candidates (at most so many), and the others by the reason against them.

    Parameters
    ----------
    found : TrainingPlan
    most : int
        Candidates, and reasons, that are listed.
    width : int
        Of a line; 0 is that of the terminal, or wide where there is none. Below 140 each candidate has lines of its own
        in place of a row.
    """
    import shutil
    import sys

    from rich.console import Group
    from rich.text import Text

    request = found.request
    asked = [f"{request.samples:.4g} samples of {request.model.name}"]
    asked += [] if request.precision == AUTO else [request.precision]
    asked += [f"in {hours(request.deadline)}"] if request.deadline != float("inf") else []
    asked += [f"for {dollars(request.budget)}"] if request.budget != float("inf") else []
    if not width:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDE
    header, rows = found.rows()
    shown = rows[:most]
    parts: list[RenderableType] = [
        Text(request.title, style="bold"),
        Text(", ".join(asked)),
        Text(""),
        Text("\n".join(_blocks(header, shown, width)))
        if width < _ROWS
        else rows_view(header, shown, left=("candidate", "time", "cost", "busiest", "verdict")),
    ]
    if len(rows) > most:
        parts.append(Text(f"{len(rows) - most} more were simulated: --all lists them", style="dim"))
    parts.append(Text("* Pareto-optimal in time and cost", style="dim"))
    parts += [Text(line)] if (line := found.precision_line()) else []
    if any(one.time_interval for one in found.ranked):
        parts.append(Text(GROUPS, style="dim"))
    parts.append(Text("\n".join(found.interval_lines())))
    if found.pruned:
        reasons: dict[str, list[str]] = {}
        for one in found.pruned:
            reasons.setdefault(one.reason, []).append(one.choice.name)
        lines = [[reason, _listed(names)] for reason, names in reasons.items()]
        rest = len(lines) - most
        parts += [Text(""), Text(f"Not simulated ({len(found.pruned)})", style="bold")]
        parts.append(rows_view(["why", "which"], lines[:most]))
        parts += [Text(f"{rest} more reasons: --all lists them", style="dim")] if rest > 0 else []
    sources = dict.fromkeys(
        f"{name}: {found.request.prices.of(name):.3f} USD/h ({source})"
        for name, source in request.prices.sources.items()
    )
    parts += [Text(""), Text("Prices", style="bold"), Text("\n".join(sources))]
    return to_text(Group(*parts), width=width)


def _blocks(header: list[str], rows: list[list[str]], width: int) -> Iterator[str]:
    """Lines of each candidate: what it is, its time and cost, and its verdict."""
    import textwrap

    for cells in rows:
        row = dict(zip(header, cells, strict=True))
        facts = [f"{row['GPUs']} GPUs", *([row["precision"]] if "precision" in row else [])]
        facts += [f"group {row['group']}"] if row["group"] else []
        for line in (f"{row['candidate']} ({', '.join(facts)})", f"{row['time']}  {row['cost']}", row["verdict"]):
            lead = f"{row['#']:>4} " if line.startswith(row["candidate"]) else " " * 5
            yield textwrap.fill(line, max(width, 40), initial_indent=lead, subsequent_indent=" " * 5)


def _listed(names: list[str]) -> str:
    return "; ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def format_candidate(found: TrainingPlan, number: int, limits: str) -> str:
    """One candidate in detail; `limits` is what `simperf.report.limits.format_limits` says of its steps."""
    one: Candidate = found.ranked[number - 1]
    request = found.request
    price = request.prices.of(one.choice.instance)
    lines = [
        f"{one.number}  {one.choice.name}: {one.reason}",
        f"time      {hours(one.time)}, of which {100 * one.goodput:.1f} % is training at {one.rate:.4g} samples/s",
        *_interval_line(one),
        f"cost      {dollars(one.cost)}: {one.choice.nodes} x {price:.3f} USD/h x {one.time / 3600:.3f} h",
        f"price     {request.prices.sources[one.choice.instance]}",
        f"memory    {format_quantity(one.memory, 'B')} on each GPU",
        f"precision {one.choice.precision} ({precision_source(request.precision)})",
    ]
    if request.failures:
        failures = one.time * one.choice.nodes / request.failures.node_mtbf
        lines.append(f"failures  {failures:.2g} expected on the way")
    return "\n".join(lines) + "\n\nSome steps of it:\n" + limits


def _interval_line(one: Candidate) -> list[str]:
    """The interval of a candidate's time and what it is made of, or why there is none."""
    if one.time_interval is None:
        return [f"interval  none: {one.spread.why_not}"]
    low, high = map(hours, one.time_interval)
    return [
        f"interval  {low} to {high} (90 %)",
        *(f"          {name}: {text}" for name, text in one.spread.sources.items()),
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
    }
    units |= {"samples_per_second": "1/s", "memory": "B"}
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
    """Make a figure of time and cost of all candidates, the front that none beats, deadline and budget."""
    from matplotlib.ticker import LogFormatter

    times = [one.time / 3600 for one in found.ranked]
    costs = [one.cost for one in found.ranked]
    names = [f"{one.choice.nodes} x {one.choice.instance}" for one in found.ranked]

    def fill(made: Any) -> None:
        axes = made.subplots()
        heading(made, found.request.title)
        draw_front(axes, times, costs, names)
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
                line(value, ls="--", lw=0.9, color="#D55E00" if name == "deadline" else "#0072B2", label=name)
        axes.set_xlabel("time [h]")
        axes.set_ylabel("cost [USD]")
        axes.legend(fontsize=7.5)

    return figure(fill)
