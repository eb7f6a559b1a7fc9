"""Matrix products on matrix units by their shape: tiles, waves, sums along k, traffic and the clock.

A library cuts a product into tiles of the result and gives each multiprocessor one at a time. The time of a cut is

    t = waves (2 h w d / r (1 + (H / hm)^8)^(1/8) + fill) + d latency + sums

with a tile of height h, width w and their harmonic mean hm, d steps along k (k over the split), and r the rate of one
multiprocessor. The library takes the cut of least time. Traffic runs beside the arithmetic, joined by a corner, and a
call has a fixed time before and after. Constants that hold on all GPUs are here; those of an architecture are in its
file (`GpuPart.product`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simperf.cost.formulas import corner

__all__ = ["SHARED", "MatrixUnits", "ProductTime", "cached_share", "product_time", "product_times"]

#: Constants of all GPUs, fitted to half of the bf16 products of TensorRT-LLM's tables of A100, H100, H200 and B200
#: (ai-dynamo/aiconfigurator at 095f58a; `python -m tests.truth.kernels gemm --fit`):
SHARED: Mapping[str, float] = {
    # harmonic mean of a tile's sides at which loading takes as long as multiplying; each generation's caches have grown
    # with its matrix units, so that it is one number
    "half": 78.4,
    # time that a step along k adds, whatever the tile: latency of a pipeline that is full [s]
    "latency": 2.26e-10,
    # fixed time of adding up the parts of a sum that is split along k [s]
    "split": 2.73e-6,
    # rate of adding them up, over that of memory [1]
    "sums": 1.74,
    # exponent of the corner between arithmetic and traffic
    "corner": 2.3,
    # what one multiprocessor draws from the L2 [B/s]; fitted with the L40S's products, since on the other GPUs no
    # product draws more from the L2 than from memory
    "cache": 12.6e9,
}
#: height and width of the tiles that libraries offer on matrix units (CUTLASS, docs/efficient_gemm; narrow ones serve
#: products with few rows)
_TILES = (
    *((256, 128), (128, 256), (128, 192), (192, 128), (128, 128), (256, 64), (64, 256), (128, 64), (64, 128)),
    *((64, 64), (128, 32), (32, 128), (64, 32), (32, 64), (16, 128), (128, 16), (16, 64), (64, 16)),
)
_SPLITS = (1, 2, 3, 4, 6, 8, 12, 16)
#: steps along k that a kernel takes at once, and the shortest run along k that is worth a multiprocessor of its own
_STEP, _SHORTEST = 32, 128
#: exponent of the corner between a tile's arithmetic and its loading
_LOADING = 8.0
#: exponent with which a loop's operands go over from the L2 to memory around its capacity
_SPILL = 8.0
_HEIGHT, _WIDTH, _SPLIT = (
    np.array(column, dtype=float) for column in zip(*((h, w, s) for h, w in _TILES for s in _SPLITS), strict=True)
)
_MEAN = 2.0 * _HEIGHT * _WIDTH / (_HEIGHT + _WIDTH)


@dataclass(frozen=True, slots=True)
class MatrixUnits:
    """Rates of one GPU for products in one precision.

    Parameters
    ----------
    rate : float
        Of all multiprocessors, without edges and loading [FLOP/s].
    sms : int
        Multiprocessors.
    fixed, fill : float
        time of a call before and after its tiles, and of filling and draining a tile's pipeline [s]
    waves : float
        How far the last wave of tiles counts as a whole one: 1 where each tile is a block of its own, near 0 where
        kernels stay on their multiprocessor and share the remaining work [1].
    memory : float
        Reached rate of memory [B/s].
    bandwidth : float
        Nominal rate of memory [B/s].
    l2 : float
        Capacity of the L2 [B].
    block : bool
        Whether operands are scaled by blocks: such kernels never split sums.
    pace : float
        How many times as fast as on the GPU of the catalogue the times of all GPUs pass: not 1 where a study makes a
        GPU's kernels faster [1].
    """

    rate: float
    sms: int
    fixed: float
    fill: float
    waves: float
    memory: float
    bandwidth: float
    l2: float
    block: bool = False
    pace: float = 1.0


@dataclass(frozen=True, slots=True)
class ProductTime:
    """Times of one product: in all, and of its arithmetic and its traffic alone [s]."""

    time: float
    arithmetic: float
    traffic: float


def product_times(
    shape: NDArray[np.float64],
    nbytes: NDArray[np.float64],
    reuse: NDArray[np.float64],
    *,
    units: MatrixUnits,
    shared: Mapping[str, float] = SHARED,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Times, arithmetic and traffic of many products [s].

    Parameters
    ----------
    shape : ndarray of shape (rows, 4)
        Batch, m, n, k of each.
    nbytes : ndarray of shape (rows,)
        traffic [B]
    reuse : ndarray of shape (rows,)
        touched between two uses of the operands, infinite for a product whose operands come from memory [B]
    units : MatrixUnits
    shared : mapping of str to float, optional
        Instead of `SHARED`.
    """
    batch, m, n, k = (shape[:, column, None] for column in range(4))
    tiles = batch * np.ceil(m / _HEIGHT) * np.ceil(n / _WIDTH) * _SPLIT
    depth = np.ceil(k / _SPLIT / _STEP) * _STEP
    waves = units.waves * np.ceil(tiles / units.sms) + (1.0 - units.waves) * np.maximum(tiles / units.sms, 1.0)
    loading = (1.0 + (shared["half"] / _MEAN) ** _LOADING) ** (1.0 / _LOADING)
    tile = 2.0 * _HEIGHT * _WIDTH * depth / (units.rate / units.sms) * loading
    sums = shared["split"] / units.pace + batch * m * n * 4.0 * _SPLIT / (shared["sums"] * units.bandwidth)
    spent = waves * (tile + units.fill) + depth * shared["latency"] / units.pace + np.where(_SPLIT > 1, sums, 0.0)
    refused = (_SPLIT > 1) & (units.block | (depth < _SHORTEST))
    arithmetic = np.where(refused, np.inf, spent).min(axis=1)
    kept = cached_share(reuse, units.l2)
    cache = max(units.memory, shared["cache"] * units.sms * units.pace)
    traffic = nbytes * ((1.0 - kept) / units.memory + kept / cache)
    return units.fixed + corner(arithmetic, traffic, shared["corner"]), arithmetic, traffic


