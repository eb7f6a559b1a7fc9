"""Times of kernels from fitted constants: the formulas that `FittedRoofline` and the fit share.

They take scalars or arrays. Three forms cover all kernel families; each is the roofline of
`simperf.cost.roofline` with a reachable rate that falls for small sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["MatrixConstants", "corner", "matrix_time", "row_time", "stream_time"]

#: exponent with which traffic goes over from a cache to memory: between twice and half the capacity
_SPILL = 3.0
#: the same for rows that are read again, whose blocks come and go evenly
_ROWS = 4.0


def stream_time(
    nbytes: Any, *, overhead: float, rate: float, cached: float = np.inf, capacity: float = 0.0, cold: Any = False
) -> Any:
    """Time of a kernel that is bound by its traffic: elementwise, reduction, normalisation, optimiser, copy [s].

    ``t = overhead + nbytes (s / rate + (1 - s) / cached)`` where s, the share that comes from memory, rises from 0 to 1
    around `capacity`.

    Parameters
    ----------
    nbytes : float or ndarray
        traffic [B]
    overhead : float
        Fixed time of a call [s].
    rate : float
        From memory [B/s].
    cached : float
        From the cache [B/s].
    capacity : float
        Traffic at which half of it no longer comes from the cache [B].
    cold : bool or ndarray
        Whether the operands are in no cache, whatever their size.

    Examples
    --------
    >>> stream_time(1e6, overhead=1e-6, rate=1e9)
    0.001001
    """
    if capacity <= 0:
        return overhead + nbytes / rate
    spilled = np.where(cold, 1.0, 1.0 / (1.0 + (capacity / np.maximum(nbytes, 1.0)) ** _SPILL))
    return overhead + nbytes * (spilled / rate + (1.0 - spilled) / cached)


def row_time(
    nbytes: Any,
    pressure: Any,
    again: Any,
    tail: Any = 0.0,
    *,
    overhead: float,
    rate: Any,
    kept: float = 1.0,
    loose: float = 0.0,
) -> Any:
    """Time of a kernel that passes over rows more than once: softmax, normalisation [s].

    ``t = overhead + nbytes / rate * (1 + again s) * (1 + loose tail)``, where s = p^4 / (p^4 + kept^4) is the share of
    the further reads that the caches no longer serve (`simperf.cost.rows`).

    Parameters
    ----------
    nbytes : float or ndarray
        one read and one write of the rows [B]
    pressure : float or ndarray
        Rows under way over the caches' capacity, p [1].
    again : float or ndarray
        Further reads, over `nbytes` [1].
    tail : float or ndarray
        Share of a row that is loaded element by element [1].
    overhead : float
        Fixed time of a call [s].
    rate : float or ndarray
        Of memory [B/s].
    kept : float
        Pressure at which half of the further reads go to memory [1].
    loose : float
        How much longer a row takes that is loaded element by element, less 1 [1].

    Examples
    --------
    >>> float(row_time(1e6, 0.0, 1.0, overhead=1e-6, rate=1e9, kept=0.4))
    0.001001
    >>> round(float(row_time(1e6, 100.0, 1.0, overhead=1e-6, rate=1e9, kept=0.4)), 6)
    0.002001
    """
    missed = 1.0 / (1.0 + (kept / np.maximum(pressure, 1e-9)) ** _ROWS)
    return overhead + nbytes / rate * (1.0 + again * missed) * (1.0 + loose * tail)


@dataclass(frozen=True, slots=True)
class MatrixConstants:
    """Constants of kernels that multiply matrices (`matrix_time`), of one GPU or of many side by side.

    Parameters
    ----------
    rate, memory : float or ndarray
        Reached by large products [FLOP/s] [B/s].
    overhead : float
        Fixed time of a call [s].
    half_m, half_n, half_k : float
        Size at which half the rate is reached, the others being large.
    deep, deep_at, deep_m : float
        Relative loss of long sums; their length, and the height of a result, at which half of it has come.
    sharpness : float
        Exponent of the corner.
    power : float or ndarray
        Limit of the board [W].
    flop_energy, byte_energy : float or ndarray
        Energy of an operation that a multiprocessor carries out, useful or not [J/FLOP], and of a byte from memory
        [J/B].
    stored : float
        Energy that may be spent above the limit before the board slows down [J].
    floor : float
        What a call takes on the host: no call that is timed with its launch takes less [s].
    """

    rate: Any
    memory: Any = np.inf
    overhead: float = 0.0
    half_m: float = 0.0
    half_n: float = 0.0
    half_k: float = 0.0
    deep: float = 0.0
    deep_at: float = np.inf
    deep_m: float = 0.0
    sharpness: float = 8.0
    power: Any = np.inf
    flop_energy: Any = 0.0
    byte_energy: Any = 0.0
    stored: float = 0.0
    floor: float = 0.0


def matrix_time(
    constants: MatrixConstants, flops: Any, nbytes: Any, m: Any, n: Any, k: Any, *, share: Any = 1.0
) -> Any:
    """Time of a kernel that multiplies matrices: product, convolution, attention [s].

    ``t_compute = flops / (rate share) * (1 + half_m/m + half_n/n + half_k/k) * (1 + deep s(k, m))``, joined
    with ``nbytes / memory`` by the corner of the roofline, plus `overhead`. It takes as long as its arithmetic, its
    traffic or its energy at the board's power, whichever is longest.

    A product m x n x k that is cut into blocks loads (or packs) its operands m k and k n and its result m n once more
    than its arithmetic needs, which costs a time in proportion to each of the three faces of the cuboid: relative to
    its volume, 1/n, 1/m and 1/k. ``s(k, m) = k^4 / (k^4 + deep_at^4) m / (m + deep_m)`` is the loss of operands with
    long rows, as the layers of a network have them: a block's rows then lie in as many memory pages as there are rows,
    and the weights are read again for every strip of the result.

    Parameters
    ----------
    constants : MatrixConstants
        Fitted to the device and precision.
    flops, nbytes : float or ndarray
        work [FLOP], traffic [B]
    m, n, k : float or ndarray
        Sizes of one product.
    share : float or ndarray
        What tiles and waves leave of the rate (`simperf.cost.tiles`) [1].

    Examples
    --------
    >>> round(float(matrix_time(MatrixConstants(rate=1e12, half_k=1000.0), 2e9, 0.0, 1000, 1000, 1000)), 9)
    0.004
    """
    has = constants
    compute = flops / (has.rate * share) * (1.0 + has.half_m / m + has.half_n / n + has.half_k / k)
    if has.deep > 0:
        compute = compute * (1.0 + has.deep / (1.0 + (has.deep_at / k) ** 4) / (1.0 + has.deep_m / m))
    body = corner(compute, nbytes / has.memory, has.sharpness)
    if np.any(has.flop_energy) or np.any(has.byte_energy):
        energy = np.maximum(has.flop_energy * flops / share + has.byte_energy * nbytes - has.stored, 0.0)
        body = corner(body, energy / has.power, has.sharpness)
    return np.maximum(has.overhead + body, has.floor)


def corner(first: Any, second: Any, sharpness: float) -> Any:
    """The longer of two times, rounded where they are equal; their sum at a `sharpness` of 1."""
    high, low = np.maximum(first, second), np.minimum(first, second)
    ratio = low / np.where(high > 0, high, 1.0)
    return high * (1.0 + ratio**sharpness) ** (1.0 / sharpness)
