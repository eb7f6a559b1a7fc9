"""Memory of a device: lifetimes of tensors, what is held when, and whether it fits."""

from typing import TYPE_CHECKING

from simperf.public_names import public_names

if TYPE_CHECKING:
    from simperf.memory.allocator import allocated
    from simperf.memory.context import DRIVER, communicator_buffers, workspace
    from simperf.memory.fit import largest_batch
    from simperf.memory.holding import Holding, hold
    from simperf.memory.lifetimes import ALLOCATORS, Allocator, LayerTensors, TakenBytes, TensorEvent, taken
    from simperf.memory.pool import MemoryPool
    from simperf.memory.sharded_states import ParameterBytes, state_memory
    from simperf.memory.stage import ChunkMemory, LayerMemory, Moment, StageMemory, stage_memory
    from simperf.memory.tensors import KINDS, Tensor, TensorKind, held
else:
    __getattr__, __dir__ = public_names(
        __name__,
        {
            "allocator": ("allocated",),
            "context": ("DRIVER", "communicator_buffers", "workspace"),
            "fit": ("largest_batch",),
            "holding": ("Holding", "hold"),
            "lifetimes": ("ALLOCATORS", "Allocator", "LayerTensors", "TakenBytes", "TensorEvent", "taken"),
            "pool": ("MemoryPool",),
            "sharded_states": ("ParameterBytes", "state_memory"),
            "stage": ("ChunkMemory", "LayerMemory", "Moment", "StageMemory", "stage_memory"),
            "tensors": ("KINDS", "Tensor", "TensorKind", "held"),
        },
    )

__all__ = [
    "ALLOCATORS",
    "DRIVER",
    "KINDS",
    "Allocator",
    "ChunkMemory",
    "Holding",
    "LayerMemory",
    "LayerTensors",
    "MemoryPool",
    "Moment",
    "ParameterBytes",
    "StageMemory",
    "TakenBytes",
    "Tensor",
    "TensorEvent",
    "TensorKind",
    "allocated",
    "communicator_buffers",
    "held",
    "hold",
    "largest_batch",
    "stage_memory",
    "state_memory",
    "taken",
    "workspace",
]