def cached_share(reuse: NDArray[np.float64], l2: float) -> NDArray[np.float64]:
    """Share of a loop's operands that the L2 still holds when they are used again [1].

    Parameters
    ----------
    reuse : ndarray
        Bytes touched between two uses of the operands; infinite where they come from memory [B].
    l2 : float
        Capacity of the L2 [B].
    """
    share: NDArray[np.float64] = 1.0 / (1.0 + (reuse / l2) ** _SPILL)
    return share


@lru_cache(maxsize=65536)
def product_time(
    batch: int, m: int, n: int, k: int, *, nbytes: float, units: MatrixUnits, reuse: float = math.inf
) -> ProductTime:
    """Time of one product of `batch` times (m x k) by (k x n), with what its arithmetic and traffic take alone.

    Parameters
    ----------
    batch, m, n, k : int
    nbytes : float
        traffic [B]
    units : MatrixUnits
    reuse : float
        touched between two uses of the operands [B]

    Examples
    --------
    >>> units = MatrixUnits(825e12, 132, 2e-6, 1e-6, 0.0, 2.8e12, 3.35e12, 52e6)
    >>> large = product_time(1, 8192, 8192, 8192, nbytes=6 * 8192.0**2, units=units)
    >>> 0.9 < 2 * 8192**3 / 825e12 / large.time < 1.0
    True
    """
    shape: Any = np.array([[batch, m, n, k]], dtype=float)
    found = product_times(shape, np.array([nbytes]), np.array([reuse]), units=units)
    return ProductTime(*(float(values[0]) for values in found))
