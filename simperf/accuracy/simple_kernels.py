"""Two simple models of a kernel's time, fitted to some of its shapes: baselines of predictions by shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simperf.cost import Roofline
from simperf.hardware import GpuPart
from simperf.workload.op import Op

__all__ = ["Amounts", "amounts_of", "one_rate", "three_constants"]

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Amounts:
    """Amounts of work of kernels and the peak rates of a GPU, whatever rates it reaches.

    Parameters
    ----------
    flops, nbytes : ndarray
        Arithmetic [FLOP] and traffic [B].
    peak, bandwidth : ndarray
        Of the GPU, by its data sheet [FLOP/s], [B/s].
    """

    flops: Array
    nbytes: Array
    peak: Array
    bandwidth: Array


def amounts_of(part: GpuPart, ops: Sequence[Op]) -> Amounts:
    """Amounts of operations on a GPU."""
    roofline = Roofline(part)
    return Amounts(
        np.array([op.flops for op in ops]),
        np.array([op.nbytes for op in ops]),
        np.array([roofline.peak(op.dtype, family=op.family) for op in ops]),
        np.full(len(ops), part.memory_bandwidth),
    )


def one_rate(fitted: Amounts, measured: Array, asked: Amounts) -> Array:
    """Times by one share of the peak: the median of the fitted shapes [s]."""
    share = np.median(fitted.flops / fitted.peak / measured)
    return np.asarray(asked.flops / (share * asked.peak))


def three_constants(fitted: Amounts, measured: Array, asked: Amounts) -> Array:
    """Times by the larger of F / (p peak) and B / (q bandwidth), and t0: p, q and t0 of least robust squares [s]."""
    from scipy.optimize import least_squares

    def times(of: Amounts, at: Array) -> Array:
        p, q, fixed = np.exp(at)
        return np.asarray(np.maximum(of.flops / (p * of.peak), of.nbytes / (q * of.bandwidth)) + fixed)

    def residuals(at: Array) -> Array:
        return np.asarray(np.log(times(fitted, at) / measured))

    begin = np.log([0.7, 0.7, 3e-6])
    return times(asked, least_squares(residuals, begin, loss="soft_l1", f_scale=0.1, diff_step=1e-3).x)
