"""Plans that look the same from every rank: what rank 0 does stands for all.

In an exchange of everybody with everybody rank r sends to r + k what rank 0 sends to k. On
a star or a full mesh of equal links, entered by all at one time, turning the ranks by one
turns every flow into another one of the same fate. So the sends of rank 0 are a flow
each of n - 1 classes, its ports, or its links by distance, are the classes of links, and
n (n - 1) sends cost what n - 1 do (see `simperf.layout.flow_classes` for the argument).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simperf.collectives.links import FloatArray, Hops
from simperf.collectives.placement import Hop, Placement, Transport
from simperf.collectives.plan import IntArray, Plan, Round, chunk_sizes
from simperf.collectives.rounds import solve

__all__ = ["Rotation", "rotate", "turns"]

#: links of a full mesh up to which all are named
MOST_NAMED = 1_000_000


def turns(plan: Plan, placement: Placement, nbytes: float, transport: Transport, entry: Sequence[float]) -> bool:
    """Whether the times of a plan are those of any one rank.

    Parameters
    ----------
    plan, placement, nbytes, transport, entry
        As for `simperf.collectives.executors.recurrence.collapse`.
    """
    topology = placement.machine.topology
    if topology is None or topology.kind == "ring" or topology.changed or plan.nservers:
        return False
    if len(plan.channels) != 1 or len(set(placement.nodes)) < len(placement.nodes) or len(set(entry)) > 1:
        return False
    channel = plan.channels[0]
    if transport.unit > 0.0 and nbytes * plan.copies * channel.share / channel.nchunks % transport.unit:
        return False  # chunks differ by a unit
    phases = [phase for phase in channel.phases if phase.nrounds]
    return bool(phases) and all(phase.turning is not None for phase in phases)


class Rotation:
    """A plan whose ranks all do the same at the same time.

    Attributes
    ----------
    time : float
        When all ranks are done [s].
    """

    def __init__(
        self, plan: Plan, *, placement: Placement, nbytes: float, transport: Transport, entry: Sequence[float]
    ) -> None:
        self._plan, self._placement, self._transport = plan, placement, transport
        assert placement.machine.topology is not None
        self._topology = placement.machine.topology
        self._nbytes = nbytes
        self._star = self._topology.kind == "star"
        self.time = float(entry[0]) + transport.start
        self._sent = np.zeros(plan.nranks)  # bytes on the wire of rank 0, by distance

    def run(self) -> bool:
        """Go through all rounds; False if the order in which a rank adds up what arrives is not known."""
        for phase in self._plan.channels[0].phases:
            assert phase.turning is not None
            for index in range(phase.nrounds):
                one = phase.turning(index)
                if len(one) and not self._round(one):
                    return False
        return True

    def _round(self, one: Round) -> bool:
        transport, channel = self._transport, self._plan.channels[0]
        nbytes = self._nbytes * self._plan.copies * channel.share
        payload = chunk_sizes(one.chunk, one.span, channel.nchunks, nbytes=nbytes)
        size = payload / transport.efficiency
        links, capacity = self._links(one.dst)
        crossed = 2 if self._star else 1
        latency = transport.latency(Hop((), crossed * self._topology.latency))
        cap = transport.most(Hop((), 0.0), 0)
        start = np.full(len(one), self.time + latency)
        end = solve(start, size, Hops(links, np.zeros(len(one)), np.full(len(one), cap)), capacity)
        self._sent += np.bincount(one.dst, size, minlength=self._plan.nranks)
        done = float(end.max())
        reduce = np.broadcast_to(one.reduce, len(one))
        if transport.reduce_rate != float("inf") and np.any(reduce):
            cost = payload / transport.reduce_rate
            if not np.all(reduce) or (len(one) > 1 and (np.ptp(end) or np.ptp(cost))):
                return False
            done += float(cost[0]) * len(one)
        self.time = done
        return True

    def _links(self, dst: IntArray) -> tuple[IntArray, FloatArray]:
        if self._star:
            return np.tile(np.array([[1], [2]]), len(dst)), np.array([np.inf, *[self._topology.bandwidth] * 2])
        return dst[None, :], np.array([np.inf, *[self._topology.bandwidth] * (self._plan.nranks - 1)])

    def moved(self) -> dict[str, float]:
        """Bytes on the wire by link [B]; of a full mesh of thousands, of the links out of rank 0 only."""
        nodes = self._placement.nodes
        if self._star:
            total = float(self._sent.sum())
            return {name: total for node in nodes for name in (f"{node}>", f">{node}")}
        sources = range(len(nodes) if len(nodes) ** 2 <= MOST_NAMED else 1)
        amounts = self._sent.tolist()
        return {
            f"{nodes[src]}>{nodes[(src + gap) % len(nodes)]}": amount
            for src in sources
            for gap, amount in enumerate(amounts)
            if gap
        }


def rotate(
    plan: Plan, *, placement: Placement, nbytes: float, transport: Transport, entry: Sequence[float]
) -> Rotation | None:
    """Run a plan as any one of its ranks sees it; None if ranks differ."""
    if not turns(plan, placement, nbytes, transport, entry):
        return None
    run = Rotation(plan, placement=placement, nbytes=nbytes, transport=transport, entry=entry)
    return run if run.run() else None
