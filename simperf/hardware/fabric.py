"""The network between servers: switches, their cables, and the port that each server has on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf

from simperf.hardware.blueprint import Blueprint, Edge, Node, shortest

__all__ = ["Fabric", "Port", "ServerSlot"]


@dataclass(frozen=True, slots=True)
class Port:
    """A connection of a server to a switch of the fabric.

    Parameters
    ----------
    local : str
        Node of the server, usually a NIC, by local id.
    switch : str
        Switch of the fabric.
    bandwidth : float
        Payload a direction [B/s].
    up, down : float
        Latency from the server to the switch, and back, with what the sender adds by forwarding [s].
    part : str
        Name of the link.
    count : int
        Parallel links.
    flow_limit : float
        The most that one flow gets [B/s].
    technology : str
        As in `Edge`.
    """

    local: str
    switch: str
    bandwidth: float
    up: float
    down: float
    part: str
    count: int = 1
    flow_limit: float = inf
    technology: str = ""


@dataclass(frozen=True, slots=True)
class ServerSlot:
    """One server of a machine: its blueprint and its ports on the fabric."""

    name: str
    blueprint: Blueprint
    ports: tuple[Port, ...] = ()


@dataclass(eq=False, slots=True)
class Fabric:
    """Switches between servers; paths between two of them are found once and kept.

    Parameters
    ----------
    nodes : Mapping[str, Node]
        The switches.
    edges : Mapping[str, Edge]
        Between them.
    lanes : Mapping[str, int]
        Spine switch to its lane; a flow uses the spines of one lane, chosen by its ends. Empty if the
        whole spine is one node, over which flows spread evenly.
    """

    nodes: Mapping[str, Node] = field(default_factory=dict)
    edges: Mapping[str, Edge] = field(default_factory=dict)
    lanes: Mapping[str, int] = field(default_factory=dict)
    _out: dict[str, list[Edge]] = field(init=False, repr=False)
    _paths: dict[tuple[str, str, int], tuple[Edge, ...] | None] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._out = {node: [] for node in self.nodes}
        for edge in self.edges.values():
            self._out[edge.src].append(edge)

    def path(self, src: str, dst: str, *, key: str = "") -> tuple[Edge, ...] | None:
        """Edges from one switch to another; `key` (the flow's ends) chooses the lane where there are several."""
        lane = _hash(key) % len(self.lanes) if self.lanes else 0
        if (src, dst, lane) not in self._paths:
            self._paths[src, dst, lane] = shortest(self._out, src, dst, self._allowed(lane))
        return self._paths[src, dst, lane]

    def _allowed(self, lane: int) -> Callable[[str], bool]:
        return lambda node: self.lanes.get(node, lane) == lane


def _hash(text: str) -> int:
    from zlib import crc32

    return crc32(text.encode())
