"""What is held of a device's memory, when, and whether it fits."""

from simperf.memory.fit import largest_batch
from simperf.memory.holding import Holding, hold
from simperf.memory.pool import MemoryPool
from simperf.memory.tensors import KINDS, Tensor, TensorKind, held

__all__ = ["KINDS", "Holding", "MemoryPool", "Tensor", "TensorKind", "held", "hold", "largest_batch"]
