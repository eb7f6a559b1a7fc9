"""Several rings at once, each with the share of the payload that its links can carry.

A DGX-1V has two disjoint NVLink rings of different width (Dive into Deep Learning,
section 12.7.2); NCCL calls such rings channels.
"""

from __future__ import annotations

from collections.abc import Sequence

from simperf.collectives.algorithms import collective
from simperf.collectives.plan import Channel, IntArray, Plan
from simperf.collectives.plans.ring import ring_order, ring_phase
from simperf.errors import InputError, Problem

__all__ = ["all_reduce", "rings_plan"]


def rings_plan(algorithm: str, nranks: int, orders: Sequence[IntArray], shares: Sequence[float]) -> Plan:
    """An all-reduce over rings that run beside each other, each with its share of the payload."""
    channels = tuple(
        Channel((ring_phase(order, first=-1, reduce=True), ring_phase(order, first=0, reduce=False)), nranks, share)
        for order, share in zip(orders, shares, strict=True)
    )
    if nranks == 1:
        channels = (Channel((), 1),)
    return Plan("all-reduce", algorithm, nranks, channels, 2 * (nranks - 1), 2 * (nranks - 1) / nranks)


@collective("all-reduce", "multi-ring")
def all_reduce(
    nranks: int, *, orders: Sequence[Sequence[int]] = (), weights: Sequence[float] = (), channels: int = 2
) -> Plan:
    """Rings beside each other.

    Parameters
    ----------
    nranks : int
        Ranks.
    orders : sequence of sequence of int
        Order of the ranks around each ring; `channels` equal rings in rank order if left out.
    weights : sequence of float
        Shares of the payload in proportion, such as the bandwidths of the rings; equal
        shares if left out.
    channels : int
        Number of rings if no orders are given.
    """
    if channels < 1:
        raise InputError(Problem("there must be at least one ring", key="channels", value=str(channels)))
    places = [ring_order(nranks, order) for order in orders] or [ring_order(nranks, None)] * channels
    parts = list(weights) or [1.0] * len(places)
    if len(parts) != len(places) or not all(part > 0 for part in parts):
        message = f"{len(places)} rings need as many weights above 0"
        raise InputError(Problem(message, key="weights", value=str(parts)[:80]))
    return rings_plan("multi-ring", nranks, places, [part / sum(parts) for part in parts])
