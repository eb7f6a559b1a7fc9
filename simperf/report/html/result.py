"""The report of one run: the answer first, then where the time went, then everything that it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from simperf.analysis.breakdown import breakdown
from simperf.analysis.limits import busiest, headroom, utilisation
from simperf.analysis.overlap import overlap
from simperf.analysis.regime import regime
from simperf.engine.recorder import Category
from simperf.hardware import Machine
from simperf.report.counters import series
from simperf.report.html.page import Section, definitions, page, paragraphs, table
from simperf.report.html.picture import inline
from simperf.report.html.timeline import timeline
from simperf.report.plots import draw
from simperf.report.style import COLORS, HATCHES
from simperf.results import Result
from simperf.units import format_quantity

__all__ = ["inputs", "limits", "result_report", "result_sections", "shares"]

_OPERATIONS = 25
_RESOURCES = 15


def result_report(result: Result, *, machine: Machine | None = None, command: str = "") -> str:
    """A page on one result.

    Parameters
    ----------
    result : Result
    machine : Machine, optional
        What it ran on, for the picture of the links' load.
    command : str
        What makes the result again, to be shown.
    """
    text = format_quantity(result.time, "s")
    sections = result_sections(result, machine=machine)
    sections.append(Section("How to reproduce it", reproduce(result, command)))
    return page(result.name, sections, question=result.question, answer=text, lead=_lead(result))


def _lead(result: Result) -> str:
    lines = []
    interval = getattr(result, "intervals", {}).get("time")
    if interval:
        low, high = (format_quantity(end, "s") for end in interval)
        lines.append(f"90 % interval: {low} to {high}.")
    else:
        lines.append("No interval: no fitted profile was used, so the model's own error is not known from this run.")
    lines += [f"{name}: {text}." for name, text in limits(result)]
    return f'<p class="faint">{"<br>".join(escape(line) for line in lines)}</p>'


def result_sections(result: Result, *, machine: Machine | None = None, prefix: str = "") -> list[Section]:
    """All sections of one result but how it is made again; `prefix` tells several on one page apart."""
    found = [
        ("Where the time went", shares(breakdown(result), result.time)),
        ("Timeline", timeline(result, name=f"{prefix}timeline-box") + _paper(result, prefix)),
        ("What limits it", definitions(limits(result)) + _resources(result)),
        ("Topology", _topology(result, machine, prefix)),
        ("Roofline", _roofline(result, prefix)),
        ("Memory over time", _counter(result, "memory", "memory held", prefix)),
        ("Launch queue", _counter(result, "queue", "queue length", prefix)),
        ("Staleness", _staleness(result)),
        ("Metrics", _metrics(result)),
        ("Notes", paragraphs(result.notes) if result.notes else ""),
        ("What was modelled", paragraphs(result.modelled) if result.modelled else ""),
        ("What was not modelled", paragraphs(result.not_modelled) if result.not_modelled else ""),
        ("Inputs", inputs(result.scenario) + _sources(result)),
    ]
    return [Section(title, body, name=prefix + title.lower().replace(" ", "-")) for title, body in found if body]


def shares(parts: Mapping[str, float], whole: float) -> str:
    """A bar of the parts [s] of a time [s], and the same in numbers."""
    there = {name: time for name, time in parts.items() if time > 0}
    if not there or whole <= 0:
        return '<p class="faint">Nothing was recorded on a timeline.</p>'
    bars = "".join(
        f'<span class="{"hatched" if name in HATCHES else ""}" title="{escape(name)}" '
        f'style="width:{time / whole * 100:.4f}%;background:{COLORS.get(name, "#777777")}"></span>'
        for name, time in there.items()
    )
    words = ", ".join(f"{name} {time / whole:.1%}" for name, time in there.items()).replace("%", " %")
    rows = [
        f'<tr><td><span class="key{" hatched" if name in HATCHES else ""}" '
        f'style="background:{COLORS.get(name, "#777777")}"></span>{escape(name)}</td>'
        f'<td class="n">{format_quantity(time, "s")}</td><td class="n">{time / whole * 100:.1f} %</td></tr>'
        for name, time in there.items()
    ]
    return (
        f'<div class="shares" role="img" aria-label="{escape(words)}">{bars}</div>'
        "<table><caption>Every instant counts once, for the first of these that is active.</caption><thead><tr>"
        '<th scope="col">category</th><th scope="col" class="n">time</th><th scope="col" class="n">share</th></tr>'
        f"</thead><tbody>{''.join(rows)}</tbody></table>"
    )


def limits(result: Result) -> list[tuple[str, str]]:
    """Regime, busiest resource, floor and overlap, each in words."""
    rows = []
    bound, limit, room = regime(result), busiest(result), headroom(result)
    if result.spans:
        rows.append(("Regime", f"{bound.name}, for {bound.share:.1%} of the time".replace("%", " %")))
    if limit is not None:
        rows.append(("Busiest", f"{limit.name} ({limit.kind}), {limit.utilisation:.1%} used".replace("%", " %")))
    if room is not None:
        floor = format_quantity(room.floor, "s")
        rows.append(("Floor", f"{floor} set by {room.name}; the run takes {room.ratio:.4g} times that"))
    moving: tuple[Category, ...] = ("communication", "copy")
    for category in moving:
        found = overlap(result, category)
        if found.total > 0:
            text = f"{found.share:.1%} of {format_quantity(found.total, 's')} hidden under kernels".replace("%", " %")
            rows.append((category.capitalize(), text))
    return rows


def _paper(result: Result, prefix: str) -> str:
    """What stands in the timeline's place on paper."""
    if not result.spans:
        return ""
    return f'<div class="paper">{inline(draw(result, "gantt"), name=f"{prefix}gantt", text="The whole run.")}</div>'


