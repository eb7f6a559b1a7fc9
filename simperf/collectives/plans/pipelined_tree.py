"""Pipelined tree: chunks follow each other up a tree and, reduced, down it again.

A chunk takes 2 log n hops, and the tree works on many chunks at a time, so that the
bandwidth does not fall with n as it does for an unpipelined tree. With one child a rank
the tree is a chain: less traffic at every port, more hops (Sanders, Speck and Traeff,
"Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
Computing 35, 2009, which also explains why one binary tree alone wastes its leaves).
"""

from __future__ import annotations

import numpy as np

from simperf.collectives.algorithms import collective
from simperf.collectives.plan import Channel, IntArray, Phase, Plan
from simperf.collectives.plans.naive import check_root
from simperf.collectives.plans.trees import balanced_tree, depths, tree_phase
from simperf.errors import InputError, Problem

__all__ = ["all_reduce", "broadcast", "chain_broadcast", "check_chunks", "reduce"]


def check_chunks(chunks: int) -> None:
    """Refuse a number of chunks below 1.

    Raises
    ------
    InputError
        There is no chunk.
    """
    if chunks < 1:
        raise InputError(Problem("a payload has at least one chunk", key="chunks", value=str(chunks)))


def _most_children(parent: IntArray) -> int:
    return int(np.bincount(parent[parent >= 0], minlength=1).max())


@collective("all-reduce", "pipelined-tree")
def all_reduce(nranks: int, *, chunks: int = 64, degree: int = 2, root: int = 0, overlap: bool = True) -> Plan:
    """Reduce up a balanced tree and broadcast down it.

    Parameters
    ----------
    nranks : int
        Ranks.
    chunks : int
        Chunks of the payload.
    degree : int
        Most children of a rank; 1 is a chain.
    root : int
        Rank at the top.
    overlap : bool
        Whether a chunk goes down as soon as it is reduced, or only after all have come up.
    """
    check_root(nranks, root)
    check_chunks(chunks)
    name, algorithm = "all-reduce", "pipelined-tree"
    if nranks == 1:
        return Plan(name, algorithm, 1, (Channel((), 1),), 0, 0.0)
    parent = balanced_tree(nranks, root=root, degree=degree)
    busiest = np.bincount(parent[parent >= 0], minlength=nranks) + (parent >= 0)
    if overlap:
        phases: tuple[Phase, ...] = (tree_phase(parent, chunks, way="both"),)
    else:
        phases = (tree_phase(parent, chunks, way="up"), tree_phase(parent, chunks, way="down"))
    steps = sum(phase.nrounds for phase in phases)
    return Plan(name, algorithm, nranks, (Channel(phases, chunks),), steps, float(busiest.max()), root=root)


@collective("broadcast", "pipelined-tree")
def broadcast(nranks: int, *, chunks: int = 64, degree: int = 2, root: int = 0) -> Plan:
    """Chunks follow each other down a balanced tree."""
    return _broadcast(nranks, chunks, degree, root, "pipelined-tree")


def chain_broadcast(nranks: int, *, root: int, chunks: int, algorithm: str) -> Plan:
    """Chunks follow each other from rank to rank."""
    return _broadcast(nranks, chunks, 1, root, algorithm)


def _broadcast(nranks: int, chunks: int, degree: int, root: int, algorithm: str) -> Plan:
    check_root(nranks, root)
    check_chunks(chunks)
    if nranks == 1:
        return Plan("broadcast", algorithm, 1, (Channel((), 1),), 0, 0.0)
    parent = balanced_tree(nranks, root=root, degree=degree)
    steps = chunks + int(depths(parent).max()) - 1
    channel = Channel((tree_phase(parent, chunks, way="down"),), chunks)
    return Plan("broadcast", algorithm, nranks, (channel,), steps, float(_most_children(parent)), root=root)


@collective("reduce", "pipelined-tree")
def reduce(nranks: int, *, chunks: int = 64, degree: int = 2, root: int = 0) -> Plan:
    """Chunks follow each other up a balanced tree and are added on the way."""
    check_root(nranks, root)
    check_chunks(chunks)
    if nranks == 1:
        return Plan("reduce", "pipelined-tree", 1, (Channel((), 1),), 0, 0.0)
    parent = balanced_tree(nranks, root=root, degree=degree)
    steps = chunks + int(depths(parent).max()) - 1
    channel = Channel((tree_phase(parent, chunks, way="up"),), chunks)
    return Plan("reduce", "pipelined-tree", nranks, (channel,), steps, 1.0, root=root)
