"""The report of several runs side by side, each with its own details below."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from simperf.analysis.breakdown import breakdown
from simperf.analysis.comparison import compare
from simperf.analysis.limits import busiest
from simperf.analysis.regime import regime
from simperf.analysis.verdict import verdict
from simperf.hardware import Machine
from simperf.report.data import Failure
from simperf.report.html.limiting import limits
from simperf.report.html.machine import machine_part
from simperf.report.html.page import Section, definitions, page, paragraphs, table
from simperf.report.html.picture import on_page
from simperf.report.html.result import inputs, interval, result_sections, shares, sources
from simperf.report.html.scaling import scaling_part
from simperf.report.html.timeline import MOST
from simperf.report.plots import draw_comparison
from simperf.results import Result
from simperf.study.scaling import of_results
from simperf.units import format_quantity

__all__ = ["comparison_report"]

#: runs that are shown whole, and letters that they may take together; of the others the breakdown, limits and inputs
_WHOLE = 4
_ROOM = 1_400_000
#: sections of a run that the page has once for all
_SHARED = frozenset(("Inputs", "What was modelled", "What was not modelled"))


def comparison_report(
    results: Sequence[Result | Failure],
    *,
    title: str = "",
    question: str = "",
    command: str = "",
    machines: Sequence[Machine | None] = (),
) -> str:
    """A page on several results: which is fastest, by how much and why.

    Parameters
    ----------
    results : sequence of Result or Failure
    title, question, command : str
    machines : sequence of Machine or None
        What each ran on, in the same order, for the pictures of the links' load.

    Raises
    ------
    InputError
        None of them is a result.
    """
    good = [result for result in results if isinstance(result, Result)]
    chart = on_page(
        draw_comparison(results),
        name="comparison",
        text="Times of all, by category: " + ", ".join(f"{r.name} {format_quantity(r.time, 's')}" for r in good),
    )
    best = min(good, key=lambda result: result.time)
    sections = [Section("Side by side", chart + _rows(results, best))]
    part = scaling_part(of_results(good))
    sections += [Section("Scaling", part)] if part else []
    whole, room = 0, _ROOM
    for index, result in enumerate(results):
        if isinstance(result, Failure):
            continue
        body = ""
        if whole < _WHOLE:
            body = _whole(result, machines[index] if index < len(machines) else None, index)
            whole += 1
        if not body or len(body) > room:
            body = _short(result)
        room -= len(body)
        sections.append(Section(result.name, body, name=f"run-{index}"))
    for heading, lines in (
        ("What was modelled", [line for result in good for line in result.modelled]),
        ("What was not modelled", [line for result in good for line in result.not_modelled]),
    ):
        sections += [Section(heading, paragraphs(dict.fromkeys(lines)))] if lines else []
    seen = {machine.name: machine for machine in machines if machine is not None}
    origin = sources(good) + "".join(machine_part(machine) for machine in seen.values())
    sections += [Section("Sources", origin)] if origin else []
    if command:
        told = f"<p>Seed {good[0].seed}. The same scenarios and seed give the same bytes.</p>"
        sections.append(Section("How to reproduce it", f"<pre>{escape(command)}</pre>{told}"))
    question = question or next((result.question for result in good if result.question), "")
    answer = f"Fastest: {best.name}, {format_quantity(best.time, 's')}"
    return page(title or "Comparison", sections, question=question, answer=answer, lead=_lead(good, best))


def _lead(good: Sequence[Result], best: Result) -> str:
    """By how much the best one wins, and how sure that is."""
    lines = [interval(best)]
    second = min((result for result in good if result is not best), key=lambda result: result.time, default=None)
    if second is not None and best.time > 0:
        told = verdict(best, second)
        sure = "" if told.apart is not False else " Given the intervals, which of the two is faster cannot be told."
        lines.append(f"The next, {second.name}, takes {second.time / best.time:.4g} times as long.{sure}")
    return f'<p class="faint">{"<br>".join(escape(line) for line in lines)}</p>'


def _whole(result: Result, machine: Machine | None, index: int) -> str:
    """Everything on one of the runs."""
    parts = result_sections(result, machine=machine, prefix=f"r{index}-", most=MOST // _WHOLE)
    inner = "".join(
        f'<h3 id="{part.anchor}">{escape(part.title)}</h3>{part.body}' for part in parts if part.title not in _SHARED
    )
    return _framed(result, inner)


def _short(result: Result) -> str:
    """What matters most of one of the runs."""
    more = (
        f'<p class="faint">Timelines and pictures are shown for the first {_WHOLE} runs, as far as a page has room.</p>'
    )
    return _framed(result, shares(breakdown(result), result.time) + definitions(limits(result)) + more)


def _framed(result: Result, inner: str) -> str:
    tail = f"<details><summary>Inputs</summary>{inputs(result.scenario)}</details>"
    return f"<p><b>{format_quantity(result.time, 's')}</b></p>{inner}{tail}"


def _rows(results: Sequence[Result | Failure], best: Result) -> str:
    rows = []
    for result in results:
        if isinstance(result, Failure):
            rows.append((result.name, "failed", "", "", "", result.error))
            continue
        limit, cause = busiest(result), compare(best, result).explained_by
        why = f"+{format_quantity(cause[1], 's')} of {cause[0]}" if cause and result.time > best.time else ""
        ends = result.intervals.get("time")
        rows.append(
            (
                result.name,
                format_quantity(result.time, "s"),
                " to ".join(format_quantity(end, "s") for end in ends) if ends else "",
                "best" if result is best else f"{result.time / best.time:.4g}x" if best.time > 0 else "-",
                f"{regime(result).name if result.spans else '-'}"
                + (f"; {limit.name} {limit.utilisation * 100:.0f} %" if limit else ""),
                why,
            )
        )
    head = ("name", "time", "90 % interval", "to best", "what limits", "why slower")
    return table(head, rows, caption="All runs", numbers=(1, 3), optional=(2,))
