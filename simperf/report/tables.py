"""Output of `simperf run`: the number, where it comes from, what limits it.

Rich is imported when a table is drawn; JSON and CSV do without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from simperf.analysis.breakdown import breakdown
from simperf.analysis.check import Check
from simperf.analysis.limits import utilisation
from simperf.report.fitted_table import FittedTable
from simperf.report.phrases import answer_note, answer_words, interval_words, limit_words, percent
from simperf.report.terminal import bar, columns, titled, to_lines, to_text, unicode_output
from simperf.results import Result
from simperf.units import format_quantity

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from simperf.report.stages import Stages

__all__ = ["COLORS", "Format", "format_result"]

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
#: share of the time below which it is an error of rounding [1]
_ROUNDING = 1e-12
_BAR = 28
#: lines of a screen, of notes and of what one file assumes on it, and metrics that it has in any case
_SCREEN, _NOTES, _ASSUMED, _FEWEST = 40, 5, 3, 3
#: other metrics that it has in any case: whether a job fits, how well it uses its GPUs, what failures cost
_KEPT = ("memory", "peak memory", "model FLOP utilisation", "run time", "mean run time among failures", "mean goodput")


def format_result(
    result: Result,
    format: Format = "table",
    *,
    checks: Sequence[Check] = (),
    width: int | None = None,
    color: bool | None = None,
    verbose: bool = False,
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
    verbose : bool
        All that is known; otherwise a table of one screen, which says what else there is.
    """
    if format != "table":
        from simperf.report.data import result_document, to_csv, to_json

        return to_json(result_document(result, checks)) if format == "json" else to_csv([result], {0: checks})
    width = width or columns()
    view = _verbose_view(result, checks) if verbose else _result_view(result, checks, width=width)
    return to_text(view, width=width, color=color)


def _result_view(result: Result, checks: Sequence[Check] = (), *, width: int = 80) -> RenderableType:
    """What a person wants to know of one result on one screen: the answer, where time went, what limits it, how sure.

    Parameters
    ----------
    result : Result
    checks : sequence of Check
    width : int
        Of the screen [characters].
    """
    from rich.console import Group
    from rich.text import Text

    parts, left = _head(result, brief=True), list[str]()
    parts += titled(_time_title(result), _breakdown(result))
    parts += titled("What limits it", _limits(result))
    if result.assumed:
        parts += titled("Assumed", _assumed(result.assumed, width))
    if checks:
        parts += titled("Expected", _checks(checks))
    if result.notes:
        shown = _first_lines(result.notes, width - 2, _NOTES)
        parts += titled("Notes", Text("\n".join(shown)))
        left += _more(len(result.notes) - len(shown), "note")
    plain, staged = _metrics(result)
    room = _SCREEN - to_lines(Group(*parts), width) - 5
    if plain:
        most = max(_FEWEST, room)
        first = [row for row in plain if row[0] in _KEPT]
        first += [row for row in plain if row not in first][: max(1, most - len(first))]
        rows = [row[:2] for row in plain if row in first]
        parts += titled("Metrics", FittedTable((), rows))
        left += _more(len(plain) - len(rows), "metric")
    left += ["what each stage does"] if staged else []
    left += _more(sum(use.work > 0 for use in result.resources.values()), "resource")
    left += ["what is modelled and what is not"] if result.modelled or result.not_modelled else []
    left += ["sources"] if result.sources or result.assumed or result.interval_sources else []
    if left:
        parts += [Text(""), Text(f"--verbose adds: {', '.join(left)}", style="dim")]
    return Group(*parts)


def _verbose_view(result: Result, checks: Sequence[Check] = ()) -> RenderableType:
    """Everything that is known of one result, the number first."""
    from rich.console import Group
    from rich.text import Text

    parts = _head(result, brief=False)
    if result.notes:
        parts += titled("Notes", Text("\n".join(result.notes)))
    parts += titled(_time_title(result), _breakdown(result))
    parts += titled("What limits it", _limits(result))
    if checks:
        parts += titled("Expected", _checks(checks))
    plain, staged = _metrics(result)
    if plain:
        parts += titled("Metrics", FittedTable((), plain))
    if staged is not None:
        parts += titled(staged.title, staged.table())
    if any(use.work > 0 for use in result.resources.values()):
        parts += titled("Resources", _resources(result))
    for title, lines in (("Modelled", result.modelled), ("Not modelled", result.not_modelled)):
        if lines:
            parts += titled(title, Text("\n".join(lines)))
    for title, sources in (("Assumed", result.assumed), ("Sources", result.sources)):
        if sources:
            parts += titled(title, FittedTable((), list(sources.items())))
    return Group(*parts)


