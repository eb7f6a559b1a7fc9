"""Binomial tree, unpipelined: log n rounds, the whole payload in each.

The number of ranks that have the result doubles with every round (Thakur, Rabenseifner
and Gropp, "Optimization of collective communication operations in MPICH", Int. J. High
Performance Computing Applications 19, 2005). Right for small payloads.
"""

from __future__ import annotations

import numpy as np

from simperf.collectives.algorithms import collective
from simperf.collectives.plan import Channel, Phase, Plan, Round
from simperf.collectives.plans.naive import check_root

__all__ = ["all_reduce", "broadcast", "gather", "levels", "reduce", "scatter"]


def levels(nranks: int) -> int:
    """Rounds in which one rank reaches all: the logarithm of `nranks`, rounded up."""
    return (nranks - 1).bit_length()


def _height(nranks: int) -> int:
    """Longest chain up the tree: the parent waits for nobody but its children."""
    return nranks.bit_length() - 1


def _edges(nranks: int, distance: int, root: int) -> tuple[np.ndarray, np.ndarray]:
    """Children and parents that are `distance` apart, counted from the root."""
    parent = np.arange(0, max(nranks - distance, 0), 2 * distance, dtype=np.int64)
    return (parent + distance + root) % nranks, (parent + root) % nranks


def _whole(nranks: int, root: int, *, up: bool) -> Phase:
    count = levels(nranks)

    def make(index: int) -> Round:
        child, parent = _edges(nranks, 1 << (index if up else count - 1 - index), root)
        zero = np.zeros_like(child)
        return Round(child, parent, zero, reduce=True) if up else Round(parent, child, zero)

    return Phase(count, make)


def _subtrees(nranks: int, root: int, *, up: bool) -> Phase:
    """A child's subtree is a run of ranks, counted from the root."""
    count = levels(nranks)

    def make(index: int) -> Round:
        distance = 1 << (index if up else count - 1 - index)
        child, parent = _edges(nranks, distance, root)
        length = np.minimum(distance, nranks - (child - root) % nranks)
        src, dst = (child, parent) if up else (parent, child)
        return Round(src, dst, child, length)

    return Phase(count, make)


def _plan(
    name: str, nranks: int, root: int, phases: tuple[Phase, ...], *, steps: int, sent: float, nchunks: int = 1
) -> Plan:
    check_root(nranks, root)
    channel = Channel(phases if nranks > 1 else (), nchunks)
    return Plan(name, "binomial-tree", nranks, (channel,), steps, sent if nranks > 1 else 0.0, root=root)


@collective("all-reduce", "binomial-tree")
def all_reduce(nranks: int, *, root: int = 0) -> Plan:
    """Reduce up the tree, then broadcast down it."""
    up, down = _whole(nranks, root, up=True), _whole(nranks, root, up=False)
    return _plan(
        "all-reduce", nranks, root, (up, down), steps=_height(nranks) + levels(nranks), sent=float(levels(nranks))
    )


@collective("broadcast", "binomial-tree")
def broadcast(nranks: int, *, root: int = 0) -> Plan:
    """From the root down the tree."""
    down = _whole(nranks, root, up=False)
    return _plan("broadcast", nranks, root, (down,), steps=levels(nranks), sent=float(levels(nranks)))


@collective("reduce", "binomial-tree")
def reduce(nranks: int, *, root: int = 0) -> Plan:
    """Up the tree to the root."""
    return _plan("reduce", nranks, root, (_whole(nranks, root, up=True),), steps=_height(nranks), sent=1.0)


@collective("gather", "binomial-tree")
def gather(nranks: int, *, root: int = 0) -> Plan:
    """Up the tree; a rank passes on the chunks of its whole subtree."""
    half = 1 << max(levels(nranks) - 2, 0)
    widest = max(min(half, nranks - half), min(2 * half, nranks) - half, nranks - 2 * half)
    up = _subtrees(nranks, root, up=True)
    return _plan("gather", nranks, root, (up,), steps=_height(nranks), sent=widest / nranks, nchunks=nranks)


@collective("scatter", "binomial-tree")
def scatter(nranks: int, *, root: int = 0) -> Plan:
    """Down the tree; a rank passes on the chunks of its children's subtrees."""
    down, sent = _subtrees(nranks, root, up=False), (nranks - 1) / nranks
    return _plan("scatter", nranks, root, (down,), steps=levels(nranks), sent=sent, nchunks=nranks)
