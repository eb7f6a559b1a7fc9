"""Results as JSON and CSV for programs; every quantity a number in its SI unit.

The keys are a promise: docs/reference/json.md describes each of them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from simperf.analysis.breakdown import BUBBLE, PARTS, breakdown, breakdown_by_owner
from simperf.analysis.check import Check
from simperf.analysis.limits import busiest, headroom
from simperf.analysis.overlap import overlap
from simperf.analysis.regime import regime
from simperf.answer import TIME, Answer
from simperf.results import Result
from simperf.units import headed

if TYPE_CHECKING:
    from simperf.analysis.ranking import Ranking

__all__ = ["SCHEMA", "FailedRun", "comparison_document", "result_document", "to_csv", "to_json"]

#: Version of the keys; raised when one changes its meaning or goes.
SCHEMA = 1

Checks = Sequence[Check]


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A run that gave no result, such as one that ran out of memory: its name, and why."""

    name: str
    error: str


def result_document(result: Result, checks: Checks = ()) -> dict[str, Any]:
    """One result as plain data, its timeline left out (see `Result.save` for that)."""
    bound, limit, room = regime(result), busiest(result), headroom(result)
    moving = {"communication": overlap(result, "communication"), "copy": overlap(result, "copy")}
    return {
        "schema": SCHEMA,
        "name": result.name,
        "question": result.question,
        "error": None,
        "answer": _answer(result),
        "time": result.time,
        "intervals": {name: list(ends) for name, ends in result.intervals.items()},
        "interval_sources": dict(result.interval_sources),
        "no_interval": result.no_interval,
        "regime": {"name": bound.name, "share": bound.share},
        "limited_by": limit._asdict() if limit else None,
        "floor": {"name": room.name, "time": room.floor, "ratio": room.ratio} if room else None,
        "floors": dict(result.floors),
        "breakdown": breakdown(result),
        "breakdown_by_owner": breakdown_by_owner(result),
        "overlap": {
            name: {"total": found.total, "hidden": found.hidden, "exposed": found.exposed}
            for name, found in moving.items()
        },
        "work": {name: {"value": amount.value, "unit": amount.unit} for name, amount in result.work.items()},
        "metrics": {name: asdict(metric) for name, metric in result.metrics.items()},
        "resources": {
            name: {**asdict(use), "utilisation": use.utilisation(result.time)} for name, use in result.resources.items()
        },
        "operations": [operation._asdict() for operation in result.operations],
        "checks": [_check(check) for check in checks],
        "notes": list(result.notes),
        "modelled": list(result.modelled),
        "not_modelled": list(result.not_modelled),
        "sources": dict(result.sources),
        "assumed": dict(result.assumed),
        "scenario": dict(result.scenario),
        "seed": result.seed,
        "version": result.version,
    }


def _answer(result: Result) -> dict[str, Any]:
    """The number that answers the question."""
    name, number = result.headline
    better = (result.answer or Answer()).better
    if result.answer is not None and not result.answers:
        asked = {"metric": result.answer.metric, "better": better}
        return {**asked, **dict.fromkeys(("value", "unit", "low", "high"))}
    ends = {"low": number.low, "high": number.high}
    return {"metric": name, "better": better, "value": number.value, "unit": number.unit, **ends}


def _check(check: Check) -> dict[str, Any]:
    return {
        "key": check.key,
        "ok": check.ok,
        "message": str(check),
        "value": check.value,
        "unit": check.unit,
        "low": check.low,
        "high": check.high,
        "expected": check.expected,
        "kind": check.kind,
        "source": check.source,
    }


def comparison_document(
    results: Sequence[Result | FailedRun], checks: Mapping[int, Checks] | None = None
) -> dict[str, Any]:
    """Several results side by side; `checks` by position."""
    from simperf.analysis.ranking import rank_results

    good = [result for result in results if isinstance(result, Result)]
    ranking = rank_results(good)
    rows: list[dict[str, Any]] = []
    for index, result in enumerate(results):
        mine = (checks or {}).get(index, ())
        if isinstance(result, FailedRun):
            told = [_check(check) for check in mine]
            rows.append({"schema": SCHEMA, "name": result.name, "error": result.error, "checks": told})
            continue
        place = next(place for place, each in enumerate(good) if each is result)
        rows.append({**result_document(result, mine), "comparison": _comparison(good, ranking, place)})
    answer = None if ranking.refusal else ranking.answer.to_dict()
    best = [good[place].name for place in ranking.best]
    return {"schema": SCHEMA, "answer": answer, "best": best, "refusal": ranking.refusal or None, "results": rows}


