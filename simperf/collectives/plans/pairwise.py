"""Pairwise exchange: all-to-all in n - 1 rounds, one partner a round.

In round r a rank sends to the rank r places after it, so that no port ever has two
flows (Thakur, Rabenseifner and Gropp, 2005, section 4.4).
"""

from __future__ import annotations

import numpy as np

from simperf.collectives.algorithms import collective
from simperf.collectives.plan import Channel, Phase, Plan, Round

__all__ = ["all_to_all"]


@collective("all-to-all", "pairwise")
def all_to_all(nranks: int) -> Plan:
    """One partner a round; chunk ``i * n + j`` goes from i to j."""
    rank = np.arange(nranks, dtype=np.int64)

    def make(index: int) -> Round:
        partner = (rank + index + 1) % nranks
        return Round(rank, partner, rank * nranks + partner)

    def turning(index: int) -> Round:
        partner = np.array([index + 1], dtype=np.int64)
        return Round(np.zeros_like(partner), partner, partner)

    channel = Channel((Phase(nranks - 1, make, turning=turning),), nranks * nranks)
    sent = (nranks - 1) / nranks
    return Plan("all-to-all", "pairwise", nranks, (channel,), nranks - 1, sent, copies=nranks)
