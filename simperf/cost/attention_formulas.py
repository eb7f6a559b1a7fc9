"""Time of attention kernels from the shape and a few constants: blocks of queries, tiles of scores, a cache of keys.

They take scalars or arrays. A kernel of the FlashAttention family (T. Dao, "FlashAttention-2", ICLR 2024; J. Shah and
others, "FlashAttention-3", NeurIPS 2024) gives each multiprocessor one block of queries of one head at a time and
passes over the keys in tiles. A tile is two matrix products, and one exponential a score between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np

__all__ = [
    "COLUMNS",
    "ROWS",
    "RUN",
    "SPECIAL",
    "AttentionRates",
    "AttentionWork",
    "attention_time",
    "decode_time",
    "visible",
]

#: queries of a block and keys of a tile; short sequences are rounded up to `_GRAIN`
ROWS, COLUMNS = 128, 128
#: results of special functions (exponentials) a clock and multiprocessor (CUDA C++ Programming Guide 12.6, "Arithmetic
#: Instructions": 16 for compute capabilities 7.x to 9.0)
SPECIAL = 16.0
_GRAIN = 16
#: exponents of the corner between arithmetic and memory traffic, with many queries and with one
_CORNER, _DECODE_CORNER = 6.0, 4
#: keys that one block of decoding takes
RUN = 256
#: queries of a group that decoding pads to
_GROUP = 8
#: exponent with which traffic goes over from the L2 to memory, and the part of the L2 at which half of it has
_SPILL, _FILLED = 3.0, 0.75


@lru_cache(maxsize=65536)
def visible(queries: int, keys: int, *, causal: bool = True, window: int = 0) -> tuple[int, int, int, float]:
    """Blocks of queries, tiles of keys that all of them pass over, those of the longest block, and scores of a tile.

    Parameters
    ----------
    queries, keys : int
        Of one head; the last query sees the last key.
    causal : bool
        Whether a query sees no key behind it.
    window : int
        Keys that a query sees at most; 0 for all.

    Examples
    --------
    >>> visible(512, 512), visible(512, 512, causal=False), visible(1024, 1024, window=128)
    ((4, 10, 4, 16384.0), (4, 16, 4, 16384.0), (8, 15, 2, 16384.0))
    """
    rows = min(ROWS, _GRAIN * ceil(queries / _GRAIN))
    columns = min(COLUMNS, _GRAIN * ceil(keys / _GRAIN))
    start = np.arange(0, queries, rows)
    last = np.minimum(start + rows, queries) + keys - queries
    end = np.clip(last, 1, keys) if causal else np.full(len(start), keys)
    first = np.maximum(0, start + keys - queries - window + 1) if 0 < window < keys else np.zeros(len(start), int)
    tiles = -(-end // columns) - np.minimum(first, end - 1) // columns
    return len(start), int(tiles.sum()), int(tiles.max()), float(rows * columns)


@dataclass(frozen=True, slots=True)
class AttentionWork:
    """Amounts of one call, or of many: scalars or arrays.

    Parameters
    ----------
    instances : Any
        Heads of all sequences.
    blocks, tiles, longest : Any
        Of one head (`visible`).
    scores : Any
        Of a tile.
    width : Any
        Mean of the widths of keys and values.
    products : float
        Matrix products of a tile: 2 forward, 5 backward.
    nbytes : Any
        traffic of the kernel itself [B]
    prepared : Any
        traffic of the kernel before it, which writes the cache of keys and values [B]
    fp8 : Any
        Whether the products are in fp8.
    """

    instances: Any
    blocks: Any
    tiles: Any
    longest: Any
    scores: Any
    width: Any
    products: float
    nbytes: Any
    prepared: Any = 0.0
    fp8: Any = False


@dataclass(frozen=True, slots=True)
class AttentionRates:
    """Limits of a GPU.

    Parameters
    ----------
    sms : int
    clock : float
        Of the multiprocessors [1/s].
    matrix, matrix_fp8 : float
        peak of the matrix units [FLOP/s]
    memory : float
        that kernels reach [B/s]
    floor : float
        Shortest time of a kernel [s].
    l2 : float
        capacity [B]
    """

    sms: int
    clock: float
    matrix: float
    matrix_fp8: float
    memory: float
    floor: float
    l2: float = 0.0


def attention_time(
    work: AttentionWork, rates: AttentionRates, constants: Mapping[str, float], *, warm: bool = False
) -> tuple[Any, Any, Any, Any]:
    """Time of attention with many queries: whole, of its arithmetic, of its memory traffic, and fixed [s].

    A tile takes the longer of its products and its exponentials, and a part of the shorter one. Multiprocessors share
    the blocks evenly, but for a part of the longest block. ::

        t_tile = max(t_mm, t_exp) + serial min(t_mm, t_exp)
        t_body = sum(t_block) / sms + tail longest (1 - 1 / sms), at least longest

    Parameters
    ----------
    work : AttentionWork
    rates : AttentionRates
    constants : mapping of str to float
        ``matrix`` and ``matrix-fp8``: reached of the peak; ``wide``: power of the head's width over 128 by which the
        products slow down; ``exponential``: special functions that a score costs; ``serial``, ``tail``: see above;
        ``block``: clocks to start and end a block; ``fixed``: fixed time, in kernels of the shortest kind;
        ``prepare``: bytes a clock that a multiprocessor moves in the kernel that writes the cache; ``cached``: how many
        times as fast as memory the L2 is.
    warm : bool
        Whether what fits the L2 is read from it, as where a call is timed again and again.
    """
    sms, clock = rates.sms, rates.clock
    reached = np.where(
        work.fp8,
        rates.matrix_fp8 * constants.get("matrix-fp8", constants["matrix"]),
        rates.matrix * constants["matrix"],
    )
    multiply = 2.0 * work.products * work.width * work.scores * sms / reached
    multiply = multiply * np.maximum(1.0, np.asarray(work.width) / 128.0) ** constants.get("wide", 0.0)
    special = work.scores * constants["exponential"] / (SPECIAL * clock)
    tile = np.maximum(multiply, special) + constants["serial"] * np.minimum(multiply, special)
    start = constants["block"] / clock
    total = work.instances * (work.tiles * tile + work.blocks * start)
    longest = work.longest * tile + start
    compute = np.maximum(longest, total / sms + constants["tail"] * longest * (1.0 - 1.0 / sms))
    cached = constants.get("cached", 1.0) if warm else 1.0
    memory = _traffic(work.nbytes, rates, cached)
    before = _traffic(work.prepared, rates, cached)
    if "prepare" in constants:
        before = before + work.prepared / (sms * clock * constants["prepare"])
    fixed = constants.get("fixed", 1.0) * rates.floor
    body = (compute**_CORNER + memory**_CORNER) ** (1.0 / _CORNER)
    return fixed + before + body, compute, before + memory, fixed


def decode_time(
    work: AttentionWork,
    rates: AttentionRates,
    constants: Mapping[str, float],
    *,
    keys: Any,
    group: Any,
    warm: bool = False,
) -> tuple[Any, Any, Any, Any]:
    """Time of attention with one query a sequence: whole, of arithmetic, of memory traffic, and fixed [s].

    The keys of a head of the cache are split among multiprocessors in runs. Heads that share keys are one group, and
    their queries the rows of the products.

    Parameters
    ----------
    work : AttentionWork
        Of which `instances` are heads of the cache, and `nbytes` what is read of it.
    rates : AttentionRates
    constants : mapping of str to float
        ``decode-memory``: reached of what kernels draw from memory; ``decode-matrix``: of the peak; ``decode-block``:
        clocks of a run besides; ``decode-fixed``: fixed time, in kernels of the shortest kind; ``decode-cached``: how
        many times as fast as memory the L2 is.
    keys : int or ndarray
        That a query sees.
    group : int or ndarray
        Query heads a head of the cache.
    warm : bool
        As in `attention_time`.
    """
    runs = np.maximum(work.instances * np.ceil(keys / RUN), 1.0)
    share = np.minimum(1.0, runs / rates.sms)
    cached = constants.get("decode-cached", 1.0) if warm else 1.0
    memory = _traffic(work.nbytes, rates, cached) / (constants["decode-memory"] * share)
    padded = _GROUP * np.ceil(group / _GROUP)
    compute = 4.0 * work.instances * keys * work.width * padded / (rates.matrix * constants["decode-matrix"] * share)
    runs = runs * constants["decode-block"] / (rates.clock * rates.sms)
    fixed = constants["decode-fixed"] * rates.floor
    return (
        fixed + runs + (memory**_DECODE_CORNER + compute**_DECODE_CORNER) ** (1 / _DECODE_CORNER),
        compute,
        memory,
        fixed,
    )


def _traffic(nbytes: Any, rates: AttentionRates, cached: float) -> Any:
    """Time of traffic at the rate of memory, or of the L2 as far as it fits and `cached` says that it is faster [s]."""
    if cached <= 1.0 or rates.l2 <= 0:
        return np.asarray(nbytes) / rates.memory
    spilled = 1.0 / (1.0 + (_FILLED * rates.l2 / np.maximum(nbytes, 1.0)) ** _SPILL)
    return nbytes / rates.memory * (spilled + (1.0 - spilled) / cached)
