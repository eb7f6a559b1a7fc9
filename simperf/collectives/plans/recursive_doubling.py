"""Recursive doubling: partners at distance 1, 2, 4, ... exchange all they have.

log n rounds with the whole payload in each; any number of ranks, by letting the ranks
beyond a power of two hand over their part first and get the result last (Thakur,
Rabenseifner and Gropp, Int. J. High Performance Computing Applications 19, 2005).
"""

from __future__ import annotations

import numpy as np

from simperf.collectives.algorithms import collective
from simperf.collectives.plan import Channel, IntArray, Phase, Plan, Round
from simperf.errors import InputError, Problem

__all__ = ["all_gather", "all_reduce", "doubling_gather", "fold", "need_power_of_two"]


def need_power_of_two(nranks: int, what: str) -> None:
    """Refuse a number of ranks that is no power of two.

    Raises
    ------
    InputError
        It is none.
    """
    if nranks & (nranks - 1):
        below = 1 << (nranks.bit_length() - 1)
        raise InputError(
            Problem(
                f"{what} needs a power of two of ranks",
                key="nranks",
                value=str(nranks),
                expected=f"{below} or {2 * below} ranks, or another algorithm such as ring",
            )
        )


def fold(nranks: int, nchunks: int) -> tuple[IntArray, tuple[Phase, ...], tuple[Phase, ...]]:
    """A power of two of ranks, and the rounds that hand the others' part over and back."""
    core = 1 << (nranks.bit_length() - 1)
    extra = nranks - core
    odd = np.arange(1, 2 * extra, 2, dtype=np.int64)
    core_ranks = np.concatenate((odd - 1, np.arange(2 * extra, nranks, dtype=np.int64)))
    if not extra:
        return core_ranks, (), ()
    zero = np.zeros_like(odd)
    before = Phase(1, lambda index: Round(odd, odd - 1, zero, nchunks, True))
    after = Phase(1, lambda index: Round(odd - 1, odd, zero, nchunks))
    return core_ranks, (before,), (after,)


def doubling_gather(ranks: IntArray) -> Phase:
    """Partners exchange the run of chunks that they have, which doubles every round."""
    place = np.arange(len(ranks), dtype=np.int64)

    def make(index: int) -> Round:
        run = 1 << index
        return Round(ranks, ranks[place ^ run], place // run * run, run)

    return Phase(len(ranks).bit_length() - 1, make)


@collective("all-reduce", "recursive-doubling")
def all_reduce(nranks: int) -> Plan:
    """Partners exchange and add the whole payload."""
    ranks, before, after = fold(nranks, 1)
    place = np.arange(len(ranks), dtype=np.int64)
    rounds = len(ranks).bit_length() - 1
    core = Phase(rounds, lambda index: Round(ranks, ranks[place ^ (1 << index)], np.zeros_like(ranks), reduce=True))
    folds = len(before)
    phases = (*before, core, *after)
    return Plan("all-reduce", "recursive-doubling", nranks, (Channel(phases, 1),), rounds + 2 * folds, rounds + folds)


@collective("all-gather", "recursive-doubling")
def all_gather(nranks: int) -> Plan:
    """Partners exchange all that they have gathered; a power of two of ranks."""
    need_power_of_two(nranks, "all-gather by recursive doubling")
    phase = doubling_gather(np.arange(nranks, dtype=np.int64))
    channel = Channel((phase,), nranks)
    return Plan("all-gather", "recursive-doubling", nranks, (channel,), phase.nrounds, (nranks - 1) / nranks)
