"""Regular topologies: so many equal nodes on a ring, a star or in a full mesh, without a file.

A machine's nodes, edges and routes follow from the rule when they are asked for, so that a full mesh of
thousands costs nothing before it is used. Every link has the same bandwidth and latency, in each direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from simperf.errors import InputError, Problem, UnknownNameError, nearest
from simperf.hardware.blueprint import Edge, Node
from simperf.hardware.lazy_mapping import LazyMapping

__all__ = ["TOPOLOGIES", "Topology"]

TOPOLOGIES = ("ring", "star", "fully-connected")

#: node in the middle of a star
SWITCH = "switch"

IntArray = npt.NDArray[np.int64]


class _LinkCapacities(Mapping[str, float]):
    """One bandwidth for every link, except those that were changed."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology

    def __getitem__(self, name: str) -> float:
        return self._topology.changed.get(name, self._topology.bandwidth)

    def __iter__(self) -> Iterator[str]:
        return map(_resource, self._topology.links())

    def __len__(self) -> int:
        return self._topology.nlinks


@dataclass(frozen=True, slots=True)
class Topology:
    """Equal ranks ``r0``, ``r1``, ... and equal links.

    Parameters
    ----------
    kind : str
        ``"ring"``: each rank has a link to and from its two neighbours. ``"star"``: each
        rank has one port on a switch, so that a route crosses two links.
        ``"fully-connected"``: a link between any two.
    nranks : int
        Ranks, which are GPUs without a part.
    bandwidth : float
        Of each link and direction [B/s].
    latency : float
        Of each link [s].
    nservers : int
        Further nodes ``s0``, ``s1``, ... wired as the ranks are, for a parameter server: CPUs without a part;
        not on a ring.
    changed : dict of str to float
        Bandwidth of links that differ [B/s], such as ``{"r3>": 1e9}`` for a slow port of a star.

    Raises
    ------
    InputError
        With every value that has no meaning.
    """

    kind: Literal["ring", "star", "fully-connected"]
    nranks: int
    bandwidth: float
    latency: float = 0.0
    nservers: int = 0
    changed: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = []
        if self.kind not in TOPOLOGIES:
            problems.append(
                Problem(f"no such topology{nearest(self.kind, TOPOLOGIES)}", key="topology", value=self.kind)
            )
        if self.nranks < 1:
            problems.append(Problem("there must be at least one rank", key="ranks", value=str(self.nranks)))
        if not 0.0 < self.bandwidth < float("inf"):
            problems.append(Problem("the bandwidth must be above 0", key="bandwidth", value=str(self.bandwidth)))
        if not 0.0 <= self.latency < float("inf"):
            problems.append(Problem("the latency must be 0 or more", key="latency", value=str(self.latency)))
        if self.kind == "ring" and self.nservers:
            problems.append(
                Problem(
                    "a ring has no place for servers",
                    key="servers",
                    value=str(self.nservers),
                    expected="0, or kind = star or fully-connected",
                )
            )
        if problems:
            raise InputError(problems)

    @property
    def name(self) -> str:
        """Such as ``"star of 8"``."""
        return f"{self.kind} of {self.nranks}"

    @property
    def size(self) -> int:
        """Ranks and servers."""
        return self.nranks + self.nservers

    # -- nodes and links ------------------------------------------------------------------------

    def ids(self, kind: str) -> tuple[str, ...]:
        """Node ids of one kind: ranks are GPUs, servers CPUs, and the middle of a star is a switch."""
        if kind == "switch":
            return (SWITCH,) if self.kind == "star" else ()
        letter, count = {"gpu": ("r", self.nranks), "cpu": ("s", self.nservers)}.get(kind, ("", 0))
        return tuple(f"{letter}{index}" for index in range(count))

    def links(self) -> Iterator[str]:
        """Ids of all edges, one a direction."""
        nodes = self.ids("gpu") + self.ids("cpu")
        if self.kind == "star":
            for node in nodes:
                yield from (f"{node}>{SWITCH}", f"{SWITCH}>{node}")
        elif self.kind == "fully-connected":
            for src in nodes:
                yield from (f"{src}>{dst}" for dst in nodes if dst != src)
        elif self.nranks > 1:
            pairs = ((i, (i + turn) % self.nranks) for i in range(self.nranks) for turn in (1, -1))
            yield from dict.fromkeys(f"r{a}>r{b}" for a, b in pairs)

    @property
    def degree(self) -> int:
        """Links that leave a rank, or a server; as many arrive."""
        return {"star": 1, "ring": min(2, self.nranks - 1)}.get(self.kind, self.size - 1)

    @property
    def nlinks(self) -> int:
        """Directed links in all."""
        return self.size * self.degree * (2 if self.kind == "star" else 1)

    @property
    def nodes(self) -> Mapping[str, Node]:
        """All nodes by id, made when they are asked for."""
        kinds = ("gpu", "cpu", "switch")
        return LazyMapping(
            "node",
            self.size + (self.kind == "star"),
            lambda: (name for kind in kinds for name in self.ids(kind)),
            self._node,
        )

    @property
    def edges(self) -> Mapping[str, Edge]:
        """All directed links by id, made when they are asked for."""
        return LazyMapping("edge", self.nlinks, self.links, self._edge)

    @property
    def resources(self) -> Mapping[str, float]:
        """Capacity [B/s] by link."""
        return _LinkCapacities(self)

    def number(self, node: str) -> int:
        """Number of a rank or server: ranks first, then servers.

        Raises
        ------
        UnknownNameError
            There is no such rank or server.
        """
        limit = {"r": self.nranks, "s": self.nservers}.get(node[:1], 0)
        if not (node[1:].isascii() and node[1:].isdigit() and int(node[1:]) < limit):
            ends = [f"r{self.nranks - 1}", *([f"s{self.nservers - 1}"] if self.nservers else [])]
            raise UnknownNameError(f"node of the {self.name}", node, ["r0", *ends])
        return int(node[1:]) + (self.nranks if node[0] == "s" else 0)

    def _node(self, name: str) -> Node:
        if name == SWITCH and self.kind == "star":
            return Node(name, "switch")
        return Node(name, "gpu" if self.number(name) < self.nranks else "cpu")

    def _edge(self, key: str) -> Edge:
        src, _, dst = key.partition(">")
        if self.path(src, dst) != (key,):
            raise UnknownNameError(f"edge of the {self.name}", key, [])
        resource = _resource(key)
        return Edge(key, src, dst, self.resources[resource], self.latency, resource)

    # -- routes ---------------------------------------------------------------------------------

    def path(self, src: str, dst: str) -> tuple[str, ...]:
        """Ids of the edges from one node to another; on a ring the shorter way round.

        Raises
        ------
        UnknownNameError
            One of them is not there.
        """
        if self.kind == "star" and SWITCH in (src, dst):
            other = dst if src == SWITCH else src
            return (f"{src}>{dst}",) if other != SWITCH and self.number(other) >= 0 else ()
        here, there = self.number(src), self.number(dst)
        if here == there:
            return ()
        if self.kind == "star":
            return (f"{src}>{SWITCH}", f"{SWITCH}>{dst}")
        if self.kind == "fully-connected":
            return (f"{src}>{dst}",)
        ahead = (there - here) % self.nranks
        turn, hops = (1, ahead) if ahead <= self.nranks - ahead else (-1, self.nranks - ahead)
        places = [(here + turn * hop) % self.nranks for hop in range(hops + 1)]
        return tuple(f"r{a}>r{b}" for a, b in pairwise(places))

    def paths(self, src: IntArray, dst: IntArray) -> tuple[IntArray, float] | None:
        """Links between many pairs of nodes at once, by number; None where `path` must be asked.

        Parameters
        ----------
        src, dst : numpy.ndarray of int64, shape (pairs,)
            Numbers of nodes, as `number` gives them; no node to itself.

        Returns
        -------
        links : numpy.ndarray of int64, shape (hops, pairs)
            As `link_name` takes them.
        latency : float
            Of every route [s].
        """
        if self.kind == "star":
            return np.stack((2 * src, 2 * dst + 1)), 2 * self.latency
        gap = (dst - src) % self.size
        if self.kind == "fully-connected" or np.all((gap == 1) | (gap == self.size - 1)):
            return (src * self.size + dst)[None, :], self.latency
        return None

    def crossed(self, src: IntArray, dst: IntArray) -> int:
        """Links that the routes between many pairs of nodes cross in all.

        Parameters
        ----------
        src, dst : numpy.ndarray of int64, shape (pairs,)
            Numbers of nodes, as `number` gives them.
        """
        if self.kind != "ring":
            return len(src) * (2 if self.kind == "star" else 1)
        gap = (dst - src) % self.nranks
        return int(np.minimum(gap, self.nranks - gap).sum())

    def link_name(self, link: int) -> str:
        """Name of a link's capacity by its number in `paths`."""
        numbers = (link // 2,) if self.kind == "star" else divmod(link, self.size)
        names = [f"r{index}" if index < self.nranks else f"s{index - self.nranks}" for index in numbers]
        if self.kind == "star":
            return f">{names[0]}" if link % 2 else f"{names[0]}>"
        return ">".join(names)


def _resource(edge: str) -> str:
    """Name of a link's capacity: its edge's id, without the switch of a star."""
    return edge.removeprefix(SWITCH).removesuffix(SWITCH)
