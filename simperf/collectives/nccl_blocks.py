"""Multiprocessors that NCCL's kernels hold, and memory traffic that they cause, on each GPU that takes part.

A channel is a block of threads, and a block has a multiprocessor to itself: it takes all of its registers (NVIDIA/nccl,
issue 689). How many channels a communicator has follows from bandwidths, by the rules of NVIDIA/nccl 2.28
(src/graph/search.cc, ncclTopoCompute and ncclTopoDupChannels; src/graph/connect.cc, ncclTopoPostset). Logs of NCCL have
the same numbers: 24 inside a server of A100 (NVIDIA/nccl-tests, issue 100), 16 of H800 (NVIDIA/nccl, issue 892), 16
over eight NICs and 2 over one (issue 689), 8 over two NICs of 400 Gbit/s (issue 1189).

A payload that is too small for all channels has fewer. A kernel reads what it sends and writes what it receives; where
it adds up, it reads its own part too: two and three times the bytes on the wire (issue 1428).

Not modelled: CUDA graphs that share blocks, and buffers that users register, which need fewer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from simperf.collectives.exchange import RING_SENDS
from simperf.hardware import GpuPart, Machine

__all__ = ["channels_of", "kernel_blocks", "memory_traffic"]

#: bandwidths that a channel may have, the highest first, inside a server and between servers, by the generation from
#: which on they hold (src/graph/search.cc: speedArrayIntra, speedArrayInter and those of sm90 and sm100) [GB/s]
_INSIDE = {
    "": (40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3),
    "hopper": (60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3),
    "blackwell": (90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18),
}
_BETWEEN = {
    "": (48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12),
    "hopper": (48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12),
    "blackwell": (96, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12),
}

#: most channels (src/include/device.h: MAXCHANNELS), and most of those that are searched for
MOST = 32
_SEARCHED = MOST // 2

#: channels of the reduction in switches, inside a server and over several (src/transport/nvls.cc) [1]
_SWITCHES = {"": (16, 16), "blackwell": (24, 32)}

#: threads of a block, and bytes for each of them below which a channel is left out, by protocol; of LL for each rank
#: (src/graph/tuning.cc: threadThresholds; src/include/comm.h)
_THREADS = {"LL": (512, 8), "LL128": (640, 8), "Simple": (512, 64)}

#: memory traffic for a byte on the wire (NVIDIA/nccl, issue 1428): collectives that add up half of the way have the
#: mean of two and three [1]
_TRAFFIC = {"all-reduce": 2.5, "reduce-scatter": 3.0, "reduce": 3.0}

#: collectives of which every part goes around twice
_TWICE = ("all-reduce",)


def _ring_channels(found: int, bandwidth: float, generation: str) -> int:
    """Channels of a communicator whose search finds `found` of them.

    Those that carry 25 GB/s or more are doubled, unless a GPU later than Ampere has more than four below 50 GB/s. All
    of them are doubled once more.

    Parameters
    ----------
    found : int
    bandwidth : float
        Of each of them [GB/s].
    generation : str
        Architecture of the GPUs.

    Examples
    --------
    >>> [_ring_channels(*one) for one in ((6, 40, "ampere"), (8, 24, "ampere"), (8, 48, "hopper"), (2, 48, "hopper"))]
    [24, 16, 16, 8]
    """
    enough = _rules(generation, _INSIDE) != "" and bandwidth < 50 and found > 4
    if bandwidth >= 25 and not enough:
        found = min(_SEARCHED, 2 * found)
    return min(MOST, 2 * found)


def channels_of(machine: Machine, ranks: Sequence[str], *, nics: int, speed: float = 1.0) -> int:
    """Channels of a communicator [1]; 0 where NCCL does not run.

    Parameters
    ----------
    machine : Machine
    ranks : sequence of str
        Node of each rank.
    nics : int
        That each server uses; 0 for one server.
    speed : float
        How many times as fast NCCL's constants are, and so the bandwidths that a channel may have [1].
    """
    part = machine.nodes[ranks[0]].part
    if not isinstance(part, GpuPart) or len(ranks) < 2:
        return 0
    generation = part.architecture
    if nics:
        away = next(rank for rank in ranks if machine.nodes[rank].server != machine.nodes[ranks[0]].server)
        edges = machine.route(ranks[0], away).edges
        rate = min(edge.bandwidth / max(1, edge.count) for edge in edges if edge.technology != "nvlink")
        speeds = _BETWEEN[_rules(generation, _BETWEEN)]
        return _ring_channels(nics, _speed(round(rate / speed / 1e9, 6), speeds), generation)
    links = sum(edge.bandwidth for edge in machine.leaving(ranks[0]) if edge.technology == "nvlink")
    if not links:
        return _ring_channels(1, 12, generation)
    rate = round(links / speed / 1e9, 6)  # what is faster as a whole has as many channels
    speeds = tuple(one for one in _INSIDE[_rules(generation, _INSIDE)] if one <= rate) or (3,)
    best = max(speeds, key=lambda one: min(_SEARCHED, rate // one) * one)  # the first of those that tie
    return _ring_channels(int(min(_SEARCHED, rate // best)), best, generation)


def kernel_blocks(
    algorithm: str, protocol: str, nbytes: float, channels: int, *, ranks: int, servers: int, generation: str
) -> int:
    """Blocks of the kernel of a collective on each GPU, one on each of its multiprocessors.

    Parameters
    ----------
    algorithm, protocol : str
        As NCCL chose them.
    nbytes : float
        Payload [B].
    channels : int
        Of the communicator.
    ranks, servers : int
        That take part.
    generation : str
        Architecture of the GPUs.

    Examples
    --------
    >>> [kernel_blocks("ring", "Simple", size, 24, ranks=8, servers=1, generation="ampere") for size in (1e5, 1e9)]
    [4, 24]
    """
    if not channels or ranks < 2:
        return 0
    if algorithm == "in-network":
        return _SWITCHES[_rules(generation, _SWITCHES)][servers > 1]
    if algorithm == "direct":  # channels of sends: the next power of two
        return min(MOST, 1 << (channels - 1).bit_length())
    threads, each = _THREADS[protocol]
    least = threads * each * (ranks if protocol == "LL" else 1)
    return max(1, min(channels, -int(-nbytes // least)))


def memory_traffic(name: str, nbytes: float, ranks: int) -> float:
    """Bytes that a collective reads and writes in the memory of each GPU [B].

    Parameters
    ----------
    name : str
        Of the collective, or of an exchange.
    nbytes : float
        Payload [B].
    ranks : int

    Examples
    --------
    >>> memory_traffic("all-gather", 8e9, 8), memory_traffic("all-reduce", 8e9, 8)
    (14000000000.0, 35000000000.0)
    """
    whole = nbytes if name in RING_SENDS else nbytes * (ranks - 1) / ranks * (2 if name in _TWICE else 1)
    return whole * _TRAFFIC.get(name, 2.0)


def _rules(generation: str, tables: Collection[str]) -> str:
    """The generation whose rules hold for another; NCCL asks for a compute capability of 10.0 or more."""
    order = ("", "hopper", "blackwell")
    generation = "blackwell" if generation == "blackwell-rtx" else generation
    own = order.index(generation) if generation in order else 0
    return next(one for one in reversed(order[: own + 1]) if one in tables)


def _speed(rate: float, speeds: Sequence[float]) -> float:
    """The highest bandwidth of a channel that a NIC carries [GB/s]."""
    return next((one for one in speeds if one <= rate), speeds[-1])
