"""The machine as a networkx graph, for anything that networkx can do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import networkx

    from simperf.hardware.blueprint import Edge, Node

__all__ = ["to_networkx"]


def to_networkx(name: str, nodes: Iterable[Node], edges: Iterable[Edge]) -> networkx.MultiDiGraph:
    """Return nodes with ``kind``, ``part`` and ``server``, and edges keyed by id with all that `Edge` has."""
    import networkx

    graph = networkx.MultiDiGraph(name=name)
    for node in nodes:
        graph.add_node(node.id, kind=node.kind, part=node.part, server=node.server)
    for edge in edges:
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
