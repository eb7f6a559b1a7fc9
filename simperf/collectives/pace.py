"""Paced channels: how fast each channel may go so that no link is ever asked for too much.

A collective library moves slices through a few buffers of each connection, so that a
channel advances at the pace of its slowest connection. Its pace is the max-min fair share
that the slowest of its lanes gets when all lanes of all channels are busy.
"""

from __future__ import annotations

import numpy as np

from simperf.collectives.placement import Placement
from simperf.collectives.plan import Plan
from simperf.engine.maxmin import max_min_rates

__all__ = ["paces"]


def paces(plan: Plan, placement: Placement, *, connections: int = 1) -> tuple[float, ...]:
    """Rate of each channel [B/s], for `Transport.caps`.

    Parameters
    ----------
    plan : Plan
        Its channels' lanes are the pairs of participants between which they send.
    placement : Placement
        Where the participants sit.
    connections : int
        As in `Transport`.
    """
    lanes: list[tuple[int, int, int]] = []
    for number, channel in enumerate(plan.channels):
        pairs: dict[tuple[int, int], None] = {}
        for phase in channel.phases:
            for index in range(min(1, phase.nrounds) if phase.repeats else phase.nrounds):
                one = phase.make(index)
                pairs.update(dict.fromkeys(zip(one.src.tolist(), one.dst.tolist(), strict=True)))
        lanes += [(number, src, dst) for src, dst in pairs]
    if not lanes:
        return ()
    hops = [placement.hop(src, dst) for _, src, dst in lanes]
    names = {name: index for index, name in enumerate(dict.fromkeys(n for hop in hops for n in hop.resources))}
    rates = max_min_rates(
        [tuple(names[name] for name in hop.resources) for hop in hops],
        [placement.machine.resources[name] for name in names],
        caps=[hop.cap * connections for hop in hops],
    )
    slowest = np.full(len(plan.channels), np.inf)
    np.minimum.at(slowest, [lane[0] for lane in lanes], rates)
    return tuple(slowest.tolist())
