"""Convolutions: forward, and the gradients of input and weight."""

from __future__ import annotations

from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench, Maker, New
from simperf.calibrate.measure.ops import UNCACHED, operation
from simperf.calibrate.measure.shapes import conv_shapes
from simperf.calibrate.measure.task import Family

__all__ = ["family"]


def _conv(bench: Bench, shape: tuple[int, int, int, int, int, int], part: str) -> Maker:
    batch, channels, filters, side, kernel, stride = shape
    padding = kernel // 2
    out = (side + 2 * padding - kernel) // stride + 1
    aten = bench.torch.ops.aten

    def maker(new: New) -> Any:
        x, weight = new(batch, channels, side, side), new(filters, channels, kernel, kernel)
        if part == "forward":
            return lambda: bench.torch.nn.functional.conv2d(x, weight, None, stride, padding)
        grad = new(batch, filters, out, out)
        mask = [part == "input", part == "weight", False]
        twice = [stride, stride], [padding, padding], [1, 1]
        return lambda: aten.convolution_backward(grad, x, weight, None, *twice, False, [0, 0], 1, mask)

    return maker


def family(bench: Bench) -> Family:
    """Convolutions over shapes and precisions."""
    count = 6 if bench.quick else 64
    precisions = {"fp32": (1e7, 4e11), "fp16": (1e7, 2e12)} if bench.cuda else {"fp32": (2e6, 4e9)}
    for seed, (dtype, flops) in enumerate(precisions.items()):
        for number, shape in enumerate(conv_shapes(count, flops=flops, seed=seed)):
            batch, channels, filters, side, kernel, stride = shape
            words: dict[str, Value] = {"batch": batch, "channels": channels, "filters": filters}
            words |= {"side": side, "kernel": kernel, "stride": stride}
            for part in ("forward", "input", "weight"):
                if part == "input" and channels <= 3:
                    continue  # the gradient of an image is never wanted
                maker = _conv(bench, shape, part)
                yield operation(bench, maker, dtype, shape=words)
                if number % 4 == 1 and not bench.cuda:
                    yield operation(bench, maker, dtype, shape=words, cold=UNCACHED)