def _head(result: Result, *, brief: bool) -> list[RenderableType]:
    """The name and the answer, its interval, and the question."""
    from rich.text import Text

    below = brief and result.headline[0] in result.intervals  # then the next line has it
    answer = Text(answer_words(result, interval=not below), "bold green")
    parts: list[RenderableType] = [Text.assemble((result.name, "bold"), "  ", answer)]
    if brief and len(result.name) + 2 + len(answer) > columns():
        parts = [Text(result.name, style="bold"), answer]
    if answer_note(result):
        parts.append(Text(answer_note(result)))
    parts.append(Text(interval_words(result, brief=brief)))
    if result.question:
        parts.append(Text(result.question))
    return parts


def _time_title(result: Result) -> str:
    return f"Where the time went{', mean over ranks' if result.has_stages else ''}"


def _metrics(result: Result) -> tuple[list[list[str | Text]], Stages | None]:
    """Metrics by name, value and origin; those of the stages of a pipeline are a table of their own."""
    from rich.text import Text

    stages = None
    if any(name.startswith("stage ") for name in result.metrics):
        from simperf.report.stages import stages_of

        stages = stages_of(result.metrics)
    shown = {name: one for name, one in result.metrics.items() if stages is None or name not in stages.names}
    return [[name, Text(str(one), justify="right"), one.origin] for name, one in shown.items()], stages


def _more(count: int, noun: str) -> list[str]:
    return [f"{count} {noun}{'s' if count > 1 else ''}"] if count > 0 else []


def _first_lines(texts: Sequence[str], width: int, most: int) -> list[str]:
    """The first of several texts, whole, in at most so many lines; one at least."""
    from textwrap import wrap

    shown, used = list[str](), 0
    for text in texts:
        used += len(wrap(text, width)) or 1
        if shown and used > most:
            break
        shown.append(text)
    return shown


def _assumed(assumed: Mapping[str, str], width: int) -> RenderableType:
    """Names of what is assumed, those of one file together: as many as few lines hold, and how many there are."""
    from textwrap import wrap

    from rich.text import Text

    groups: dict[str, list[str]] = {}
    for name in assumed:
        head, _, key = name.rpartition(": ")
        groups.setdefault(head, []).append(key)
    lines = []
    for head, keys in groups.items():
        lead, count = (f"{head}: " if head else ""), len(keys)
        while len(wrap(text := _listing(lead, keys, count), width - 2)) > _ASSUMED and count > 1:
            count -= 1
        lines.append(text)
    return Text("\n".join(lines))


def _listing(lead: str, keys: Sequence[str], count: int) -> str:
    more = f" and {len(keys) - count} more" if count < len(keys) else ""
    return lead + ", ".join(keys[:count]) + more


def _breakdown(result: Result) -> RenderableType:
    from rich.text import Text

    parts = breakdown(result)
    if not parts:
        return Text("nothing was recorded on a timeline")
    rows: list[list[str | Text]] = []
    unicode = unicode_output()
    for name, time in parts.items():
        share = time / result.time if result.time > 0 else 0.0
        if share > _ROUNDING:
            drawn = Text(bar(share, _BAR, unicode=unicode), style=COLORS[name])
            rows.append([name, drawn, format_quantity(time, "s"), f"{share:.1%}".replace("%", " %")])
    return FittedTable((), rows, whole=(1,))


def _limits(result: Result) -> RenderableType:
    rows = [list(row) for row in limit_words(result)]
    return FittedTable((), rows or [["unknown: neither a timeline nor resources were recorded"]])


def _checks(checks: Sequence[Check]) -> RenderableType:
    from rich.text import Text

    verdicts = [Text("ok" if one.ok else "FAILED", style="green" if one.ok else "bold red") for one in checks]
    return FittedTable((), [[word, str(one) + one.origin] for word, one in zip(verdicts, checks, strict=True)])


def _resources(result: Result) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    rows: list[list[str | Text]] = []
    shares = utilisation(result)
    used = [name for name in shares if result.resources[name].work > 0]
    for name in used[:_SHOWN]:
        use = result.resources[name]
        capacity = format_quantity(use.capacity, _CAPACITY.get(use.kind, "1"))
        of = {"device": "", "host": f"of {capacity} cores", "memory": f"of {capacity}"}.get(use.kind, f"of {capacity}")
        rows.append([name, use.kind, percent(shares[name]) if shares[name] > 0 else "-", of])
    rest = len(result.resources) - min(len(used), _SHOWN)
    grid = FittedTable((), rows)
    return Group(grid, Text(f"{rest} more used less, or not at all")) if rest else grid
