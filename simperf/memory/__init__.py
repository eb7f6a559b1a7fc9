"""Memory of a device: lifetimes of tensors, what is held when, and whether it fits."""

from typing import TYPE_CHECKING

from simperf.public_names import public_names

if TYPE_CHECKING:
    from simperf.memory.fit import largest_batch
    from simperf.memory.holding import Holding, hold
    from simperf.memory.pool import MemoryPool
    from simperf.memory.tensors import KINDS, Tensor, TensorKind, held
else:
    __getattr__, __dir__ = public_names(
        __name__,
        {
            "fit": ("largest_batch",),
            "holding": ("Holding", "hold"),
            "pool": ("MemoryPool",),
            "tensors": ("KINDS", "Tensor", "TensorKind", "held"),
        },
    )

__all__ = ["KINDS", "Holding", "MemoryPool", "Tensor", "TensorKind", "held", "hold", "largest_batch"]
