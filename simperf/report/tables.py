"""What `simperf run` and `simperf compare` show: the number, where it comes from, what limits it.

Rich is imported when a table is drawn; JSON and CSV do without it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from simperf.analysis.breakdown import breakdown
from simperf.analysis.check import Check
from simperf.analysis.limits import busiest, utilisation
from simperf.analysis.regime import regime
from simperf.answer import TIME
from simperf.report.phrases import against, answer_note, answer_words, interval_words, limit_words
from simperf.report.terminal import bar, columns, to_text, unicode_output
from simperf.results import Result
from simperf.units import format_quantity

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from simperf.report.data import FailedRun

__all__ = ["COLORS", "Format", "comparison_view", "format_comparison", "format_result", "result_view"]

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
#: keys that have a column of their own where results differ in them
_KEYS = 3
#: letters that these columns may take together
_WIDEST = 24
_BAR = 28
#: letters of the head of the column that is ranked
_HEAD = 12


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


def format_comparison(
    results: Sequence[Result | FailedRun],
    format: Format = "table",
    *,
    checks: Mapping[int, Sequence[Check]] | None = None,
    differences: Mapping[str, Sequence[str]] | None = None,
    width: int | None = None,
    color: bool | None = None,
) -> str:
    """Several results, and runs that failed, as text.

    `checks` by position; `differences` as `simperf.study.compare.differences` finds them; the rest as in
    `format_result`.
    """
    if format != "table":
        from simperf.report.data import comparison_document, to_csv, to_json

        return to_json(comparison_document(results, checks)) if format == "json" else to_csv(results, checks)
    return to_text(comparison_view(results, checks, differences), width=width, color=color)


def _grid() -> Table:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    return grid


def _titled(title: str, body: RenderableType) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    return [Text(""), Text(title, style="bold"), Padding(body, (0, 0, 0, 2))]


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
        parts += _titled("Notes", Text("\n".join(result.notes)))
    parts += _titled(f"Where the time went{', mean over ranks' if result.has_stages else ''}", _breakdown(result))
    parts += _titled("What limits it", _limits(result))
    if checks:
        parts += _titled("Expected", _checks(checks))
    if result.metrics:
        grid = _grid()
        stages = None
        if any(name.startswith("stage ") for name in result.metrics):
            from simperf.report.stages import stages_of

            stages = stages_of(result.metrics)
        for name, metric in result.metrics.items():
            if stages is None or name not in stages.names:
                grid.add_row(name, Text(str(metric), justify="right"), metric.origin)
        parts += _titled("Metrics", grid)
        if stages is not None:
            parts += _titled(stages.title, stages.table())
    if any(use.work > 0 for use in result.resources.values()):
        parts += _titled("Resources", _resources(result))
    for title, lines in (("Modelled", result.modelled), ("Not modelled", result.not_modelled)):
        if lines:
            parts += _titled(title, Text("\n".join(lines)))
    for title, sources in (("Assumed", result.assumed), ("Sources", result.sources)):
        if sources:
            grid = _grid()
            for name, source in sources.items():
                grid.add_row(name, Text(source, overflow="fold"))
            parts += _titled(title, grid)
    return Group(*parts)


def _breakdown(result: Result) -> RenderableType:
    from rich.text import Text

    parts = breakdown(result)
    if not parts:
        return Text("nothing was recorded on a timeline")
    grid = _grid()
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
    grid = _grid()
    for name, text in limit_words(result):
        grid.add_row(name, text)
    if not grid.row_count:
        grid.add_row("unknown: neither a timeline nor resources were recorded")
    return grid


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"


def _checks(checks: Sequence[Check]) -> RenderableType:
    from rich.text import Text

    grid = _grid()
    for check in checks:
        verdict = Text("ok" if check.ok else "FAILED", style="green" if check.ok else "bold red")
        grid.add_row(verdict, Text(str(check) + check.origin))
    return grid


def _resources(result: Result) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    grid = _grid()
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


def comparison_view(
    results: Sequence[Result | FailedRun],
    checks: Mapping[int, Sequence[Check]] | None = None,
    differences: Mapping[str, Sequence[str]] | None = None,
) -> RenderableType:
    """The best, and a row a result: what it differs in, the number that is ranked, its time, what limits it, checks."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from simperf.analysis.ranking import rank_results

    checks = checks or {}
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("name", overflow="fold")
    bounds = [[str(word) for word in _bound(result)] for result in results if isinstance(result, Result)]
    bound, words = max((len(one) for one, _ in bounds), default=0), [word for _, word in bounds]
    good = [result for result in results if isinstance(result, Result)]
    ranking = rank_results(good)
    metric = "" if ranking.answer.is_time or ranking.refusal else ranking.answer.metric
    # what the other columns leave, with room for some letters of the names
    longest = max((len(result.name) for result in results), default=0)
    taken = 25 + (_HEAD if metric else 0) + bound + min(20, longest) + min(16, max(map(len, words), default=0))
    taken += 10 if any(checks.values()) else 0
    differing = _columns(results, differences or {}, room=columns() - taken)
    for key in differing:
        table.add_column(key.rpartition(".")[2], overflow="fold")
    for column in ("\n".join(textwrap.wrap(metric, _HEAD)), "vs. best", "time") if metric else ("time", "vs. best"):
        table.add_column(column, justify="right", no_wrap=True)
    tight = bool(metric) and any(result.draws for result in good)
    if not tight:  # an interval needs the room
        table.add_column("bound by", no_wrap=True)
    busy = max(map(len, words), default=0)
    if differing or columns() < taken + max(0, busy - 16):
        # names alone give way: where two columns could, Rich takes from all of them
        table.add_column("busiest", overflow="fold", width=max(7, min(12 if metric else 16, busy)))
    else:
        table.add_column("busiest", overflow="fold", min_width=busy)
    if any(checks.values()):
        table.add_column("expected", no_wrap=True, min_width=8)
    best = [good[place] for place in ranking.best]
    places = iter(range(len(good)))
    for index, result in enumerate(results):
        first = any(result is one for one in best)
        row = [Text(result.name, style="bold" if first else "")]
        row += [Text(values[index]) for values in differing.values()]
        if not isinstance(result, Result):
            row += [Text("failed", style="bold red"), *[Text("-")] * (3 + bool(metric) - tight)]
        else:
            told, time = Text(against(ranking, next(places))), Text(format_quantity(result.time, "s"))
            value = Text(_ranked(result, metric or TIME))
            row += [value, told, time] if metric else [value, told]
            row += _bound(result)[tight:]
        if any(checks.values()):
            row.append(_verdict(checks.get(index, ())))
        table.add_row(*row)
    parts: list[RenderableType] = [table]
    if ranking.by_intervals:
        parts.append(Text("~ not distinguishable from the best: the intervals overlap", style="dim"))
    if differences and not differing and not _said(results, differences):
        parts[:0] = [*_titled("What differs", _differing(results, differences))[1:], Text("")]
    if len(good) > 1 and ranking.headline:
        parts[:0] = [Text(ranking.headline, style="bold"), Text("")]
    failures = [f"{result.name}: {result.error}" for result in results if not isinstance(result, Result)]
    misses = [f"{each.name}: {miss}" for i, each in enumerate(results) for miss in checks.get(i, ()) if not miss.ok]
    for title, lines in (("Failed", failures), ("Not as expected", misses)):
        if lines:
            parts += _titled(title, Text("\n".join(lines)))
    parts += _intervals(good, ranking.answer.metric)
    if ranking.reference is not None and len(good) > 1:
        behind = [one for one, rank in zip(good, ranking.ranks, strict=True) if rank not in (1, None)]
        parts += _why(good[ranking.reference], behind)
    return Group(*parts)


