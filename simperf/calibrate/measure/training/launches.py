"""Costs of launches: calls by type on the host, waits, the queue, captured graphs, and chains of small kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.clock import sample
from simperf.calibrate.measure.task import Task, point
from simperf.calibrate.measure.training.order import PlannedPoint

__all__ = ["family"]

#: kernels between two events, and elements of each: their slope is a kernel and the gap to the next one
_CHAINS = (1, 2, 8, 32, 128)
_ELEMENTS = (1, 1 << 18, 1 << 21)
#: clock cycles that the device waits for each launch
_AHEAD = 60_000
#: families of the set ``machine`` that tell of launches, and their rounds
_KNOWN = (("queue", 1), ("sync", 1), ("frontend", 2), ("graphs", 2))


def _chain(bench: Bench, kernels: int, elements: int) -> Sequence[float]:
    """From an event before so many kernels to one behind them, all queued before the first begins [s]."""
    torch = bench.torch
    x = bench.new("fp32")(elements)

    def once() -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(_AHEAD * (kernels + 2))
        begin.record()
        for _ in range(kernels):
            x.add_(1.0)
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e-3

    return sample(lambda number: sum(once() for _ in range(number)), bench.care)


def _task(bench: Bench, kernels: int, elements: int) -> Task:
    at: dict[str, Value] = {"device": bench.kind, "kernels": kernels, "elements": elements}
    return point("launch/chain", at, lambda: _chain(bench, kernels, elements), seconds=0.4)


def _given(task: Task) -> Task:
    return task if task.seconds else replace(task, seconds=0.4 * len(task.points))


def family(bench: Bench) -> Iterator[PlannedPoint]:
    """Chains, and the families of the set ``machine`` that measure launches, shortened."""
    if bench.cuda:
        for elements in _ELEMENTS:
            for kernels in _CHAINS:
                number = 1 if elements == 1 else 2
                yield PlannedPoint(number, "launch/chain", partial(_task, bench, kernels, elements))
    else:
        text = "launch/chain: not measured: a CPU runs each operation at once, there is no queue"
        yield PlannedPoint(1, "launch/chain", lambda: text)
    fewer = replace(bench, quick=True)
    for module, number in _KNOWN:
        listed = import_module(f"simperf.calibrate.measure.{module}").family(fewer)
        while True:
            try:
                item = next(listed, None)
            except Exception as error:
                text = f"{module}: not measured: {type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
                yield PlannedPoint(number, module, partial(str, text))
                break
            if item is None:
                break
            yield PlannedPoint(number, module, partial(_given, item) if isinstance(item, Task) else partial(str, item))
