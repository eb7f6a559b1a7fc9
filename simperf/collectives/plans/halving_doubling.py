"""Halving-doubling: reduce-scatter by recursive halving, all-gather by recursive doubling.

As little volume as a ring in 2 log n steps, at the price of partners that are far apart
(Rabenseifner, "Optimization of collective reduction operations", ICCS 2004; Thakur,
Rabenseifner and Gropp, 2005). Ranks beyond a power of two hand their payload to a
neighbour first and get the result last.
"""

from __future__ import annotations

import numpy as np

from simperf.collectives.algorithms import collective
from simperf.collectives.plan import Channel, IntArray, Phase, Plan, Round
from simperf.collectives.plans.recursive_doubling import doubling_gather, fold, need_power_of_two

__all__ = ["all_reduce", "reduce_scatter"]


def _halving_scatter(ranks: IntArray) -> Phase:
    """Partners at half the distance each round; each keeps the half that has its own chunk."""
    place = np.arange(len(ranks), dtype=np.int64)
    rounds = len(ranks).bit_length() - 1

    def make(index: int) -> Round:
        half = len(ranks) >> (index + 1)
        partner = place ^ half
        return Round(ranks, ranks[partner], partner // half * half, half, True)

    return Phase(rounds, make)


@collective("reduce-scatter", "halving-doubling")
def reduce_scatter(nranks: int) -> Plan:
    """Recursive halving; a power of two of ranks."""
    need_power_of_two(nranks, "reduce-scatter by recursive halving")
    phase = _halving_scatter(np.arange(nranks, dtype=np.int64))
    channel = Channel((phase,), nranks)
    return Plan("reduce-scatter", "halving-doubling", nranks, (channel,), phase.nrounds, (nranks - 1) / nranks)


@collective("all-gather", "halving-doubling")
def all_gather(nranks: int) -> Plan:
    """Recursive doubling, the way back of `reduce_scatter`."""
    need_power_of_two(nranks, "all-gather by recursive doubling")
    phase = doubling_gather(np.arange(nranks, dtype=np.int64))
    channel = Channel((phase,), nranks)
    return Plan("all-gather", "halving-doubling", nranks, (channel,), phase.nrounds, (nranks - 1) / nranks)


@collective("all-reduce", "halving-doubling")
def all_reduce(nranks: int) -> Plan:
    """Recursive halving, then recursive doubling; any number of ranks."""
    core = 1 << (nranks.bit_length() - 1)
    ranks, before, after = fold(nranks, core)
    phases = (*before, _halving_scatter(ranks), doubling_gather(ranks), *after)
    steps = 2 * (core.bit_length() - 1) + 2 * len(before)
    sent = 2 * (core - 1) / core + len(before)
    return Plan("all-reduce", "halving-doubling", nranks, (Channel(phases, core),), steps, sent)