def _resources(result: Result) -> str:
    used = utilisation(result)
    rows = [(name, result.resources[name].kind, f"{share * 100:.3g} %") for name, share in used.items() if share > 0]
    caption = "Resources by use" + (f", the first {_RESOURCES} of {len(rows)}" if len(rows) > _RESOURCES else "")
    return table(("resource", "kind", "used"), rows[:_RESOURCES], caption=caption, numbers=(2,)) if rows else ""


def _topology(result: Result, machine: Machine | None, prefix: str) -> str:
    if machine is None or len(machine.nodes) < 2:
        return ""
    from simperf.report.topology import draw_topology

    used = utilisation(result)
    load = {name: share for name, share in used.items() if result.resources[name].kind == "link"}
    text = f"{machine.name}: the links, and how much of each the run used."
    return inline(draw_topology(machine, load=load or None), name=f"{prefix}topology", text=text)


def _roofline(result: Result, prefix: str) -> str:
    if not result.ceilings or not result.operations:
        return ""
    rows = sorted(result.operations, key=lambda row: -row.calls * row.time)
    cells = [
        (
            row.name,
            row.device,
            row.calls,
            format_quantity(row.time, "s"),
            format_quantity(row.flops / row.time, "FLOP/s") if row.time > 0 else "-",
            row.regime,
        )
        for row in rows[:_OPERATIONS]
    ]
    caption = f"Operations by time{f', the first {_OPERATIONS} of {len(rows)}' if len(rows) > _OPERATIONS else ''}"
    head = ("operation", "device", "calls", "time each", "rate", "bound by")
    text = "Arithmetic rate over intensity: the ceilings of the device, and where the run's operations lie below them."
    picture = inline(draw(result, "roofline"), name=f"{prefix}roofline", text=text)
    return picture + table(head, cells, caption=caption, numbers=(2, 3, 4))


def _counter(result: Result, kind: str, counter: str, prefix: str) -> str:
    lines = series(result, counter)
    if not any(values.max() > 0 for _, values in lines.values()):
        return ""
    text = f"{counter} over time, a line for each of {', '.join(lines) if len(lines) <= 8 else f'{len(lines)} devices'}"
    return inline(draw(result, kind), name=f"{prefix}{kind}", text=text)


def _staleness(result: Result) -> str:
    rows = [(name, str(metric)) for name, metric in result.metrics.items() if "stale" in name.lower()]
    return definitions(rows) if rows else ""


def _metrics(result: Result) -> str:
    if not result.metrics:
        return ""
    intervals = getattr(result, "intervals", {})
    rows = []
    for name, metric in result.metrics.items():
        low_high = intervals.get(name)
        ends = " to ".join(format_quantity(end, metric.unit) for end in low_high) if low_high else ""
        rows.append((name, str(metric), ends, metric.origin))
    return table(("metric", "value", "90 % interval", "origin"), rows, caption="Everything else", numbers=(1,))


def inputs(scenario: Mapping[str, Any]) -> str:
    """A scenario's values after all overrides, key by key."""
    rows = list(_flat(scenario))
    return table(("key", "value"), rows, caption="The scenario, after all changes") if rows else ""


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)


def _sources(result: Result) -> str:
    if not result.sources:
        return ""
    return table(("input", "source"), result.sources.items(), caption="Where the numbers come from")


def reproduce(result: Result, command: str) -> str:
    """What gives the same bytes again."""
    text = f"<pre>{escape(command)}</pre>" if command else ""
    version = f"simperf {result.version}, " if result.version else ""
    return f"{text}<p>{escape(version)}seed {result.seed}. The same scenario and seed give the same bytes.</p>"
