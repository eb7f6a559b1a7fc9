"""Bidirectional ring: half the payload goes one way round, half the other.

On a ring of full-duplex links this uses both directions of every link and takes half
the time of a ring; where all traffic of a rank goes through one port it gains nothing. Sending in both
directions is the first exercise of section 12.7 of Dive into Deep Learning.
"""

from __future__ import annotations

from collections.abc import Sequence

from simperf.collectives.algorithms import collective
from simperf.collectives.plan import Plan
from simperf.collectives.plans.multi_ring import rings_plan
from simperf.collectives.plans.ring import ring_order

__all__ = ["all_reduce"]


@collective("all-reduce", "bidirectional-ring")
def all_reduce(nranks: int, *, order: Sequence[int] | None = None) -> Plan:
    """Two rings of opposite direction, each with half of the payload."""
    places = ring_order(nranks, order)
    return rings_plan("bidirectional-ring", nranks, [places, places[::-1]], [0.5, 0.5])
