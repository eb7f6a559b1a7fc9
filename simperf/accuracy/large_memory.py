"""Measured memory of a GPU, by what was read: a counter of PyTorch, or all that the driver has given away."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["MeasuredMemory", "MemoryCounter", "measured_memory"]

#: of PyTorch's allocator: allocated or reserved at most; of nvidia-smi, with caches and contexts; activations of the
#: first stage alone
MemoryCounter = Literal["allocated", "reserved", "device", "activations"]

#: metric of a case -> what was read
_COUNTERS: Mapping[str, MemoryCounter] = {
    "peak_allocated_max_over_ranks": "allocated",
    "peak_memory_max_over_gpus": "reserved",
    "gpu_memory": "device",
    "max_memory": "device",
    "peak_memory": "allocated",
    "activation_memory_first_stage": "activations",
}
_UNITS = {"GiB": 2.0**30, "GB": 1e9, "MiB": 2.0**20, "MB": 1e6}


@dataclass(frozen=True, slots=True)
class MeasuredMemory:
    """Most memory of a GPU during a run.

    Parameters
    ----------
    counter : str
        What was read.
    nbytes : float
        Most over all GPUs [B].
    by_rank : mapping of int to float
        The same of each rank, where it is printed [B].
    fits : bool, optional
        Whether the job fitted; None where nobody asked. Of one that did not, `nbytes` is not known.
    """

    counter: MemoryCounter
    nbytes: float
    by_rank: Mapping[int, float]
    fits: bool | None = None


def measured_memory(case: Mapping[str, Any]) -> MeasuredMemory | None:
    """The memory that a case has, beside a time or instead of one; None if there is none.

    torchtitan's figure is that of its metrics, which read PyTorch's reserved memory (pytorch/torchtitan,
    components/metrics.py).
    """
    for table in (case.get("measured_memory"), case.get("measured")):
        if not isinstance(table, Mapping) or table.get("metric") not in _COUNTERS:
            continue
        value, unit = table.get("value"), table.get("unit")
        fits = not table["oom"] if isinstance(table.get("oom"), bool) else None
        if fits is False:
            return MeasuredMemory(_COUNTERS[table["metric"]], math.nan, {}, fits)
        if not isinstance(value, int | float) or unit not in _UNITS:
            continue
        each = table.get("per_rank_max_allocated_mb") or {}  # in units of 2**20, as Megatron-LM prints it
        return MeasuredMemory(
            _COUNTERS[table["metric"]],
            float(value) * _UNITS[unit],
            {int(rank): float(size) * _UNITS["MiB"] for rank, size in each.items()},
            fits,
        )
    return None
