"""Lifetimes of a layer's tensors in the order of its passes, and what an allocator takes from a device for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, get_args

from simperf.memory.growing_pool import GrowingPool
from simperf.memory.segment_pool import SegmentPool

__all__ = ["ALLOCATORS", "Allocator", "AllocatorPool", "LayerTensors", "TakenBytes", "TensorEvent", "taken"]

#: of a GPU's memory: PyTorch's by default, in segments of fixed sizes; the same with ``expandable_segments:True`` in
#: PYTORCH_CUDA_ALLOC_CONF; none: what is free in a stream's pool holds any tensor
Allocator = Literal["none", "fixed-segments", "expandable-segments"]
ALLOCATORS: tuple[str, ...] = get_args(Allocator)


class AllocatorPool(Protocol):
    """Memory that an allocator has taken from a device for the tensors of one stream."""

    reserved: float

    def hold(self, name: int, nbytes: float) -> None:
        """A tensor comes [B]."""

    def free(self, name: int) -> None:
        """A tensor goes."""


_POOLS: Mapping[str, type[GrowingPool] | type[SegmentPool]] = {
    "fixed-segments": SegmentPool,
    "expandable-segments": GrowingPool,
}


class TensorEvent(NamedTuple):
    """A tensor that comes, or goes.

    Parameters
    ----------
    tensor : int
        Its number, in all passes of a layer the same.
    nbytes : float or None
        Its size [B]; None where it goes.
    """

    tensor: int
    nbytes: float | None


@dataclass(frozen=True, slots=True)
class LayerTensors:
    """Events of a layer's tensors, pass by pass, where its backward pass follows its forward pass at once.

    Parameters
    ----------
    forward, backward : tuple of TensorEvent
        Of these passes.
    inputs, weights : tuple of TensorEvent
        Of the backward pass in two passes, of the gradients of inputs and of those of weights. Others may be between
        them: the second begins with what the first leaves.
    """

    forward: tuple[TensorEvent, ...]
    backward: tuple[TensorEvent, ...]
    inputs: tuple[TensorEvent, ...] = ()
    weights: tuple[TensorEvent, ...] = ()


class TakenBytes(NamedTuple):
    """Memory that an allocator has taken for a layer's tensors after a pass [B]: `weights` for that pass alone."""

    forward: float = 0.0
    backward: float = 0.0
    inputs: float = 0.0
    weights: float = 0.0


def taken(tensors: LayerTensors, allocator: Allocator) -> TakenBytes:
    """Memory that an allocator takes for the passes of a layer, of a pool that is empty before [B].

    Parameters
    ----------
    tensors : LayerTensors
    allocator : str
        One of `ALLOCATORS`.

    Examples
    --------
    A block that is too small for the larger tensor behind it:

    >>> forward = [TensorEvent(0, 16 * 2.0**20), TensorEvent(1, 32 * 2.0**20), TensorEvent(0, None)]
    >>> found = LayerTensors(tuple(forward), (TensorEvent(2, 32 * 2.0**20),))
    >>> for allocator in ALLOCATORS:
    ...     print(taken(found, allocator).backward / 2**20)
    0.0
    80.0
    80.0
    """
    if allocator == "none":
        return TakenBytes()
    whole, split, apart = (_POOLS[allocator]() for _ in range(3))
    forward = _after(whole, tensors.forward)
    _after(split, tensors.forward)
    return TakenBytes(
        forward, _after(whole, tensors.backward), _after(split, tensors.inputs), _after(apart, tensors.weights)
    )


def _after(pool: AllocatorPool, events: tuple[TensorEvent, ...]) -> float:
    """What a pool has taken when these events are over [B]."""
    for one in events:
        if one.nbytes is None:
            pool.free(one.tensor)
        else:
            pool.hold(one.tensor, one.nbytes)
    return pool.reserved
