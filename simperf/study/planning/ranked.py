"""Candidates of a plan in their order: what came of each, which cannot be distinguished, and why the others lose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from simperf.analysis.intervals import FIGURES
from simperf.json_format import finite
from simperf.study.pareto import pareto_front
from simperf.study.planning.candidates import Configuration, gpu_of
from simperf.study.planning.plan_file import CandidateRow
from simperf.study.planning.precision import AUTO, precision_source
from simperf.study.planning.request import Request
from simperf.study.planning.rounding import dollars, hours, three_digits
from simperf.study.planning.spread import CandidateSpread, batch_factor
from simperf.units import format_quantity

__all__ = ["Candidate", "candidate_of", "cells", "plain", "ranked", "samples_per_second"]

Ends = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A choice, what came of it, and where it stands.

    Parameters
    ----------
    number : int
        Rank among the candidates that were simulated, from 1; 0 for one that was not.
    choice : Configuration
    time, cost : float
        Of the whole job, failures and checkpoints included [s] and [USD]; of a pruned one, its bound. The cost is
        NaN where the instance has no price.
    time_interval, cost_interval : (float, float) or None
        90 % of them [s] and [USD]; None where nothing supports an interval.
    rate : float
        Samples a second while it trains [1/s].
    goodput : float
        Share of the time that is training [1].
    memory : float
        On each GPU [B].
    limited_by : str
        Resource that rests least.
    feasible : bool
        Within deadline and budget.
    best : bool
        Pareto-optimal in time and cost among the feasible ones.
    reason : str
        Why it loses, or was not simulated; why it wins.
    spread : CandidateSpread
        What the intervals are made of, or why there are none.
    group : int
        Number of the first candidate that it cannot be distinguished from, which is its own if it can be distinguished
        from all before it; 0 for one that is not feasible, was not simulated, or has no interval.
    """

    number: int
    choice: Configuration
    time: float
    cost: float
    time_interval: tuple[float, float] | None = None
    cost_interval: tuple[float, float] | None = None
    rate: float = 0.0
    goodput: float = 1.0
    memory: float = 0.0
    limited_by: str = ""
    feasible: bool = False
    best: bool = False
    reason: str = ""
    spread: CandidateSpread = field(default_factory=CandidateSpread)
    group: int = 0


def ranked(request: Request, found: Sequence[Candidate]) -> list[Candidate]:
    """Number, mark the Pareto-optimal ones, and say in a line why each of the others loses."""

    def order(one: Candidate) -> tuple[Any, ...]:
        cost = _comparable(one.cost)
        keys = (one.time, cost) if request.objective == "time" else (cost, one.time)
        return not one.feasible, *keys, one.choice.name

    placed = sorted(found, key=order)
    good = [one for one in placed if one.feasible]
    front = {good[index].choice for index in pareto_front([(one.time, _comparable(one.cost)) for one in good])}
    first = placed[0]
    told, leaders = [], list[Candidate]()
    for number, one in enumerate(placed, 1):
        best = one.choice in front
        made = replace(one, number=number, best=best, reason=_reason(request, one, first, good, best))
        if one.feasible:
            like = next((leader for leader in leaders if _same(request, one, leader)), made)
            leaders += [made] if like is made else []
            words = f"; not distinguishable from #{like.number}" if like is not made else ""
            late = one.time_interval is not None and one.time_interval[1] > request.deadline
            words += "; may be late" if late else ""
            group = 0 if one.time_interval is None else like.number
            made = replace(made, group=group, reason=made.reason + words)
        told.append(replace(made, reason=made.reason + one.reason))
    return told


def _reason(request: Request, one: Candidate, first: Candidate, good: Sequence[Candidate], best: bool) -> str:
    if one is first:
        if request.objective == "time":
            return "the fastest"
        return "the cheapest that meets the deadline" if request.deadline < math.inf else "the cheapest"
    if not one.feasible:
        late, dear = one.time - request.deadline, one.cost - request.budget
        words = [f"{hours(late)} too late"] if late > 0 else []
        words += [f"{dollars(dear)} over the budget"] if dear > 0 else []
        return " and ".join(words)
    if best:
        return _beside(one, first, 1)
    better = min(
        (each for each in good if each.time <= one.time and each.cost <= one.cost and each is not one),
        key=lambda each: (each.time * each.cost, each.choice.name),
        default=first,
    )
    return _beside(one, better, good.index(better) + 1)


def _comparable(cost: float) -> float:
    """A cost to sort by: what has no price comes last."""
    return math.inf if math.isnan(cost) else cost


def _beside(one: Candidate, other: Candidate, number: int) -> str:
    """Time and cost of a candidate beside those of another one, such as ``1.99x faster, same cost as #1``.

    Other ones are such as ``1.99x slower, 1.20x the cost of #1``.

    Without a price of both it is the time alone, ``1.99x faster than #1`` or ``1.99x slower than #1``.
    """
    slower, dearer = one.time / other.time, one.cost / other.cost
    ratio = f"{max(slower, 1 / slower):.2f}"
    time = "same time" if ratio == "1.00" else f"{ratio}x {'slower' if slower > 1 else 'faster'}"
    if math.isnan(dearer):
        return f"{time} {'as' if ratio == '1.00' else 'than'} #{number}"
    cost = "same cost as" if f"{dearer:.2f}" == "1.00" else f"{dearer:.2f}x the cost of"
    return f"{time}, {cost} #{number}"


