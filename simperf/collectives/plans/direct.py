"""Direct: every send of a gather, a scatter, an all-to-all or a shift at once.

What NCCL does for these with grouped send and receive calls.
"""

from __future__ import annotations

import numpy as np

from simperf.collectives.algorithms import collective
from simperf.collectives.plan import Channel, Phase, Plan, Round
from simperf.collectives.plans.naive import check_exchange, check_root

__all__ = ["all_to_all", "gather", "one_send", "scatter", "send_recv"]


def _star(nranks: int, root: int, *, inward: bool) -> Phase:
    others = np.delete(np.arange(nranks, dtype=np.int64), root)
    center = np.full_like(others, root)
    made = Round(others, center, others) if inward else Round(center, others, others)
    return Phase(1, lambda index: made)


@collective("gather", "direct")
def gather(nranks: int, *, root: int = 0) -> Plan:
    """Every rank sends its chunk to the root."""
    check_root(nranks, root)
    phases = (_star(nranks, root, inward=True),) if nranks > 1 else ()
    sent = len(phases) / nranks
    return Plan("gather", "direct", nranks, (Channel(phases, nranks),), len(phases), sent, root=root)


@collective("scatter", "direct")
def scatter(nranks: int, *, root: int = 0) -> Plan:
    """The root sends every rank its chunk."""
    check_root(nranks, root)
    phases = (_star(nranks, root, inward=False),) if nranks > 1 else ()
    sent = (nranks - 1) / nranks
    return Plan("scatter", "direct", nranks, (Channel(phases, nranks),), len(phases), sent, root=root)


@collective("all-to-all", "direct")
def all_to_all(nranks: int) -> Plan:
    """Every rank sends every other its chunk; chunk ``i * n + j`` goes from i to j."""

    def make(index: int) -> Round:
        check_exchange(nranks)
        src = np.repeat(np.arange(nranks, dtype=np.int64), nranks - 1)
        dst = (src + np.tile(np.arange(1, nranks, dtype=np.int64), nranks)) % nranks
        return Round(src, dst, src * nranks + dst)

    def turning(index: int) -> Round:
        dst = np.arange(1, nranks, dtype=np.int64)
        return Round(np.zeros_like(dst), dst, dst)

    phases = (Phase(1, make, turning=turning),) if nranks > 1 else ()
    sent = (nranks - 1) / nranks
    channel = Channel(phases, nranks * nranks)
    return Plan("all-to-all", "direct", nranks, (channel,), len(phases), sent, copies=nranks)


@collective("send-recv", "direct")
def send_recv(nranks: int) -> Plan:
    """Every rank sends its payload to the next, as the sendrecv test of nccl-tests does."""
    rank = np.arange(nranks, dtype=np.int64)
    made = Round(rank, np.roll(rank, -1), rank)
    phases = (Phase(1, lambda index: made),) if nranks > 1 else ()
    sent = float(len(phases))
    return Plan("send-recv", "direct", nranks, (Channel(phases, nranks),), len(phases), sent, copies=nranks)


def one_send() -> Plan:
    """Rank 0 sends its payload to rank 1."""
    made = Round(np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    return Plan("broadcast", "direct", 2, (Channel((Phase(1, lambda index: made),), 1),), 1, 1.0)
