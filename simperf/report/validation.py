"""The validation table for the terminal, CSV, JSON, and the page docs/accuracy.md."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from simperf.accuracy.fitted_constants import fitted_constants
from simperf.accuracy.goals import AccuracyGoal, GradedGoal
from simperf.accuracy.kernel_figures import KernelFigures
from simperf.accuracy.overview import summarize_choices, summarize_families, summarize_questions
from simperf.accuracy.summary import summarize_figures, summarize_sizes
from simperf.accuracy.validation import ValidationRow
from simperf.json_format import json_text
from simperf.report.accuracy_overview import (
    choices_markdown,
    constants_markdown,
    expectations_markdown,
    families_markdown,
    overview_markdown,
    scaling_counts,
)
from simperf.report.fitted_table import FittedTable
from simperf.report.terminal import to_text
from simperf.units import format_quantity

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = [
    "accuracy_page",
    "by_size",
    "goals_markdown",
    "left_out_markdown",
    "left_out_text",
    "validation_csv",
    "validation_json",
    "validation_text",
]

_FIELDS = (
    "case",
    "title",
    "variant",
    "quantity",
    "question",
    "nbytes",
    "unit",
    "low",
    "high",
    "predicted",
    "error",
    "kind",
    "linear",
    "ring",
    "simple",
    "rests_on",
    "fitted",
    "source",
    "failure",
)


def _measured(row: ValidationRow) -> str:
    low, high = format_quantity(row.low, row.unit), format_quantity(row.high, row.unit)
    return low if row.low == row.high else f"{low} .. {high}"


def _error(row: ValidationRow) -> str:
    return row.failure or f"{100 * row.error:+.1f} %"


def _summary(rows: Sequence[ValidationRow]) -> str:
    found = summarize_figures(rows)
    if not found.predicted:
        return f"{_figures(len(rows))}, none predicted"
    text = f"{_figures(found.predicted)}: median error {100 * found.median:.1f} %"
    text += f", 90th percentile {100 * found.p90:.1f} %, worst {100 * found.worst:.1f} %"
    return text + (f"; {found.failed} not predicted" if found.failed else "")


def _figures(count: int) -> str:
    return f"{count} figure{'' if count == 1 else 's'}"


def _quantity(row: ValidationRow) -> str:
    return row.quantity.removeprefix("metrics.")


def validation_text(rows: Sequence[ValidationRow]) -> str:
    """For the terminal: one line a figure, scenario by scenario, and a summary."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = []
    for title in dict.fromkeys(row.title for row in rows):
        own = [row for row in rows if row.title == title]
        parts += [Text(title, style="bold"), *([Text(f"  fitted: {own[0].fitted}")] if own[0].fitted else [])]
        cells = []
        for row in own:
            name = ", ".join(part for part in (row.variant, _quantity(row)) if part)
            predicted = "-" if math.isnan(row.predicted) else format_quantity(row.predicted, row.unit)
            cells.append([name, _measured(row), predicted, _error(row)])
        parts += [Padding(FittedTable(("figure", "measured", "predicted", "error"), cells), (0, 0, 0, 2)), Text("")]
    return to_text(Group(*parts, Text(_summary(rows))))


def _table(rows: Sequence[ValidationRow]) -> list[dict[str, object]]:
    return [{field: getattr(row, field) for field in _FIELDS} for row in rows]


def validation_csv(rows: Sequence[ValidationRow]) -> str:
    """One line a figure, quantities in SI units."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, _FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(_table(rows))
    return stream.getvalue()


def validation_json(rows: Sequence[ValidationRow]) -> str:
    """A list of objects, quantities in SI units; what could not be predicted is null."""
    table = [
        {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}
        for row in _table(rows)
    ]
    return json_text(table, indent=1)


def by_size(rows: Sequence[ValidationRow]) -> str:
    """Tables over message sizes in short: their bandwidth end (64 MiB and above) and latency end (8 KiB and below)."""
    lines = ["| table | points | 64 MiB and above | 8 KiB and below | least | largest |", "|---|--:|--:|--:|--:|--:|"]
    found = summarize_sizes(rows)
    for one in found:
        large = "" if one.large is None else f"{100 * one.large:+.0f} %"
        small = "" if one.small is None else f"x {one.small:.2f}"
        name, ends = one.title.partition(": ")[2], f"{100 * one.least:+.0f} % | {100 * one.largest:+.0f} %"
        lines.append(f"| {name} | {one.points} | {large} | {small} | {ends} |")
    larges = [abs(one.large) for one in found if one.large is not None]
    smalls = [max(one.small, 1 / one.small) for one in found if one.small is not None]
    if larges:
        lines += ["", f"At 64 MiB and above: median of {len(larges)} tables' errors {100 * median(larges):.1f} %."]
    if smalls:
        lines += [f"At 8 KiB and below: median of {len(smalls)} tables' factors {median(smalls):.2f}."]
    return "\n".join(lines)


_HEAD = """# How right the predictions are

This page says what error to expect, by question. Every figure was measured by others and published; none is left out
because it does not fit. The error is predicted over measured, less one. Figures that restate what was fitted, or that
lie within 3 % of linear scaling, are not counted. [Every row](accuracy-rows.md) is in a data file.
"""

_MADE = """## How this page is made

