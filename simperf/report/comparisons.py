"""What `simperf compare` shows: the best, a row a result, what differs and what makes the difference.

Rich is imported when a table is drawn; JSON and CSV do without it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count, product
from string import ascii_uppercase
from typing import TYPE_CHECKING

from simperf.analysis.check import Check
from simperf.analysis.limits import busiest
from simperf.analysis.ranking import rank_results
from simperf.analysis.regime import regime
from simperf.answer import TIME
from simperf.report.phrases import against, interval_words
from simperf.report.tables import Format
from simperf.report.terminal import columns, plain_grid, titled, to_text
from simperf.results import Result
from simperf.units import format_quantity

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from simperf.report.data import FailedRun

__all__ = ["comparison_view", "format_comparison"]

#: keys that have a column of their own where results differ in them
_KEYS = 3
#: letters that these columns may take together
_WIDEST = 24
#: letters of the head of the column that is ranked
_HEAD = 12
#: share of a line beyond which names are replaced by letters that a list explains
_NAME = 0.5


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


def comparison_view(
    results: Sequence[Result | FailedRun],
    checks: Mapping[int, Sequence[Check]] | None = None,
    differences: Mapping[str, Sequence[str]] | None = None,
) -> RenderableType:
    """The best, and a row a result: what it differs in, the number that is ranked, its time, what limits it, checks."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    checks, said = checks or {}, _said(results, differences or {})
    results, legend = _lettered(results)
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
    differing = {} if said else _columns(results, differences or {}, room=columns() - taken)
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
    if differences and not differing and not said:
        parts[:0] = [*titled("What differs", _differing(results, differences))[1:], Text("")]
    parts[:0] = legend
    if len(good) > 1 and ranking.headline:
        parts[:0] = [Text(ranking.headline, style="bold"), Text("")]
    failures = [f"{result.name}: {result.error}" for result in results if not isinstance(result, Result)]
    misses = [f"{each.name}: {miss}" for i, each in enumerate(results) for miss in checks.get(i, ()) if not miss.ok]
    for title, lines in (("Failed", failures), ("Not as expected", misses)):
        if lines:
            parts += titled(title, Text("\n".join(lines)))
    parts += _intervals(good, ranking.answer.metric)
    if ranking.reference is not None and len(good) > 1:
        behind = [one for one, rank in zip(good, ranking.ranks, strict=True) if rank not in (1, None)]
        parts += _why(good[ranking.reference], behind)
    return Group(*parts)


def _lettered(
    results: Sequence[Result | FailedRun],
) -> tuple[Sequence[Result | FailedRun], list[RenderableType]]:
    """The results with letters for names where these are long, and the list that explains the letters."""
    from rich.text import Text

    if max((len(result.name) for result in results), default=0) <= _NAME * columns():
        return results, []
    grid, letters = plain_grid(), _letters()
    renamed = [replace(result, name=next(letters)) for result in results]
    for short, result in zip(renamed, results, strict=True):
        grid.add_row(Text(short.name, style="bold"), result.name)
    return renamed, [grid, Text("")]


def _letters() -> Iterator[str]:
    """A to Z, AA, AB and so on."""
    return chain.from_iterable(map("".join, product(ascii_uppercase, repeat=length)) for length in count(1))


def _ranked(result: Result, metric: str) -> str:
    """The number that is ranked, with its interval below where it is one of draws."""
    if not result.has(metric):
        return "-"
    number = result.number(metric)
    return str(number).replace(" [", "\n[") if result.draws else format_quantity(number.value, number.unit)


def _intervals(results: Sequence[Result], metric: str) -> list[RenderableType]:
    """Intervals that published figures give, a line a result, and what they are made of; or why there are none."""
    from rich.text import Text

    grid, beside = plain_grid(), list[str]()
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
    shown: list[RenderableType] = titled(f"90 % intervals of {metric}", grid) if grid.row_count else []
    if beside:
        shown += [*([] if shown else [Text("")]), Text("\n".join(dict.fromkeys(beside)))]
    return shown


def _columns(
    results: Sequence[Result | FailedRun], differences: Mapping[str, Sequence[str]], *, room: int
) -> Mapping[str, Sequence[str]]:
    """Differences that get columns: few, and short enough for `room` letters."""
    drawn = any(isinstance(result, Result) and result.draws for result in results)
    letters = sum(2 + max(map(len, (key.rpartition(".")[2], *values))) for key, values in differences.items())
    wide = letters > min(room, _WIDEST)
    return {} if drawn or wide or len(differences) > _KEYS else differences


def _said(results: Sequence[Result | FailedRun], differences: Mapping[str, Sequence[str]]) -> bool:
    """Whether the names say all differences."""
    return all(
        value in result.name for values in differences.values() for value, result in zip(values, results, strict=True)
    )


def _differing(results: Sequence[Result | FailedRun], differences: Mapping[str, Sequence[str]]) -> RenderableType:
    """A line a key, where there are too many for columns: what each result says."""
    from rich.text import Text

    grid = plain_grid()
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

    grid = plain_grid()
    for result in results:
        told = verdict(best, result)
        if told.category:
            loss = Text(f"+{format_quantity(told.loss, 's')}", justify="right")
            chance = "" if told.chance is None else f"; {best.name} is better in {100 * told.chance:.0f} % of the draws"
            busy = f", where {told.resource} is busiest" if told.resource else ""
            grid.add_row(result.name, loss, f"of {told.category}{busy}{chance}")
    return titled(f"What makes most of the difference to {best.name!r}", grid) if grid.row_count else []
