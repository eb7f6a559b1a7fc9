"""Output of `simperf compare`: the best, a row a result, what differs and what makes the difference.

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
from simperf.report.fitted_table import FittedTable
from simperf.report.phrases import against, interval_words
from simperf.report.tables import Format
from simperf.report.terminal import columns, titled, to_text
from simperf.results import Result
from simperf.units import format_quantity

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from simperf.report.data import FailedRun

__all__ = ["format_comparison"]

#: keys that have a column of their own where results differ in them
_KEYS = 3
#: letters that these columns may take together
_WIDEST = 24
#: results that are named beside the value that they share
_NAMED = 3
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
    return to_text(_comparison_view(results, checks, differences, width=width), width=width, color=color)


def _comparison_view(
    results: Sequence[Result | FailedRun],
    checks: Mapping[int, Sequence[Check]] | None = None,
    differences: Mapping[str, Sequence[str]] | None = None,
    *,
    width: int | None = None,
) -> RenderableType:
    """The best, and a row a result: what it differs in, the number that is ranked, its time, what limits it, checks."""
    from rich.console import Group
    from rich.text import Text

    checks, said = checks or {}, _said(results, differences or {})
    headline = rank_results([result for result in results if isinstance(result, Result)]).headline
    listed = bool(differences) and not said and not _columns(results, differences or {})
    results, legend = _lettered(results, listed=listed)
    good = [result for result in results if isinstance(result, Result)]
    ranking = rank_results(good)
    metric = "" if ranking.answer.is_time or ranking.refusal else ranking.answer.metric
    tight = bool(metric) and any(result.draws for result in good)  # an interval needs the room
    ranked = ("\n".join(textwrap.wrap(metric, _HEAD)), "vs. best", "time") if metric else ("time", "vs. best")
    header = [*ranked, *([] if tight else ["bound by"]), "busiest", *(["expected"] if any(checks.values()) else [])]
    best = [good[place] for place in ranking.best]
    places, row = iter(range(len(good))), list[str | Text]()
    rows: list[list[str | Text]] = []
    for index, result in enumerate(results):
        if not isinstance(result, Result):
            row = [Text("failed", style="bold red"), *["-"] * (3 + bool(metric) - tight)]
        else:
            word, time = against(ranking, next(places)), format_quantity(result.time, "s")
            row = [_ranked(result, metric or TIME), word, *([time] if metric else []), *_bound(result)[tight:]]
        rows.append([*row, *([_verdict(checks.get(index, ()))] if any(checks.values()) else [])])
    names = [result.name for result in results]
    bold = [place for place, result in enumerate(results) if any(result is one for one in best)]
    differing = {} if said else _columns(results, differences or {})
    table = _table(names, differing, header, rows, bold)
    if differing and table.sizes(width or columns()) is None:
        differing = {}
        table = _table(names, differing, header, rows, bold)
    parts: list[RenderableType] = [table]
    if ranking.by_intervals:
        parts.append(Text("~ not distinguishable from the best: the intervals overlap", style="dim"))
    if differences and not differing and not said:
        parts[:0] = [*titled("What differs", _differing(results, differences))[1:], Text("")]
    parts[:0] = legend
    if len(good) > 1 and headline:  # with whole names
        parts[:0] = [Text(headline, style="bold"), Text("")]
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


def _table(
    names: Sequence[str],
    differing: Mapping[str, Sequence[str]],
    header: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    bold: Sequence[int],
) -> FittedTable:
    """A row a result: its name, what it differs in, and its cells."""
    keys = [key.rpartition(".")[2] for key in differing]
    own = [[values[place] for values in differing.values()] for place in range(len(names))]
    cells = [[name, *mine, *row] for name, mine, row in zip(names, own, rows, strict=True)]
    return FittedTable(["name", *keys, *header], cells, bold=bold)


def _lettered(
    results: Sequence[Result | FailedRun], *, listed: bool
) -> tuple[Sequence[Result | FailedRun], list[RenderableType]]:
    """The results with letters for names, and the list that explains the letters.

    Names keep their place where they are short and, where they are `listed` between commas, hold no comma.
    """
    from rich.text import Text

    longest = max((len(result.name) for result in results), default=0)
    if longest <= _NAME * columns() and not (listed and any("," in result.name for result in results)):
        return results, []
    letters = _letters()
    renamed = [replace(result, name=next(letters)) for result in results]
    rows = [[short.name, result.name] for short, result in zip(renamed, results, strict=True)]
    return renamed, [FittedTable((), rows, bold=range(len(rows))), Text("")]


def _letters() -> Iterator[str]:
    """A to Z, AA, AB and so on."""
    return chain.from_iterable(map("".join, product(ascii_uppercase, repeat=length)) for length in count(1))


def _ranked(result: Result, metric: str) -> str:
    """The number that is ranked, with its interval below where it is one of samples."""
    if not result.has(metric):
        return "-"
    number = result.number(metric)
    return str(number).replace(" [", "\n[") if result.draws else format_quantity(number.value, number.unit)


def _intervals(results: Sequence[Result], metric: str) -> list[RenderableType]:
    """Intervals that published figures give, a line a result, and what they are made of; or why there are none."""
    from rich.text import Text

    rows, beside = list[list[str]](), list[str]()
    for result in results:
        ends = result.intervals.get(metric)
        if result.draws or not result.has(metric):
            continue
        if ends is None:
            beside += [interval_words(result)] if result.no_interval else []
            continue
        low, high = (format_quantity(end, result.number(metric).unit, digits=3) for end in ends)
        rows.append([result.name, f"{low} to {high}"])
        beside += [f"from {source}: {text}" for source, text in result.interval_sources.items()]
    shown: list[RenderableType] = titled(f"90 % intervals of {metric}", FittedTable((), rows)) if rows else []
    if beside:
        shown += [*([] if shown else [Text("")]), Text("\n".join(dict.fromkeys(beside)))]
    return shown


def _columns(
    results: Sequence[Result | FailedRun], differences: Mapping[str, Sequence[str]]
) -> Mapping[str, Sequence[str]]:
    """Differences that may have columns: few and short."""
    drawn = any(isinstance(result, Result) and result.draws for result in results)
    letters = sum(2 + max(map(len, (key.rpartition(".")[2], *values))) for key, values in differences.items())
    return {} if drawn or letters > _WIDEST or len(differences) > _KEYS else differences


def _said(results: Sequence[Result | FailedRun], differences: Mapping[str, Sequence[str]]) -> bool:
    """Whether the names say all differences."""
    return all(
        value in result.name for values in differences.values() for value, result in zip(values, results, strict=True)
    )


def _differing(results: Sequence[Result | FailedRun], differences: Mapping[str, Sequence[str]]) -> RenderableType:
    """A line a key, where there are too many for columns: what each result says."""
    rows = []
    for key, values in differences.items():
        names: dict[str, list[str]] = {}
        for result, value in zip(results, values, strict=True):
            names.setdefault(value, []).append(repr(result.name) if "," in result.name else result.name)
        often = max(names, key=lambda value: len(names[value]))
        if len(names[often]) > _NAMED:
            names = {**names, often: ["the others"]}
        rows.append([key, "; ".join(f"{value} ({', '.join(those)})" for value, those in names.items())])
    return FittedTable((), rows)


def _bound(result: Result) -> list[str | Text]:
    """Regime and busiest resource, where they are known."""
    limit = busiest(result)
    return [
        regime(result).name.removesuffix("-bound") if result.spans else "-",
        f"{limit.name} {limit.utilisation * 100:.0f} %" if limit else "-",
    ]


def _verdict(checks: Sequence[Check]) -> Text:
    from rich.text import Text

    failed = sum(not check.ok for check in checks)
    if failed:
        return Text(f"FAILED ({failed} of {len(checks)})", style="bold red")
    return Text("ok", style="green") if checks else Text("-")


def _why(best: Result, results: Sequence[Result]) -> list[RenderableType]:
    """How much slower each is than the best, and which categories add up to that; nothing of less than 1 %."""
    from simperf.analysis.verdict import verdict

    rows = []
    for result in results:
        told = verdict(best, result)
        if told.changes:
            chance = "" if told.chance is None else f"; {best.name} is better in {100 * told.chance:.0f} % of the draws"
            busy = f"; {told.resource} is busiest" if told.resource else ""
            rows.append([result.name, f"+{format_quantity(told.slower, 's')}:", f"{told.parts}{busy}{chance}"])
    title = f"What makes the difference to {best.name!r}"
    return titled(title, FittedTable((), rows)) if rows else []
