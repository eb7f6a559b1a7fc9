"""Reports of many runs: a sweep, a plan, a collective over sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from simperf.collectives.bench import best_rows
from simperf.errors import InputError
from simperf.hardware import Machine
from simperf.report.collectives import size_text, wiring_picture
from simperf.report.html.page import Section, page, paragraphs, table
from simperf.report.html.picture import inline
from simperf.report.plans import draw_plan
from simperf.report.style import figure
from simperf.report.sweeps import KINDS, draw_table
from simperf.report.topology import draw_topology
from simperf.study.planning.candidates import hours
from simperf.units import format_quantity

if TYPE_CHECKING:
    from simperf.collectives.bench import Row
    from simperf.study.planning.planner import Plan
    from simperf.study.table import Table

__all__ = ["collective_report", "plan_report", "sweep_report"]

_ROWS = 500


def sweep_report(found: Table, *, question: str = "", command: str = "") -> str:
    """A page on a sweep: the best point, every picture that its keys allow, and the table."""
    best = found.best()
    header, rows = found.shown()
    pictures = []
    for kind in KINDS:
        if kind == "scaling" and not _counted(found):
            continue
        try:
            drawn = draw_table(found, kind)
        except InputError:
            continue  # the sweep does not hold what this kind shows
        pictures.append(inline(drawn, name=f"sweep-{kind}", text=f"{found.title}: {kind}"))
    caption = f"{len(rows)} points" + (f", the first {_ROWS} of them" if len(rows) > _ROWS else "")
    sections = [
        Section("Pictures", "".join(pictures)),
        Section("Points", table(header, rows[:_ROWS], caption=caption)),
    ]
    if found.failed:
        failed = [f"point {row['point']}: {str(row['error']).splitlines()[0]}" for row in found.failed]
        sections.append(Section("Failed", paragraphs(failed)))
    answer = ""
    if best is not None:
        where = ", ".join(f"{key} = {best['set'][key]}" for key in found.keys if key in best.get("set", {}))
        answer = f"Fastest: {format_quantity(best['time'], 's')}" + (f" at {where}" if where else "")
    return page(f"Sweep: {found.title}", [*sections, *_made(command)], question=question, answer=answer)


def _counted(found: Table) -> bool:
    """Whether what is varied first is a number of things, so that there is an ideal to scale to."""
    return all(isinstance(value, int) and value > 0 for value in found.column(found.keys[0]))


def plan_report(found: Plan, *, command: str = "") -> str:
    """A page on a plan: the winner, time against cost, the ranking with reasons, and what was ruled out."""
    request = found.request
    header, rows = found.rows()
    picture = inline(draw_plan(found), name="plan", text="Time and cost of every candidate, and the front none beats.")
    sections = [
        Section("Time and cost", picture),
        Section("Ranking", table(header, rows[:_ROWS], caption="Candidates that were simulated, best first")),
    ]
    if found.pruned:
        cells = [(one.choice.name, one.reason) for one in found.pruned]
        caption = "Ruled out by a bound before any run"
        sections.append(Section("Not simulated", table(("candidate", "why"), cells[:_ROWS], caption=caption)))
    prices = [(name, f"{request.prices.of(name):.3f} USD/h", text) for name, text in request.prices.sources.items()]
    sections.append(Section("Prices", table(("instance", "price", "source"), prices, caption="Prices", numbers=(1,))))
    asked = f"{request.samples:.4g} samples of {request.model.name}, {request.precision}"
    first = found.ranked[0] if found.ranked else None
    answer = f"{first.choice.name}: {hours(first.time)}, {first.cost:.2f} USD" if first else "No candidate"
    return page(request.title, [*sections, *_made(command)], question=asked, answer=answer)


def collective_report(
    tables: Mapping[str, Sequence[Row]],
    machine: Any,
    *,
    title: str,
    refusals: Sequence[str] = (),
    command: str = "",
) -> str:
    """A page on a collective: bandwidth by size, the fastest algorithm of each, and the load of the links.

    Parameters
    ----------
    tables : mapping of str to sequence of Row
        By algorithm, the sizes rising.
    machine : Machine or Wiring
    title : str
        What ran where.
    refusals : sequence of str
        Algorithms that were left out, and why.
    command : str
        What makes the page again.
    """
    rows = [row for each in tables.values() for row in each]
    best = best_rows(tables)
    text = "Bus bandwidth over message size, a line for each of " + ", ".join(tables)
    sections = [Section("By size", inline(_bandwidths(tables), name="busbw", text=text))]
    if len(tables) > 1:
        cells = [(size_text(row.nbytes), row.algorithm, format_quantity(row.time, "s")) for row in best]
        head = ("size", "algorithm", "time")
        sections.append(Section("Fastest", table(head, cells, caption="The fastest algorithm of each size")))
    if rows:
        sections.append(Section("Topology", _load(next(iter(tables.values())), machine)))
    columns = ("algorithm", "size", "time", "algbw", "busbw", "floor", "binding link", "load")
    full = [
        (
            row.algorithm,
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
    sections.append(Section("Table", table(columns, full, caption=title, numbers=(2, 3, 4, 5, 7))))
    if refusals:
        sections.append(Section("Left out", paragraphs(refusals)))
    answer = (
        f"{best[-1].algorithm}: {format_quantity(best[-1].time, 's')} for {size_text(best[-1].nbytes)}" if best else ""
    )
    return page(title, [*sections, *_made(command)], answer=answer)


def _bandwidths(tables: Mapping[str, Sequence[Row]]) -> Any:
    def draw(made: Any) -> None:
        axes = made.subplots()
        for number, (name, rows) in enumerate(tables.items()):
            sized = [row for row in rows if row.nbytes > 0]
            xs, ys = [row.nbytes for row in sized], [row.busbw / 1e9 for row in sized]
            axes.plot(xs, ys, label=name, marker="osv^Dxp*"[number % 8], markersize=4, ls=("-", "--")[number // 8 % 2])
        axes.set(xscale="log", yscale="log", xlabel="message size (B)", ylabel="bus bandwidth (GB/s)")
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))

    return figure(draw)


def _load(rows: Sequence[Row], machine: Any) -> str:
    last = rows[-1]
    what = f"load of the links under {last.algorithm}, {size_text(last.nbytes)}"
    drawn = (
        draw_topology(machine, load=last.loads)
        if isinstance(machine, Machine)
        else wiring_picture(machine, last, title=what)
    )
    return inline(drawn, name="load", text=what)


def _made(command: str) -> list[Section]:
    return [Section("How to reproduce it", f"<pre>{escape(command)}</pre>")] if command else []
