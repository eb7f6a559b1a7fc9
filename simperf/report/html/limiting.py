"""Limits of a run, for its report: regime, busiest resource, lower bound, critical path, resources by use."""

from __future__ import annotations

from simperf.analysis.critical import critical_path
from simperf.analysis.limits import utilisation
from simperf.report.html.page import definitions, table
from simperf.report.phrases import limit_words
from simperf.results import Result
from simperf.units import format_quantity

__all__ = ["limiting_part", "limits"]

_RESOURCES = 15
_PARTS = 10


def limits(result: Result) -> list[tuple[str, str]]:
    """Regime, busiest resource, lower bound and overlap, each in words."""
    return [(name.capitalize(), text) for name, text in limit_words(result)]


def limiting_part(result: Result) -> str:
    """Limits in words, the critical path, and the resources by use."""
    return definitions(limits(result)) + _path(result) + _resources(result)


def _path(result: Result) -> str:
    parts = critical_path(result).parts
    if not parts:
        return ""
    rows = [
        (part.category, part.owner, format_quantity(part.time, "s"), f"{part.share * 100:.1f} %", part.segments)
        for part in parts[:_PARTS]
    ]
    caption = "The critical path, back from the end: each segment was waited for by the next"
    caption += f"; the first {_PARTS} of {len(parts)} parts" if len(parts) > _PARTS else ""
    return table(("what", "where", "time", "share", "segments"), rows, caption=caption, numbers=(2, 3, 4))


def _resources(result: Result) -> str:
    used = utilisation(result)
    rows = [(name, result.resources[name].kind, f"{share * 100:.3g} %") for name, share in used.items() if share > 0]
    caption = "Resources by use" + (f", the first {_RESOURCES} of {len(rows)}" if len(rows) > _RESOURCES else "")
    return table(("resource", "kind", "used"), rows[:_RESOURCES], caption=caption, numbers=(2,)) if rows else ""
