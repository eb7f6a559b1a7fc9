"""Bytes that a tensor takes of a device's memory under PyTorch's caching allocator.

A request is rounded up to a multiple of 512 B. Segments of memory are taken from the device for it: of 2 MiB for a
request of at most 1 MiB, of 20 MiB for one below 10 MiB, else rounded up to a multiple of 2 MiB. What is left of a
large segment is cut off as a block of its own only if it is larger than 1 MiB. Source: pytorch/pytorch,
c10/cuda/CUDACachingAllocator.cpp (`round_size`, `get_allocation_size`, `should_split`), with its default settings.

How blocks are found and given back is in `simperf.memory.segment_pool`. With segments that expand a tensor takes the
multiple of 512 B alone, at most 1 MiB less than here; what tensors hold is counted as here for both.
"""

from __future__ import annotations

import math

__all__ = ["LARGE_SEGMENT", "MIN_BLOCK", "SMALL", "allocated", "segment_size"]

#: every block is a multiple of this [B]
MIN_BLOCK = 512
#: requests up to this share small segments; a rest up to this is not cut off a large segment [B]
SMALL = 1 << 20
#: segments that small requests share [B]
SMALL_SEGMENT = 2 << 20
#: segments of requests below `LARGE_REQUEST` [B]
LARGE_SEGMENT = 20 << 20
LARGE_REQUEST = 10 << 20
#: larger requests have segments of a multiple of this [B]
ROUND_LARGE = 2 << 20


def allocated(nbytes: float) -> float:
    """Bytes that PyTorch counts as allocated for a tensor in a segment of its own [B].

    Parameters
    ----------
    nbytes : float
        Size of the tensor [B].

    Examples
    --------
    >>> allocated(1), allocated(513), allocated(11 * 2**20) / 2**20, allocated(64 * 2**20) / 2**20
    (512.0, 1024.0, 12.0, 64.0)
    """
    if nbytes <= 0:
        return 0.0
    size = float(math.ceil(nbytes / MIN_BLOCK) * MIN_BLOCK)
    if size <= SMALL:
        return size
    segment = segment_size(size)
    return segment if segment - size <= SMALL else size


def segment_size(size: float) -> float:
    """Bytes that PyTorch takes from the device for a tensor which no free block holds [B].

    Parameters
    ----------
    size : float
        Of the tensor, a multiple of 512 B [B].

    Examples
    --------
    >>> [segment_size(size * 2.0**20) / 2**20 for size in (0.5, 5, 11)]
    [2.0, 20.0, 12.0]
    """
    if size <= SMALL:
        return float(SMALL_SEGMENT)
    if size < LARGE_REQUEST:
        return float(LARGE_SEGMENT)
    return float(math.ceil(size / ROUND_LARGE) * ROUND_LARGE)
