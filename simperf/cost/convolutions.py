"""Convolutions: kernels with fewer multiplications, and images that matrix units cannot read as they lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from simperf.cost.seams import OpCost, regime_of
from simperf.workload.op import Op

__all__ = ["WINOGRAD", "WINOGRAD_SHARE", "converted_cost", "fewer_products"]

#: multiplications that Winograd's convolution saves, by the side of its window: tiles of 2 x 2 results of a window of
#: r x r take (r + 1)^2 for 4 r^2 (A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016)
WINOGRAD: Mapping[int, float] = {3: 36.0 / 16.0, 5: 100.0 / 36.0}
#: share of the peak that what is left of them reaches: transforms run beside it (accuracy/data/fitted.toml)
WINOGRAD_SHARE = 0.65


def fewer_products(op: Op) -> float:
    """Multiplications by the definition of `op` over those of a library's kernel [1].

    In fp32, for square windows that move by one pixel; matrix units have no such kernels.

    Examples
    --------
    >>> fewer_products(Op("y", "conv2d", family="conv", window=3))
    2.25
    """
    return WINOGRAD.get(op.window, 1.0) if op.family == "conv" and op.dtype == "fp32" else 1.0


def converted_cost(op: Op, cost: Callable[[Op], OpCost], rate: float) -> OpCost:
    """Cost of a convolution of images that matrix units cannot read as they lie: the faster of two ways.

    Matrix units with a conversion of each tensor, or kernels in fp32 that read images as they lie.

    Parameters
    ----------
    op : Op
        With `Op.converted`.
    cost : callable
        Cost of an operation whose images need no conversion.
    rate : float
        of copies [B/s]
    """
    plain = replace(op, converted=0.0)
    units, lies = cost(plain), cost(replace(plain, dtype="fp32"))
    moved = op.converted / rate
    if lies.time <= units.time + moved:
        return lies
    memory, nbytes = units.memory_time + moved, units.nbytes + op.converted
    regime = regime_of(units.compute_time, memory, units.overhead)
    return replace(units, time=units.time + moved, memory_time=memory, nbytes=nbytes, regime=regime)
