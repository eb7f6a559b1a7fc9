"""Gloo's all-reduce: a ring whose blocks are cut into segments, two of them under way at a time.

The payload is cut into at least two segments a rank, none larger than 1 MiB; while one segment is added up, the other
one travels (``gloo/allreduce.cc``). Two channels carry every second segment each: on a channel a rank continues to the
next segment when it has sent and received the one before. Gloo allows an odd number of segments a block; here it is
even, so that a channel's segments are its own.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from simperf.collectives.algorithms import collective
from simperf.collectives.plan import Channel, Phase, Plan, Round
from simperf.errors import InputError, Problem

__all__ = ["SEGMENT", "all_reduce", "segments_for"]

#: largest segment [B]
SEGMENT = 1024.0 * 1024.0


def segments_for(nbytes: float, nranks: int) -> int:
    """Segments of a block of each rank for a payload [B]: an even number, none of them larger than 1 MiB.

    Examples
    --------
    >>> segments_for(1e6, 4), segments_for(16 * 2**20, 4), segments_for(17 * 2**20, 4)
    (2, 4, 6)
    """
    return 2 * max(1, -int(-nbytes // (2 * nranks * SEGMENT)))


@collective("all-reduce", "gloo")
def all_reduce(nranks: int, *, segments: int = 2) -> Plan:
    """Reduce-scatter, then all-gather, segment by segment around one ring.

    Raises
    ------
    InputError
        The number of segments is odd, or below 2.
    """
    if segments < 2 or segments % 2:
        message = "each block has an even number of segments, half of them for either channel"
        raise InputError(Problem(message, key="segments", value=str(segments), expected="2, 4, 6, ..."))
    each = segments // 2
    ranks = np.arange(nranks, dtype=np.int64)

    def make(turn: int, *, first: int, reduce: bool) -> Round:
        block, segment = divmod(turn, each)
        return Round(ranks, (ranks - 1) % nranks, ((ranks + first + block) % nranks) * each + segment, reduce=reduce)

    rounds = (nranks - 1) * each
    phases = tuple(
        Phase(rounds, partial(make, first=first, reduce=reduce), repeats=True)
        for first, reduce in ((1, True), (0, False))
    )
    channel = Channel(phases if nranks > 1 else (), nranks * each, share=0.5)
    return Plan("all-reduce", "gloo", nranks, (channel, channel), 2 * rounds, 2 * (nranks - 1) / nranks)
