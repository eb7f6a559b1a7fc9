"""Central: a server beside the ranks (a CPU, a dedicated machine) adds up and sends back.

The first parameter server of Dive into Deep Learning, section 12.7.1: push all, then
pull all. The server's port carries n payloads in and n out.
"""

from __future__ import annotations

from simperf.collectives.algorithms import collective
from simperf.collectives.plan import Channel, Plan
from simperf.collectives.plans.naive import gather_onto, spread_from

__all__ = ["all_reduce"]


@collective("all-reduce", "central")
def all_reduce(nranks: int) -> Plan:
    """All onto the server, which is participant `nranks`, and back."""
    phases = (gather_onto(nranks, nranks), spread_from(nranks, nranks))
    return Plan("all-reduce", "central", nranks, (Channel(phases, 1),), 2, float(nranks), nservers=1)
