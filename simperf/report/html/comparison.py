"""The report of several runs side by side, each with its own details below."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from simperf.analysis.breakdown import breakdown
from simperf.analysis.comparison import compare
from simperf.analysis.limits import busiest
from simperf.analysis.regime import regime
from simperf.report.data import Failure
from simperf.report.html.page import Section, page, table
from simperf.report.html.picture import inline
from simperf.report.html.result import inputs, limits, shares
from simperf.report.html.timeline import timeline
from simperf.report.plots import draw_comparison
from simperf.results import Result
from simperf.units import format_quantity

__all__ = ["comparison_report"]

_TIMELINES = 4


def comparison_report(
    results: Sequence[Result | Failure], *, title: str = "", question: str = "", command: str = ""
) -> str:
    """A page on several results: which is fastest, by how much and why.

    Raises
    ------
    InputError
        None of them is a result.
    """
    good = [result for result in results if isinstance(result, Result)]
    chart = inline(
        draw_comparison(results),
        name="comparison",
        text="Times of all, by category: " + ", ".join(f"{r.name} {format_quantity(r.time, 's')}" for r in good),
    )
    best = min(good, key=lambda result: result.time)
    second = min((result for result in good if result is not best), key=lambda result: result.time, default=None)
    lead = ""
    if second is not None and best.time > 0:
        lead = f'<p class="faint">{format_quantity(best.time, "s")}; the next, {escape(second.name)}, takes '
        lead += f"{second.time / best.time:.4g} times as long.</p>"
    sections = [Section("Side by side", chart + _rows(results, best))]
    for index, result in enumerate(good):
        told = "".join(f"<li>{escape(name)}: {escape(text)}</li>" for name, text in limits(result))
        body = (
            f"<p><b>{format_quantity(result.time, 's')}</b></p>{shares(breakdown(result), result.time)}<ul>{told}</ul>"
        )
        if index < _TIMELINES:
            body += timeline(result, name=f"timeline-{index}")
        elif result.spans:
            body += f'<p class="faint">Timelines are shown for the first {_TIMELINES}.</p>'
        body += f"<details><summary>Inputs</summary>{inputs(result.scenario)}</details>"
        sections.append(Section(result.name, body, name=f"run-{index}"))
    sections.append(Section("What was not modelled", _not_modelled(good)))
    if command:
        sections.append(Section("How to reproduce it", f"<pre>{escape(command)}</pre>"))
    question = question or next((result.question for result in good if result.question), "")
    return page(title or "Comparison", sections, question=question, answer=f"Fastest: {best.name}", lead=lead)


def _rows(results: Sequence[Result | Failure], best: Result) -> str:
    rows = []
    for result in results:
        if isinstance(result, Failure):
            rows.append((result.name, "failed", "", "", result.error))
            continue
        limit, cause = busiest(result), compare(best, result).explained_by
        why = f"+{format_quantity(cause[1], 's')} of {cause[0]}" if cause and result.time > best.time else ""
        rows.append(
            (
                result.name,
                format_quantity(result.time, "s"),
                "best" if result is best else f"{result.time / best.time:.4g}x" if best.time > 0 else "-",
                f"{regime(result).name if result.spans else '-'}"
                + (f"; {limit.name} {limit.utilisation * 100:.0f} %" if limit else ""),
                why,
            )
        )
    head = ("name", "time", "to best", "what limits", "why slower")
    return table(head, rows, caption="All runs", numbers=(1, 2))


def _not_modelled(results: Sequence[Result]) -> str:
    lines = list(dict.fromkeys(line for result in results for line in result.not_modelled))
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
