"""NCCL's rings and chains: what runs on them, and how long a paced ring takes.

A ring's sends do not wait for each other's latency: a slice is handed on as soon as it is
there, while the next one is on its way. With every lane at the channel's pace no send
ever waits for a lane either, so that the time is that of the slowest chunk on its way: as
many latencies as it makes hops, and as many chunks' times. That is the schedule of a ring
in *pipeline* style (`simperf.collectives.plan`) without playing it send by send.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from simperf.collectives.placement import Placement, Transport
from simperf.collectives.plan import Channel, Phase, Plan, busiest
from simperf.collectives.plans.trees import tree_phase

__all__ = ["PASSES", "chains", "pipelined", "ring_time", "turned"]

#: times that a chunk goes around the ring
PASSES = {"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1}

#: ranks whose sends are counted one by one for what a plan claims to send
MOST_COUNTED = 256


@dataclass(frozen=True, slots=True)
class Pace:
    """Rates [B/s].

    Parameters
    ----------
    lanes : tuple of float
        Of each channel's slowest lane.
    host : tuple of float
        Of each channel between GPUs and host memory; empty if nothing is staged there.
    copy : float
        At which a GPU moves bytes inside its own memory [B/s].
    """

    lanes: tuple[float, ...]
    host: tuple[float, ...] = ()
    copy: float = math.inf


def ring_time(
    plan: Plan, orders: Sequence[Sequence[int]], placement: Placement, transport: Transport, pace: Pace, nbytes: float
) -> float:
    """Time of paced rings [s].

    A GPU works through its steps one after the other. There is one more than there are
    sends: in the last one it moves what has arrived from the buffer to where it belongs,
    inside its memory, or out of host memory where bytes are staged there. (At the first it
    only sends.)

    Parameters
    ----------
    plan : Plan
        With a channel for each order.
    orders : sequence of sequence of int
        Ranks around each ring.
    placement : Placement
        Where they sit.
    transport : Transport
        Latencies and efficiency.
    pace : Pace
        Of the channels.
    nbytes : float
        Payload [B].
    """
    steps = PASSES[plan.collective] * (plan.nranks - 1)
    slowest = 0.0
    for index, (channel, order) in enumerate(zip(plan.channels, orders, strict=True)):
        delays = np.array([transport.latency(placement.hop(a, b)) for a, b in _lanes(order)])
        chunk = nbytes * channel.share / plan.nranks / transport.efficiency
        moving = steps * chunk / pace.lanes[index]
        if pace.host:
            moving = max(moving, (steps + 1) * chunk / pace.host[index])
        slowest = max(slowest, _longest(delays, steps) + moving)
    last = nbytes / plan.nranks / pace.copy if not pace.host else 0.0
    return transport.start + slowest + last


def _lanes(order: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(order, [*order[1:], order[0]], strict=True))


def _longest(delays: np.ndarray, steps: int) -> float:
    """The largest sum of so many delays in a row around a ring."""
    turns, rest = divmod(steps, len(delays))
    sums = np.concatenate(([0.0], np.cumsum(np.concatenate((delays, delays)))))
    return float(turns * delays.sum() + (sums[rest : rest + len(delays)] - sums[: len(delays)]).max())


def chains(name: str, orders: Sequence[Sequence[int]], shares: Sequence[float], *, chunks: int) -> Plan:
    """Broadcast or reduce along each ring, from rank 0 or to it, in chunks that follow each other."""
    nranks = len(orders[0])
    phases = []
    for order in orders:
        at = list(order).index(0)
        line = [*order[at:], *order[:at]]
        parent = np.empty(nranks, dtype=np.int64)
        parent[line[0]] = -1
        parent[line[1:]] = line[:-1]
        phases.append(tree_phase(parent, chunks, way="down" if name == "broadcast" else "up"))
    channels = tuple(Channel((phase,), chunks, share) for phase, share in zip(phases, shares, strict=True))
    sent = busiest(channels, nranks) if nranks <= MOST_COUNTED else 1.0
    return Plan(name, "multi-ring", nranks, channels, max(phase.nrounds for phase in phases), sent)


def pipelined(plan: Plan) -> Plan:
    """The same rings with sends that do not wait for each other: what `ring_time` is the time of."""

    def piped(channel: Channel) -> Channel:
        rounds = [phase.make(index) for phase in channel.phases for index in range(phase.nrounds)]
        return replace(channel, phases=(Phase(len(rounds), rounds.__getitem__, "pipeline"),))

    return replace(plan, channels=tuple(piped(channel) for channel in plan.channels))


def turned(orders: Sequence[Sequence[int]], groups: Sequence[Sequence[int]], by: int) -> list[list[int]]:
    """Rings whose way through every group of ranks begins `by` ranks later."""
    found = []
    for order in orders:
        new: list[int] = []
        start = 0
        for _ in groups:
            group = next(set(members) for members in groups if order[start] in members)
            own = [rank for rank in order[start : start + len(group)] if rank in group]
            turn = by % len(own)
            new += own[turn:] + own[:turn]
            start += len(own)
        found.append(new)
    return found
