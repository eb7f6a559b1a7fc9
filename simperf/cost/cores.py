"""Formulas for operations on the cores of a CPU, of scalars or arrays: what is fitted is what the simulator simulates.

A GPU runs every kernel on all of itself; a CPU runs small ones on one core, because starting the others costs more
than they would save, and its caches hold what large ones read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "BLOCK",
    "GRAIN",
    "ConvConstants",
    "ProductConstants",
    "SpreadConstants",
    "attention_time",
    "conv_time",
    "late_time",
    "product_time",
    "spread_time",
]

#: elements from which an operation is spread over threads (at::internal::GRAIN_SIZE of PyTorch)
GRAIN = 32768
#: channels and filters that oneDNN lays side by side for AVX-512
BLOCK = 16
#: exponent with which traffic goes over from a cache to memory: between twice and half the capacity
_SPILL = 3.0
#: order of the norm by which two things that work beside each other are joined: 1 adds, infinity takes the slower
_BESIDE = 3.0


def late_time(since: Any, *, late: float = 0.0, late_at: float = math.inf) -> Any:
    """Time of a call beyond that in a loop if much else went through the caches since the last one of its kind [s].

    Parameters
    ----------
    since : float or ndarray
        What did [B].
    late : float
        Of a call whose code, and what the library keeps about it, is in no cache [s].
    late_at : float
        Where half of that is paid [B].

    Examples
    --------
    >>> round(float(late_time(3e7, late=4e-5, late_at=3e7)) * 1e6, 3)
    20.0
    """
    return late * _spilled(since, late_at) if late else 0.0


def _spilled(nbytes: Any, capacity: float) -> Any:
    """Share of the traffic that comes from memory [1]."""
    if capacity <= 0:
        return np.ones_like(np.asarray(nbytes, dtype=float))
    return 1.0 / (1.0 + (capacity / np.maximum(nbytes, 1.0)) ** _SPILL)


@dataclass(frozen=True, slots=True)
class SpreadConstants:
    """Constants of operations on elements or rows (`spread_time`).

    Parameters
    ----------
    overhead, fork : float
        Fixed time of a call, and of starting the threads [s].
    serial, cached : float
        Rates of one core, and of all from the caches [B/s].
    memory : float
        rate of the memory [B/s]
    capacity : float
        Traffic of which half no longer fits the caches [B].
    far : float
        That rate where the operands are in no cache, but the result takes the place of an earlier one; 0: as `memory`
        [B/s].
    chill : float
        Until the first of such operands is there [s].
    near : float
        Rate of all cores from the caches that each has for itself; 0: as `cached` [B/s].
    near_at : float
        Traffic of which half no longer fits those [B].
    row : float
        Time of a row beside that of its elements [s].
    """

    overhead: float
    serial: float
    fork: float
    cached: float
    memory: float = math.inf
    capacity: float = 0.0
    far: float = 0.0
    chill: float = 0.0
    near: float = 0.0
    near_at: float = 0.0
    row: float = 0.0


def spread_time(constants: SpreadConstants, nbytes: Any, elements: Any, *, rows: Any = 0.0, cold: Any = False) -> Any:
    """Time of an operation on elements or rows [s].

    One core: ``overhead + nbytes / serial``. From `GRAIN` elements on all threads: ``overhead + fork + nbytes *
    slower(1 / cached, s / memory)``, where s, the share that comes from memory, rises around `capacity`. The memory
    works beside the cores, so that the slower one holds, with a round corner (the norm of order `_BESIDE`); and it is
    one memory for all kinds of operations, or nearly so.

    Parameters
    ----------
    constants : SpreadConstants
        Fitted to operations of the kind.
    nbytes : float or ndarray
        traffic [B]
    elements : float or ndarray
        As `amount` has them.
    rows : float or ndarray
        That each take a time beside that of their elements.
    cold : bool or ndarray
        Whether the operands are in no cache.

    Examples
    --------
    >>> constants = SpreadConstants(overhead=1e-6, serial=1e9, fork=2e-6, cached=2e9, memory=1e9, capacity=1e9)
    >>> [round(float(spread_time(constants, *sizes)) * 1e6, 3) for sizes in ((1e3, 100), (2e6, 1e6))]
    [2.0, 1003.0]
    """
    has = constants
    cold = np.asarray(cold, dtype=bool)
    away = np.where(cold, 1.0 / (has.far or has.memory), _spilled(nbytes, has.capacity) / has.memory)
    small = nbytes * _slower(1.0 / has.serial, np.where(cold, away, 0.0))
    own = 1.0 - _spilled(nbytes, has.near_at) if has.near else 0.0
    each = own / (has.near or has.cached) + (1.0 - own) / has.cached
    if has.row > 0:
        small = small + rows * has.row
        spread = has.fork + _slower(nbytes * each + rows * has.row, nbytes * away)
    else:
        spread = has.fork + nbytes * _slower(each, away)
    return has.overhead + np.where(cold, has.chill, 0.0) + np.where(np.asarray(elements) <= GRAIN, small, spread)


@dataclass(frozen=True, slots=True)
class ProductConstants:
    """Constants of matrix products (`product_time`).

    Parameters
    ----------
    overhead : float
        Fixed time of a call [s].
    rate : float
        Reached by large ones [FLOP/s].
    half_m, half_n, half_k : float
        Size at which half the rate is reached, the others being large.
    odd : float
        Relative loss of ragged rows.
    memory : float
        Rate of what is in no cache [B/s].
    capacity : float
        Traffic of which half no longer fits the caches [B].
    """

    overhead: float
    rate: float
    half_m: float = 0.0
    half_n: float = 0.0
    half_k: float = 0.0
    odd: float = 0.0
    memory: float = math.inf
    capacity: float = math.inf


def product_time(
    constants: ProductConstants,
    flops: Any,
    m: Any,
    n: Any,
    k: Any,
    *,
    read: Any = 0.0,
    written: Any = 0.0,
    cold: Any = False,
) -> Any:
    """Time of a matrix product [s].

    ``overhead + flops / rate (1 + half_m/m + half_n/n + half_k/k) (1 + odd)``: packing the operands and writing the
    result cost a time a face of the cuboid m x n x k; `odd` is lost where rows are no multiples of a cache line.
    What no cache holds comes on top of that, ``(s read + s written) / memory``, where s rises around `capacity`. Of
    cold operands all that is read is in none; the result goes where an earlier one was.

    Parameters
    ----------
    constants : ProductConstants
        Fitted to products of the precision.
    flops : float or ndarray
        work [FLOP]
    m, n, k : float or ndarray
        Sizes of one product.
    read, written : float or ndarray
        traffic [B]
    cold : bool or ndarray
        Whether the operands are in no cache, whatever their size.

    Examples
    --------
    >>> product_time(ProductConstants(overhead=0.0, rate=1e12, half_k=1000.0), 2e9, 1000, 1000, 1000)
    0.004
    """
    has = constants
    ragged = (np.asarray(n) % 16 > 0) | (np.asarray(k) % 16 > 0)
    loss = 1.0 + has.half_m / m + has.half_n / n + has.half_k / k
    time = has.overhead + flops / has.rate * loss * (1.0 + has.odd * ragged)
    share = _spilled(np.asarray(read) + written, has.capacity)
    time = time + (read * np.where(cold, 1.0, share) + written * share) / has.memory
    return time if np.ndim(time) else float(time)


def attention_time(
    scores: Any,
    width: Any,
    rows: Any = math.inf,
    *,
    overhead: float,
    rate: float,
    scored: float,
    half_rows: float = 0.0,
) -> Any:
    """Time of attention: its products, and what each score costs beside them (softmax, dropout, mask) [s].

    ``overhead + (2 scores width / rate + scores / scored) (1 + half_rows / rows)``: a block of queries reads all keys
    and values again.

    Parameters
    ----------
    scores : float or ndarray
        Scores that are worked out, times the number of products.
    width : float or ndarray
        Of a head.
    rows : float or ndarray
        Queries of a block; infinite where there are no blocks.
    overhead : float
        Fixed time of a call [s].
    rate : float
        Of the products [FLOP/s].
    scored : float
        Scores in a second [1/s].
    half_rows : float
        Queries of a block at which half of that is reached.
    """
    return overhead + (2.0 * scores * width / rate + scores / scored) * (1.0 + half_rows / rows)


@dataclass(frozen=True, slots=True)
class ConvConstants:
    """Constants of convolutions and their gradients (`conv_time`).

    Parameters
    ----------
    overhead : float
        Fixed time of a call [s].
    rate : float
        Reached by large ones [FLOP/s].
    half_k, half_f, half_p : float
        Values a result, filters and pixels at which half the rate is reached, the others being large.
    strided : float
        Relative loss of reordering with a stride, whose gradient fills what was left out with zeros.
    odd : float
        Relative loss of filters that are no multiple of `BLOCK`.
    cached, memory : float
        Rates of reordering [B/s].
    capacity : float
        Traffic of which half no longer fits the caches [B].
    far : float
        Rate of reordering at best where no cache holds the operands [B/s].
    """

    overhead: float
    rate: float
    half_k: float = 0.0
    half_f: float = 0.0
    half_p: float = 0.0
    strided: float = 0.0
    odd: float = 0.0
    cached: float = math.inf
    memory: float = math.inf
    capacity: float = 0.0
    far: float = math.inf


def conv_time(
    constants: ConvConstants,
    flops: Any,
    nbytes: Any,
    channels: Any,
    filters: Any,
    pixels: Any,
    side: Any,
    stride: Any,
    *,
    cold: Any = False,
) -> Any:
    """Time of a convolution or of one of its gradients [s].

    ``overhead + flops / (rate fill) (1 + half_k / (C w^2) + half_f/F + half_p/P)``, and beside it the traffic for
    reordering the images into blocks of channels and back, ``nbytes (1 + strided [s > 1])`` from caches or memory.
    `fill` is the share of those blocks, of `BLOCK` channels and filters, that is no padding (oneDNN, "Understanding
    Memory Formats"); images of fewer channels than half a block are read as they are. `odd` is lost beside it where the
    last block of filters is not full.

    Parameters
    ----------
    constants : ConvConstants
        Fitted to convolutions of the kind.
    flops, nbytes : float or ndarray
        work [FLOP], traffic [B]
    channels, filters, pixels, side, stride : float or ndarray
        C, F, P (of the results of all images), w and s.
    cold : bool or ndarray
        Whether no cache holds the operands.
    """
    has = constants
    share = _spilled(nbytes, has.capacity)
    each = share / has.memory + (1.0 - share) / has.cached
    each = np.where(cold, np.maximum(each, 1.0 / has.far), each)
    reorder = nbytes * (1.0 + has.strided * (np.asarray(stride) > 1)) * each
    loss = 1.0 + has.half_k / (channels * np.square(side)) + has.half_f / filters + has.half_p / pixels
    fill = _filled(filters) * np.where(np.asarray(channels) < BLOCK / 2, 1.0, _filled(channels))
    ragged = 1.0 + has.odd * (np.asarray(filters) % BLOCK > 0)
    return has.overhead + flops / (has.rate * fill) * loss * ragged + reorder


def _slower(one: Any, other: Any) -> Any:
    return (one**_BESIDE + other**_BESIDE) ** (1.0 / _BESIDE)


def _filled(channels: Any) -> Any:
    return channels / (BLOCK * np.ceil(np.asarray(channels) / BLOCK))
