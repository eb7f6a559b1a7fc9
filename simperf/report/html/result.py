"""The report of one run: the answer first, then where the time went, then everything that it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from simperf.analysis.breakdown import breakdown
from simperf.analysis.limits import utilisation
from simperf.analysis.scaling import ScalingCurve
from simperf.errors import Problem
from simperf.files import TomlFile
from simperf.hardware import Machine
from simperf.report.counters import series
from simperf.report.html.limiting import limiting_part, limits
from simperf.report.html.machine import machine_part
from simperf.report.html.page import PageSection, definitions, page, paragraphs, reproduction, shares, table
from simperf.report.html.picture import on_page, printed
from simperf.report.html.scaling import scaling_part
from simperf.report.html.stages import stage_sections
from simperf.report.html.templating import component
from simperf.report.html.timeline import MOST, timeline
from simperf.report.language import current, say, spoken
from simperf.report.phrases import answer_words, interval_words
from simperf.report.pipelines import stage_devices
from simperf.report.plots import draw
from simperf.report.stages import stages_of
from simperf.report.staleness import ages, draw_staleness
from simperf.results import OperationUse, Result
from simperf.scenario.tables import TableReader
from simperf.units import format_quantity

__all__ = ["detailed", "inputs", "machine_of", "result_report", "result_sections", "sources"]

_OPERATIONS = 25
#: key of a scenario's row in the list of features, which is of no use to a reader of its result
_FEATURES = ("scenario.", "rows")
#: queues that one picture can tell apart
_QUEUES = 3


def result_report(
    result: Result,
    *,
    machine: Machine | None = None,
    command: str = "",
    scaling: Sequence[ScalingCurve] = (),
    remarks: Sequence[str] = (),
) -> str:
    """A page on one result.

    Parameters
    ----------
    result : Result
    machine : Machine, optional
        What it ran on, for the picture of the links' load.
    command : str
        What makes the result again, to be shown.
    scaling : sequence of ScalingCurve
        How the same work goes on fewer devices (`simperf.study.scaling.fewer`).
    remarks : sequence of str
        What was run for that.
    """
    text = answer_words(result)
    sections = result_sections(result, machine=machine, scaling=scaling_part(scaling, remarks=remarks))
    version = f"simperf {result.version}, " if result.version else ""
    remark = f"{version}seed {result.seed}. The same scenario and seed give the same bytes."
    sections += reproduction(command, remark)
    return page(result.name, sections, question=result.question, answer=text, lead=_lead(result))


def machine_of(result: Result) -> Machine | None:
    """The machine that a result's scenario names or wires; None if it is made of parts that are not at hand."""
    table = result.scenario.get("machine")
    if not isinstance(table, Mapping):
        return None
    read, toml, problems = TableReader(Path()), TomlFile("", {}, ""), list[Problem]()
    own = dict(table)
    catalog = read.catalog(own, toml, problems)
    return None if problems else read.machine(own, catalog, toml, problems)


def _lead(result: Result) -> list[str]:
    lines = [f"{interval_words(result)}."]
    if result.answer is not None and not result.answer.is_time:
        lines.insert(0, f"Simulated time: {format_quantity(result.time, 's')}.")
    return lines + [f"{name}: {text}." for name, text in limits(result)]


def result_sections(
    result: Result, *, machine: Machine | None = None, prefix: str = "", scaling: str = "", most: int = MOST
) -> list[PageSection]:
    """All sections of one result but how it is made again.

    Parameters
    ----------
    result : Result
    machine : Machine, optional
    prefix : str
        Tells several on one page apart.
    scaling : str
        The body of the section on scaling.
    most : int
        Spans of the timeline above which short ones are put together.
    """
    found = [
        (
            f"Where the time went{', mean over ranks' if result.has_stages else ''}",
            shares(breakdown(result), result.time),
        ),
        *stage_sections(result, prefix),
        ("Timeline", _paper(result) + timeline(result, name=f"{prefix}timeline-box", most=most)),
        ("What limits it", limiting_part(result)),
        ("Scaling", scaling),
        ("Topology", _topology(result, machine, prefix)),
        ("Roofline", _roofline(result, prefix)),
        ("Memory over time", _memory(result, prefix)),
        ("Launch queue", _counter(result, "queue", "queue length", prefix)),
        ("Staleness", _staleness(result, prefix)),
        ("Metrics", _metrics(result)),
        ("Notes", paragraphs(result.notes) if result.notes else ""),
        ("What was modelled", paragraphs(result.modelled) if result.modelled else ""),
        ("What was not modelled", paragraphs(result.not_modelled) if result.not_modelled else ""),
        ("Inputs", inputs(result.scenario) + sources([result]) + machine_part(machine)),
    ]
    return [PageSection(title, body, name=prefix + title.lower().replace(" ", "-")) for title, body in found if body]


def detailed(title: str, result: Result, *, machine: Machine | None, prefix: str) -> PageSection:
    """One section of a page on several runs that holds everything on one of them."""
    parts = result_sections(result, machine=machine, prefix=prefix)
    inner = [component("subsection", part.title, part.anchor, part.body) for part in parts]
    return PageSection(title, component("sequence", inner))


