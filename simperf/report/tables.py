"""What `simperf run` shows: the number, where it comes from, what limits it.

Rich is imported when a table is drawn; JSON and CSV do without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from simperf.analysis.breakdown import breakdown
from simperf.analysis.check import Check
from simperf.analysis.limits import utilisation
from simperf.report.phrases import answer_note, answer_words, interval_words, limit_words
from simperf.report.terminal import bar, plain_grid, titled, to_text, unicode_output
from simperf.results import Result
from simperf.units import format_quantity

if TYPE_CHECKING:
    from rich.console import RenderableType


__all__ = ["COLORS", "Format", "format_result", "result_view"]

Format = Literal["table", "json", "csv"]

#: Terminal colour of each category of the breakdown.
COLORS: Mapping[str, str] = {
    "compute": "green",
    "memory": "cyan",
    "communication": "magenta",
    "copy": "yellow",
    "storage": "blue",
    "overhead": "red",
    "host": "bright_black",
    "bubble": "bright_yellow",
    "idle": "white",
}
_CAPACITY = {"link": "B/s", "memory": "B", "device": "1", "host": "1"}
_SHOWN = 8
_BAR = 28


def format_result(
    result: Result,
    format: Format = "table",
    *,
    checks: Sequence[Check] = (),
    width: int | None = None,
    color: bool | None = None,
) -> str:
    """One result as text.

    Parameters
    ----------
    result : Result
    format : {"table", "json", "csv"}
    checks : sequence of Check
        What was expected of it.
    width, color
        As in `simperf.report.terminal.to_text`, for tables.
    """
    if format != "table":
        from simperf.report.data import result_document, to_csv, to_json

        return to_json(result_document(result, checks)) if format == "json" else to_csv([result], {0: checks})
    return to_text(result_view(result, checks), width=width, color=color)


def result_view(result: Result, checks: Sequence[Check] = ()) -> RenderableType:
    """Everything that a person wants to know of one result, the number first."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [Text.assemble((result.name, "bold"), "  ", (answer_words(result), "bold green"))]
    if answer_note(result):
        parts.append(Text(answer_note(result)))
    parts.append(Text(interval_words(result)))
    if result.question:
        parts.append(Text(result.question))
    if result.notes:
        parts += titled("Notes", Text("\n".join(result.notes)))
    parts += titled(f"Where the time went{', mean over ranks' if result.has_stages else ''}", _breakdown(result))
    parts += titled("What limits it", _limits(result))
    if checks:
        parts += titled("Expected", _checks(checks))
    if result.metrics:
        grid = plain_grid()
        stages = None
        if any(name.startswith("stage ") for name in result.metrics):
            from simperf.report.stages import stages_of

            stages = stages_of(result.metrics)
        for name, metric in result.metrics.items():
            if stages is None or name not in stages.names:
                grid.add_row(name, Text(str(metric), justify="right"), metric.origin)
        parts += titled("Metrics", grid)
        if stages is not None:
            parts += titled(stages.title, stages.table())
    if any(use.work > 0 for use in result.resources.values()):
        parts += titled("Resources", _resources(result))
    for title, lines in (("Modelled", result.modelled), ("Not modelled", result.not_modelled)):
        if lines:
            parts += titled(title, Text("\n".join(lines)))
    for title, sources in (("Assumed", result.assumed), ("Sources", result.sources)):
        if sources:
            grid = plain_grid()
            for name, source in sources.items():
                grid.add_row(name, Text(source, overflow="fold"))
            parts += titled(title, grid)
    return Group(*parts)


def _breakdown(result: Result) -> RenderableType:
    from rich.text import Text

    parts = breakdown(result)
    if not parts:
        return Text("nothing was recorded on a timeline")
    grid = plain_grid()
    unicode = unicode_output()
    for name, time in parts.items():
        share = time / result.time if result.time > 0 else 0.0
        if time > 0:
            grid.add_row(
                name,
                Text(bar(share, _BAR, unicode=unicode), style=COLORS[name]),
                Text(format_quantity(time, "s"), justify="right"),
                Text(f"{share:.1%}".replace("%", " %"), justify="right"),
            )
    return grid


def _limits(result: Result) -> RenderableType:
    grid = plain_grid()
    for name, text in limit_words(result):
        grid.add_row(name, text)
    if not grid.row_count:
        grid.add_row("unknown: neither a timeline nor resources were recorded")
    return grid


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"


def _checks(checks: Sequence[Check]) -> RenderableType:
    from rich.text import Text

    grid = plain_grid()
    for check in checks:
        verdict = Text("ok" if check.ok else "FAILED", style="green" if check.ok else "bold red")
        grid.add_row(verdict, Text(str(check) + check.origin))
    return grid


def _resources(result: Result) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    grid = plain_grid()
    shares = utilisation(result)
    used = [name for name in shares if result.resources[name].work > 0]
    for name in used[:_SHOWN]:
        use = result.resources[name]
        capacity = format_quantity(use.capacity, _CAPACITY.get(use.kind, "1"))
        of = {"device": "", "host": f"of {capacity} cores", "memory": f"of {capacity}"}.get(use.kind, f"of {capacity}")
        share = _percent(shares[name]) if shares[name] > 0 else "-"
        grid.add_row(name, use.kind, Text(share, justify="right"), of)
    rest = len(result.resources) - min(len(used), _SHOWN)
    return Group(grid, Text(f"{rest} more used less, or not at all")) if rest else grid
