"""Costs of NCCL's kernels on a generation of GPUs that NVLink joins, as data.

NCCL chooses by the constants of its tuner (`simperf.collectives.nccl_estimate`), which are the same for all GPUs. What
the choice then takes depends on the generation: how soon a block sends, what a hop over its NVSwitch takes, and what
the blocks of a GPU get through.

A generation without a table is estimated from the others: starts and hops are as many exchanges of flags between two
GPUs, rates are the same part of the links, what all threads add is the time of as many bytes on them, and what is
neither is as it is there; of several generations the geometric mean. An exchange is measured without NCCL, and a GPU's
file may give it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
    "Generation",
    "KernelCost",
    "direct_protocol",
    "estimated_costs",
    "generations",
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

#: what is measured in exchanges of flags, in the bandwidth of a GPU's links, and in the time of bytes on them; LL's
#: sends to one peer do not reach the links' bandwidth
_IN_EXCHANGES = ("start", "step")
_IN_LINKS = ("rate", "copy")
_IN_BYTES = ("wide",)
_NARROW = "direct-LL"

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
        Time of a hop over NVLink [s].
    wide : float
        What is added to a step where all threads of a block take part [s].
    wave : float
        Time of a chunk of all channels beyond its bytes, where switches add up [s].
    rate : float
        Payload that a GPU's blocks get through [B/s]; infinite where the links are the limit.
    copy : float
        Rate at which a chunk is moved inside the GPU's memory [B/s].
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
        times = {name: getattr(self, name) / speed for name in ("start", "step", "wide", "wave")}
        return replace(self, **times, rate=self.rate * speed, copy=self.copy * speed)


@dataclass(frozen=True, slots=True)
class Generation:
    """GPUs whose kernels were measured.

    Parameters
    ----------
    exchange : float
        Of flags between two GPUs over NVLink [s].
    links : float
        What a GPU's NVLinks carry one way [B/s].
    costs : mapping of str to KernelCost
        By protocol, and of the reduction in switches and of sends.
    """

    exchange: float
    links: float
    costs: Mapping[str, KernelCost]


@lru_cache(maxsize=1)
def generations() -> Mapping[str, Generation]:
    """All generations that have a table, by name; without what one has from another."""
    toml = read_toml(_FILE)
    found, problems = {}, []
    for name, table in toml.data.items():
        if not isinstance(table, dict):
            continue
        costs = {}
        for key, row in table.items():
            if not isinstance(row, dict) or "as" in row:
                continue
            try:
                costs[key] = _read(row)
            except (KeyError, TypeError, ValueError) as error:
                problems.append(toml.problem((name, key), str(error)))
        try:
            found[name] = Generation(parse(table["exchange"], "s"), parse(table["links"], "B/s"), costs)
        except (KeyError, TypeError, ValueError) as error:
            problems.append(toml.problem((name,), str(error)))
    if problems:
        raise InputError(problems)
    return found


@lru_cache(maxsize=1)
def kernel_table() -> Mapping[tuple[str, str], KernelCost]:
    """All costs, by generation and protocol."""
    known = generations()
    found = {(of, name): cost for of, one in known.items() for name, cost in one.costs.items()}
    for of in known:
        for name, row in read_toml(_FILE).data[of].items():
            if isinstance(row, dict) and "as" in row:
                found[of, name] = known[row["as"]].costs[name]
    return found


def estimated_costs(exchange: float, links: float, *, without: str = "") -> Mapping[str, KernelCost]:
    """Costs by protocol on GPUs of a generation that has no table.

    Parameters
    ----------
    exchange : float
        Of flags between two of the GPUs over NVLink [s].
    links : float
        What a GPU's NVLinks carry one way [B/s].
    without : str
        Generation whose table takes no part.

    Examples
    --------
    >>> own, table = generations()["hopper"], kernel_table()
    >>> other = estimated_costs(own.exchange, own.links, without="hopper")
    >>> [round(cost.start * 1e6, 1) for cost in (other["LL"], table["hopper", "LL"])]
    [5.3, 4.9]
    """
    others = [one for name, one in generations().items() if name != without]
    found = {}
    for name in dict.fromkeys(name for one in others for name in one.costs):
        rows = [one for one in others if name in one.costs]
        values = {}
        for key in _UNITS:
            parts = [getattr(one.costs[name], key) / _unit(key, name, one.exchange, one.links) for one in rows]
            values[key] = _unit(key, name, exchange, links) * _middle(parts)
        found[name] = KernelCost(**values)
    return found


def _unit(key: str, name: str, exchange: float, links: float) -> float:
    """What a cost of a kernel is measured in on a generation."""
    if key in _IN_EXCHANGES:
        return exchange
    if key in _IN_BYTES:
        return 1.0 / links
    return links if key in _IN_LINKS and name != _NARROW else 1.0


def _middle(values: Sequence[float]) -> float:
    """Geometric mean; where one is 0, the arithmetic one."""
    if min(values) > 0.0:
        return math.prod(values) ** (1 / len(values))
    return sum(values) / len(values)


def _read(row: Mapping[str, str | float]) -> KernelCost:
    return KernelCost(**{key: parse(row[key], unit) if (unit := _UNITS[key]) else float(row[key]) for key in row})


def kernel_costs(machine: Machine, ranks: Sequence[str]) -> Mapping[str, KernelCost]:
    """Costs by protocol on these GPUs, and of the reduction in switches and of sends; empty if none are known.

    They are known where all GPUs are of one generation, and NVLink joins those of a server. Where the GPU's part gives
    an exchange of flags, they are estimated.
    """
    parts = [machine.nodes[rank].part for rank in ranks]
    kinds = {(part.architecture, part.exchange) if isinstance(part, GpuPart) else ("", None) for part in parts}
    if len(kinds) != 1:
        return {}
    generation, exchange = next(iter(kinds))
    if exchange is None:
        return {name: cost for (of, name), cost in kernel_table().items() if of == generation}
    links = sum(edge.bandwidth for edge in machine.leaving(ranks[0]) if edge.technology == "nvlink")
    return estimated_costs(exchange, links) if links else {}


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