def _ranked(result: Result, metric: str) -> str:
    """The number that is ranked, with its interval below where it is one of draws."""
    if not result.has(metric):
        return "-"
    number = result.number(metric)
    return str(number).replace(" [", "\n[") if result.draws else format_quantity(number.value, number.unit)


def _intervals(results: Sequence[Result], metric: str) -> list[RenderableType]:
    """Intervals that published figures give, a line a result, and what they are made of; or why there are none."""
    from rich.text import Text

    grid, beside = _grid(), list[str]()
    for result in results:
        ends = result.intervals.get(metric)
        if result.draws or not result.has(metric):
            continue
        if ends is None:
            beside += [interval_words(result)] if result.no_interval else []
            continue
        low, high = (format_quantity(end, result.number(metric).unit, digits=3) for end in ends)
        grid.add_row(result.name, f"{low} to {high}")
        beside += [f"from {source}: {text}" for source, text in result.interval_sources.items()]
    shown: list[RenderableType] = _titled(f"90 % intervals of {metric}", grid) if grid.row_count else []
    if beside:
        shown += [*([] if shown else [Text("")]), Text("\n".join(dict.fromkeys(beside)))]
    return shown


def _columns(
    results: Sequence[Result | FailedRun], differences: Mapping[str, Sequence[str]], *, room: int
) -> Mapping[str, Sequence[str]]:
    """Differences that get columns: few, short enough for `room` letters, and not said by the names already."""
    drawn = any(isinstance(result, Result) and result.draws for result in results)
    letters = sum(2 + max(map(len, (key.rpartition(".")[2], *values))) for key, values in differences.items())
    wide = letters > min(room, _WIDEST)
    return {} if _said(results, differences) or drawn or wide or len(differences) > _KEYS else differences