def _comparison(good: Sequence[Result], ranking: Ranking, place: int) -> dict[str, Any]:
    """One of the results against the best value."""
    if ranking.reference is None or ranking.entrants[place].value is None:
        nothing = ("best", "rank", "ratio", "difference", "time_difference", "changes", "distinguishable", "chance")
        return dict.fromkeys(nothing)
    from simperf.analysis.comparison import compare
    from simperf.analysis.verdict import verdict

    best, result = good[ranking.reference], good[place]
    told, found = verdict(best, result), compare(best, result)
    return {
        "best": best.name,
        "rank": ranking.ranks[place],
        "ratio": told.ratio,
        "difference": told.difference,
        "time_difference": found.difference,
        "changes": dict(found.changes),
        "distinguishable": told.apart,
        "chance": told.chance,
    }


def to_json(document: Mapping[str, Any]) -> str:
    """Strict JSON in the document's order of keys; what is infinite or not a number is ``null``."""
    from simperf.json_format import json_text

    return json_text(document)


def _ends(result: Result, metric: str) -> list[str]:
    """Both ends of a metric's interval, empty if it has none."""
    return [repr(end) for end in result.intervals[metric]] if metric in result.intervals else ["", ""]


def to_csv(results: Sequence[Result | FailedRun], checks: Mapping[int, Checks] | None = None) -> str:
    """One row a result, below a header that names SI units; numbers at full precision."""
    from simperf.analysis.ranking import rank_results

    good = [result for result in results if isinstance(result, Result)]
    ranking = rank_results(good)
    places = iter(range(len(good)))
    metrics: dict[str, str] = {}
    for each in good:
        for name, metric in each.metrics.items():
            metrics.setdefault(name, metric.unit)
    drawn = any("time" in result.intervals for result in good)
    other = "" if ranking.refusal or ranking.answer.is_time else ranking.answer.metric
    ended = any(other in result.intervals for result in good)
    categories = [name for name in PARTS if name != BUBBLE or any(one.has_stages for one in good)]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(
        ["name", "time [s]", "ratio", "regime", "regime_share", "limited_by", "utilisation"]
        + ["lower_bound_name", "lower_bound [s]"]
        + [f"breakdown.{category} [s]" for category in categories]
        + ["expectation", "error"]
        + [headed(f"metrics.{name}", unit) for name, unit in metrics.items()]
        + (["time.low [s]", "time.high [s]"] if drawn else [])
        + ([headed(f"answer.{end}", ranking.unit) for end in ("low", "high")] if ended else [])
        + ["answer.metric", "answer.better", headed("answer", ranking.unit), "rank"]
    )
    for index, result in enumerate(results):
        mine = (checks or {}).get(index, ())
        verdict = "" if not mine else "ok" if all(check.ok for check in mine) else "failed"
        if isinstance(result, FailedRun):
            blank = [""] * (8 + len(categories)), [""] * (len(metrics) + 2 * drawn + 2 * ended + 4)
            writer.writerow([result.name, *blank[0], verdict, result.error, *blank[1]])
            continue
        bound, limit, room, parts = regime(result), busiest(result), headroom(result), breakdown(result)
        place = next(places)
        ratio, rank, value = ranking.ratio(place), ranking.ranks[place], ranking.entrants[place].value
        asked = ["", ""] if ranking.refusal else [ranking.answer.metric, ranking.answer.better]
        writer.writerow(
            [result.name, repr(result.time), "" if ratio is None else repr(ratio)]
            + [bound.name, repr(bound.share)]
            + ([limit.name, repr(limit.utilisation)] if limit else ["", ""])
            + ([room.name, repr(room.floor)] if room else ["", ""])
            + [repr(parts.get(category, 0.0)) if parts else "" for category in categories]
            + [verdict, ""]
            + [repr(result.metrics[name].value) if name in result.metrics else "" for name in metrics]
            + (_ends(result, TIME) if drawn else [])
            + (_ends(result, other) if ended else [])
            + [*asked, "" if ranking.refusal or value is None else repr(value), "" if rank is None else rank]
        )
    return stream.getvalue().rstrip("\n")
