"""The machine as a networkx graph, for anything that networkx can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx

    from simperf.hardware.machine import Machine

__all__ = ["to_networkx"]


def to_networkx(machine: Machine) -> networkx.MultiDiGraph:
    """Return nodes with ``kind``, ``part`` and ``server``, and edges keyed by id with all that `Edge` has."""
    import networkx

    graph = networkx.MultiDiGraph(name=machine.name)
    for node in machine.nodes.values():
        graph.add_node(node.id, kind=node.kind, part=node.part, server=node.server)
    for edge in machine.edges.values():
        graph.add_edge(
            edge.src,
            edge.dst,
            key=edge.id,
            bandwidth=edge.bandwidth,
            latency=edge.latency,
            resource=edge.resource,
            part=edge.part,
            count=edge.count,
        )
    return graph
