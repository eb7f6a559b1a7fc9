"""Operations that combine elements: reductions, normalisations, softmax, pooling; forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench, Maker, New
from simperf.calibrate.measure.ops import operation
from simperf.calibrate.measure.shapes import sizes
from simperf.calibrate.measure.task import Family

__all__ = ["family", "rowwise"]


def rowwise(bench: Bench) -> dict[str, Callable[[int, int], Maker]]:
    """Operation -> maker for rows and columns."""
    torch = bench.torch
    aten, functional = torch.ops.aten, torch.nn.functional

    def plain(function: Callable[[Any], Any]) -> Callable[[int, int], Maker]:
        def shaped(rows: int, columns: int) -> Maker:
            def maker(new: New) -> Any:
                x = new(rows, columns)
                return lambda: function(x)

            return maker

        return shaped

    def layernorm(rows: int, columns: int) -> Maker:
        def maker(new: New) -> Any:
            x, weight, bias = new(rows, columns), new(columns), new(columns)
            return lambda: functional.layer_norm(x, (columns,), weight, bias)

        return maker

    def layernorm_backward(rows: int, columns: int) -> Maker:
        def maker(new: New) -> Any:
            grad, x, weight, bias = new(rows, columns), new(rows, columns), new(columns), new(columns)
            _, mean, scale = aten.native_layer_norm(x, [columns], weight, bias, 1e-5)
            mask = [True, True, True]
            return lambda: aten.native_layer_norm_backward(grad, x, [columns], mean, scale, weight, bias, mask)

        return maker

    def softmax_backward(log: bool) -> Callable[[int, int], Maker]:
        call = aten._log_softmax_backward_data if log else aten._softmax_backward_data

        def shaped(rows: int, columns: int) -> Maker:
            def maker(new: New) -> Any:
                grad, x = new(rows, columns), new(rows, columns)
                return lambda: call(grad, x, -1, x.dtype)

            return maker

        return shaped

    return {
        "sum": plain(lambda x: x.sum(0)),  # the gradient of a bias
        "mean": plain(lambda x: x.mean(-1)),
        "softmax": plain(lambda x: torch.softmax(x, -1)),
        "log_softmax": plain(lambda x: torch.log_softmax(x, -1)),
        "softmax_backward": softmax_backward(log=False),
        "log_softmax_backward": softmax_backward(log=True),
        "layernorm": layernorm,
        "layernorm_backward": layernorm_backward,
    }


def _images(bench: Bench) -> dict[str, Callable[[int, int, int], Maker]]:
    """Operation -> maker for batch, channels and side."""
    torch = bench.torch
    aten, functional = torch.ops.aten, torch.nn.functional

    def batchnorm(batch: int, channels: int, side: int) -> Maker:
        def maker(new: New) -> Any:
            x, weight, bias = new(batch, channels, side, side), new(channels), new(channels)
            mean, variance = new(channels), new(channels)
            return lambda: functional.batch_norm(x, mean, variance, weight, bias, True)

        return maker

    def batchnorm_backward(batch: int, channels: int, side: int) -> Maker:
        def maker(new: New) -> Any:
            x, grad = new(batch, channels, side, side), new(batch, channels, side, side)
            weight, bias, mean, variance = (new(channels) for _ in range(4))
            _, saved, scale = aten.native_batch_norm(x, weight, bias, mean, variance, True, 0.1, 1e-5)
            mask = [True, True, True]
            call = aten.native_batch_norm_backward
            return lambda: call(grad, x, weight, mean, variance, saved, scale, True, 1e-5, mask)

        return maker

    def pool(kind: str, *, back: bool) -> Callable[[int, int, int], Maker]:
        def shaped(batch: int, channels: int, side: int) -> Maker:
            def maker(new: New) -> Any:
                x = new(batch, channels, side, side)
                if kind == "max":
                    place = [3, 3], [2, 2], [1, 1], [1, 1], False
                    y, index = aten.max_pool2d_with_indices(x, *place)
                    if back:
                        grad = torch.ones_like(y)
                        return lambda: aten.max_pool2d_with_indices_backward(grad, x, *place, index)
                    return lambda: aten.max_pool2d_with_indices(x, *place)
                if back:
                    grad = new(batch, channels, side // 2, side // 2)
                    return lambda: aten.avg_pool2d_backward(grad, x, [2, 2], [2, 2], [0, 0], False, True, None)
                return lambda: functional.avg_pool2d(x, 2)

            return maker

        return shaped

    return {
        "batchnorm": batchnorm,
        "batchnorm_backward": batchnorm_backward,
        "max_pool2d": pool("max", back=False),
        "max_pool2d_backward": pool("max", back=True),
        "avg_pool2d": pool("avg", back=False),
        "avg_pool2d_backward": pool("avg", back=True),
    }


def _shapes(count: int, low: float, high: float) -> Iterator[tuple[int, int]]:
    """Rows and columns of `count` arrays."""
    for i, n in enumerate(sizes(low, high, count)):
        columns = (256, 128, 768, 1000, 3072)[i % 5]
        yield max(2, n // columns), columns


def _pictures(count: int, low: float, high: float) -> Iterator[tuple[int, int, int]]:
    """Batch, channels and side of `count` arrays."""
    for i, n in enumerate(sizes(low, high, count)):
        side = (8, 28, 14, 56, 26)[i % 5]
        channels = (64, 32, 128, 64, 20)[i % 5]
        yield max(1, round(n / (channels * side * side))), channels, side


def family(bench: Bench) -> Family:
    """Reductions, normalisations and pooling."""
    low, high = (2e4, 6e7) if bench.cuda else (4e3, 1.2e7)
    count = bench.sizes_of_a_kind(12, few=3)
    for name, shaped in rowwise(bench).items():
        for rows, columns in _shapes(count, low, high):
            yield operation(
                bench, shaped(rows, columns), "fp32", shape={"rows": rows, "columns": columns, "call": name}
            )
    for name, imaged in _images(bench).items():
        for batch, channels, side in _pictures(count, low, high):
            words: dict[str, Value] = {"call": name, "batch": batch, "channels": channels, "side": side}
            yield operation(bench, imaged(batch, channels, side), "fp32", shape=words)
