"""Adam as torch runs it (foreach and fused), its kernels one by one, and the clipping of gradients by their norm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.shapes import sizes
from simperf.calibrate.measure.task import Task, point
from simperf.calibrate.measure.training.order import PlannedPoint
from simperf.calibrate.measure.training.points import expected, rotating, sets_of
from simperf.calibrate.measure.update import fused_update, update_calls, update_op
from simperf.workload.optimizers import OPTIMIZERS, UpdateKernel

__all__ = ["family", "parameter_shapes"]

_MEMORY = {True: 1.5e12, False: 3e9}


def parameter_shapes(layers: int, width: int) -> list[tuple[int, ...]]:
    """Parameters of so many GPT blocks.

    Examples
    --------
    >>> len(parameter_shapes(12, 768))
    144
    """
    block: list[tuple[int, ...]] = [(width,), (width,), (3 * width, width), (3 * width,), (width, width), (width,)]
    block += [(width,), (width,), (4 * width, width), (4 * width,), (width, 4 * width), (width,)]
    return block * layers


def _one(bench: Bench, kernel: UpdateKernel, n: int) -> Task:
    """One kernel of foreach over an array that no cache holds."""
    op = update_op([kernel], n, kind=kernel.kind)
    count = sets_of(op.nbytes, bench.uncached)

    def take() -> Sequence[float]:
        new, call = bench.new("fp32"), update_calls(bench)[kernel.kind]
        with bench.torch.no_grad():
            given = [[new(n) for _ in range(kernel.reads)] for _ in range(count)]
            turns = rotating([partial(call, arrays) for arrays in given])
            for _ in range(count):
                turns()
            return bench.kernel(turns)

    time = op.nbytes / _MEMORY[bench.cuda] + 1e-5
    seconds = expected(bench, time, fill=count * op.nbytes, warm_up=count)
    return point("op/optimizer", bench.conditions(op, {"cache": "cold"}), take, seconds=seconds)


def _fused(bench: Bench, n: int) -> Task:
    kernels = OPTIMIZERS["adamw-fused"].kernels
    op = update_op(kernels, n, kind=kernels[0].kind)
    seconds = expected(bench, op.nbytes / _MEMORY[bench.cuda], fill=4.0 * n)
    # four arrays of this size are larger than the cache
    at = bench.conditions(op, {"cache": "cold"})
    return point("op/optimizer", at, fused_update(bench, "adamw-fused", n), seconds=seconds)


def _gradients(bench: Bench, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    new = bench.new("fp32")
    weights = []
    for shape in shapes:
        weight = bench.torch.nn.Parameter(new(*shape))
        weight.grad = new(*shape)
        weights.append(weight)
    return weights


def _whole(bench: Bench, layers: int, width: int, *, mode: str, part: str) -> Task:
    """A whole update of the parameters of a model, or their clipping."""
    shapes = parameter_shapes(layers, width)
    torch = bench.torch

    def take() -> Sequence[float]:
        weights = _gradients(bench, shapes)
        if mode == "clip":
            clip = torch.nn.utils.clip_grad_norm_

            def call() -> object:
                return clip(weights, 1e6)
        else:
            optimizer = torch.optim.AdamW(weights, lr=1e-9, **{mode: True})
            call = optimizer.step
        call()
        return (bench.host if part == "host" else bench.kernel)(call)

    elements = sum(_size(shape) for shape in shapes)
    at: dict[str, Value] = {"device": bench.kind, "mode": mode, "part": part, "dtype": "fp32"}
    at |= {"parameters": len(shapes), "elements": elements}
    traffic = {"clip": 12.0, "fused": 28.0, "foreach": 80.0}[mode] * elements
    time = traffic / _MEMORY[bench.cuda] + 2e-3
    series = "update/clip" if mode == "clip" else "update/adamw"
    return point(series, at, take, seconds=expected(bench, time, fill=traffic))


def _size(shape: tuple[int, ...]) -> int:
    count = 1
    for side in shape:
        count *= side
    return count


def family(bench: Bench) -> Iterator[PlannedPoint]:
    """Kernels over sizes, then whole updates of models."""
    low, high, count = (4e6, 4e8, 5) if bench.cuda else (5e4, 2e6, 5)
    kernels = [one for one in dict.fromkeys(OPTIMIZERS["adamw"].kernels) if one.kind != "add" or one.reads > 1]
    models = ((12, 768), (8, 2048), (2, 8192)) if bench.cuda else ((2, 128), (2, 256))
    for index, n in enumerate(sizes(low, high, count)[::-1]):
        yield PlannedPoint(1 if index < 3 else 2, "op/optimizer, fused", partial(_fused, bench, n))
        for kernel in kernels:
            yield PlannedPoint(2 if index < 3 else 3, f"op/optimizer, {kernel.kind}", partial(_one, bench, kernel, n))
    for index, (layers, width) in enumerate(models):
        for mode in ("foreach", "fused", "clip"):
            for part in ("device", "host") if bench.cuda else ("device",):
                make: Callable[[], Task] = partial(_whole, bench, layers, width, mode=mode, part=part)
                yield PlannedPoint(1 if index == 0 else 2, f"update, {mode}", make)
