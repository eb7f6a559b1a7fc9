"""Which shapes are measured: spread evenly over the logarithm of size, the same on every machine."""

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
    """Products (m, n, k) whose work lies between two amounts [FLOP]; every fifth has an odd side."""
    draw = random.Random(seed)
    found = 0
    while found < count:
        step = 1 if found % 5 == 4 else 16
        m, n, k = (_near(draw, 16, largest, step=step) for _ in range(3))
        if flops[0] <= 2.0 * m * n * k <= flops[1]:
            found += 1
            yield m, n, k


def conv_shapes(count: int, *, flops: tuple[float, float], seed: int) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Convolutions (batch, channels, filters, side, kernel, stride) as networks have them."""
    draw = random.Random(seed)
    found = 0
    while found < count:
        kernel = draw.choice((1, 1, 3, 3, 3, 3, 5, 7))
        stride = draw.choice((1, 1, 1, 2))
        side = draw.choice((7, 8, 14, 16, 28, 28, 32, 56, 112, 224))
        first = kernel >= 5 or side >= 112
        channels = draw.choice((1, 3, 3, 16, 32)) if first else _near(draw, 16, 512, step=16)
        filters = _near(draw, 16, 128, step=16) if first else _near(draw, 16, 512, step=16)
        batch = draw.choice((1, 2, 4, 8, 16, 32, 64, 128, 256))
        out = (side + 2 * (kernel // 2) - kernel) // stride + 1
        work = 2.0 * batch * filters * out * out * channels * kernel**2
        small = 4 * batch * (channels * side**2 + filters * out**2) < 256e6
        if flops[0] <= work <= flops[1] and small:
            found += 1
            yield batch, channels, filters, side, kernel, stride