def _said(results: Sequence[Result | FailedRun], differences: Mapping[str, Sequence[str]]) -> bool:
    """Whether the names say all differences."""
    return all(
        value in result.name for values in differences.values() for value, result in zip(values, results, strict=True)
    )


def _differing(results: Sequence[Result | FailedRun], differences: Mapping[str, Sequence[str]]) -> RenderableType:
    """A line a key, where there are too many for columns: what each result says."""
    from rich.text import Text

    grid = _grid()
    for key, values in differences.items():
        names: dict[str, list[str]] = {}
        for result, value in zip(results, values, strict=True):
            names.setdefault(value, []).append(result.name)
        grid.add_row(key, Text("; ".join(f"{value} ({', '.join(those)})" for value, those in names.items())))
    return grid


def _bound(result: Result) -> list[Text]:
    """Regime and busiest resource, where they are known."""
    from rich.text import Text

    limit = busiest(result)
    return [
        Text(regime(result).name.removesuffix("-bound") if result.spans else "-"),
        Text(f"{limit.name} {limit.utilisation * 100:.0f} %" if limit else "-"),
    ]


def _verdict(checks: Sequence[Check]) -> Text:
    from rich.text import Text

    failed = sum(not check.ok for check in checks)
    if failed:
        return Text(f"FAILED ({failed} of {len(checks)})", style="bold red")
    return Text("ok", style="green") if checks else Text("-")


def _why(best: Result, results: Sequence[Result]) -> list[RenderableType]:
    """Name the category in which each of the slower ones loses most."""
    from rich.text import Text

    from simperf.analysis.verdict import verdict

    grid = _grid()
    for result in results:
        told = verdict(best, result)
        if told.category:
            loss = Text(f"+{format_quantity(told.loss, 's')}", justify="right")
            chance = "" if told.chance is None else f"; {best.name} is better in {100 * told.chance:.0f} % of the draws"
            busy = f", where {told.resource} is busiest" if told.resource else ""
            grid.add_row(result.name, loss, f"of {told.category}{busy}{chance}")
    return _titled(f"What makes most of the difference to {best.name!r}", grid) if grid.row_count else []
