"""Ring: every rank sends to its neighbour, n - 1 rounds to reduce and n - 1 to gather.

Each rank sends 2(n-1)/n payloads whatever n is, which no algorithm without help from
the switches can undercut (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms
for clusters of workstations", J. Parallel Distrib. Comput. 69, 2009; Dive into Deep
Learning, section 12.7.2). The price is 2(n-1) latencies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simperf.collectives.algorithms import collective
from simperf.collectives.plan import Channel, IntArray, Phase, Plan, Round
from simperf.errors import InputError, Problem

__all__ = ["all_gather", "all_reduce", "broadcast", "reduce_scatter", "ring_order", "ring_phase"]


def ring_order(nranks: int, order: Sequence[int] | None) -> IntArray:
    """The order of ranks around a ring; rank order if none is given.

    Raises
    ------
    InputError
        The order does not name every rank once.
    """
    if order is None:
        return np.arange(nranks, dtype=np.int64)
    if not all(type(rank) is int for rank in order) or sorted(order) != list(range(nranks)):
        message = f"a ring names each of the {nranks} ranks once"
        expected = f"[0, ...]: the whole numbers from 0 to {nranks - 1} in any order"
        raise InputError(Problem(message, key="order", value=str(list(order))[:80], expected=expected))
    return np.asarray(order, dtype=np.int64)


def ring_phase(order: IntArray, *, first: int, reduce: bool) -> Phase:
    """All n - 1 rounds; in the first one the rank at place p sends chunk ``order[p + first]``."""
    n = len(order)
    after = np.roll(order, -1)

    def make(index: int) -> Round:
        return Round(order, after, np.roll(order, index - first), reduce=reduce)

    return Phase(n - 1, make, repeats=True)


def _plan(name: str, nranks: int, phases: tuple[Phase, ...]) -> Plan:
    passes = len(phases)
    channel = Channel(phases if nranks > 1 else (), nranks)
    return Plan(name, "ring", nranks, (channel,), passes * (nranks - 1), passes * (nranks - 1) / nranks)


@collective("reduce-scatter", "ring")
def reduce_scatter(nranks: int, *, order: Sequence[int] | None = None) -> Plan:
    """Partial sums travel around the ring; each rank ends with the full sum of its chunk."""
    return _plan("reduce-scatter", nranks, (ring_phase(ring_order(nranks, order), first=-1, reduce=True),))


@collective("all-gather", "ring")
def all_gather(nranks: int, *, order: Sequence[int] | None = None) -> Plan:
    """Each chunk travels around the ring once."""
    return _plan("all-gather", nranks, (ring_phase(ring_order(nranks, order), first=0, reduce=False),))


@collective("all-reduce", "ring")
def all_reduce(nranks: int, *, order: Sequence[int] | None = None) -> Plan:
    """Reduce-scatter, then all-gather, around the same ring."""
    places = ring_order(nranks, order)
    phases = (ring_phase(places, first=-1, reduce=True), ring_phase(places, first=0, reduce=False))
    return _plan("all-reduce", nranks, phases)


@collective("broadcast", "ring")
def broadcast(nranks: int, *, root: int = 0) -> Plan:
    """The root cuts the payload in n chunks; they follow each other around the ring."""
    from simperf.collectives.plans.pipelined_tree import chain_broadcast

    return chain_broadcast(nranks, root=root, chunks=nranks, algorithm="ring")
