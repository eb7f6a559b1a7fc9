"""Memory that PyTorch's allocator takes from a device for the tensors of one stream, as they come and go.

One segment grows at its end (``expandable_segments`` of PYTORCH_CUDA_ALLOC_CONF). A tensor gets the smallest free block
that holds it, the lowest of equal ones, and what is left of it stays free; free neighbours are one block; where no
block is large enough the segment grows behind the last tensor. What is free between tensors helps no larger one.
Source: pytorch/pytorch, c10/cuda/CUDACachingAllocator.cpp (`get_free_block`, `try_allocate_expandable_block`,
`try_merge_blocks`).

Not modelled: the pages of 20 MiB by which it grows, the pool of tensors below 1 MiB, and blocks that are given back to
the device where memory runs out.
"""

from __future__ import annotations

from collections.abc import Hashable

from simperf.memory.allocator import MIN_BLOCK

__all__ = ["GrowingPool"]


class GrowingPool:
    """A segment that grows, with tensors by name.

    Attributes
    ----------
    held, peak : float
        Bytes of all tensors now, and the most at a time [B].
    reserved : float
        Size of the segment, which never shrinks [B].

    Examples
    --------
    What is left of a free block is too small for the third tensor:

    >>> pool = GrowingPool()
    >>> pool.hold("logits", 1024.0)
    >>> pool.hold("kept", 2048.0)
    >>> pool.free("logits")
    >>> pool.hold("gradient", 2048.0)
    >>> pool.peak, pool.reserved
    (4096.0, 5120.0)
    """

    __slots__ = ("_blocks", "_free", "held", "peak", "reserved")

    def __init__(self) -> None:
        self._blocks: dict[Hashable, tuple[float, float]] = {}  # start and end of a tensor
        self._free: list[tuple[float, float]] = []  # of free blocks below the last tensor or at the end, in order
        self.held = self.peak = self.reserved = 0.0

    def hold(self, name: Hashable, nbytes: float) -> None:
        """A tensor comes [B]; one of no bytes takes none."""
        size = -(-nbytes // MIN_BLOCK) * MIN_BLOCK
        start = self._place(size)
        self._blocks[name] = start, start + size
        self.held += size
        self.peak = max(self.peak, self.held)

    def free(self, name: Hashable) -> None:
        """A tensor goes."""
        start, end = self._blocks.pop(name)
        self.held -= end - start
        if start < end:
            self._return(start, end)

    def _place(self, size: float) -> float:
        """Where a tensor of this size begins [B]; its block is free no longer."""
        if not size:
            return 0.0
        fits = [(end - start, start) for start, end in self._free if end - start >= size]
        inside = [one for one in fits if one[0] + one[1] < self.reserved]  # the last one could grow, and is taken last
        if fits:
            length, start = min(inside or fits)
            self._free.remove((start, start + length))
            if length > size:
                self._return(start + size, start + length)
            return start
        start = self.reserved
        if self._free and self._free[-1][1] == self.reserved:
            start, _ = self._free.pop()
        self.reserved = start + size
        return start

    def _return(self, start: float, end: float) -> None:
        """A block is free, and one with free neighbours."""
        beside = [one for one in self._free if start in one or end in one]
        rest = [one for one in self._free if one not in beside]
        low, high = min([start, *(one[0] for one in beside)]), max([end, *(one[1] for one in beside)])
        self._free = sorted([*rest, (low, high)])
