"""Output of `simperf limits`: critical path, ranking of resources, crossovers, influences; and their picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from simperf.json_format import json_text
from simperf.report.fitted_table import FittedTable
from simperf.report.language import named, say
from simperf.report.phrases import answer_note, answer_words
from simperf.report.rows import rows_text
from simperf.report.style import COLORS, figure, folded, heading, save
from simperf.report.terminal import bar, columns, titled, to_text, unicode_output
from simperf.study.crossover import Flip
from simperf.study.limits import Limits
from simperf.study.sensitivity import Sensitivity
from simperf.units import format_quantity

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

__all__ = ["draw_limits", "effective_rows", "format_limits", "limits_output", "plot_limits"]

_SHOWN = 12
_BAR = 20


def format_limits(
    found: Limits, *, flips: Sequence[Flip] | None = None, influences: Sensitivity | None = None, all_rows: bool = False
) -> str:
    """As text: the run, its critical path, its resources by what they would bring, and what else was asked for."""
    from rich.console import Group
    from rich.text import Text

    result = found.result
    name, answer = Text(result.name, "bold"), Text(answer_words(result), "bold green")
    fits = len(name) + 2 + len(answer) <= columns()
    parts: list[RenderableType] = [Text.assemble(name, "  ", answer)] if fits else [name, answer]
    if answer_note(result):
        parts.append(Text(answer_note(result)))

    rows_of_path: list[list[str | Text]] = []
    path = found.path.parts
    for part in path[:_SHOWN]:
        drawn, percent = bar(part.share, _BAR, unicode=unicode_output()), f"{100 * part.share:.1f} %"
        rows_of_path.append([part.category, part.owner, drawn, format_quantity(part.time, "s"), percent])
    if len(path) > _SHOWN:
        rest = sum(part.time for part in path[_SHOWN:])
        share = 100 * rest / result.time if result.time else 0.0
        rows_of_path.append(["others", f"{len(path) - _SHOWN} more", "", format_quantity(rest, "s"), f"{share:.1f} %"])
    nothing = Text("nothing was recorded on a timeline")
    parts += titled("Critical path", FittedTable((), rows_of_path, whole=(2,)) if path else nothing)
    header, shown, hidden = effective_rows(found, all_rows=all_rows)
    parts += titled("If one resource were faster", FittedTable(header, shown, left=("change",)))
    if hidden:
        parts.append(Text(f"  {hidden} more would change nothing", style="dim"))
    if flips is not None:
        lines = "\n".join(map(str, flips)) or "what limits is the same over the whole range"
        parts += titled("Where the limit changes", Text(lines))
    if influences is not None:
        title = f"Influence on {influences.metric} ({influences.method}, {influences.runs} runs)"
        parts += titled(title, FittedTable(*influences.rows()))
    return to_text(Group(*parts))


def effective_rows(found: Limits, *, all_rows: bool = False) -> tuple[list[str], list[list[str]], int]:
    """Header and rows of the resources that would change something, or of all, and how many rows are left out."""
    header, rows = found.rows()
    shown = [row for row in rows if all_rows or row[4] != "0 %"]
    return header, shown, len(rows) - len(shown)


def limits_output(
    found: Limits,
    form: Literal["table", "json", "csv"],
    *,
    flips: Sequence[Flip] | None = None,
    influences: Sensitivity | None = None,
    all_rows: bool = False,
) -> str:
    """Limits as a table, JSON, or CSV of what each resource would bring; `all_rows` lists those without effect too."""
    if form == "json":
        document = found.to_dict()
        document["flips"] = None if flips is None else [asdict(turn) for turn in flips]
        document["influences"] = None if influences is None else asdict(influences)
        return json_text(document)
    if form == "csv":
        units = {"time": "s", "value": found.result.headline[1].unit}
        return rows_text(found.to_dict()["speed_ups"], "csv", units=units)
    return format_limits(found, flips=flips, influences=influences, all_rows=all_rows)


def plot_limits(found: Limits, path: str | os.PathLike[str]) -> None:
    """Write the tornado: see `draw_limits`."""
    save(draw_limits(found), path)


def draw_limits(found: Limits) -> Any:
    """Make a figure of the critical path as one bar, and below it the change that each faster resource would bring."""
    rows = [one for one in found.speed_ups if not one.error and abs(one.change) >= 5e-6][:20]

    def fill(made: Any) -> None:
        heading(made, f"{found.result.name}: {answer_words(found.result)}")
        top, axes = made.subplots(2, 1, height_ratios=[1, max(2.0, 0.5 * len(rows))])
        left = 0.0
        for name, time in found.path.by_category().items():
            share = 100 * time / found.result.time
            top.barh(
                [0],
                [share],
                left=left,
                color=COLORS.get(name, "#E5E5E5"),
                edgecolor="white",
                label=f"{named(name)} {share:.0f} %",
            )
            left += share
        top.set_yticks([])
        top.set_xlim(0, 100)
        top.set_xlabel(say("critical path [%]"))
        top.legend(fontsize=7, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
        names = [f"{one.resource.name}" for one in rows]
        changes = [100 * one.change for one in rows]
        axes.barh(names, changes, color="#555555")  # no category's colour: these are resources
        for place, one in enumerate(rows):
            if one.low is not None and one.high is not None:
                axes.plot([100 * one.low, 100 * one.high], [place, place], color="black", lw=1)
        axes.invert_yaxis()
        bound = 100 * found.together.change
        axes.axvline(bound, ls="--", lw=0.9, color="#888888")
        axes.axvline(0, lw=0.8, color="black")
        faster = f"{100 * (found.together.factor - 1):.3g} %"
        told = say("change of the {} with {} more speed [%]; dashed: all at once")
        told = told.format(say(found.answer.metric), faster)
        axes.set_xlabel(folded(told, made, 13))

    return figure(fill, height=2.2 + 0.28 * max(3, len(rows)))
