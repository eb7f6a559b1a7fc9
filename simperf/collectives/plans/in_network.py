"""In-network: the switch adds up, and sends every rank the sum.

Every rank sends its payload once and receives the result once, where a ring sends almost
two; chunks follow each other up and down (Graham et al., "Scalable Hierarchical
Aggregation Protocol", COM-HPC 2016; NVLink SHARP in NVSwitch 3 and later). The switch is
participant `nranks`; NCCL's own variant lets each rank handle a share, which costs its
port 1/n of a payload more.
"""

from __future__ import annotations

import numpy as np

from simperf.collectives.algorithms import collective
from simperf.collectives.plan import Channel, Plan
from simperf.collectives.plans.pipelined_tree import check_chunks
from simperf.collectives.plans.trees import tree_phase

__all__ = ["all_reduce"]


@collective("all-reduce", "in-network")
def all_reduce(nranks: int, *, chunks: int = 64) -> Plan:
    """Up to the switch, which adds, and down again, both at once."""
    check_chunks(chunks)
    parent = np.append(np.full(nranks, nranks, dtype=np.int64), -1)
    phase = tree_phase(parent, chunks, way="both")
    channel = Channel((phase,), chunks)
    return Plan("all-reduce", "in-network", nranks, (channel,), phase.nrounds, float(nranks), nservers=1)
