"""Server trees: a chain inside every server, double binary trees between the servers.

As NCCL builds its trees: in each pair of channels another GPU of the server talks to the
network, so that all network cards are used (NVIDIA, "Massively scale your deep learning
training with NCCL 2.4", 2019; src/graph/trees.cc and connect.cc describe the shapes).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from simperf.collectives.algorithms import collective
from simperf.collectives.plan import Channel, IntArray, Plan, busiest
from simperf.collectives.plans.pipelined_tree import check_chunks
from simperf.collectives.plans.trees import in_order_trees, tree_phase
from simperf.errors import InputError, Problem

__all__ = ["all_reduce"]


def _parents(tree: IntArray, order: Sequence[int], group: int) -> IntArray:
    """Parent of each rank: the one before it in its server's chain, or the head of the server above."""
    parent = np.empty(len(tree) * group, dtype=np.int64)
    for server, above in enumerate(tree.tolist()):
        parent[server * group + order[0]] = above * group + order[0] if above >= 0 else -1
        for before, after in pairwise(order):
            parent[server * group + after] = server * group + before
    return parent


@collective("all-reduce", "server-trees")
def all_reduce(nranks: int, *, group: int, heads: Sequence[int] = (0,), chunks: int = 16) -> Plan:
    """Two trees for each head; `chunks` in each.

    Parameters
    ----------
    nranks : int
        Ranks; rank r is in server ``r // group``.
    group : int
        Ranks a server.
    heads : sequence of int
        Places in the server of the ranks that talk to other servers.
    chunks : int
        Chunks of each tree's share.
    """
    check_chunks(chunks)
    name, algorithm = "all-reduce", "server-trees"
    if group < 1 or nranks % group:
        raise InputError(
            Problem(
                f"{nranks} ranks do not fall into servers of {group}",
                key="group",
                value=str(group),
                expected="a divisor of the number of ranks",
            )
        )
    if not heads or not all(0 <= head < group for head in heads):
        raise InputError(Problem("a head is none of the ranks of a server", key="heads", value=str(list(heads))))
    if nranks == 1:
        return Plan(name, algorithm, 1, (Channel((), 1),), 0, 0.0)
    shapes = in_order_trees(nranks // group)
    orders = [[(head + turn) % group for turn in range(group)] for head in heads]
    trees = [_parents(shape, order, group) for order in orders for shape in shapes]
    phases = [tree_phase(tree, chunks, way="both") for tree in trees]
    channels = tuple(Channel((phase,), chunks, 1 / len(phases)) for phase in phases)
    steps = max(phase.nrounds for phase in phases)
    return Plan(name, algorithm, nranks, channels, steps, busiest(channels, nranks))
