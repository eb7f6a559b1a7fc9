"""NCCL's own estimate of a collective, by which it chooses algorithm and protocol.

The formula of its tuner (NVIDIA/nccl 2.28, src/graph/tuning.cc): a latency and a bandwidth for each algorithm and
protocol, the same for all GPUs of a generation. The choice may be slower than another one would have been.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from simperf.collectives.nccl_plans import NcclPlans
from simperf.collectives.nccl_rings import PASSES
from simperf.collectives.networks import NcclNetwork, bandwidth_limit, post_overhead
from simperf.collectives.placement import Transport
from simperf.hardware import GpuPart, Machine

__all__ = ["NcclEstimate", "network_estimate", "server_estimate"]

#: part of its bandwidth that NCCL has for a tree by protocol, at payloads of 64 B, 128 B, ... up to 256 MiB
#: (src/graph/tuning.cc: treeCorrectionFactor); larger ones have all of it
_TREE_FACTORS: Mapping[str, tuple[float, ...]] = {
    "LL": (*4 * (1.0,), 0.9, 0.8, *4 * (0.7,), 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, *4 * (1.0,)),
    "LL128": (*5 * (1.0,), 0.9, *3 * (0.8,), 0.7, *6 * (0.6,), 0.8, *4 * (0.9,), 1.0, 1.0),
    "Simple": (*7 * (0.9,), 0.8, 0.7, 0.6, 0.6, *4 * (0.5,), 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9),
}
_LEAST_TREE = 64

#: times that NCCL multiplies the latency of a ring's all-reduce under Simple by, before Ampere and since, where a GPU's
#: channel has so many bytes for each rank (the same, ncclTopoGetAlgoTime)
_PLATEAUS = {"volta": 1.9, "turing": 1.9}
_PLATEAU = 1.4
_PLATEAU_BYTES = 64

#: times that a message is given to the network in a step under Simple
_SIMPLE_POSTS = 3

#: hops of the reduction in one server's switches whose latencies make up the one that NCCL's table has for it
SWITCH_HOPS = 4


@dataclass(frozen=True, slots=True)
class NcclEstimate:
    """A latency [s] and a bandwidth [B/s of payload]."""

    latency: float
    bandwidth: float

    def time(self, nbytes: float) -> float:
        """Time of a payload [s]."""
        return self.latency + nbytes / self.bandwidth


def server_estimate(
    machine: Machine,
    ranks: Sequence[str],
    kind: tuple[str, str],
    transport: Transport,
    *,
    passes: int,
    bandwidth: float,
    speed: float = 1.0,
) -> NcclEstimate:
    """The estimate for GPUs of one server that NVLink joins.

    Parameters
    ----------
    machine : Machine
    ranks : sequence of str
        GPUs that take part.
    kind : tuple of str
        Algorithm, ``"ring"`` or ``"in-network"``, and protocol.
    transport : Transport
        Latencies and efficiency of NCCL's constants.
    passes : int
        Times that a chunk goes around a ring; 0 where chunks follow each other along it.
    bandwidth : float
        Of all channels on the links [B/s].
    speed : float
        How many times as fast the protocols' own limits are [1].
    """
    algorithm, protocol = kind
    count = len(ranks)
    if algorithm == "in-network":
        return NcclEstimate(SWITCH_HOPS * transport.media["nvlink"], bandwidth * transport.efficiency)
    steps = passes * (count - 1)
    found = min(bandwidth, bandwidth_limit("Simple", machine, ranks))
    bus = min(found * transport.efficiency, bandwidth_limit(protocol, machine, ranks) * speed)
    hop = transport.media["nvlink"]
    if not steps:
        return NcclEstimate(transport.start + hop, bus)
    return NcclEstimate(transport.start + steps * hop, bus * count / steps)


def network_estimate(
    shape: NcclPlans,
    kind: tuple[str, str],
    transport: Transport,
    network: NcclNetwork,
    *,
    medium: str,
    nbytes: float,
    speed: float = 1.0,
) -> float:
    """Time that the tuner has for a ring or a tree over three servers or more [s].

    Parameters
    ----------
    shape : NcclPlans
        Ranks and collective.
    kind : tuple of str
        Algorithm, ``"ring"`` or ``"tree"``, and protocol.
    transport : Transport
        Latencies, efficiency and channels of NCCL's constants on this machine.
    network : NcclNetwork
        Between the servers.
    medium : str
        Of the hops inside a server.
    nbytes : float
        Payload [B].
    speed : float
        How many times as fast giving messages to the network is [1].
    """
    algorithm, protocol = kind
    servers, ranks = len(shape.groups), len(shape.ranks)
    simple = protocol == "Simple"
    inside = transport.media[medium]
    between = transport.media["network"] + (network.latency if simple else 0.0)  # Simple flushes what has arrived
    bandwidth = transport.efficiency * sum(transport.caps)
    if algorithm == "tree":
        levels = servers.bit_length() - 1
        latency = transport.start + 2 * ((ranks // servers - 1) * inside + levels * between)
        return NcclEstimate(latency, bandwidth * _tree_factor(protocol, nbytes)).time(nbytes)
    passes = PASSES[shape.collective]
    steps, crossing = passes * (ranks - 1), passes * (servers - 1)
    inside = max(inside, post_overhead(shape.machine, shape.ranks) * (_SIMPLE_POSTS if simple else 1) / speed)
    latency = transport.start + (steps - crossing) * inside + crossing * between
    if simple and shape.collective == "all-reduce" and nbytes >= _PLATEAU_BYTES * len(transport.caps) * ranks:
        part = shape.machine.nodes[shape.ranks[0]].part
        latency *= _PLATEAUS.get(part.architecture, _PLATEAU) if isinstance(part, GpuPart) else _PLATEAU
    return NcclEstimate(latency, bandwidth * ranks / steps).time(nbytes)


def _tree_factor(protocol: str, nbytes: float) -> float:
    """Part of a tree's bandwidth at a payload [B]."""
    place = int(nbytes // _LEAST_TREE).bit_length() - 1
    factors = _TREE_FACTORS[protocol]
    return factors[place] if 0 <= place < len(factors) else 1.0
