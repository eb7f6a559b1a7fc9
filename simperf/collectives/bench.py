"""The bench: times, bandwidths and bounds of collectives by size, as nccl-tests tells them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simperf.collectives.algorithms import options_of
from simperf.collectives.effort import ASKED, Effort
from simperf.collectives.execute import Execution, execute
from simperf.collectives.floor import floor
from simperf.collectives.placement import PLAIN, Transport, Wired, place
from simperf.collectives.rotation import turns
from simperf.collectives.suit import plan_for
from simperf.errors import FloorError, InputError, Problem

__all__ = ["Row", "best_rows", "bus_factor", "measure", "sizes_between", "switch_points"]

#: most sizes in one table
MOST_SIZES = 200


@dataclass(frozen=True, slots=True)
class Row:
    """One size of one algorithm.

    Parameters
    ----------
    algorithm : str
        The algorithm.
    nbytes : float
        Payload [B].
    time : float
        When the last rank was done [s].
    algbw : float
        Payload over time [B/s].
    busbw : float
        algbw times `bus_factor` [B/s].
    floor : float
        Time that no algorithm can beat [s].
    link : str
        The resource that is busy for the largest part of the time.
    load : float
        That part, 0 to 1.
    method : str
        Executor that found the time.
    loads : mapping of str to float
        Part of the time for which each resource is busy.
    """

    algorithm: str
    nbytes: float
    time: float
    algbw: float
    busbw: float
    floor: float
    link: str
    load: float
    method: str
    loads: Mapping[str, float] = field(default_factory=dict, repr=False)


def bus_factor(collective: str, nranks: int) -> float:
    """Factor from algbw to busbw, as nccl-tests defines it (doc/PERFORMANCE.md there).

    Examples
    --------
    >>> bus_factor("all-reduce", 8), bus_factor("all-gather", 4), bus_factor("broadcast", 4)
    (1.75, 0.75, 1.0)
    """
    part = (nranks - 1) / nranks
    if collective == "all-reduce":
        return 2 * part
    if collective in ("reduce-scatter", "all-gather", "all-to-all", "gather", "scatter"):
        return part
    return 1.0


def sizes_between(low: int, high: int, *, factor: float = 0.0, step: int = 0) -> list[int]:
    """Sizes from low to high, by a factor or a step, as the options -b, -e, -f and -i of nccl-tests.

    Raises
    ------
    InputError
        Nothing lies between, or more than 200 sizes do.
    """
    if low > high:
        raise InputError(Problem("the smallest size is larger than the largest", value=f"{low} > {high}"))
    if not step and not 1.0 < factor < math.inf:
        raise InputError(Problem("sizes grow by a factor above 1", key="-f", value=f"{factor:g}"))
    sizes, size = [], low
    while size <= high:
        sizes.append(size)
        if len(sizes) > MOST_SIZES:
            raise InputError(Problem(f"more than {MOST_SIZES} sizes", expected="a larger step or factor"))
        size = size + step if step else max(size + 1, round(size * factor))
    return sizes


def measure(
    machine: Wired,
    collective: str,
    algorithm: str,
    *,
    nbytes: float,
    ranks: Sequence[str],
    sites: Sequence[str] | None = None,
    transport: Transport = PLAIN,
    exact: bool = False,
    entry_times: Sequence[float] | None = None,
    background: Sequence[tuple[str, str, float]] = (),
    effort: Effort = ASKED,
    **options: Any,
) -> Row:
    """Run one algorithm at one size.

    Where an algorithm leaves the degree of its tree open, a binary tree and a chain (all
    chunks up, then all down) are both tried and the faster one is told. `sites` are the nodes
    of the plan's servers, where the machine's own will not do. Entry times and
    background traffic are those of `simperf.collectives.execute`; the time counts from 0.
    A plan beyond the `effort` is refused, unless `exact` forces it.

    Raises
    ------
    EffortError
        The plan takes more than the effort.
    FloorError
        The time is below the bound: a defect of the model.
    """
    tries = [options]
    if "degree" in options_of(collective, algorithm) and "degree" not in options and len(ranks) > 2:
        known = options_of(collective, algorithm)
        chain = {"degree": 1, **({"overlap": False} if "overlap" in known else {})}
        tries = [{**options, "degree": 2}, {**chain, **options}]
    runs: list[tuple[Execution, tuple[str, ...]]] = []
    for chosen in tries:
        plan = plan_for(
            machine, collective, algorithm, ranks=ranks, nbytes=nbytes, transport=transport, effort=effort, **chosen
        )
        placement = place(plan, machine, ranks=ranks, servers=sites)
        if not exact and (background or not turns(plan, placement, nbytes, transport, entry_times or (0.0,))):
            effort.check(plan, placement)
        run = execute(
            plan,
            machine,
            nbytes=nbytes,
            entry_times=entry_times,
            transport=transport,
            background=background,
            exact=exact,
            placement=placement,
            effort=effort,
        )
        given = sites or getattr(machine, "helpers", ()) or getattr(machine, "cpus", ())
        runs.append((run, tuple(given or ()) if plan.nservers else ()))
    run, helpers = min(runs, key=lambda pair: pair[0].time)
    bound = floor(machine, collective, ranks=ranks, nbytes=nbytes, helpers=helpers, transport=transport)
    if run.time < bound * (1 - 1e-9):
        raise FloorError(f"{collective} {algorithm}, {nbytes:g} B: {run.time:g} s is below the bound of {bound:g} s")
    loads = {
        name: amount / machine.resources[name] / run.time for name, amount in run.moved.items() if amount and run.time
    }
    link = max(loads, key=lambda name: (round(loads[name], 9), name), default="")
    rate = nbytes / run.time if run.time else 0.0
    factor = bus_factor(collective, len(ranks))
    return Row(algorithm, nbytes, run.time, rate, rate * factor, bound, link, loads.get(link, 0.0), run.method, loads)


def best_rows(tables: Mapping[str, Sequence[Row]]) -> list[Row]:
    """The fastest row of each size; of times that differ by rounding the first one of the table wins."""
    best = []
    for rows in zip(*tables.values(), strict=True):
        least = min(row.time for row in rows) * (1 + 1e-9)
        best.append(next(row for row in rows if row.time <= least))
    return best


def switch_points(best: Sequence[Row]) -> list[tuple[str, float, float]]:
    """Runs of sizes with one winner: its name, its smallest and its largest size [B]."""
    runs: list[tuple[str, float, float]] = []
    for row in best:
        if runs and runs[-1][0] == row.algorithm:
            runs[-1] = (row.algorithm, runs[-1][1], row.nbytes)
        else:
            runs.append((row.algorithm, row.nbytes, row.nbytes))
    return runs