def _paper(result: Result) -> str:
    """What stands in the timeline's place on paper."""
    if not result.spans:
        return ""
    text = say("The whole run, a row for each stream, thread and link.")
    with spoken(current().name):  # in English where no font has the letters, which are drawn
        return printed(draw(result, "gantt"), text=text)


def _topology(result: Result, machine: Machine | None, prefix: str) -> str:
    if machine is None or len(machine.nodes) < 2:
        return ""
    from simperf.report.topology import draw_topology

    used = utilisation(result)
    load = {name: share for name, share in used.items() if result.resources[name].kind == "link"}
    text = say("{}: the links, and how much of each the run used.").format(machine.name)
    return on_page(lambda: draw_topology(machine, load=load or None), name=f"{prefix}topology", text=text)


def _roofline(result: Result, prefix: str) -> str:
    if not result.ceilings or not result.operations:
        return ""
    rows = _alike(result.operations)
    cells = [
        (
            own[0].name,
            own[0].device if len(own) == 1 else f"{len(own)} devices",
            calls,
            format_quantity(time / calls, "s") if calls else "-",
            format_quantity(sum(row.calls * row.flops for row in own) / time, "FLOP/s") if time > 0 else "-",
            max(own, key=lambda row: row.calls * row.time).regime,
        )
        for own, calls, time in rows[:_OPERATIONS]
    ]
    caption = "Operations by time, as the program lists them (those of a training step once)"
    caption += f", the first {_OPERATIONS} of {len(rows)}" if len(rows) > _OPERATIONS else ""
    head = ("operation", "device", "calls", "time each", "rate", "bound by")
    text = say(
        "Arithmetic rate over intensity: the ceilings of the device, and where the run's operations lie below them."
    )
    picture = on_page(lambda: draw(result, "roofline"), name=f"{prefix}roofline", text=text)
    return picture + table(head, cells, caption=caption, numbers=(2, 3, 4))


def _alike(operations: Sequence[OperationUse]) -> list[tuple[list[OperationUse], int, float]]:
    """Operations of one name on all devices together, with their calls and time [s]; the longest first."""
    found: dict[str, list[OperationUse]] = {}
    for row in operations:
        found.setdefault(row.name, []).append(row)
    groups = [(own, sum(row.calls for row in own), sum(row.calls * row.time for row in own)) for own in found.values()]
    return sorted(groups, key=lambda group: -group[2])


def _memory(result: Result, prefix: str) -> str:
    stages = stage_devices(result)
    if not stages:
        return _counter(result, "memory", "memory held", prefix)
    text = say("Memory over time by kind: of the first stage, the stage that holds most, and the last stage.")
    return on_page(lambda: draw(result, "memory"), name=f"{prefix}memory", text=text)


def _counter(result: Result, kind: str, counter: str, prefix: str) -> str:
    lines = series(result, counter)
    if not any(values.max() > 0 for _, values in lines.values()):
        return ""
    if kind == "queue" and len(lines) > _QUEUES:
        return ""  # lines that cross each other all the time; the timeline has a lane for each
    devices = ", ".join(lines) if len(lines) <= 8 else say("{} devices").format(len(lines))
    text = say("{} over time, a line for each of {}").format(say(counter), devices)
    return on_page(lambda: draw(result, kind), name=f"{prefix}{kind}", text=text)


def _staleness(result: Result, prefix: str) -> str:
    rows = [(name, str(metric)) for name, metric in result.metrics.items() if "stale" in name.lower()]
    picture = ""
    if ages(result):
        text = say("How stale {} gradients were when they were applied: over time, and how often each.")
        text = text.format(f"{len(ages(result)):,}")
        picture = on_page(lambda: draw_staleness(result), name=f"{prefix}staleness-picture", text=text)
    return picture + (definitions(rows) if rows else "")


def _metrics(result: Result) -> str:
    if not result.metrics:
        return ""
    rows, stages = [], stages_of(result.metrics)
    for name, metric in result.metrics.items():
        if stages is not None and name in stages.names:
            continue  # has a table of its own
        low_high = result.intervals.get(name)
        ends = " to ".join(format_quantity(end, metric.unit) for end in low_high) if low_high else ""
        alone = replace(metric, low=None, high=None) if low_high else metric  # the ends have a column
        rows.append((name, str(alone), ends, metric.origin))
    return table(("metric", "value", "90 % interval", "origin"), rows, caption="Metrics", numbers=(1,), optional=(2,))


def inputs(scenario: Mapping[str, Any]) -> str:
    """A scenario's values after all overrides, key by key."""
    rows = list(_flat(scenario))
    return table(("key", "value"), rows, caption="The scenario, after all changes") if rows else ""


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        elif (prefix, key) != _FEATURES:
            yield f"{prefix}{key}", str(value)


def sources(results: Sequence[Result]) -> str:
    """Sources of the inputs' numbers, those of several results together."""
    found = {name: text for result in results for name, text in {**result.sources, **result.assumed}.items()}
    return table(("input", "source"), found.items(), caption="Where the numbers come from") if found else ""