Regenerate this page and the rows with

    simperf accuracy --truth FOLDER --format markdown -o docs/accuracy.md --plot docs/images/accuracy.svg
    simperf accuracy --truth FOLDER --format rows -o docs/accuracy-rows.md
    simperf accuracy --truth FOLDER --format data -o docs/_static/accuracy-rows.csv

where FOLDER holds the measured data, which is not part of the project: any of `cases.json`, `nccl`, `llm` and
`llm/kernels`. Cases that you add are graded, or listed with the reason why not. Without FOLDER the page has the figures
that scenarios quote, and the stored errors of large models. Simulating all of them takes hours, so they are stored with
version and day (`simperf/accuracy/data/large_rows.csv`, written by `python -m tests.truth.large_store`), and a test
simulates some of them again. `--format csv` and `--format json` have every row with its class and baselines.
"""

_PAGES = """```{toctree}
:hidden:

accuracy-rows
```
"""

_FAMILIES = """Errors of the time of an iteration. A family is a file of the folder of measured data.
The baseline is one rate: the median FLOP/s on the same GPU in the same precision over the other cases of
the family. Causes of the errors, by family: [How accurate large models are](validation/accuracy-large-models.md).
"""


_GOALS = """Goals were set before the predictions were improved. Figures of scaling are all those that need a
prediction; in the other lines what is named was left out. The page of each line says how it was measured, and
what was tried.
"""


def accuracy_page(
    sections: Mapping[str, Sequence[ValidationRow]],
    kernels: Sequence[KernelFigures] = (),
    goals: Sequence[GradedGoal] = (),
) -> str:
    """The page docs/accuracy.md: what to expect by question, what was fitted, and each section in one line.

    Parameters
    ----------
    sections : mapping of str to sequence of ValidationRow
    kernels : sequence of KernelFigures
        Kernels by shape.
    goals : sequence of GradedGoal
        Reported in a table of their own, if there are any.
    """
    every = [row for rows in sections.values() for row in rows]
    summaries = summarize_questions(every, kernels)
    parts = [_HEAD, _PAGES, "## What to expect", "", expectations_markdown(summaries), ""]
    parts += ["![Predicted against measured times](images/accuracy.svg)", ""]
    if goals:
        parts += ["## Goals", "", _GOALS, goals_markdown(goals), ""]
    parts += ["## Parts and baselines", "", overview_markdown(summaries), ""]
    if counts := scaling_counts(every):
        parts += [counts, ""]
    if families := summarize_families(every):
        parts += ["## Large models by family", "", _FAMILIES, families_markdown(families), ""]
    parts += ["## What was read off published figures", "", constants_markdown(fitted_constants()), ""]
    if choices := summarize_choices(every):
        parts += [
            "Median errors of the figures that depend on a choice, and of the other figures of their question:",
            "",
        ]
        parts += [choices_markdown(choices), ""]
    parts += ["## Sections", "", "All figures, fitted ones included.", "", "| section | figures |", "|---|---|"]
    parts += [f"| {title} | {_summary(rows)} |" for title, rows in sections.items()]
    return "\n".join([*parts, "", _MADE])


def left_out_text(reasons: Mapping[tuple[str, str], int]) -> str:
    """For the terminal: cases of a folder of measured data that are not graded, and why."""
    if not reasons:
        return "every case is graded"
    rows = [[f"{count:>6}", f"{kind}: {reason}"] for (kind, reason), count in reasons.items()]
    return "cases that are not graded\n" + to_text(FittedTable((), rows))


def left_out_markdown(reasons: Mapping[tuple[str, str], int]) -> str:
    """The same as a section of the page of rows."""
    lines = [f"| {kind} | {reason} | {count} |" for (kind, reason), count in reasons.items()]
    return "\n".join(
        ["## Cases that are not graded", "", "| kind or family | reason | cases |", "|---|---|--:|", *lines]
    )


def goals_markdown(goals: Sequence[GradedGoal]) -> str:
    """A line a goal: its bound, its figure, by how much the figure is outside and why, and the page that says more."""
    lines = ["| figure | goal | reached | outside by | reason |", "|---|--:|--:|--:|---|"]
    for one in goals:
        missed = _told(one.goal, one.missed_by, points=True) if one.missed_by else "met"
        why = one.goal.reason if one.missed_by else ""
        reached = _told(one.goal, one.reached, sign=-math.inf < one.goal.least < 0)
        if math.isnan(one.reached):
            reached, missed = "none", "no figure"
        lines.append(f"| [{one.goal.what}]({one.goal.page}) | {_bound(one.goal)} | {reached} | {missed} | {why} |")
    return "\n".join(lines)


def _bound(goal: AccuracyGoal) -> str:
    least, most = _told(goal, goal.least), _told(goal, goal.most)
    if math.isinf(goal.least):
        return f"at most {most}"
    return f"at least {least}" if math.isinf(goal.most) else f"{least.removesuffix(' %')} to {most}"


def _told(goal: AccuracyGoal, value: float, *, points: bool = False, sign: bool = False) -> str:
    if goal.count:
        return f"{value:.0f}"
    return f"{100 * value:{'+' if sign else ''}.3g} {'points' if points else '%'}"
