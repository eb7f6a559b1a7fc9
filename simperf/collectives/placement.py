"""Places of the participants of a plan on a machine, and the transport of sends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from simperf.collectives.plan import Plan
from simperf.errors import InputError, Problem
from simperf.hardware import Machine, Node, Route, Topology

__all__ = ["PLAIN", "Hop", "Placement", "Transport", "Wired", "place"]

#: placements that a machine keeps, with the routes that were found for them
MOST_KEPT = 4


class Wired(Protocol):
    """A `simperf.hardware.Machine`, or the view of one whose routes draw on more or pass other nodes."""

    @property
    def gpus(self) -> tuple[str, ...]:
        """Nodes that a collective takes as ranks if none are named."""

    @property
    def cpus(self) -> tuple[str, ...]:
        """Nodes that it takes as servers if none are named."""

    @property
    def nodes(self) -> Mapping[str, Node]:
        """By id."""

    @property
    def resources(self) -> Mapping[str, float]:
        """Capacity [B/s] by resource id."""

    @property
    def topology(self) -> Topology | None:
        """Rule by which equal ranks are wired, if there is one."""

    @property
    def equal_servers(self) -> Machine | None:
        """The machine whose equal servers have equal routes here, but for the servers' names."""

    @property
    def kept(self) -> dict[Any, Any]:
        """Values that others computed from it alone."""

    def route(self, src: str, dst: str, /) -> Route:
        """The route from one node to another."""


@dataclass(frozen=True, slots=True)
class Hop:
    """The way from one participant to another.

    Parameters
    ----------
    resources : tuple of str
        Capacities that it draws on.
    latency : float
        Of the wire [s].
    cap : float
        Most that one flow gets [B/s].
    medium : str
        ``"nvlink"``, ``"pcie"`` or ``"network"``; empty if the machine does not say.
    """

    resources: tuple[str, ...]
    latency: float
    cap: float = math.inf
    medium: str = ""


@dataclass(frozen=True, slots=True)
class Transport:
    """The transport of sends, whatever the algorithm.

    Parameters
    ----------
    step_latency : float
        Added to the latency of every send [s]: software, kernel and protocol.
    efficiency : float
        Payload bytes a byte on the wire, 0 to 1; what flags and headers of the
        protocol leave.
    cap : float
        Rate on the wire that one send cannot exceed [B/s].
    reduce_rate : float
        Rate at which a receiver adds up what has arrived [B/s of payload]; one send at a
        time. Infinity hides the addition behind the transfer.
    unit : float
        Size that is never split between chunks [B]; 0 cuts payloads evenly.
    start : float
        Time from a rank's call to its first send [s]: the launch of the kernel.
    media : mapping of str to float
        Least latency of a send [s] over ``"nvlink"``, ``"pcie"`` or ``"network"``: what
        software and protocol make of it, whatever the wire alone would allow.
    connections : int
        Flows that a send is spread over where one flow alone is limited, as TCP flows are.
    caps : tuple of float
        Rate on the wire that one send of channel 0, 1, ... cannot exceed [B/s].

    Examples
    --------
    >>> Transport(step_latency=5e-6).step_latency
    5e-06
    """

    step_latency: float = 0.0
    efficiency: float = 1.0
    cap: float = math.inf
    reduce_rate: float = math.inf
    unit: float = 0.0
    start: float = 0.0
    media: Mapping[str, float] = field(default_factory=dict)
    connections: int = 1
    caps: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        problems = [
            Problem(message, key=key, value=str(value))
            for key, value, right, message in (
                ("step_latency", self.step_latency, 0.0 <= self.step_latency < math.inf, "must be a time, 0 or more"),
                ("efficiency", self.efficiency, 0.0 < self.efficiency <= 1.0, "must be above 0 and at most 1"),
                ("cap", self.cap, self.cap > 0.0, "must be a bandwidth above 0"),
                ("reduce_rate", self.reduce_rate, self.reduce_rate > 0.0, "must be a bandwidth above 0"),
                ("unit", self.unit, 0.0 <= self.unit < math.inf, "must be a size, 0 or more"),
                ("start", self.start, 0.0 <= self.start < math.inf, "must be a time, 0 or more"),
                ("connections", self.connections, self.connections >= 1, "must be at least 1"),
                ("caps", self.caps, all(cap > 0.0 for cap in self.caps), "must be bandwidths above 0"),
            )
            if not right
        ]
        if problems:
            raise InputError(problems)

    def latency(self, hop: Hop) -> float:
        """Latency of a send on its way [s]."""
        return max(hop.latency, self.media.get(hop.medium, 0.0)) + self.step_latency

    def most(self, hop: Hop, channel: int) -> float:
        """Rate on the wire that a send of a channel cannot exceed [B/s]."""
        own = self.caps[channel] if channel < len(self.caps) else math.inf
        return min(self.cap, hop.cap * self.connections, own)

    def faster(self, speed: float) -> Transport:
        """The same transport, whose start and least latencies by medium are `speed` times as fast [1]."""
        if speed == 1.0:
            return self
        media = {medium: latency / speed for medium, latency in self.media.items()}
        return replace(self, start=self.start / speed, media=media)


