"""Order of ranks on a machine: which of them share a server, and which servers are built and used alike."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simperf.hardware import Machine

__all__ = ["by_server", "local_name", "server_classes", "server_count"]


def by_server(machine: Machine, nodes: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Ranks of each server, the server of rank 0 first.

    Parameters
    ----------
    machine : Machine
    nodes : iterable of str
        Node of each rank.

    Examples
    --------
    >>> from simperf.hardware import Catalog, build_cluster
    >>> cluster = build_cluster("p3-8xlarge", 2, link="ethernet-10g-jumbo")
    >>> by_server(cluster, [*cluster.gpus[4:6], cluster.gpus[0]])
    {'n1': (0, 1), 'n0': (2,)}
    """
    found: dict[str, list[int]] = {}
    for rank, node in enumerate(nodes):
        found.setdefault(machine.nodes[node].server, []).append(rank)
    return {server: tuple(ranks) for server, ranks in found.items()}


def server_count(machine: Machine, nodes: Iterable[str]) -> int:
    """Number of servers that nodes are in."""
    return len({machine.nodes[node].server for node in nodes})


def local_name(node: str) -> str:
    """Name of a node within its server: ``"gpu0"`` of ``"n3/gpu0"``."""
    return node.rpartition("/")[2]


def server_classes(
    machine: Machine, nodes: Sequence[str], looks: Sequence[Hashable] | None = None
) -> tuple[Mapping[str, tuple[int, ...]], ...]:
    """Servers of ranks in classes: those of a class have one blueprint, and ranks on the same places that look alike.

    Parameters
    ----------
    machine : Machine
    nodes : sequence of str
        Node of each rank.
    looks : sequence of hashable, optional
        What tells ranks apart beside their places, one a rank.

    Returns
    -------
    tuple of mapping
        The classes, each as `by_server`: ranks by server.

    Examples
    --------
    >>> from simperf.hardware import Catalog, build_cluster
    >>> cluster = build_cluster("p3-8xlarge", 3, link="ethernet-10g-jumbo")
    >>> [list(one) for one in server_classes(cluster, cluster.gpus[:10])]
    [['n0', 'n1'], ['n2']]
    """
    plans = {slot.name: slot.blueprint for slot in machine.servers}
    classes: dict[Hashable, dict[str, tuple[int, ...]]] = {}
    for server, ranks in by_server(machine, nodes).items():
        places = tuple(local_name(nodes[rank]) for rank in ranks)
        look = tuple(looks[rank] for rank in ranks) if looks is not None else ()
        classes.setdefault((id(plans.get(server)), places, look), {})[server] = ranks
    return tuple(classes.values())
