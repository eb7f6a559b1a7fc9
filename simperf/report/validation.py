"""The validation table for the terminal, CSV, JSON, and the pages docs/accuracy.md and docs/accuracy-rows.md."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from statistics import median

from simperf.accuracy.fitted_constants import fitted_constants
from simperf.accuracy.overview import summarize_questions
from simperf.accuracy.summary import summarize_figures, summarize_sizes
from simperf.accuracy.validation import ValidationRow
from simperf.json_format import json_text
from simperf.report.accuracy_overview import constants_markdown, overview_markdown
from simperf.units import format_quantity

__all__ = [
    "accuracy_page",
    "by_size",
    "rows_page",
    "validation_csv",
    "validation_json",
    "validation_markdown",
    "validation_points",
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
    lines: list[str] = []
    title = None
    for row in rows:
        if row.title != title:
            title = row.title
            lines += ([""] if lines else []) + [title] + ([f"  fitted: {row.fitted}"] if row.fitted else [])
        name = ", ".join(part for part in (row.variant, _quantity(row)) if part)
        predicted = "-" if math.isnan(row.predicted) else format_quantity(row.predicted, row.unit)
        lines.append(f"  {name:<44} measured {_measured(row):>20}  predicted {predicted:>11}  {_error(row):>9}")
    return "\n".join([*lines, "", _summary(rows)])


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


def validation_points(rows: Sequence[ValidationRow]) -> str:
    """Large tables: every point with its signed error, a paragraph a table; the measured values stay where they are."""
    parts = []
    for title in dict.fromkeys(row.title for row in rows):
        own = [row for row in rows if row.title == title]
        parts += [f"### {title}", "", f"Source: {own[0].source}. Fitted: {own[0].fitted}.", _summary(own) + ".", ""]
        parts += ["; ".join(f"{row.variant} {_error(row)}" for row in own), ""]
    return "\n".join(parts)


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


def validation_markdown(rows: Sequence[ValidationRow]) -> str:
    """The body of the page: a section a scenario, with its source and what was fitted."""
    parts = [_summary(rows) + ".", ""]
    for title in dict.fromkeys(row.title for row in rows):
        own = [row for row in rows if row.title == title]
        parts += [f"### {title}", "", f"Source: {own[0].source} (`{own[0].case}`).", f"Fitted: {own[0].fitted}.", ""]
        parts += ["| what | measured | predicted | error |", "|---|---|---|---|"]
        for row in own:
            name = ", ".join(part for part in (row.variant, _quantity(row)) if part)
            predicted = "-" if math.isnan(row.predicted) else format_quantity(row.predicted, row.unit)
            parts.append(f"| {name} | {_measured(row)} | {predicted} | {_error(row)} |")
        parts.append("")
    return "\n".join(parts)


_HEAD = """# How right the predictions are

Every figure behind this page was measured by others and published; nothing was left out because it does not fit. The
error is predicted over measured, less one. What follows is what to expect, by question; [every row](accuracy-rows.md)
stands behind it. Large models have [a page of their own](explanation/accuracy-large-models.md), as
`python -m tests.truth.large_models` plays them. Regenerate this page and the rows with

    simperf accuracy --truth FOLDER --format markdown -o docs/accuracy.md
    simperf accuracy --truth FOLDER --format rows -o docs/accuracy-rows.md

where FOLDER holds the measured data (`cases.json`), which is not part of the project; without it only what the
scenarios quote is written. `--format csv` and `--format json` have every row with its class and baselines.
"""

_PAGES = """```{toctree}
:hidden:

accuracy-rows
```
"""

_ROWS_HEAD = """# Every row behind the accuracy page

Predictions beside [published measurements](accuracy.md), row by row. The error is predicted over measured, less one.
What was fitted to anything is said for each case.
"""


def accuracy_page(sections: Mapping[str, Sequence[ValidationRow]]) -> str:
    """The page docs/accuracy.md: what to expect by question, what was fitted, and each section in one line."""
    parts = [_HEAD, _PAGES, "## What to expect", ""]
    parts += [overview_markdown(summarize_questions(row for rows in sections.values() for row in rows)), ""]
    parts += ["## What was read off published figures", "", constants_markdown(fitted_constants()), ""]
    parts += ["## Sections", "", "All figures, fitted ones included.", "", "| section | figures |", "|---|---|"]
    parts += [f"| {title} | {_summary(rows)} |" for title, rows in sections.items()]
    for title, rows in sections.items():
        if rows and all(row.variant.endswith(" B") for row in rows):
            parts += ["", f"## {title}", "", by_size(rows)]
    return "\n".join(parts)


def rows_page(sections: Mapping[str, Sequence[ValidationRow]]) -> str:
    """The page docs/accuracy-rows.md: each section whole."""
    parts = [_ROWS_HEAD]
    for index, (title, rows) in enumerate(sections.items()):
        write = validation_points if index else validation_markdown  # quoted figures first, then whole tables
        parts += ["", f"## {title}", "", write(rows).rstrip()]
    return "\n".join(parts)
