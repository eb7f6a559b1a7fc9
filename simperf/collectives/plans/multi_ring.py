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

__all__ = ["all_gather", "all_reduce", "reduce_scatter", "rings_plan"]


def rings_plan(
    algorithm: str,
    nranks: int,
    orders: Sequence[IntArray],
    shares: Sequence[float],
    *,
    name: str = "all-reduce",
) -> Plan:
    """A ring collective over rings that run beside each other, each with its share of the payload."""
    passes = ([True] if name != "all-gather" else []) + ([False] if name != "reduce-scatter" else [])
    channels = tuple(
        Channel(tuple(ring_phase(order, first=-1 if up else 0, reduce=up) for up in passes), nranks, share)
        for order, share in zip(orders, shares, strict=True)
    )
    if nranks == 1:
        channels = (Channel((), 1),)
    steps = len(passes) * (nranks - 1)
    return Plan(name, algorithm, nranks, channels, steps, steps / nranks)


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
    return _make("all-reduce", nranks, orders, weights, channels)


@collective("reduce-scatter", "multi-ring")
def reduce_scatter(
    nranks: int, *, orders: Sequence[Sequence[int]] = (), weights: Sequence[float] = (), channels: int = 2
) -> Plan:
    """The first half of `all_reduce`."""
    return _make("reduce-scatter", nranks, orders, weights, channels)


@collective("all-gather", "multi-ring")
def all_gather(
    nranks: int, *, orders: Sequence[Sequence[int]] = (), weights: Sequence[float] = (), channels: int = 2
) -> Plan:
    """The second half of `all_reduce`."""
    return _make("all-gather", nranks, orders, weights, channels)


def _make(name: str, nranks: int, orders: Sequence[Sequence[int]], weights: Sequence[float], channels: int) -> Plan:
    if channels < 1:
        raise InputError(Problem("there must be at least one ring", key="channels", value=str(channels)))
    places = [ring_order(nranks, order) for order in orders] or [ring_order(nranks, None)] * channels
    parts = list(weights) or [1.0] * len(places)
    if len(parts) != len(places) or not all(part > 0 for part in parts):
        message = f"{len(places)} rings need as many weights above 0"
        raise InputError(Problem(message, key="weights", value=str(parts)[:80]))
    shares = [part / sum(parts) for part in parts]
    return rings_plan("multi-ring", nranks, places, shares, name=name)
