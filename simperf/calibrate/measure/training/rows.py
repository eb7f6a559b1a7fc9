"""Normalisation, softmax and cross-entropy over rows as long as a model is wide, or as its vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench, Maker, New
from simperf.calibrate.measure.rows import rowwise
from simperf.calibrate.measure.task import Task, point
from simperf.calibrate.measure.training.order import PlannedPoint, spread
from simperf.calibrate.measure.training.points import expected, kernel_point
from simperf.workload.op import Op
from simperf.workload.precision import PRECISIONS
from simperf.workload.trace.kinds import KINDS

__all__ = ["family"]

_NORMS = ("layernorm", "layernorm_backward", "rmsnorm", "rmsnorm_backward")
_SOFTMAX = ("softmax", "softmax_backward")
_LOSS = ("log_softmax", "log_softmax_backward")


def _rms(bench: Bench) -> dict[str, Callable[[int, int], Maker]]:
    """Normalisation by the root mean square, as `torch.nn.functional.rms_norm` runs it (torch 2.4 and later)."""
    torch = bench.torch

    def shaped(back: bool, rows: int, columns: int) -> Maker:
        def maker(new: New) -> Any:
            x, weight = new(rows, columns, grad=back), new(columns, grad=back)
            if not back:
                return lambda: torch.nn.functional.rms_norm(x, (columns,), weight, 1e-6)
            with torch.enable_grad():
                y = torch.nn.functional.rms_norm(x, (columns,), weight, 1e-6)
            grad = torch.ones_like(y)
            return lambda: torch.autograd.grad(y, (x, weight), grad, retain_graph=True)

        return maker

    return {"rmsnorm": partial(shaped, False), "rmsnorm_backward": partial(shaped, True)}


def _task(bench: Bench, name: str, dtype: str, *, rows: int, columns: int) -> Task:
    maker = {**rowwise(bench), **_rms(bench)}[name](rows, columns)
    words: dict[str, Value] = {"rows": rows, "columns": columns, "call": name}
    if not name.startswith("rms"):
        return kernel_point(bench, maker, dtype, shape=words)
    # one kernel on GPUs from torch 2.8 on; elsewhere several, which nothing is fitted to
    fused = bench.cuda and hasattr(bench.torch.ops.aten, "_fused_rms_norm")
    op = _rms_op(name, dtype, rows=rows, columns=columns)
    return kernel_point(bench, maker, dtype, shape=words, op=op, series="" if fused else "composed/rmsnorm")


def _rms_op(name: str, dtype: str, *, rows: int, columns: int) -> Op:
    """The kernel, which falls apart on the meta device: with the amounts that a trace gives it."""
    kind, count, width = KINDS["_fused_rms_norm" + name.removeprefix("rmsnorm")], rows * columns, PRECISIONS[dtype]
    back = name.endswith("backward")
    read = kind.passes * (1 + back) * count + columns
    written = count + (columns if back else 0)
    return Op(
        name=kind.kind,
        kind=kind.kind,
        flops=kind.flops * count,
        nbytes_read=float(width * read + (4 * rows if back else 0)),
        nbytes_written=float(width * written + (0 if back else 4 * rows)),
        dtype=dtype,
        family=kind.family,
        elements=float(count),
    )


def _cross_entropy(bench: Bench, dtype: str, *, rows: int, columns: int, back: bool) -> Task:
    """The loss as torch runs it: several kernels, which nothing is fitted to."""
    torch = bench.torch

    def take() -> Sequence[float]:
        with torch.no_grad():
            scores = bench.new(dtype)(rows, columns, grad=back)
            target = bench.new(dtype)(rows, high=columns)
            if not back:
                return bench.kernel(lambda: torch.nn.functional.cross_entropy(scores, target))
            with torch.enable_grad():
                loss = torch.nn.functional.cross_entropy(scores, target)
            return bench.kernel(lambda: torch.autograd.grad(loss, scores, retain_graph=True))

    at: dict[str, Value] = {"device": bench.kind, "dtype": dtype, "rows": rows, "columns": columns}
    at |= {"pass": "backward" if back else "forward", "part": "device"}
    nbytes = 4.0 * rows * columns
    memory = 1.5e12 if bench.cuda else 3e9
    return point("loss/cross-entropy", at, take, seconds=expected(bench, 4 * nbytes / memory, fill=nbytes))


def family(bench: Bench) -> Iterator[PlannedPoint]:
    """Rows over tokens and widths."""
    tokens = (1024, 2048, 4096, 8192, 16384) if bench.cuda else (64, 256, 1024)
    widths = (768, 1024, 2048, 4096, 5120, 8192, 16384) if bench.cuda else (128, 512, 1024)
    dtypes = ("bf16", "fp32") if bench.cuda else ("fp32",)
    shapes = spread(tokens, widths)
    for index, (rows, columns) in enumerate(shapes[: 14 if bench.cuda else 7]):
        for name in _NORMS:
            for place, dtype in enumerate(dtypes):
                number = min(3, (1 if index < 4 else 2) + place)
                make = partial(_task, bench, name, dtype, rows=rows, columns=columns)
                yield PlannedPoint(number, f"op/normalization, {name}", make)
    vocabularies = (32000, 50304, 128256) if bench.cuda else (1000, 8000)
    for index, (rows, columns) in enumerate(spread(tokens, vocabularies)[: 9 if bench.cuda else 5]):
        if rows * columns * 4.0 > (9e9 if bench.cuda else 4e7):
            continue
        for name in _LOSS:
            make = partial(_task, bench, name, "fp32", rows=rows, columns=columns)
            yield PlannedPoint(1 if index < 3 else 2, f"op/normalization, {name}", make)
        for back in (False, True):
            make = partial(_cross_entropy, bench, dtypes[0], rows=rows, columns=columns, back=back)
            yield PlannedPoint(1 if index < 3 else 2, "loss/cross-entropy", make)
    for index, (rows, columns) in enumerate(shapes[: 8 if bench.cuda else 5]):
        for name in _SOFTMAX:
            make = partial(_task, bench, name, dtypes[0], rows=8 * rows, columns=max(columns // 4, 64))
            yield PlannedPoint(2 if index < 5 else 3, f"op/normalization, {name}", make)
