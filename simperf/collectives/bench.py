"""The bench: times, bandwidths and bounds of collectives by size, as nccl-tests tells them.

`measure` times NCCL's choice and idealised algorithms alike; idealised ones are bandwidth and latency of the wires
only, without a library.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from simperf.collectives.calls import Call, Played
from simperf.collectives.floor import floor
from simperf.collectives.plan import bus_factor
from simperf.collectives.settings import NCCL
from simperf.collectives.utilization import Utilization
from simperf.errors import FloorError, InputError, Problem

__all__ = ["Row", "best_rows", "measure", "sizes_between", "switch_points"]

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
    choice : str
        Algorithm and protocol that NCCL takes, such as ``"ring/LL"``; empty for an idealised algorithm.
    channels : int
        Channels that NCCL runs them on; 0 for an idealised algorithm.
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
    choice: str = ""
    channels: int = 0

    @property
    def idealised(self) -> bool:
        """Whether it is bandwidth and latency of the wires only, without a library."""
        return self.algorithm not in NCCL


def sizes_between(low: int, high: int, *, factor: float = 0.0, step: int = 0) -> list[int]:
    """Sizes from low to high, by a factor or a step, as the options -b, -e, -f and -i of nccl-tests.

    Raises
    ------
    InputError
        Nothing lies between, or more than 200 sizes do.
    """
    if low > high:
        message, told = "the smallest size is larger than the largest", f"{low} > {high}"
        raise InputError(Problem(message, key="-b", value=told, expected=f"-b {high} or less, or -e {low} or more"))
    if not step and not 1.0 < factor < math.inf:
        raise InputError(Problem("sizes grow by a factor above 1", key="-f", value=f"{factor:g}"))
    sizes, size = [], low
    while size <= high:
        sizes.append(size)
        if len(sizes) > MOST_SIZES:
            option, given = ("-i", str(step)) if step else ("-f", f"{factor:.12g}")
            message, expected = f"more than {MOST_SIZES} sizes", f"a larger {'step' if step else 'factor'}"
            raise InputError(Problem(message, key=option, value=given, expected=expected))
        size = size + step if step else max(size + 1, round(size * factor))
    return sizes


def measure(call: Call, *removed: object, **options: Any) -> Row:
    """Run one algorithm at one size, or what NCCL would choose at that size.

    Entry times and background traffic are those of `simperf.collectives.execute`; the time counts from 0.
    A plan beyond the call's bounds is refused, unless `exact` forces it.

    Parameters
    ----------
    call : Call
        The collective, its algorithm, its size, and on what.
    **options
        Of the algorithm (`simperf.collectives.options_of`, `simperf.collectives.settings.SETTINGS`).

    Raises
    ------
    InputError
        What NCCL does not take, or cannot run on.
    PlanBoundsError
        The plan takes more than the bounds.
    FloorError
        The time is below the bound: a defect of the model.
    """
    if removed or not isinstance(call, Call):
        message = f"a Call is expected, with all that but the algorithm's options, not {type(call).__name__}"
        expected = 'measure(Call(machine, "all-reduce", "ring", nbytes=1e6, ranks=machine.gpus))'
        raise InputError(Problem(message, key="call", expected=expected))
    played = call.play(**options)
    time, bound = played.run.time, _floor(call, played)
    rate = call.nbytes / time if time else 0.0
    loads = Utilization(played.run.moved, call.machine.resources, time)
    link, load = loads.busiest
    return Row(
        call.algorithm,
        call.nbytes,
        time,
        rate,
        rate * bus_factor(call.collective, len(call.ranks)),
        bound,
        link,
        load,
        played.run.method,
        loads,
        played.choice,
        played.channels,
    )


def _floor(call: Call, played: Played) -> float:
    """Bound on the time of a call [s]; of what NCCL chose, by the wires alone, so that it is one for all choices."""
    time, helpers = played.run.time, played.helpers
    bound = partial(floor, call.machine, call.collective, ranks=call.ranks, nbytes=call.nbytes, helpers=helpers)
    start = 0.0 if played.choice else played.transport.start  # what was measured may start sooner
    least = bound(transport=replace(played.transport, start=start))
    if time < least * (1 - 1e-9):
        what = f"{call.collective} {call.algorithm} {played.choice}".rstrip()
        raise FloorError(f"{what}, {call.nbytes:g} B: {time:g} s is below the bound of {least:g} s")
    return bound() if played.choice else least


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
