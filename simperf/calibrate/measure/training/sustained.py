"""One product without a pause for seconds: how far the clock falls when the board reaches its power or its heat."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from simperf.calibrate.dataset import Measurement, Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.task import Task
from simperf.calibrate.measure.training.order import PlannedPoint

__all__ = ["family"]

#: time of all readings together, and of one of them [s]
_WHOLE, _BLOCK = 2.5, 0.05
_SIDES = (8192, 4096, 16384)


def _task(bench: Bench, side: int, dtype: str) -> Task:
    at: dict[str, Value] = {"device": bench.kind, "dtype": dtype, "m": side, "n": side, "k": side}
    torch = bench.torch

    def run(wanted: object) -> Iterator[Measurement]:
        a, b = bench.new(dtype)(side, side), bench.new(dtype)(side, side)
        out = torch.empty_like(a)

        def block(number: int) -> float:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            for _ in range(number):
                torch.mm(a, b, out=out)
            end.record()
            if bench.watch is not None:
                bench.watch()
            end.synchronize()
            return float(begin.elapsed_time(end)) * 1e-3

        block(1)
        number = max(1, min(400, round(_BLOCK / max(block(1), 1e-6))))
        readings: list[float] = []
        spent = 0.0
        while spent < _WHOLE and len(readings) < round(2 * _WHOLE / _BLOCK):
            took = block(number)
            spent += took
            readings.append(took / number)
        yield Measurement("sustained/gemm", at, tuple(readings))

    return Task((("sustained/gemm", at),), run, seconds=_WHOLE + 0.3)


def family(bench: Bench) -> Iterator[PlannedPoint]:
    """Square products of a few sizes, on a GPU."""
    if not bench.cuda:
        text = "sustained/gemm: not measured: the clock of a CPU is not read"
        yield PlannedPoint(2, "sustained/gemm", lambda: text)
        return
    for index, side in enumerate(_SIDES):
        yield PlannedPoint(1 if index == 0 else 2, "sustained/gemm", partial(_task, bench, side, "bf16"))
    yield PlannedPoint(3, "sustained/gemm", partial(_task, bench, _SIDES[0], "fp16"))
