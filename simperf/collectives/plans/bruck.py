"""Bruck: all-gather in log n rounds for any number of ranks.

In round k a rank sends the chunks that it has to the rank 2^k places before it (Bruck
et al., "Efficient algorithms for all-to-all communications in multiport message-passing
systems", IEEE Trans. Parallel and Distributed Systems 8, 1997).
"""

from __future__ import annotations

import numpy as np

from simperf.collectives.algorithms import collective
from simperf.collectives.plan import Channel, Phase, Plan, Round
from simperf.collectives.plans.binomial_tree import levels

__all__ = ["all_gather"]


@collective("all-gather", "bruck")
def all_gather(nranks: int) -> Plan:
    """The run of chunks that a rank has, from its own on, doubles every round."""
    rank = np.arange(nranks, dtype=np.int64)

    def make(index: int) -> Round:
        have = 1 << index
        count = min(have, nranks - have)
        return Round(rank, (rank - have) % nranks, rank, count)

    channel = Channel((Phase(levels(nranks), make),), nranks)
    return Plan("all-gather", "bruck", nranks, (channel,), levels(nranks), (nranks - 1) / nranks)
