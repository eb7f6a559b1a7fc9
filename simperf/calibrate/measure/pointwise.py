"""Operations on each element, and copies: over sizes from one page to many times the last cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simperf.calibrate.measure.bench import Bench, Maker, New
from simperf.calibrate.measure.ops import UNCACHED, operation
from simperf.calibrate.measure.shapes import sizes
from simperf.calibrate.measure.task import Family

__all__ = ["binary", "family", "makers", "unary"]


def unary(function: Callable[[Any], Any]) -> Callable[[int], Maker]:
    """Make a maker, for a number of elements, of an operation on one tensor."""

    def sized(n: int) -> Maker:
        def maker(new: New) -> Any:
            x = new(n)
            return lambda: function(x)

        return maker

    return sized


def binary(function: Callable[[Any, Any], Any]) -> Callable[[int], Maker]:
    """Make a maker, for a number of elements, of an operation on two tensors."""

    def sized(n: int) -> Maker:
        def maker(new: New) -> Any:
            x, y = new(n), new(n)
            return lambda: function(x, y)

        return maker

    return sized


def makers(bench: Bench) -> dict[str, Callable[[int], Maker]]:
    """Operation -> maker for a number of elements."""
    torch = bench.torch
    aten, functional = torch.ops.aten, torch.nn.functional

    def masked(n: int) -> Maker:
        def maker(new: New) -> Any:
            grad = new(n)
            mask = torch.ones(n, dtype=torch.bool, device=grad.device)
            if grad.device.type == "cpu":  # where dropout is a product with a mask of numbers
                scale = mask.to(grad.dtype)
                return lambda: grad * scale
            return lambda: aten.native_dropout_backward(grad, mask, 1.1)

        return maker

    def gathered(n: int) -> Maker:
        def maker(new: New) -> Any:
            table, index = new(30522, 256), new(max(1, n // 256), high=30522)
            return lambda: functional.embedding(index, table)

        return maker

    def scattered(n: int) -> Maker:
        def maker(new: New) -> Any:
            index, rows = new(64, high=1000), max(2, n // 256)
            grad, index = new(64, 256), index % rows
            return lambda: aten.embedding_dense_backward(grad, index, rows, -1, False)

        return maker

    return {
        "add": binary(lambda x, y: x + y),
        "add_": binary(lambda x, y: x.add_(y, alpha=1e-9)),
        "mul": binary(lambda x, y: x * y),
        "div": unary(lambda x: x / 3.0),
        "relu": unary(torch.relu),
        "threshold_backward": binary(lambda g, x: aten.threshold_backward(g, x, 0)),
        "gelu": unary(functional.gelu),
        "gelu_backward": binary(aten.gelu_backward),
        "tanh": unary(torch.tanh),
        "sigmoid": unary(torch.sigmoid),
        "exp": unary(torch.exp),
        "native_dropout": unary(lambda x: functional.dropout(x, 0.1)),
        "native_dropout_backward": masked,
        "fill": unary(torch.zeros_like),
        "copy": unary(torch.clone),
        "cat": binary(lambda x, y: torch.cat((x, y))),
        "embedding": gathered,
        "embedding_dense_backward": scattered,
    }


#: operations that are timed with uncached operands too
_COLD = ("add", "relu", "threshold_backward", "copy")


def family(bench: Bench) -> Family:
    """Elementwise operations and copies."""
    listed = makers(bench)
    count = bench.sizes_of_a_kind(13, few=4)
    low, high = (4e3, 256e6) if bench.cuda else (2e3, 24e6)
    for name, sized in listed.items():
        if bench.quick and name in ("mul", "div", "tanh", "sigmoid", "cat", "embedding", "embedding_dense_backward"):
            continue
        for n in sizes(low, high, count):
            yield operation(bench, sized(n), "fp32", shape={"call": name})
        if bench.cuda and not bench.quick:
            for n in sizes(low, high, 4):
                yield operation(bench, sized(n), "bf16", shape={"call": name})
    if not bench.cuda:
        for name in _COLD:
            for n in sizes(2e4, 6e6, 2 if bench.quick else 5):
                yield operation(bench, listed[name](n), "fp32", shape={"call": name}, cold=UNCACHED)
