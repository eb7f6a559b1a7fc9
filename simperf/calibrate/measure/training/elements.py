"""Activations, sums, casts and embeddings over the activations of a block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench, Maker, New
from simperf.calibrate.measure.pointwise import binary, makers, unary
from simperf.calibrate.measure.shapes import sizes
from simperf.calibrate.measure.task import Task
from simperf.calibrate.measure.training.order import PlannedPoint
from simperf.calibrate.measure.training.points import kernel_point
from simperf.workload.op import Op

__all__ = ["family"]

_FIRST = ("gelu", "gelu_backward", "silu", "silu_backward", "add", "mul", "cast")
_SECOND = ("native_dropout", "native_dropout_backward", "copy", "embedding", "embedding_dense_backward", "widen")
_FP8 = ("quantize", "amax")


def _more(bench: Bench) -> dict[str, Callable[[int], Maker]]:
    """Operation -> maker for a number of elements, of those that no other set has."""
    torch = bench.torch
    aten = torch.ops.aten

    tables: dict[str, Any] = {}
    tokens, width = (50304, 1024) if bench.cuda else (8192, 256)

    def embedding(n: int) -> Maker:
        def maker(new: New) -> Any:
            index = new(max(1, n // width), high=tokens)
            table = tables.setdefault(index.device.type, new(tokens, width))  # all sets of rows look up the same one
            return lambda: torch.nn.functional.embedding(index, table)

        return maker

    def embedding_backward(n: int) -> Maker:
        def maker(new: New) -> Any:
            rows = max(1, n // width)
            grad, index = new(rows, width), new(rows, high=tokens)
            return lambda: aten.embedding_dense_backward(grad, index, tokens, -1, False)

        return maker

    return {
        "embedding": embedding,
        "embedding_dense_backward": embedding_backward,
        "silu": unary(torch.nn.functional.silu),
        "silu_backward": binary(aten.silu_backward),
        "cast": unary(lambda x: x.to(torch.bfloat16)),
        "widen": unary(lambda x: x.float()),
        "amax": unary(lambda x: torch.linalg.vector_norm(x, ord=float("inf"))),
        "quantize": unary(lambda x: x.to(torch.float8_e4m3fn)),
    }


def _task(bench: Bench, name: str, n: int, dtype: str) -> Task:
    maker = {**makers(bench), **_more(bench)}[name](n)
    words: dict[str, Value] = {"call": name}
    op = None
    if name in ("cast", "widen", "quantize"):
        # the meta device gives one width to both sides
        written = {"cast": 2.0, "widen": 4.0, "quantize": 1.0}[name]
        read = {"fp32": 4.0, "bf16": 2.0}[dtype]
        op = Op("copy", "copy", 0.0, read * n, written * n, dtype=dtype, family="copy", elements=float(n))
    if name == "quantize" and not hasattr(bench.torch, "float8_e4m3fn"):
        raise AttributeError("float8_e4m3fn")
    return kernel_point(bench, maker, dtype, op=op, shape=words)


def family(bench: Bench) -> Iterator[PlannedPoint]:
    """Operations over sizes; the largest and the smallest first."""
    low, high, count = (1e6, 5e8, 6) if bench.cuda else (2e4, 4e6, 5)
    main = "bf16" if bench.cuda else "fp32"
    ordered = _ends_first(sizes(low, high, count))
    for index, n in enumerate(ordered):
        for name in (*_FIRST, *_SECOND, *_FP8):
            dtype = "fp32" if name == "cast" else "bf16" if name in ("widen", *_FP8) else main
            number = 1 if name in _FIRST and index < 3 else 2 if index < 4 else 3
            yield PlannedPoint(number, f"op, {name}", partial(_task, bench, name, n, dtype))


def _ends_first(values: list[int]) -> list[int]:
    """Values so that any beginning reaches far: both ends, then what lies between.

    Examples
    --------
    >>> _ends_first([1, 2, 3, 4, 5])
    [5, 1, 3, 2, 4]
    """
    if len(values) < 3:
        return values[::-1]
    middle = len(values) // 2
    inner = [value for index, value in enumerate(values) if index not in (0, middle, len(values) - 1)]
    return [values[-1], values[0], values[middle], *inner]