def _same(request: Request, one: Candidate, other: Candidate) -> bool:
    """Whether the intervals of time overlap, and those of cost; on one GPU without the error that both share.

    The error of the ratio of two batches widens intervals of scaling, which do not have it in them. Whole
    intervals have, and so is none widened beyond its whole. Constants of a profile or of one's own predict other ratios
    of batches than the catalogue's, of which that error is: their draws stand alone.
    """
    pair = (one, other)
    gpus = {gpu_of(request.catalog, each.choice.instance).name for each in pair}
    shares = [each.choice.batch / (each.choice.gpus if request.strong else 1) for each in pair]
    alike = len(gpus) == 1 and all(FIGURES in each.spread.sources for each in pair)
    factor = batch_factor(*shares) if alike else None
    ours, theirs = (_widened(each, factor) for each in pair)
    if ours is None or theirs is None:
        return False
    (low, high), (first, last) = ours, theirs
    price, beside = (each.cost / each.time for each in pair)
    if math.isnan(price) or math.isnan(beside):
        return low <= last and first <= high
    return low <= last and first <= high and low * price <= last * beside and first * beside <= high * price


def _widened(one: Candidate, factor: float | None) -> Ends | None:
    """What tells a candidate apart, its later end times `factor` within the whole interval; the whole without one."""
    whole, apart = one.time_interval, one.spread.apart
    if whole is None or apart is None or factor is None:
        return whole
    return apart[0], min(apart[1] * factor, whole[1])


def cells(one: Candidate, *, precision: bool = False) -> list[str]:
    """Cells of a candidate's row of the ranking, for people; with its `precision`, if that was assumed."""
    time, cost = hours(one.time), dollars(one.cost)
    if one.time_interval:
        time += " [{} .. {}]".format(*(hours(end) for end in one.time_interval))
    if one.cost_interval:
        cost += " [{} .. {}]".format(*(three_digits(end) for end in one.cost_interval))
    memory, number = format_quantity(one.memory, "B", digits=3), f"{one.number}{'*' if one.best else ''}"
    return [
        number,
        str(one.group or ""),
        one.choice.name,
        str(one.choice.gpus),
        *([one.choice.precision] if precision else []),
        time,
        cost,
        samples_per_second(one.rate),
        memory,
        one.limited_by,
        one.reason,
    ]


def samples_per_second(rate: float) -> str:
    """A rate [1/s] in four digits or more, without an exponent.

    Examples
    --------
    >>> samples_per_second(33244.1), samples_per_second(12.3456)
    ('33244', '12.35')
    """
    return f"{rate:.4g}" if rate < 10_000 else f"{rate:.0f}"


def plain(one: Candidate, request: Request) -> dict[str, Any]:
    """A candidate as plain data, as the file has it."""
    choice = one.choice
    return {
        "number": one.number,
        "instance": choice.instance,
        "nodes": choice.nodes,
        "gpus": choice.gpus,
        "strategy": choice.strategy,
        "batch": choice.batch,
        "precision": choice.precision,
        "precision_source": precision_source(request.precision),
        "time": finite(one.time),
        "time_interval": one.time_interval,
        "time_interval_apart": one.spread.apart,
        "cost": finite(one.cost),
        "cost_interval": one.cost_interval,
        "interval_sources": dict(one.spread.sources),
        "no_interval": one.spread.why_not,
        "group": one.group,
        "samples_per_second": one.rate or None,
        "goodput": one.goodput,
        "memory": one.memory,
        "limited_by": one.limited_by or None,
        "feasible": one.feasible,
        "best": one.best,
        "reason": one.reason,
        "price": finite(request.prices.of(choice.instance)),
        "price_source": request.prices.sources[choice.instance],
    }


def candidate_of(row: CandidateRow, asked: str) -> Candidate:
    """A candidate of a file's row, the inverse of `plain`; `asked` is the plan's precision."""
    precision = row.precision or ("fp32" if asked == AUTO else asked)
    return Candidate(
        number=row.number,
        choice=Configuration(row.instance, row.nodes, row.strategy, row.batch, row.gpus, precision),
        time=math.inf if row.time is None else row.time,
        cost=row.cost if row.cost is not None else math.nan if row.price is None else math.inf,
        time_interval=row.time_interval,
        cost_interval=row.cost_interval,
        rate=row.samples_per_second or 0.0,
        goodput=row.goodput,
        memory=row.memory,
        limited_by=row.limited_by or "",
        feasible=row.feasible,
        best=row.best,
        reason=row.reason,
        spread=CandidateSpread(row.time_interval, row.time_interval_apart, dict(row.interval_sources), row.no_interval),
        group=row.group,
    )
