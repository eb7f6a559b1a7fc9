"""Sharded: each rank, or each of m servers, adds up one share of the payload.

Direct reduce-scatter and all-gather in one round each (Dive into Deep Learning, section
12.7.1, "each GPU adds up a quarter"; Li et al., "Scaling distributed machine learning
with the parameter server", OSDI 2014, for dedicated servers). As little volume as a
ring, in two steps, at the price of n - 1 flows at every port.
"""

from __future__ import annotations

import numpy as np

from simperf.collectives.algorithms import collective
from simperf.collectives.plan import Channel, Phase, Plan, Round
from simperf.collectives.plans.naive import check_exchange
from simperf.errors import InputError, Problem

__all__ = ["all_gather", "all_reduce", "reduce_scatter"]


def _exchange(nranks: int, *, gather: bool) -> Phase:
    """One round in which every rank sends to every other: its chunk, or the chunk of the receiver."""

    def make(index: int) -> Round:
        check_exchange(nranks)
        src = np.repeat(np.arange(nranks, dtype=np.int64), nranks - 1)
        turn = np.tile(np.arange(1, nranks, dtype=np.int64), nranks)
        dst = (src + turn) % nranks
        return Round(src, dst, src if gather else dst, reduce=not gather)

    def turning(index: int) -> Round:
        dst = np.arange(1, nranks, dtype=np.int64)
        return Round(np.zeros_like(dst), dst, np.zeros_like(dst) if gather else dst, reduce=not gather)

    return Phase(1, make, turning=turning)


def _plan(name: str, nranks: int, phases: tuple[Phase, ...]) -> Plan:
    used = phases if nranks > 1 else ()
    sent = len(used) * (nranks - 1) / nranks
    return Plan(name, "sharded", nranks, (Channel(used, nranks),), len(used), sent)


@collective("reduce-scatter", "sharded")
def reduce_scatter(nranks: int) -> Plan:
    """Everybody sends to everybody the chunk that the receiver adds up."""
    return _plan("reduce-scatter", nranks, (_exchange(nranks, gather=False),))


@collective("all-gather", "sharded")
def all_gather(nranks: int) -> Plan:
    """Everybody sends its chunk to everybody."""
    return _plan("all-gather", nranks, (_exchange(nranks, gather=True),))


@collective("all-reduce", "sharded")
def all_reduce(nranks: int, *, servers: int = 0) -> Plan:
    """Direct reduce-scatter and all-gather, among the ranks or over dedicated servers.

    Parameters
    ----------
    nranks : int
        Ranks.
    servers : int
        Dedicated servers; 0 lets every rank serve its own share.
    """
    if servers == 0:
        return _plan("all-reduce", nranks, (_exchange(nranks, gather=False), _exchange(nranks, gather=True)))
    if servers < 0:
        raise InputError(
            Problem("the number of servers is negative", key="servers", value=str(servers), expected="0 or more")
        )
    check_exchange(nranks, servers)
    rank = np.repeat(np.arange(nranks, dtype=np.int64), servers)
    shard = np.tile(np.arange(servers, dtype=np.int64), nranks)
    push = Phase(1, lambda index: Round(rank, nranks + shard, shard, reduce=True))
    pull = Phase(1, lambda index: Round(nranks + shard, rank, shard))
    sent = max(1.0, nranks / servers)
    return Plan("all-reduce", "sharded", nranks, (Channel((push, pull), servers),), 2, sent, nservers=servers)
