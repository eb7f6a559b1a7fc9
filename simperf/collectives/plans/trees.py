"""Shapes of trees over ranks, and the pipelined reduce and broadcast along one."""

from __future__ import annotations

from typing import Literal

import numpy as np

from simperf.collectives.plan import IntArray, Phase, Round
from simperf.errors import InputError, Problem

__all__ = ["balanced_tree", "depths", "in_order_trees", "tree_phase"]


def balanced_tree(nranks: int, *, root: int = 0, degree: int = 2) -> IntArray:
    """Parent of every rank in a balanced tree; the root's is -1. Degree 1 is a chain.

    Raises
    ------
    InputError
        The degree is less than 1.
    """
    if degree < 1:
        raise InputError(Problem("a tree needs at least one child a rank", key="degree", value=str(degree)))
    place = np.arange(nranks, dtype=np.int64)
    above = (place - 1) // degree
    parent = np.empty(nranks, dtype=np.int64)
    parent[(place + root) % nranks] = np.where(place > 0, (above + root) % nranks, -1)
    return parent


def _in_order_parent(node: int, count: int) -> int:
    """Parent in the binary tree whose in-order walk is 1, 2, ..., count; 0 for the root."""
    if node == 1 << (count.bit_length() - 1):
        return 0
    while True:
        bit = node & -node
        node = node + bit if node & (bit << 1) == 0 else node - bit
        if node <= count:
            return node


def in_order_trees(nranks: int) -> tuple[IntArray, IntArray]:
    """Parents in two binary trees such that no rank has children in both.

    In the in-order tree over 1 to n the odd numbers are leaves. The second tree is the
    mirror image of the first if n is even, else the first shifted by one rank, which
    turns its inner nodes into odd numbers.
    """
    first = np.array([_in_order_parent(node, nranks) - 1 for node in range(1, nranks + 1)], dtype=np.int64)
    second = np.empty_like(first)
    for rank in range(nranks):
        if nranks % 2 == 0:
            image, above = nranks - 1 - rank, nranks - 1 - first[rank]
        else:
            image, above = (rank + 1) % nranks, (first[rank] + 1) % nranks
        second[image] = above if first[rank] >= 0 else -1
    return first, second


def depths(parent: IntArray) -> IntArray:
    """Distance of every rank from the root."""
    depth = (parent >= 0).astype(np.int64)
    above = parent.copy()  # the ancestor at that distance, which doubles from turn to turn
    while np.any(above >= 0):
        below = np.flatnonzero(above >= 0)
        depth[below], above[below] = depth[below] + depth[above[below]], above[above[below]]
    return depth


class _ByRound:
    """Links of a tree in the order in which their first chunk comes: those in use in a round without a look at all."""

    def __init__(self, begin: IntArray, chunks: int) -> None:
        self._chunks, self._order = chunks, np.argsort(begin, kind="stable")
        self._begin = begin[self._order]

    def under_way(self, index: int) -> IntArray:
        """Links over which a chunk goes in the round of a number, in ascending order."""
        first, last = np.searchsorted(self._begin, (index - self._chunks, index), side="right")
        found = self._order[first:last]
        return found if self._chunks == 1 else np.sort(found)


def tree_phase(parent: IntArray, chunks: int, *, way: Literal["up", "down", "both"]) -> Phase:
    """Chunks pipelined up a tree (reduced on the way), down it, or up and down at once.

    Up, a rank at depth d sends chunk c in round ``c + deepest - d``; down, it passes
    chunk c on in round ``c + d``, after the root has it.
    """
    depth = depths(parent)
    deepest = int(depth.max())
    child = np.flatnonzero(parent >= 0)
    above = parent[child]
    up_from = deepest - depth[child]
    down_from = depth[above] + (deepest if way == "both" else 0)
    length = 2 * deepest if way == "both" else deepest

    none = np.zeros(0, dtype=np.int64)
    rising = _ByRound(up_from, chunks) if way != "down" else None
    falling = _ByRound(down_from, chunks) if way != "up" else None

    def make(index: int) -> Round:
        up = rising.under_way(index) if rising is not None else none
        down = falling.under_way(index) if falling is not None else none
        return Round(
            np.concatenate((child[up], above[down])),
            np.concatenate((above[up], child[down])),
            np.concatenate((index - up_from[up], index - down_from[down])),
            reduce=np.arange(len(up) + len(down)) < len(up),
        )

    nrounds = chunks + length - 1
    begin = np.zeros(nrounds + 1, dtype=np.int64)  # links of the tree that are in use from each round on
    for used, since in ((way != "down", up_from), (way != "up", down_from)):
        if used:
            begin += np.bincount(since, minlength=len(begin))[: len(begin)]
    under_way = np.cumsum(begin)
    under_way[chunks:] -= np.cumsum(begin)[: len(begin) - chunks]
    return Phase(nrounds, make, "pipeline", sends=under_way.tolist().__getitem__)
