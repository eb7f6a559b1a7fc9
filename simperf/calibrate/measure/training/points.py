"""Points of kernels with operands that a cache holds or not, and the time that each is expected to take."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import cycle
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench, Maker
from simperf.calibrate.measure.task import Task, point
from simperf.workload.op import MATRIX_FAMILIES, Op

__all__ = ["expected", "kernel_point", "rotating", "sets_of"]

#: most sets of operands that take turns
_MOST_SETS = 2048
#: rough rates for estimates: arithmetic by width of an element [FLOP/s], memory, filling operands [B/s]; launch [s]
_RATES: Mapping[bool, tuple[Mapping[str, float], float, float, float]] = {
    True: ({"fp32": 3e13, "tf32": 2e14, "fp8": 7e14}, 1.5e12, 1e12, 8e-6),
    False: ({"fp32": 3e10}, 5e9, 5e8, 1e-5),
}
_USUAL_RATE = {True: 4e14, False: 1e10}
#: clock cycles that a kernel on a GPU waits for each launch, in time [s]
_AHEAD = 4e-5


def sets_of(nbytes: float, uncached: float) -> int:
    """Number of sets of operands that must take turns so that none is in a cache when it comes again.

    Examples
    --------
    >>> sets_of(4e6, 256e6), sets_of(1e9, 256e6)
    (64, 1)
    """
    return max(1, min(_MOST_SETS, math.ceil(uncached / max(nbytes, 1.0))))


def rotating(makers: Sequence[Callable[[], Any]]) -> Callable[[], None]:
    """A call that is each of the given ones in turn.

    Results are kept until their turn comes again, so that they lie in other memory than the next ones, as in a step.
    """
    kept: list[Any] = [None] * len(makers)
    turns = cycle(range(len(makers)))

    def call() -> None:
        index = next(turns)
        kept[index] = makers[index]()

    return call


def kernel_time(bench: Bench, op: Op) -> float:
    """Rough time of one kernel: for estimates of the time that measuring takes alone [s]."""
    rates, memory, _, launch = _RATES[bench.cuda]
    rate = rates.get(op.dtype, _USUAL_RATE[bench.cuda])
    work = op.flops / rate if op.family in MATRIX_FAMILIES else 0.0
    return max(work, op.nbytes / memory) + launch


def expected(bench: Bench, time: float, *, fill: float = 0.0, warm_up: int = 0) -> float:
    """Expected time of a point, of a call that takes `time`, with so many bytes of operands to fill [s]."""
    care = bench.care
    readings = max(min(care.budget, care.most * max(care.block, time)), care.few * time)
    late = _AHEAD / max(time, 1e-7) if bench.cuda else 0.0
    return 0.02 + fill / _RATES[bench.cuda][2] + (warm_up + 6) * time + readings * (1.0 + min(late, 20.0))


def kernel_point(
    bench: Bench,
    maker: Maker,
    dtype: str,
    *,
    cold: bool = True,
    op: Op | None = None,
    series: str = "",
    shape: Mapping[str, Value] | None = None,
    context: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Task:
    """A task of one point of ``op/<family>``, or of another series: the device's time for what `maker` sets up.

    Parameters
    ----------
    bench : Bench
    maker : Maker
    dtype : str
        Precision of its operands.
    cold : bool
        No cache holds its operands, else the same ones are used again and again.
    op : Op, optional
        What the call is; by default as the meta device tells.
    series : str
        Of the point, if not ``op/<family>``.
    shape : mapping of str to Value, optional
        Further conditions.
    context : callable
        Gives a context in which the call is set up and made.
    """
    found = op if op is not None else bench.describe(maker, dtype)
    count = sets_of(found.nbytes, bench.uncached) if cold else 1

    def take() -> Sequence[float]:
        with bench.torch.no_grad(), context():
            calls = [maker(bench.new(dtype)) for _ in range(count)]
            call = rotating(calls)
            for _ in range(count):  # memory of results is there afterwards, and libraries have chosen their kernels
                call()
            return bench.kernel(call)

    at = bench.conditions(found, {"cache": "cold" if cold else "warm", **(shape or {})})
    seconds = expected(bench, kernel_time(bench, found), fill=count * found.nbytes, warm_up=count)
    return point(series or f"op/{found.family}", at, take, seconds=seconds)
