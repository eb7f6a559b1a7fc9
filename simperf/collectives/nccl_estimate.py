"""NCCL's own estimate of a collective, by which it chooses algorithm and protocol.

The formula of its tuner (NVIDIA/nccl 2.28, src/graph/tuning.cc): a latency and a bandwidth for each algorithm and
protocol, the same for all GPUs of a generation. The choice may be slower than another one would have been.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simperf.collectives.networks import bandwidth_limit
from simperf.collectives.placement import Transport
from simperf.hardware import Machine

__all__ = ["NcclEstimate", "server_estimate"]

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
