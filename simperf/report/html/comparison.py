"""The report of several runs side by side, each with its own details below."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from simperf.analysis.breakdown import breakdown
from simperf.analysis.limits import busiest
from simperf.analysis.ranking import Ranking, rank_results
from simperf.analysis.regime import regime
from simperf.analysis.verdict import verdict
from simperf.hardware import Machine
from simperf.report.data import FailedRun
from simperf.report.html.limiting import limits
from simperf.report.html.machine import machine_part
from simperf.report.html.page import PageSection, definitions, page, paragraphs, reproduction, shares, table
from simperf.report.html.picture import on_page
from simperf.report.html.result import inputs, result_sections, sources
from simperf.report.html.scaling import scaling_part
from simperf.report.html.templating import component
from simperf.report.html.timeline import MOST
from simperf.report.language import say
from simperf.report.phrases import against, answer_words, interval_words
from simperf.report.plots import draw_comparison
from simperf.results import Result
from simperf.study.scaling import of_results
from simperf.units import format_quantity

__all__ = ["comparison_report"]

#: runs that are shown whole, and letters that they may take together; of the others the breakdown, limits and inputs
_WHOLE = 4
_ROOM = 1_400_000
_LARGE = "The timeline and the pictures of this run are left out to keep the page small."
_MANY = f"Timelines and pictures are shown for the best run and the first others, {_WHOLE} at most."
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
        lambda: draw_comparison(results),
        name="comparison",
        text=say("All results: {}").format(", ".join(f"{result.name}: {answer_words(result)}" for result in good)),
    )
    ranking = rank_results(good)
    sections = [PageSection("Side by side", chart + _rows(results, good, ranking))]
    part = scaling_part(of_results(good))
    sections += [PageSection("Scaling", part)] if part else []
    played = {index: result for index, result in enumerate(results) if isinstance(result, Result)}
    best = next((index for index, result in played.items() if _is_best(result, good, ranking)), None)
    bodies, room = {}, _ROOM
    chosen = sorted(played, key=lambda index: index != best)[:_WHOLE]  # the best one first: it has room
    for index in chosen:
        body = _whole(played[index], machines[index] if index < len(machines) else None, index)
        if len(body) <= room:
            bodies[index] = body
            room -= len(body)
    for index, result in played.items():
        body = bodies.get(index) or _short(result, _LARGE if index in chosen else _MANY, _alone(command, result))
        sections.append(PageSection(result.name, body, name=f"run-{index}"))
    for heading, lines in (
        ("What was modelled", [line for result in good for line in result.modelled]),
        ("What was not modelled", [line for result in good for line in result.not_modelled]),
    ):
        sections += [PageSection(heading, paragraphs(dict.fromkeys(lines)))] if lines else []
    seen = {machine.name: machine for machine in machines if machine is not None}
    origin = [part for part in (sources(good), *map(machine_part, seen.values())) if part]
    sections += [PageSection("Sources", component("sequence", origin))] if origin else []
    if command:
        sections += reproduction(command, f"Seed {good[0].seed}. The same scenarios and seed give the same bytes.")
    question = question or next((result.question for result in good if result.question), "")
    answer = "No winner" if ranking.refusal else ranking.headline
    winner = "" if best is None else f"run-{best}"
    lead = _lead(good, ranking)
    return page(title or "Comparison", sections, question=question, answer=answer, lead=lead, winner=winner)


def _is_best(result: Result, good: Sequence[Result], ranking: Ranking) -> bool:
    return len(ranking.best) == 1 and result is good[ranking.best[0]]


def _lead(good: Sequence[Result], ranking: Ranking) -> list[str]:
    """How sure the answer is, and how far the next one is from it."""
    if ranking.reference is None:
        return [ranking.refusal]
    best = good[ranking.reference]
    lines = [f"{interval_words(best)}."]
    behind = {place: rank for place, rank in enumerate(ranking.ranks) if rank is not None and rank > 1}
    if behind:
        second = good[min(behind, key=lambda place: behind[place])]
        lines.append(f"The next: {second.name}, {verdict(best, second)}.")
    return lines


def _whole(result: Result, machine: Machine | None, index: int) -> str:
    """Everything on one of the runs."""
    parts = result_sections(result, machine=machine, prefix=f"r{index}-", most=MOST // _WHOLE)
    inner = [component("subsection", part.title, part.anchor, part.body) for part in parts if part.title not in _SHARED]
    return _framed(result, inner)


def _short(result: Result, why: str, command: str) -> str:
    """What matters most of one of the runs, why that is all, and what shows the rest."""
    parts = [shares(breakdown(result), result.time), definitions(limits(result)), component("paragraph", why, "faint")]
    return _framed(result, [*parts, component("code", command)] if command else parts)


def _alone(command: str, result: Result) -> str:
    """The command that makes a page of one variant; empty if the comparison is not of one file as it is."""
    words = shlex.split(command)
    for option in ("--report", "--plot"):
        if option in words:
            place = words.index(option)
            del words[place : place + 2]
    if words[:2] != ["simperf", "compare"] or len(words) != 3:
        return ""
    return shlex.join(["simperf", "run", words[2], "--variant", result.name, "--report", "run.html"])


def _framed(result: Result, inner: Sequence[str]) -> str:
    tail = component("folded", "Inputs", inputs(result.scenario))
    return component("sequence", [component("strong", answer_words(result)), *inner, tail])


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
        behind = told is not None and told.changes and ranking.ranks[place] != 1
        why = f"+{format_quantity(told.slower, 's')}: {told.parts}" if told is not None and behind else ""
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