#: bytes on the wire and nothing else
PLAIN = Transport()


@dataclass(frozen=True, slots=True)
class Placement:
    """The node of every participant of a plan.

    Parameters
    ----------
    machine : Wired
        Where they sit.
    nodes : tuple of str
        Node of each participant, ranks first.
    kept : dict
        What executors keep from one payload to the next.
    """

    machine: Wired
    nodes: tuple[str, ...]
    _hops: dict[tuple[int, int], Hop] = field(default_factory=dict, repr=False, compare=False)
    kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def hop(self, src: int, dst: int) -> Hop:
        """The way from participant to participant; none at all inside a node."""
        found = self._hops.get((src, dst))
        if found is None:
            here, there = self.nodes[src], self.nodes[dst]
            if here == there:
                found = Hop((), 0.0)
            else:
                route = self.machine.route(here, there)
                found = Hop(route.resources, route.latency, route.flow_limit, self._medium(here, there, route))
            self._hops[src, dst] = found
        return found

    def _medium(self, here: str, there: str, route: Route) -> str:
        if self.machine.topology is not None:
            return ""
        nodes = self.machine.nodes
        if nodes[here].server != nodes[there].server:
            return "network"
        return "nvlink" if route.is_nvlink else "pcie"


def place(
    plan: Plan, machine: Wired, *, ranks: Sequence[str] | None = None, servers: Sequence[str] | None = None
) -> Placement:
    """Put the participants of a plan on nodes; the same ones on a machine are put there once, with their routes.

    Parameters
    ----------
    plan : Plan
        Says how many ranks and servers there are.
    machine : Wired
        The machine.
    ranks : sequence of str, optional
        Node of each rank; the machine's first GPUs if left out.
    servers : sequence of str, optional
        Node of each server; the machine's CPUs in turn if left out.

    Raises
    ------
    InputError
        Too few nodes, or nodes that the machine does not have.
    """
    first = machine.gpus[: plan.nranks]
    sites = tuple(ranks) if ranks is not None else first
    if len(sites) != plan.nranks:
        message = f"the plan has {plan.nranks} ranks, but there are {len(sites)} nodes for them"
        raise InputError(Problem(message, key="ranks"))
    helpers = tuple(servers) if servers is not None else _server_sites(machine, plan.nservers)
    if len(helpers) != plan.nservers:
        message = f"the plan has {plan.nservers} servers, but there are {len(helpers)} nodes for them"
        raise InputError(Problem(message, key="servers"))
    known: dict[tuple[str, ...], Placement] = machine.kept.setdefault("placements", {})
    found = known.get(sites + helpers)
    if found is None or found.machine is not machine:
        named = dict.fromkeys(helpers if sites == first else sites + helpers)  # a million GPUs are not asked for
        missing = [name for name in named if name not in machine.nodes]
        if missing:
            expected, message = "nodes of the machine", "the machine has no such node"
            raise InputError([Problem(message, key="ranks", value=name, expected=expected) for name in missing])
        found = known[sites + helpers] = Placement(machine, sites + helpers)
        if len(known) > MOST_KEPT:
            del known[next(iter(known))]
    return found


def _server_sites(machine: Wired, count: int) -> tuple[str, ...]:
    if count and not machine.cpus:
        message = f"the algorithm needs {count} server(s) beside the ranks, and the machine has no CPU to be one"
        raise InputError(Problem(message, key="servers"))
    return tuple(machine.cpus[index % len(machine.cpus)] for index in range(count))
