"""Fits to published and recorded measurements, as sections of docs/accuracy.md."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simperf.accuracy.fits.rows import FitRow
    from simperf.calibrate.validate import Validation

__all__ = ["fits_markdown"]

_HEAD = """## How right fitted models are

Here constants are fitted to some of the published points and compared with the others (`simperf.calibrate.fit`; see
[calibration](validation/calibration.md)). Errors are means of sizes, predicted over measured less one; *worst* is
signed. *In 90 %* is the share of the points that were not fitted (of those that were, if all were) in their 90 %
interval, *half-width* how far its upper end is above the prediction (the median). *Two constants* is what a fixed time
and one rate get on the same points; of whole steps, a roofline of two rates."""


def _percent(value: float, *, sign: bool = False) -> str:
    if math.isnan(value):
        return ""
    return f"{100 * value:+.1f} %" if sign else f"{100 * value:.1f} %"


def _goal(row: FitRow) -> str:
    if row.met is None:
        return ""
    return f"{100 * row.goal:g} %: {'met' if row.met else '**missed**'}"


def fits_markdown(rows: Sequence[FitRow], recorded: Mapping[str, Validation] | None = None) -> str:
    """Whole tables of fits, section by section, then recorded profiles against their data."""
    parts = [_HEAD]
    for section in dict.fromkeys(row.section for row in rows):
        own = [row for row in rows if row.section == section]
        parts += ["", f"### {section}", "", _summary(own), ""]
        parts += [
            "| case | what | fitted | not fitted | error, fitted | error, not fitted | worst | in 90 % | half-width "
            "| two constants | goal | model |",
            "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|---|",
        ]
        for row in own:
            cells = [
                row.name,
                row.what,
                str(row.points),
                str(row.predicted or ""),
                _percent(row.inside),
                _percent(row.outside),
                _percent(row.worst, sign=True),
                "" if math.isnan(row.coverage) else f"{100 * row.coverage:.0f} %",
                _percent(row.width),
                _percent(row.plain),
                _goal(row),
                row.note,
            ]
            parts.append(f"| {' | '.join(cells)} |")
    for name, found in (recorded or {}).items():
        parts += ["", f"### Recorded: {name}", "", *_validation(found)]
    return "\n".join(parts) + "\n"


def _summary(rows: Sequence[FitRow]) -> str:
    away = [row for row in rows if row.predicted]
    points = sum(row.predicted for row in away)
    text = f"{len(rows)} rows"
    if points:
        mean = sum(row.outside * row.predicted for row in away) / points
        text += f"; {points} points that were not fitted: mean error {100 * mean:.1f} %"
    with_interval = [row for row in away if not math.isnan(row.coverage)]
    if with_interval:
        inside = sum(row.coverage * row.predicted for row in with_interval) / sum(
            row.predicted for row in with_interval
        )
        wide = statistics.median(row.width for row in with_interval)
        text += f", {100 * inside:.0f} % in their 90 % interval, whose half-width is {_percent(wide)}"
        text += " in the median of the rows"
    goals = [row for row in rows if row.met is not None]
    if goals:
        text += f"; {sum(bool(row.met) for row in goals)} of {len(goals)} goals met"
    return text + "."


def _validation(found: Validation) -> list[str]:
    lines = [
        "| series | points | n | mean error | median | worst | bias | in 90 % | two constants |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in found.summaries():
        inside = "" if row.coverage is None else f"{100 * row.coverage:.0f} %"
        lines.append(
            f"| {row.name} | {'fitted' if row.fitted else 'not fitted'} | {row.points} | {_percent(row.mape)} "
            f"| {_percent(row.median)} | {_percent(row.worst, sign=True)} | {_percent(row.bias, sign=True)} "
            f"| {inside} | {'' if row.plain is None else _percent(row.plain)} |"
        )
    lines += ["", *(f"Not predicted: {series}: {reason}." for series, reason in found.skipped.items())]
    return lines
