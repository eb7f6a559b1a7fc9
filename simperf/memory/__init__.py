"""What is held of a device's memory, when, and whether it fits."""

from simperf.memory.fit import largest_batch
from simperf.memory.holding import Holding, hold
from simperf.memory.pool import Pool
from simperf.memory.tensors import KINDS, Kind, Tensor, held

__all__ = ["KINDS", "Holding", "Kind", "Pool", "Tensor", "held", "hold", "largest_batch"]
