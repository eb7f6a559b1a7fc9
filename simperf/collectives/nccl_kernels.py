"""Costs of NCCL's kernels on a generation of GPUs that NVLink joins, as data.

NCCL chooses by the constants of its tuner (`simperf.collectives.nccl_estimate`), which are the same for all GPUs. What
the choice then takes depends on the generation: how soon a block sends, what a hop over its NVSwitch takes, and what
the blocks of a GPU get through.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from simperf.errors import InputError
from simperf.files import read_toml
from simperf.hardware import GpuPart, Machine
from simperf.units import parse

__all__ = [
    "LARGEST_CHUNK",
    "SWITCH_CHANNELS",
    "SWITCH_CHUNK",
    "KernelCost",
    "direct_protocol",
    "kernel_costs",
    "kernel_table",
    "switch_chunk",
]

_FILE = Path(__file__).with_name("data") / "nccl_kernels.toml"

#: dimensions of the keys of a row; 1 where empty
_UNITS = {
    **{"start": "s", "step": "s", "wide": "s", "wave": "s"},
    **{"rate": "B/s", "copy": "B/s"},
    **{"pace": "", "fill": "", "hidden": ""},
}

#: payload of a GPU's chunk for each rank from which on a block has all of its 512 threads under LL, which move 8 B each
#: (NVIDIA/nccl 2.28, src/graph/tuning.cc: threadThresholds) [B]
ALL_THREADS = 512 * 8

#: largest chunk of all channels of a ring: 24 channels of half of a buffer of 4 MiB (src/include/device.h) [B]
LARGEST_CHUNK = 24 * 2 * 1024 * 1024

#: channels of the reduction in one server's switches, and its chunks for payloads of up to so many chunks of all
#: channels and GPUs: src/enqueue.cc, calcCollChunking [B]
SWITCH_CHANNELS = 16
SWITCH_CHUNK = 128 * 1024
_SMALLER = ((64, 128 * 1024, 64 * 1024), (8, 64 * 1024, 32 * 1024), (2, 32 * 1024, 16 * 1024))

#: message up to which a send to one peer uses LL: NCCL_P2P_LL_THRESHOLD (src/init.cc) [B]
LL_MESSAGE = 16 * 1024


@dataclass(frozen=True, slots=True)
class KernelCost:
    """Costs of a kernel under one protocol.

    Parameters
    ----------
    start : float
        From the call to the first send [s].
    step : float
        Of a hop over NVLink [s].
    wide : float
        More of a step where all threads of a block take part [s].
    wave : float
        Of a chunk of all channels beyond its bytes, where switches add up [s].
    rate : float
        Payload that a GPU's blocks get through [B/s]; infinite where the links are the limit.
    copy : float
        At which a chunk is moved inside the GPU's memory [B/s].
    pace : float
        Part of the links' bandwidth that is reached, 0 to 1.
    fill : float
        Chunks that pass before all steps overlap [1].
    hidden : float
        Part of a chunk's time that hides the latency of its step, 0 to 1.
    """

    start: float
    step: float = 0.0
    wide: float = 0.0
    wave: float = 0.0
    rate: float = math.inf
    copy: float = math.inf
    pace: float = 1.0
    fill: float = 0.0
    hidden: float = 0.0

    def hop(self, nbytes: float, ranks: int, chunk_time: float) -> float:
        """Latency of a hop over NVLink in a collective [s].

        Parameters
        ----------
        nbytes : float
            Payload [B].
        ranks : int
            That take part.
        chunk_time : float
            Of one rank's chunk on a link [s].
        """
        more = self.wide if nbytes >= ALL_THREADS * ranks else 0.0
        return max(0.0, self.step - self.hidden * chunk_time) + more

    def faster(self, speed: float) -> KernelCost:
        """The same kernel, whose latencies and blocks are `speed` times as fast [1]."""
        if speed == 1.0:
            return self
        times = (self.start / speed, self.step / speed, self.wide / speed, self.wave / speed)
        return KernelCost(*times, self.rate * speed, self.copy * speed, self.pace, self.fill, self.hidden)


@lru_cache(maxsize=1)
def kernel_table() -> Mapping[tuple[str, str], KernelCost]:
    """All costs, by generation and protocol."""
    toml = read_toml(_FILE)
    found, problems = {}, []
    for generation, kernels in toml.data.items():
        if not isinstance(kernels, dict):
            continue
        for name, row in kernels.items():
            try:
                found[generation, name] = _read(row)
            except (KeyError, TypeError, ValueError) as error:
                problems.append(toml.problem((generation, name), str(error)))
    if problems:
        raise InputError(problems)
    return found


def _read(row: Mapping[str, str | float]) -> KernelCost:
    return KernelCost(**{key: parse(row[key], unit) if (unit := _UNITS[key]) else float(row[key]) for key in row})


def kernel_costs(machine: Machine, ranks: Sequence[str]) -> Mapping[str, KernelCost]:
    """Costs by protocol on these GPUs, and of the reduction in switches and of sends; empty if none are known.

    They are known where all GPUs are of one generation, and NVLink joins those of a server.
    """
    parts = [machine.nodes[rank].part for rank in ranks]
    generations = {part.architecture if isinstance(part, GpuPart) else "" for part in parts}
    generation = next(iter(generations))
    return {name: cost for (of, name), cost in kernel_table().items() if of == generation and len(generations) == 1}


def switch_chunk(nbytes: float, ranks: int) -> int:
    """Chunk of a channel into which NCCL cuts a payload that one server's switches add up [B].

    Examples
    --------
    >>> [switch_chunk(size * 2**20, 8) // 1024 for size in (4, 32, 512, 1024)]
    [16, 32, 64, 128]
    """
    chunk, together = SWITCH_CHUNK, SWITCH_CHANNELS * ranks
    for number, larger, smaller in _SMALLER:
        if nbytes < number * together * larger and chunk > smaller:
            chunk = smaller
    return chunk


def direct_protocol(nbytes: float, ranks: int) -> str:
    """Protocol of sends from every rank to every other, by the size of a message."""
    return "LL" if nbytes / ranks <= LL_MESSAGE else "Simple"
