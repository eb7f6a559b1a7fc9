"""Machines without a file: so many equal ranks on a ring, a star or in a full mesh.

Routes are made when they are asked for, so that a full mesh of thousands costs nothing
before it is used. Every link has the same bandwidth and latency, in each direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np

from simperf.collectives.plan import IntArray
from simperf.errors import InputError, MachineError, Problem, nearest

__all__ = ["WIRINGS", "Wiring", "WiringRoute"]

WIRINGS = ("ring", "star", "fully-connected")


@dataclass(frozen=True, slots=True)
class WiringRoute:
    """Resources and latency [s] of a route."""

    resources: tuple[str, ...]
    latency: float


class _Capacities(Mapping[str, float]):
    """One bandwidth for every link, except those that were changed."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring = wiring

    def __getitem__(self, name: str) -> float:
        return self._wiring.changed.get(name, self._wiring.bandwidth)

    def __iter__(self) -> Iterator[str]:
        return self._wiring.links()

    def __len__(self) -> int:
        return sum(1 for _ in self._wiring.links())


@dataclass(frozen=True, slots=True)
class Wiring:
    """Equal ranks ``r0``, ``r1``, ... and equal links.

    Parameters
    ----------
    kind : str
        ``"ring"``: each rank has a link to and from its two neighbours. ``"star"``: each
        rank has one port on a switch, so that a route crosses two links.
        ``"fully-connected"``: a link between any two.
    nranks : int
        Ranks.
    bandwidth : float
        Of each link and direction [B/s].
    latency : float
        Of each link [s].
    nservers : int
        Further nodes ``s0``, ``s1``, ... wired as the ranks are, for a parameter server;
        not on a ring.
    changed : dict of str to float
        Bandwidth of links that differ [B/s], such as ``{"r3>": 1e9}`` for a slow port.

    Examples
    --------
    >>> star = Wiring("star", 8, bandwidth=50e9, latency=250e-9)
    >>> star.route("r0", "r3")
    WiringRoute(resources=('r0>', '>r3'), latency=5e-07)
    """

    kind: Literal["ring", "star", "fully-connected"]
    nranks: int
    bandwidth: float
    latency: float = 0.0
    nservers: int = 0
    changed: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = []
        if self.kind not in WIRINGS:
            problems.append(Problem(f"no such wiring{nearest(self.kind, WIRINGS)}", key="wiring", value=self.kind))
        if self.nranks < 1:
            problems.append(Problem("there must be at least one rank", key="ranks", value=str(self.nranks)))
        if not 0.0 < self.bandwidth < float("inf"):
            problems.append(Problem("the bandwidth must be above 0", key="bandwidth", value=str(self.bandwidth)))
        if not 0.0 <= self.latency < float("inf"):
            problems.append(Problem("the latency must be 0 or more", key="latency", value=str(self.latency)))
        if self.kind == "ring" and self.nservers:
            problems.append(Problem("a ring has no place for servers", key="servers", value=str(self.nservers)))
        if problems:
            raise InputError(problems)

    @property
    def name(self) -> str:
        """Such as ``"star of 8"``."""
        return f"{self.kind} of {self.nranks}"

    @property
    def gpus(self) -> tuple[str, ...]:
        """The ranks."""
        return tuple(f"r{index}" for index in range(self.nranks))

    @property
    def helpers(self) -> tuple[str, ...]:
        """Nodes for servers."""
        return tuple(f"s{index}" for index in range(self.nservers))

    @property
    def size(self) -> int:
        """Ranks and servers."""
        return self.nranks + self.nservers

    @property
    def resources(self) -> Mapping[str, float]:
        """Capacity [B/s] by link."""
        return _Capacities(self)

    def links(self) -> Iterator[str]:
        """Names of all links, one a direction."""
        nodes = self.gpus + self.helpers
        if self.kind == "star":
            for node in nodes:
                yield f"{node}>"
                yield f">{node}"
        elif self.kind == "fully-connected":
            for src in nodes:
                yield from (f"{src}>{dst}" for dst in nodes if dst != src)
        elif self.nranks > 1:
            pairs = ((i, (i + turn) % self.nranks) for i in range(self.nranks) for turn in (1, -1))
            yield from dict.fromkeys(f"r{a}>r{b}" for a, b in pairs)

    def number(self, node: str) -> int:
        """Number of a node: ranks first, then servers.

        Raises
        ------
        MachineError
            There is no such node.
        """
        limit = {"r": self.nranks, "s": self.nservers}.get(node[:1], 0)
        if not (node[1:].isascii() and node[1:].isdigit() and int(node[1:]) < limit):
            raise MachineError(f"no node {node!r} on the {self.name}")
        return int(node[1:]) + (self.nranks if node[0] == "s" else 0)

    def paths(self, src: IntArray, dst: IntArray) -> tuple[IntArray, float] | None:
        """Links between many pairs of nodes at once, by number; None where `route` must be asked.

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
        """Name of a link by its number in `paths`."""
        names = [f"r{index}" if index < self.nranks else f"s{index - self.nranks}" for index in divmod(link, self.size)]
        if self.kind == "star":
            node = f"r{link // 2}" if link // 2 < self.nranks else f"s{link // 2 - self.nranks}"
            return f">{node}" if link % 2 else f"{node}>"
        return ">".join(names)

    def route(self, src: str, dst: str) -> WiringRoute:
        """The route between two ranks or servers; on a ring the shorter way round.

        Raises
        ------
        MachineError
            One of them is not wired here.
        """
        if self.number(src) == self.number(dst):
            return WiringRoute((), 0.0)
        if self.kind == "star":
            return WiringRoute((f"{src}>", f">{dst}"), 2 * self.latency)
        if self.kind == "fully-connected":
            return WiringRoute((f"{src}>{dst}",), self.latency)
        here, there = self.number(src), self.number(dst)
        ahead = (there - here) % self.nranks
        turn, hops = (1, ahead) if ahead <= self.nranks - ahead else (-1, self.nranks - ahead)
        places = [(here + turn * hop) % self.nranks for hop in range(hops + 1)]
        names = tuple(f"r{a}>r{b}" for a, b in pairwise(places))
        return WiringRoute(names, hops * self.latency)
