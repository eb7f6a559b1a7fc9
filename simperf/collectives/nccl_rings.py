"""NCCL's rings and chains: what runs on them, and how long a paced ring takes.

A ring's sends do not wait for each other's latency: a slice is handed on as soon as it is
there, while the next one is on its way. With every lane at the channel's pace no send
ever waits for a lane either, so that the time is that of the slowest chunk on its way: as
many latencies as it makes hops, and as many chunks' times. That is the schedule of a ring
in *pipeline* style (`simperf.collectives.plan`) without simulating it send by send.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simperf.collectives.links import FloatArray
from simperf.collectives.plan import Channel, IntArray, Plan, busiest
from simperf.collectives.plans.trees import tree_phase

__all__ = ["PASSES", "chains", "first_arrival", "longest", "sends_in_turn", "turned"]

#: times that a chunk goes around the ring
PASSES = {"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1}

#: ranks whose sends are counted one by one for what a plan claims to send
MOST_COUNTED = 256


def longest(delays: FloatArray, steps: int) -> float:
    """The largest sum of so many delays in a row around a ring [s]: the latencies that the slowest chunk meets."""
    turns, rest = divmod(steps, len(delays))
    sums = np.concatenate(([0.0], np.cumsum(np.concatenate((delays, delays)))))
    return float(turns * delays.sum() + (sums[rest : rest + len(delays)] - sums[: len(delays)]).max())


def sends_in_turn(
    plan: Plan, number: int, pairs: tuple[IntArray, IntArray]
) -> list[tuple[IntArray, IntArray, IntArray]]:
    """Sources, destinations and connections (places in `pairs`) of the sends of a channel, round by round."""
    src, dst = pairs
    keys = src * plan.nparticipants + dst
    rounds = [one for phase in plan.channels[number].phases for one in phase]
    return [(one.src, one.dst, np.searchsorted(keys, one.src * plan.nparticipants + one.dst)) for one in rounds]


def first_arrival(
    sends: Sequence[tuple[IntArray, IntArray, IntArray]], cost: FloatArray, *, participants: int
) -> float:
    """Time until the only chunk of a channel is everywhere [s], where connection i takes ``cost[i]``."""
    ready = np.zeros(participants)
    for src, dst, lane in sends:
        np.maximum.at(ready, dst, ready[src] + cost[lane])
    return float(ready.max())


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
