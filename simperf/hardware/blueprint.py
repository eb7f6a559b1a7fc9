"""Nodes, edges and routes, and the topology of one server, which a cluster repeats without copying."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from simperf.hardware.devices import NicPart, StoragePart, SwitchPart
from simperf.hardware.netstack import Hosting
from simperf.hardware.part import Part
from simperf.hardware.processors import CpuPart

__all__ = ["Blueprint", "Edge", "Node", "Route", "shortest"]

_ENDS_ONLY = ("gpu", "storage")
_TICK = 1e15  # latencies are compared in whole femtoseconds, so that equal routes tie


@dataclass(frozen=True, slots=True)
class Node:
    """A device or a switch of a machine.

    Parameters
    ----------
    id : str
        ``"gpu0"``; ``"n3/gpu0"`` in a cluster.
    kind : str
        ``"gpu"``, ``"cpu"``, ``"nic"``, ``"storage"``, ``"pcie-switch"``, ``"nvswitch"`` or ``"switch"``.
    part : Part or None
        What it is, if a catalog says.
    server : str
        The server that it sits in, empty for a switch of the fabric.
    """

    id: str
    kind: str
    part: Part | None = None
    server: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """One direction of a connection.

    Parameters
    ----------
    id : str
        ``"gpu0>plx0"``.
    src, dst : str
        Node ids.
    bandwidth : float
        Payload that it carries, all parallel links together [B/s].
    latency : float
        One way, with what the device at `src` adds by forwarding [s].
    resource : str
        Capacity that it draws on: its own id, or ``"a=b"`` where both directions share one.
    part : str
        Name of the link in the catalog.
    count : int
        Parallel links that it stands for.
    flow_limit : float
        The most that one flow gets [B/s].
    technology : str
        ``"pcie"``, ``"nvlink"``, ``"ethernet"`` and so on; empty if no part says.
    """

    id: str
    src: str
    dst: str
    bandwidth: float
    latency: float
    resource: str
    part: str = ""
    count: int = 1
    flow_limit: float = inf
    technology: str = ""


@dataclass(frozen=True, slots=True)
class Route:
    """The way that bytes take from one node to another.

    Parameters
    ----------
    src, dst : str
        Node ids.
    edges : tuple of Edge
        In order; empty if both ends are one node.
    resources : tuple of str
        Capacities that it draws on, each once: the edges', and those of nodes that limit what passes them.
    latency : float
        Sum over the edges [s].
    bandwidth : float
        Smallest capacity on the way [B/s].
    flow_limit : float
        The most that one flow gets on it, however idle it is [B/s].
    """

    src: str
    dst: str
    edges: tuple[Edge, ...]
    resources: tuple[str, ...]
    latency: float
    bandwidth: float
    flow_limit: float = inf

    @property
    def nodes(self) -> tuple[str, ...]:
        """Nodes in order, both ends included."""
        return (self.src, *(edge.dst for edge in self.edges))

    @property
    def is_nvlink(self) -> bool:
        """Whether it is NVLink all the way."""
        return all(edge.technology == "nvlink" for edge in self.edges)


@dataclass(eq=False, slots=True)
class Blueprint:
    """The topology of one server, by local ids; routes inside it are found once and kept.

    Parameters
    ----------
    name : str
        Name in the catalog.
    nodes : Mapping[str, Node]
        By local id.
    edges : Mapping[str, Edge]
        By local id.
    peer_access : bool
        GPUs may read each other over PCIe; otherwise they go through host memory.
    gpu_direct : bool
        NICs may read GPU memory; otherwise through host memory.
    price : float or None
        [USD/h]
    price_source : str
        Who asked it, where and when.
    hosting : Hosting
        Network stack, cores and token buckets of a machine that is this server alone.
    """

    name: str
    nodes: Mapping[str, Node]
    edges: Mapping[str, Edge]
    peer_access: bool = True
    gpu_direct: bool = True
    price: float | None = None
    title: str = ""
    price_source: str = ""
    hosting: Hosting = field(default_factory=Hosting)
    out: dict[str, list[Edge]] = field(init=False, repr=False)
    capacities: dict[str, float] = field(init=False, repr=False)
    _paths: dict[tuple[str, str], tuple[Edge, ...] | None] = field(init=False, repr=False, default_factory=dict)
    _near: dict[tuple[str, str], str | None] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.out = {node: [] for node in self.nodes}
        for edge in self.edges.values():
            self.out[edge.src].append(edge)
        self.capacities = {edge.resource: edge.bandwidth for edge in self.edges.values()}
        for node in self.nodes.values():
            self.capacities |= node_capacities(node)

    def ids(self, kind: str) -> list[str]:
        """Local ids of one kind, in the order of the file."""
        return [node.id for node in self.nodes.values() if node.kind == kind]

    def path(self, src: str, dst: str) -> tuple[Edge, ...] | None:
        """Edges from `src` to `dst` by the rule of `Machine.route`; None if there is no way."""
        if (src, dst) not in self._paths:
            self._paths[src, dst] = self._find(src, dst)
        return self._paths[src, dst]

    def nearest(self, node: str, kind: str) -> str | None:
        """Device of `kind` that is reached with the lowest latency, None if there is none."""
        if self.nodes[node].kind == kind:
            return node
        if (node, kind) not in self._near:
            found = [(ticks(path), order, other) for order, other, path in self._reach(node, kind)]
            self._near[node, kind] = min(found)[2] if found else None
        return self._near[node, kind]

    def _reach(self, node: str, kind: str) -> Iterable[tuple[int, str, tuple[Edge, ...]]]:
        for order, other in enumerate(self.ids(kind)):
            path = shortest(self.out, node, other, self._forwards)
            if path is not None:
                yield order, other, path

    def _forwards(self, node: str) -> bool:
        return self.nodes[node].kind not in _ENDS_ONLY

    def _find(self, src: str, dst: str) -> tuple[Edge, ...] | None:
        if src == dst:
            return ()
        kinds = (self.nodes[src].kind, self.nodes[dst].kind)
        bounce = None
        if kinds == ("gpu", "gpu"):
            direct = shortest(self.out, src, dst, lambda node: self.nodes[node].kind == "nvswitch")
            if direct is not None:
                return direct
            bounce = None if self.peer_access else self.nearest(src, "cpu")
        elif not self.gpu_direct and set(kinds) == {"gpu", "nic"}:
            bounce = self.nearest(src if kinds[0] == "gpu" else dst, "cpu")
        if bounce is None:
            return shortest(self.out, src, dst, self._forwards)
        first = shortest(self.out, src, bounce, self._forwards)
        second = shortest(self.out, bounce, dst, self._forwards)
        return None if first is None or second is None else first + second


def node_capacities(node: Node) -> dict[str, float]:
    """Capacities that passing or using `node` draws on, by resource id [B/s]."""
    part = node.part
    if isinstance(part, SwitchPart) and part.backplane is not None:
        return {node.id: part.backplane}
    if isinstance(part, CpuPart) and part.forwarding is not None:
        return {node.id: part.forwarding}
    if isinstance(part, StoragePart):
        return {f"{node.id}:read": part.read_bandwidth, f"{node.id}:write": part.write_bandwidth}
    return {}


def forwarding_latency(node: Node) -> float:
    """Latency that `node` adds to what it passes on [s]."""
    return node.part.latency if isinstance(node.part, SwitchPart | NicPart) else 0.0


def ticks(path: Iterable[Edge]) -> int:
    """Latency of a path in whole femtoseconds."""
    return sum(round(edge.latency * _TICK) for edge in path)


def shortest(
    out: Mapping[str, Iterable[Edge]], src: str, dst: str, forwards: Callable[[str], bool]
) -> tuple[Edge, ...] | None:
    """Path of the lowest latency, then the widest, then the fewest edges, then the first in the order of definition.

    Only nodes for which `forwards` holds are passed through. Dijkstra's algorithm with the tuple
    (latency, -bandwidth, edges) as the distance.
    """
    heap: list[tuple[int, float, int, int, str, Edge | None]] = [(0, -inf, 0, 0, src, None)]
    came: dict[str, Edge | None] = {}
    order = 0
    while heap:
        time, width, hops, _, node, edge = heapq.heappop(heap)
        if node in came:
            continue
        came[node] = edge
        if node == dst:
            break
        if node != src and not forwards(node):
            continue
        for step in out[node]:
            if step.dst not in came:
                order += 1
                wide = max(width, -step.bandwidth)
                heapq.heappush(heap, (time + round(step.latency * _TICK), wide, hops + 1, order, step.dst, step))
    if dst not in came:
        return None
    path: list[Edge] = []
    edge = came[dst]
    while edge is not None:
        path.append(edge)
        edge = came[edge.src]
    return tuple(reversed(path))
