"""Shapes that are measured: spread evenly over the logarithm of size, the same on every machine."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

__all__ = ["conv_shapes", "gemm_shapes", "sizes"]


def sizes(low: float, high: float, count: int) -> list[int]:
    """`count` sizes from `low` to `high`, equal factors apart and off the powers of two.

    Examples
    --------
    >>> sizes(1e3, 1e5, 3)
    [1000, 10000, 100000]
    """
    factor = (high / low) ** (1 / max(1, count - 1))
    return [round(low * factor**i) for i in range(count)]


def _near(draw: random.Random, low: int, high: int, *, step: int) -> int:
    """A whole number whose logarithm is uniform, rounded to a multiple of `step`."""
    value = math.exp(draw.uniform(math.log(low), math.log(high)))
    return max(low, round(value / step) * step)


def gemm_shapes(count: int, *, flops: tuple[float, float], largest: int, seed: int) -> Iterator[tuple[int, int, int]]:
    """Products (m, n, k) whose work lies between two amounts [FLOP]; every tenth has odd sides."""
    draw = random.Random(seed)
    found = 0
    while found < count:
        step = 1 if found % 10 == 9 else 16
        m, n, k = (_near(draw, 16, largest, step=step) for _ in range(3))
        if flops[0] <= 2.0 * m * n * k <= flops[1]:
            found += 1
            yield m, n, k


#: kernel, stride, sides of the image, filters over channels, and how often networks have such a layer, in eighths
_LAYERS = (
    (3, 1, (7, 8, 14, 16, 28, 32, 56), (0.5, 1.0, 1.0, 2.0), 3),
    (3, 2, (14, 16, 28, 32, 56), (1.0, 2.0), 1),
    (1, 1, (7, 14, 28, 56), (0.25, 0.5, 1.0, 2.0, 4.0), 1),
    (1, 2, (14, 28, 56), (2.0,), 1),
    (5, 1, (13, 16, 28, 32), (1.0, 2.0), 1),
)
#: layers on the picture itself: kernel, stride, side, channels
_FIRST = ((3, 1, 28, 1), (3, 1, 32, 3), (5, 1, 28, 1), (7, 2, 224, 3), (3, 1, 224, 3), (7, 2, 112, 3), (5, 1, 32, 3))


def conv_shapes(count: int, *, flops: tuple[float, float], seed: int) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Convolutions (batch, channels, filters, side, kernel, stride) as networks have them."""
    draw = random.Random(seed)
    kinds = [layer for layer in _LAYERS for _ in range(layer[4])]
    found = 0
    while found < count:
        step = 4 if found % 4 == 3 else 16
        batch = _near(draw, 1, 256, step=1)
        if found % 8 == 7:
            kernel, stride, side, channels = draw.choice(_FIRST)
            filters = _near(draw, 16, 96, step=step)
        else:
            kernel, stride, sides, widths, _ = draw.choice(kinds)
            side = draw.choice(sides)
            channels = _near(draw, 16, min(512, 4096 // side), step=step)
            filters = max(16, round(channels * draw.choice(widths)))
        out = (side + 2 * (kernel // 2) - kernel) // stride + 1
        work = 2.0 * batch * filters * out * out * channels * kernel**2
        small = 4 * batch * (channels * side**2 + filters * out**2) < 200e6
        if flops[0] <= work <= flops[1] and small:
            found += 1
            yield batch, channels, filters, side, kernel, stride
