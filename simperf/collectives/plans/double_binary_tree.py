"""Double binary tree: two pipelined trees, half the payload each, no rank inner in both.

A leaf of one tree is an inner node of the other, so that every port carries at most two
payloads each way, as in a ring, in a logarithmic number of hops (Sanders, Speck and
Traeff, Parallel Computing 35, 2009; NVIDIA, "Massively scale your deep learning training
with NCCL 2.4", 2019).
"""

from __future__ import annotations

from simperf.collectives.algorithms import collective
from simperf.collectives.plan import Channel, Plan, busiest
from simperf.collectives.plans.pipelined_tree import check_chunks
from simperf.collectives.plans.trees import in_order_trees, tree_phase

__all__ = ["all_reduce"]


@collective("all-reduce", "double-binary-tree")
def all_reduce(nranks: int, *, chunks: int = 64) -> Plan:
    """Reduce up and broadcast down both trees at once; `chunks` in each."""
    check_chunks(chunks)
    name, algorithm = "all-reduce", "double-binary-tree"
    if nranks == 1:
        return Plan(name, algorithm, 1, (Channel((), 1),), 0, 0.0)
    phases = [tree_phase(parent, chunks, way="both") for parent in in_order_trees(nranks)]
    channels = tuple(Channel((phase,), chunks, 0.5) for phase in phases)
    steps = max(phase.nrounds for phase in phases)
    return Plan(name, algorithm, nranks, channels, steps, busiest(channels, nranks))
