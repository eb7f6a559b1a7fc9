"""Naive: everybody sends all to rank 0, which adds up and sends all back.

As it is taught first (Dive into Deep Learning, sections 12.5 and 12.7.1): the port of
one rank carries n - 1 payloads in and n - 1 out.
"""

from __future__ import annotations

import numpy as np

from simperf.collectives.algorithms import collective
from simperf.collectives.plan import Channel, Phase, Plan, Round
from simperf.errors import InputError, Problem

__all__ = [
    "all_reduce",
    "check_exchange",
    "check_root",
    "gather_onto",
    "naive_broadcast",
    "naive_reduce",
    "spread_from",
]

#: most sends of one round
MOST_AT_ONCE = 1 << 23


def check_root(nranks: int, root: int) -> None:
    """Refuse a root that is none of the ranks.

    Raises
    ------
    InputError
        `root` is not from 0 to ``nranks - 1``.
    """
    if not 0 <= root < nranks:
        message = "the root is none of the ranks"
        raise InputError(Problem(message, key="root", value=str(root), expected=f"0 to {nranks - 1}"))


def check_exchange(nranks: int, servers: int = 0) -> None:
    """Refuse an exchange of everybody with everybody, or with every server, that is too large to be laid out.

    Raises
    ------
    InputError
        It has more than some millions of sends in one round.
    """
    if servers:
        if nranks * servers > MOST_AT_ONCE:
            message = f"{nranks} ranks with {servers} servers each are {nranks * servers:.2g} sends at once"
            raise InputError(Problem(message, key="servers", expected=f"at most {MOST_AT_ONCE // nranks} servers"))
    elif nranks * (nranks - 1) > MOST_AT_ONCE:
        message = f"everybody with everybody over {nranks} ranks is {nranks * (nranks - 1):.2g} sends at once"
        most = int(MOST_AT_ONCE**0.5)
        raise InputError(Problem(message, key="nranks", expected=f"at most {most} ranks, or another algorithm"))


def gather_onto(nranks: int, center: int) -> Phase:
    """One round: all ranks but the center send everything to the center, which adds."""
    others = np.delete(np.arange(nranks, dtype=np.int64), center) if center < nranks else np.arange(nranks)
    made = Round(others, np.full_like(others, center), np.zeros_like(others), reduce=True)
    return Phase(1, lambda index: made)


def spread_from(nranks: int, center: int) -> Phase:
    """One round: the center sends everything to all other ranks."""
    there = gather_onto(nranks, center).make(0)
    made = Round(there.dst, there.src, there.chunk)
    return Phase(1, lambda index: made)


@collective("all-reduce", "naive")
def all_reduce(nranks: int, *, root: int = 0) -> Plan:
    """All onto one rank and back."""
    check_root(nranks, root)
    phases = (gather_onto(nranks, root), spread_from(nranks, root)) if nranks > 1 else ()
    return Plan("all-reduce", "naive", nranks, (Channel(phases, 1),), len(phases), float(nranks - 1), root=root)


@collective("reduce", "naive")
def naive_reduce(nranks: int, *, root: int = 0) -> Plan:
    """All onto the root at once."""
    check_root(nranks, root)
    phases = (gather_onto(nranks, root),) if nranks > 1 else ()
    return Plan("reduce", "naive", nranks, (Channel(phases, 1),), len(phases), float(nranks > 1), root=root)


@collective("broadcast", "naive")
def naive_broadcast(nranks: int, *, root: int = 0) -> Plan:
    """From the root to all at once."""
    check_root(nranks, root)
    phases = (spread_from(nranks, root),) if nranks > 1 else ()
    return Plan("broadcast", "naive", nranks, (Channel(phases, 1),), len(phases), float(nranks - 1), root=root)
