"""Reports of many runs: a sweep, a collective over sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from simperf.analysis.scaling import ScalingCurve
from simperf.collectives.bench import best_rows
from simperf.errors import InputError
from simperf.hardware import Machine
from simperf.report.collective_pictures import draw_bandwidths, topology_picture
from simperf.report.collectives import IDEALISED, size_text
from simperf.report.html.machine import machine_part
from simperf.report.html.page import PageSection, numeric, page, paragraphs, reproduction, table
from simperf.report.html.picture import on_page
from simperf.report.html.result import detailed
from simperf.report.html.scaling import scaling_part
from simperf.report.html.templating import component
from simperf.report.language import say
from simperf.report.sweeps import KINDS, draw_table
from simperf.report.topology import draw_topology
from simperf.results import Result
from simperf.study.scaling import of_table
from simperf.units import format_quantity, format_ratio

if TYPE_CHECKING:
    from simperf.collectives.bench import Row
    from simperf.study.table import Table

__all__ = ["collective_report", "sweep_report"]

#: load of the busiest link from which it and not the latency is named as the limit, as in the table of the terminal
_BOUND = 0.5
_MODELLED = (
    "idealised algorithms: bandwidth and latency of the wires only, no library; every send of the plan, after the "
    "sends that it waits for; a rank blocks as a loop of sends and receives does",
)
_TUNED = (
    "NCCL: its channels as flows; latencies, protocols and limits from the constants of its tuner; the fastest "
    "algorithm and protocol of each size; staging through host memory; reduction in switches",
)
_SHARED = (
    "links shared max-min fairly, re-shared at every change; protocol overhead and latency of each link",
    "the lower bound: what must leave and reach every rank, and how far it is",
)
_NOT_MODELLED = (
    "packets, incast, congestion control; the ramp from few to many channels",
    "the copies and kernels of the GPUs in idealised algorithms, unless a protocol or a rate of reduction is given",
    "computation on the same GPUs at the same time",
)

_ROWS = 500
_SHOWN = {
    "lines": "{} over the first key, a line for each value of the others.",
    "heatmap": "{} over both keys, a field for each point; the numbers are in the table of points.",
    "pareto": "time and cost of every point, and those that no other beats in both.",
}


def sweep_report(
    found: Table, *, question: str = "", command: str = "", best: Result | None = None, machine: Machine | None = None
) -> str:
    """A page on a sweep: the best point, every picture that its keys allow, the table, and the best point in detail.

    Parameters
    ----------
    found : Table
    question, command : str
    best : Result, optional
        The run of the best point, with its timeline.
    machine : Machine, optional
        On which that ran.
    """
    ranking, first = found.ranking, found.winner()
    header, rows = found.shown()
    pictures = []
    for kind in KINDS:
        if kind == "scaling":
            continue  # has a section of its own
        text = f"{found.title}: {say(_SHOWN[kind]).format(say(ranking.answer.metric))}"
        try:
            pictures.append(on_page(partial(draw_table, found, kind), name=f"sweep-{kind}", text=text))
        except InputError:
            continue  # the sweep does not hold what this kind shows
    caption = f"{len(rows)} points" + (f", the first {_ROWS} of them" if len(rows) > _ROWS else "")
    sections = [PageSection("Pictures", component("sequence", pictures))]
    part = scaling_part(of_table(found))
    sections += [PageSection("Scaling", part)] if part else []
    sections.append(PageSection("Points", table(header, rows[:_ROWS], caption=caption, numbers=numeric(rows))))
    if found.failed:
        failed = [f"point {row['point']}: {str(row['error']).splitlines()[0]}" for row in found.failed]
        sections.append(PageSection("Failed", paragraphs(failed)))
    if best is not None:
        sections.append(detailed("Best point", best, machine=machine, prefix="b-"))
    lead = [ranking.refusal]
    if first is not None:
        ends = first.get("intervals", {}).get(ranking.answer.metric)
        told = "No interval: no draws of a fitted profile were made (--samples)."
        if ends:
            low, high = (format_quantity(end, ranking.unit) for end in ends)
            told = f"90 % interval: {low} to {high}."
        lead = [told]
    title, answer = f"Sweep: {found.title}", "No winner" if ranking.refusal else ranking.headline
    return page(title, [*sections, *reproduction(command)], question=question, answer=answer, lead=lead)


def collective_report(
    tables: Mapping[str, Sequence[Row]],
    machine: Machine,
    *,
    title: str,
    question: str = "",
    scaling: Sequence[ScalingCurve] = (),
    settings: Sequence[str] = (),
    refusals: Sequence[str] = (),
    command: str = "",
) -> str:
    """A page on a collective: bandwidth by size, the fastest algorithm of each, and the load of the links.

    Parameters
    ----------
    tables : mapping of str to sequence of Row
        By algorithm, the sizes rising.
    machine : Machine
    title : str
        What ran where.
    question : str
        In words.
    scaling : sequence of ScalingCurve
        Of the largest size, over ranks.
    settings : sequence of str
        What else was given: protocol, late ranks, traffic beside it.
    refusals : sequence of str
        Algorithms that were left out, and why.
    command : str
        What makes the page again.
    """
    rows = [row for each in tables.values() for row in each]
    ideal = {name: each for name, each in tables.items() if each[0].idealised}
    tuned = {name: each for name, each in tables.items() if name not in ideal}
    best = best_rows(tuned or ideal)
    text = say("Bus bandwidth over message size, a line for each of {}").format(", ".join(tables))
    sections = [PageSection("By size", on_page(lambda: draw_bandwidths(tables), name="busbw", text=text))]
    for name, each in tuned.items():
        sections.append(PageSection(f"What {name} chooses", _choices(each)))
    if len(ideal) > 1:
        cells = [(size_text(row.nbytes), row.algorithm, format_quantity(row.time, "s")) for row in best_rows(ideal)]
        head = ("size", "algorithm", "time")
        caption = f"The fastest idealised algorithm of each size. {IDEALISED.capitalize()}."
        sections.append(PageSection("Fastest", table(head, cells, caption=caption)))
    part = scaling_part(scaling)
    sections += [PageSection("Scaling", part)] if part else []
    if rows:
        sections.append(PageSection("What limits it", _limits(best)))
        sections.append(PageSection("Topology", _load(next(iter(tables.values())), machine)))
    columns = ("algorithm", "what it is", "size", "time", "algbw", "busbw", "lower bound", "binding link", "load")
    full = [
        (
            row.algorithm,
            row.choice or "idealised",
            size_text(row.nbytes),
            format_quantity(row.time, "s"),
            format_quantity(row.algbw, "B/s"),
            format_quantity(row.busbw, "B/s"),
            format_quantity(row.floor, "s"),
            row.link or "latency",
            f"{row.load * 100:.1f} %",
        )
        for row in rows
    ]
    sections.append(PageSection("Table", table(columns, full, caption=title, numbers=(3, 4, 5, 6, 8))))
    if refusals:
        sections.append(PageSection("Left out", paragraphs(refusals)))
    modelled = (*(_MODELLED if ideal else ()), *(_TUNED if tuned else ()), *_SHARED)
    sections.append(PageSection("What was modelled", paragraphs(modelled)))
    sections.append(PageSection("What was not modelled", paragraphs(_NOT_MODELLED)))
    given = [line.removeprefix("# ") for line in settings]
    own = machine_part(machine) if machine.servers else ""
    sections.append(PageSection("Inputs", (paragraphs(given) if given else "") + own))
    answer = f"{best[-1].algorithm}: {format_quantity(best[-1].time, 's')} for {_size(best[-1].nbytes)}" if best else ""
    lead = [
        "No interval: the constants of the catalogue have none. `simperf accuracy` shows how far such tables are off."
    ]
    return page(title, [*sections, *reproduction(command)], question=question, answer=answer, lead=lead if best else [])


def _size(nbytes: float) -> str:
    """A size in a sentence, such as 64 MiB."""
    text = size_text(nbytes)
    return f"{text[:-1]} {text[-1]}iB" if text[-1].isalpha() else f"{text} B"


def _choices(rows: Sequence[Row]) -> str:
    """What NCCL takes at each size."""
    cells = [
        (
            size_text(row.nbytes),
            row.choice,
            row.channels,
            format_quantity(row.time, "s"),
            format_quantity(row.busbw, "B/s"),
        )
        for row in rows
    ]
    head = ("size", "algorithm/protocol", "channels", "time", "busbw")
    return table(head, cells, caption="As NCCL would, by size", numbers=(0, 2, 3, 4))


def _limits(best: Sequence[Row]) -> str:
    """What holds the fastest algorithm of each size back."""
    cells = [
        (
            size_text(row.nbytes),
            row.choice or row.algorithm,
            row.link if row.load >= _BOUND else "latency, or a limit of the protocol" if row.choice else "latency",
            f"{row.load * 100:.1f} %",
            format_ratio(row.time / row.floor) if row.floor > 0 else "-",
        )
        for row in best
    ]
    head = ("size", "algorithm", "limited by", "its busiest link", "time over the lower bound")
    caption = "NCCL's choice of each size" if best[0].choice else "The fastest algorithm of each size, idealised"
    return table(head, cells, caption=caption, numbers=(0, 3, 4))


def _load(rows: Sequence[Row], machine: Machine) -> str:
    last = rows[-1]
    what = say("load of the links under {}, {}").format(last.algorithm, size_text(last.nbytes))
    topology = machine.topology
    if topology is None:
        return on_page(lambda: draw_topology(machine, load=last.loads), name="load", text=what)
    return on_page(lambda: topology_picture(topology, last, title=what), name="load", text=what)
