"""In-network: the switch inside a server adds up, and sends every rank the sum.

The payload is cut into a share a head (a rank of each server). All ranks of a server send
a head's share to the switch, which hands the sum to the head; heads of different servers
continue along double binary trees; and all goes back the same way. A port sends and receives
1 + 1/n payloads, where a ring takes almost two (Graham et al., "Scalable Hierarchical
Aggregation Protocol", COM-HPC 2016; NVLink SHARP of NVSwitch 3, which NCCL calls NVLS).

Participants after the ranks: the switch of each server, then the heads of each server
once more, as the ones that ask the switch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simperf.collectives.algorithms import collective
from simperf.collectives.plan import Channel, IntArray, Plan, busiest
from simperf.collectives.plans.pipelined_tree import check_chunks
from simperf.collectives.plans.trees import in_order_trees, tree_phase
from simperf.errors import InputError, Problem

__all__ = ["all_reduce"]


def _parents(above: IntArray, *, group: int, head: int, heads: int) -> IntArray:
    """Parents for one head: ranks below their switch, that below the head, heads along the tree."""
    count = len(above)
    nranks = count * group
    parent = np.full(nranks + count + count * heads, -1, dtype=np.int64)
    server = np.arange(count, dtype=np.int64)
    asking = nranks + count + server * heads + head
    parent[:nranks] = nranks + np.repeat(server, group)
    parent[nranks : nranks + count] = asking
    parent[asking] = np.where(above >= 0, nranks + count + above * heads + head, -1)
    return parent


@collective("all-reduce", "in-network")
def all_reduce(nranks: int, *, group: int = 0, heads: Sequence[int] = (), chunks: int = 16) -> Plan:
    """Up through the switch of each server and down again, both at once.

    Parameters
    ----------
    nranks : int
        Ranks; rank r is in server ``r // group``.
    group : int
        Ranks a server; 0 if all are in one.
    heads : sequence of int
        Places in the server of the heads; every rank is one if left out.
    chunks : int
        Chunks of each head's share.
    """
    check_chunks(chunks)
    each = group or nranks
    if each < 1 or nranks % each:
        raise InputError(
            Problem(
                f"{nranks} ranks do not fall into servers of {each}",
                key="group",
                value=str(group),
                expected="a divisor of the number of ranks",
            )
        )
    count = nranks // each
    number = len(heads) or each
    if number > each:
        raise InputError(
            Problem(
                "there are more heads than ranks in a server",
                key="heads",
                value=str(number),
                expected=f"at most {each}",
            )
        )
    shapes = in_order_trees(count) if count > 1 else (np.array([-1], dtype=np.int64),)
    phases = [
        tree_phase(_parents(shape, group=each, head=head, heads=number), chunks, way="both")
        for head in range(number)
        for shape in shapes
    ]
    channels = tuple(Channel((phase,), chunks, 1 / len(phases)) for phase in phases)
    helpers = count * (1 + number)
    steps = max(phase.nrounds for phase in phases)
    sent = busiest(channels, nranks + helpers)
    return Plan("all-reduce", "in-network", nranks, channels, steps, sent, nservers=helpers)
