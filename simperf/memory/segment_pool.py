"""Memory that PyTorch's allocator takes from a device for the tensors of one stream, in segments of fixed sizes.

This is its default. A tensor gets the smallest free block of its pool that holds it, the lowest of equal ones, and what
is left of that is cut off as a block of its own if it is large enough; where no block holds it a segment is taken from
the device (`simperf.memory.allocator`). Free neighbours are one block inside of a segment only: what several tensors
leave in segments of their own never holds one larger tensor. Tensors of at most 1 MiB share segments of their own.
Source: pytorch/pytorch, c10/cuda/CUDACachingAllocator.cpp (`get_free_block`, `should_split`, `get_allocation_size`,
`try_merge_blocks`).

Not modelled: segments that are given back to the device where memory runs out.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from simperf.memory.allocator import MIN_BLOCK, SMALL, segment_size

__all__ = ["SegmentPool"]


class _Block(NamedTuple):
    """A part of a segment; blocks are distinguished by the segment's number and their beginning."""

    size: float
    segment: int
    start: float

    @property
    def end(self) -> float:
        return self.start + self.size


class SegmentPool:
    """Segments of fixed sizes, with tensors by name.

    Attributes
    ----------
    held, peak : float
        Bytes of all tensors' blocks now, and the most at a time [B].
    reserved : float
        Size of all segments, which are kept [B].

    Examples
    --------
    Two blocks that are free never hold a tensor of the size of both:

    >>> pool = SegmentPool()
    >>> for name in ("one", "two"):
    ...     pool.hold(name, 64 * 2**20)
    >>> pool.free("one")
    >>> pool.free("two")
    >>> pool.hold("both", 128 * 2**20)
    >>> pool.peak / 2**20, pool.reserved / 2**20
    (128.0, 256.0)
    """

    __slots__ = ("_blocks", "_free", "_small", "held", "peak", "reserved")

    def __init__(self) -> None:
        self._blocks: dict[Hashable, _Block | None] = {}
        self._free: list[_Block] = []
        self._small: list[bool] = []  # whether each segment is for small tensors
        self.held = self.peak = self.reserved = 0.0

    def hold(self, name: Hashable, nbytes: float) -> None:
        """A tensor comes [B]; one of no bytes takes none."""
        self._blocks[name] = block = self._taken(-(-nbytes // MIN_BLOCK) * MIN_BLOCK) if nbytes > 0 else None
        if block is not None:
            self.held += block.size
            self.peak = max(self.peak, self.held)

    def free(self, name: Hashable) -> None:
        """A tensor goes."""
        block = self._blocks.pop(name)
        if block is None:
            return
        self.held -= block.size
        beside = [
            one
            for one in self._free
            if one.segment == block.segment and (one.end == block.start or one.start == block.end)
        ]
        for one in beside:
            self._free.remove(one)
        start, end = min([block.start, *(one.start for one in beside)]), max([block.end, *(one.end for one in beside)])
        self._free.append(_Block(end - start, block.segment, start))

    def _taken(self, size: float) -> _Block:
        """The block of a tensor of this size, a multiple of the smallest one [B]."""
        small = size <= SMALL
        fits = [one for one in self._free if one.size >= size and self._small[one.segment] == small]
        if fits:
            found = min(fits)
            self._free.remove(found)
        else:
            found = _Block(segment_size(size), len(self._small), 0.0)
            self._small.append(small)
            self.reserved += found.size
        rest = found.size - size
        if rest >= MIN_BLOCK if small else rest > SMALL:
            self._free.append(_Block(rest, found.segment, found.start + size))
            return found._replace(size=size)
        return found
