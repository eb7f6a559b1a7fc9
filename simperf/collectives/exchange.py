"""Channels of exchanges: every rank sends to every other, or to the next, and all of it is a few flows.

What goes between ranks of one server is a flow, and what goes between servers another one; where ranks get unequal
amounts, one for each amount. All sends of a flow have the same size, so they carry bytes at one rate, and a flow draws
on a link as often as its sends do. So an exchange of a thousand ranks costs what one of two does, beside whatever else
is on its links. Bytes on every link are those of the sends. Without other traffic the last send ends when it would
send by send, up to the shares that sends of one rank leave each other towards the end.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from simperf.collectives.channels import ChannelFlow, ChannelSet
from simperf.collectives.executors import PlacedPlan

__all__ = ["EXCHANGES", "RING_SENDS", "exchange_channels"]

#: all-to-all of equal parts; to experts, whose ranks receive unequal rows; back from them; to the next rank of a ring;
#: the same by the GPUs' copy engines
EXCHANGES: tuple[str, ...] = ("all-to-all", "dispatch", "combine", "send-recv", "copy")
#: those in which every rank sends to one other at a time, as to the next one
RING_SENDS: tuple[str, ...] = ("send-recv", "copy")


def exchange_channels(placed: PlacedPlan, name: str, nbytes: float, rows: Sequence[int] = ()) -> ChannelSet:
    """Channels of an exchange.

    Parameters
    ----------
    placed : PlacedPlan
        An all-to-all of the same ranks, with the transport of its sends.
    name : str
        One of `EXCHANGES`.
    nbytes : float
        What a rank has, the part that stays with it counted; of unequal amounts the mean [B].
    rows : sequence of int
        Amount that each rank receives from all others (``"dispatch"``), or sends to all others (``"combine"``); equal
        ones if there are none.
    """
    nranks, transport = placed.plan.nranks, placed.transport
    whole = sum(rows)
    shares = [one / whole for one in rows] if whole else [1.0 / nranks] * nranks
    sends: dict[tuple[str, float], list[tuple[int, int]]] = {}
    for source, target in _pairs(name, nranks):
        share = 1.0 if name in RING_SENDS else shares[target if name == "dispatch" else source]
        if share:
            sends.setdefault((placed.placement.hop(source, target).medium, share), []).append((source, target))
    flows, drawn = [], []
    for (_, share), pairs in sends.items():
        hops = [placed.placement.hop(*pair) for pair in pairs]
        counts = Counter(resource for hop in hops for resource in hop.resources)
        together = math.gcd(*counts.values()) or 1
        latency = transport.start + max(map(transport.latency, hops))
        # what a send gets of a link is found on the network, not by the pace of an even exchange (`Transport.caps`)
        cap = min(transport.cap, *(hop.cap * transport.connections for hop in hops))
        flows.append(ChannelFlow(latency, together * share * nbytes / transport.efficiency, together * cap))
        drawn.append({resource: count // together for resource, count in counts.items()})
    return ChannelSet.over(flows, drawn, placed.placement.machine.resources)


def _pairs(name: str, nranks: int) -> Iterator[tuple[int, int]]:
    """Sender and receiver of each send."""
    for source in range(nranks):
        for step in range(1, 2 if name in RING_SENDS else nranks):
            yield source, (source + step) % nranks
