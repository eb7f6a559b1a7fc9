"""The report of several runs side by side, each with its own details below."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from simperf.analysis.breakdown import breakdown
from simperf.analysis.limits import busiest
from simperf.analysis.ranking import Ranking, rank_results
from simperf.analysis.regime import regime
from simperf.analysis.verdict import verdict
from simperf.hardware import Machine
from simperf.report.data import FailedRun
from simperf.report.html.limiting import limits
from simperf.report.html.machine import machine_part
from simperf.report.html.page import PageSection, definitions, page, paragraphs, table
from simperf.report.html.picture import on_page
from simperf.report.html.result import inputs, result_sections, shares, sources
from simperf.report.html.scaling import scaling_part
from simperf.report.html.timeline import MOST
from simperf.report.phrases import against, answer_words, interval_words
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
    results: Sequence[Result | FailedRun],
    *,
    title: str = "",
    question: str = "",
    command: str = "",
    machines: Sequence[Machine | None] = (),
) -> str:
    """A page on several results: which is best, by how much and why.

    Parameters
    ----------
    results : sequence of Result or FailedRun
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
        text="All results: " + ", ".join(f"{result.name}: {answer_words(result)}" for result in good),
    )
    ranking = rank_results(good)
    sections = [PageSection("Side by side", chart + _rows(results, good, ranking))]
    part = scaling_part(of_results(good))
    sections += [PageSection("Scaling", part)] if part else []
    whole, room = 0, _ROOM
    for index, result in enumerate(results):
        if isinstance(result, FailedRun):
            continue
        body = ""
        if whole < _WHOLE:
            body = _whole(result, machines[index] if index < len(machines) else None, index)
            whole += 1
        if not body or len(body) > room:
            body = _short(result)
        room -= len(body)
        sections.append(PageSection(result.name, body, name=f"run-{index}"))
    for heading, lines in (
        ("What was modelled", [line for result in good for line in result.modelled]),
        ("What was not modelled", [line for result in good for line in result.not_modelled]),
    ):
        sections += [PageSection(heading, paragraphs(dict.fromkeys(lines)))] if lines else []
    seen = {machine.name: machine for machine in machines if machine is not None}
    origin = sources(good) + "".join(machine_part(machine) for machine in seen.values())
    sections += [PageSection("Sources", origin)] if origin else []
    if command:
        told = f"<p>Seed {good[0].seed}. The same scenarios and seed give the same bytes.</p>"
        sections.append(PageSection("How to reproduce it", f"<pre>{escape(command)}</pre>{told}"))
    question = question or next((result.question for result in good if result.question), "")
    answer = "No winner" if ranking.refusal else ranking.headline
    return page(title or "Comparison", sections, question=question, answer=answer, lead=_lead(good, ranking))


def _lead(good: Sequence[Result], ranking: Ranking) -> str:
    """How sure the answer is, and how far the next one is from it."""
    if ranking.reference is None:
        return f"<p>{escape(ranking.refusal)}</p>" if ranking.refusal else ""
    best = good[ranking.reference]
    lines = [f"{interval_words(best)}."]
    behind = {place: rank for place, rank in enumerate(ranking.ranks) if rank is not None and rank > 1}
    if behind:
        second = good[min(behind, key=lambda place: behind[place])]
        lines.append(f"The next: {second.name}, {verdict(best, second)}.")
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
    return f"<p><b>{escape(answer_words(result))}</b></p>{inner}{tail}"


def _rows(results: Sequence[Result | FailedRun], good: Sequence[Result], ranking: Ranking) -> str:
    metric = "" if ranking.answer.is_time or ranking.refusal else ranking.answer.metric
    best = good[ranking.reference] if ranking.reference is not None else None
    places, rows = iter(range(len(good))), []
    for result in results:
        if isinstance(result, FailedRun):
            rows.append((result.name, "failed", *[""] * 4, result.error))
            continue
        place, limit = next(places), busiest(result)
        told = verdict(best, result) if best is not None and result.has(metric or "time") else None
        behind = told is not None and told.category and ranking.ranks[place] != 1
        why = f"+{format_quantity(told.loss, 's')} of {told.category}" if told is not None and behind else ""
        ends = result.intervals.get(ranking.answer.metric)
        unit = ranking.unit
        rows.append(
            (
                result.name,
                format_quantity(result.number(metric or "time").value, unit) if result.has(metric or "time") else "-",
                " to ".join(format_quantity(end, unit) for end in ends) if ends else "",
                against(ranking, place),
                format_quantity(result.time, "s") if metric else "",
                f"{regime(result).name if result.spans else '-'}"
                + (f"; {limit.name} {limit.utilisation * 100:.0f} %" if limit else ""),
                why,
            )
        )
    head = ("name", metric or "time", "90 % interval", "vs. best", "simulated time", "what limits", "what takes longer")
    return table(head, rows, caption="All runs", numbers=(1, 3, 4), optional=(2, 4, 6))
