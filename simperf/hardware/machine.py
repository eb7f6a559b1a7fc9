"""A wired machine: one server or thousands, its nodes, edges, capacities and routes.

Servers of a cluster share one blueprint; nodes and edges come into being when they are asked
for, and a route between servers is put together from the parts inside and the path of the fabric.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any

from simperf.errors import MachineError, UnknownNameError
from simperf.hardware.blueprint import Blueprint, Edge, Node, Route, node_capacities
from simperf.hardware.fabric import Fabric, ServerSlot
from simperf.hardware.lazy_mapping import LazyMapping
from simperf.hardware.netstack import Hosting
from simperf.hardware.ports import Choices
from simperf.hardware.processors import CpuPart

if TYPE_CHECKING:
    import networkx

    from simperf.hardware.topology import Topology

__all__ = ["Machine"]


class Machine:
    """Devices, the edges between them, the capacities that they draw on, and the routes over them.

    Built by `Catalog.machine`, `build_machine`, `build_cluster` and `build_topology`. What a machine is made of is
    optional: servers; with them a fabric between them; or, in their place, a regular topology.

    Attributes
    ----------
    name : str
        Of the server or cluster.
    nodes : Mapping[str, Node]
        By id: ``"gpu0"``; ``"n3/gpu0"`` in a cluster, whose switches are ``"leaf0"``, ``"spine0"``.
    edges : Mapping[str, Edge]
        By id: ``"gpu0>plx0"``.
    resources : Mapping[str, float]
        Capacity by resource id [B/s].
    servers : tuple of ServerSlot
        With their blueprints; empty on a regular topology.
    fabric : Fabric or None
        Between the servers of a cluster.
    topology : Topology or None
        Rule by which equal ranks are wired, where no servers are.
    hosting : Hosting
        Network stack and cores of its hosts, and token buckets of its links.
    price : float or None
        Of all servers [USD/h], None if one has none.
    kept : dict
        What others computed from the machine alone, by a key of theirs; a machine does not change.

    Raises
    ------
    MachineError
        It has neither servers nor a topology, or both.

    Examples
    --------
    >>> from simperf.hardware import Catalog
    >>> machine = Catalog.load().machine("dgx-1v")
    >>> machine.route("gpu0", "gpu3").edges[0].count, len(machine.route("gpu0", "gpu5").edges)
    (2, 5)
    """

    def __init__(
        self,
        name: str,
        servers: Sequence[ServerSlot] = (),
        *,
        fabric: Fabric | None = None,
        hosting: Hosting | None = None,
        topology: Topology | None = None,
    ) -> None:
        self.name = name
        self.servers = tuple(servers)
        self.fabric, self.topology = fabric, topology
        if bool(self.servers) == (topology is not None) or (fabric is not None and not self.servers):
            raise MachineError(f"{name}: a machine has servers, perhaps with a fabric between them, or else a topology")
        single = self.servers[0].blueprint if self.servers and fabric is None else None
        self.hosting = hosting or (single.hosting if single is not None else Hosting())
        self._inner = fabric or Fabric()
        self._slots = {slot.name: slot for slot in self.servers}
        self._ports = {(slot.name, port.local, port.switch): port for slot in self.servers for port in slot.ports}
        plans = [slot.blueprint for slot in self.servers]
        wires = sum(len(plan.edges) for plan in plans) + 2 * len(self._ports) + len(self._inner.edges)
        self.nodes: Mapping[str, Node] = LazyMapping(
            "node", sum(len(plan.nodes) for plan in plans) + len(self._inner.nodes), self._node_ids, self._make_node
        )
        self.edges: Mapping[str, Edge] = LazyMapping("edge", wires, self._edge_ids, self._make_edge)
        self._limits = {
            key: value for node in self._inner.nodes.values() for key, value in node_capacities(node).items()
        }
        own = sum(len(plan.capacities) for plan in plans) + 2 * len(self._ports) + len(self._limits)
        own += len({edge.resource for edge in self._inner.edges.values()})
        self.resources: Mapping[str, float] = LazyMapping("resource", own, self._resource_ids, self._capacity)
        self._routes: dict[tuple[str, str], Route] = {}
        self._ids: dict[str, tuple[str, ...]] = {}
        self._choices = Choices(self._inner)
        if topology is not None:
            self.nodes, self.edges, self.resources = topology.nodes, topology.edges, topology.resources
        self._graph: networkx.MultiDiGraph | None = None
        self.kept: dict[Any, Any] = {}
        prices = [plan.price for plan in plans]
        self.price: float | None = None if None in prices or not prices else sum(p for p in prices if p is not None)

    def __repr__(self) -> str:
        return f"<Machine {self.name!r}: {len(self.servers)} server(s), {len(self.gpus)} GPU(s)>"

    def ids(self, kind: str) -> tuple[str, ...]:
        """Node ids of one kind, server by server."""
        if kind not in self._ids:
            self._ids[kind] = self._find_ids(kind)
        return self._ids[kind]

    def _find_ids(self, kind: str) -> tuple[str, ...]:
        if self.topology is not None:
            return self.topology.ids(kind)
        local: dict[Blueprint, list[str]] = {}
        found = []
        for slot in self.servers:
            if slot.blueprint not in local:
                local[slot.blueprint] = slot.blueprint.ids(kind)
            found += [self._prefix(slot) + name for name in local[slot.blueprint]]
        return (*found, *(node.id for node in self._inner.nodes.values() if node.kind == kind))

    @property
    def gpus(self) -> tuple[str, ...]:
        """Ids of all GPUs."""
        return self.ids("gpu")

    @property
    def workers(self) -> tuple[str, ...]:
        """Nodes that train where none are named: all GPUs, or without any the hosts, if these have a network stack."""
        return self.gpus or (self.hosts if self.hosting.stack is not None else ())

    @property
    def cpus(self) -> tuple[str, ...]:
        """Ids of all CPU sockets."""
        return self.ids("cpu")

    @property
    def hosts(self) -> tuple[str, ...]:
        """The first CPU socket of each server."""
        firsts: dict[str, str] = {}
        for cpu in self.cpus:
            firsts.setdefault(self.nodes[cpu].server, cpu)
        return tuple(firsts.values())

    def host_of(self, node: str) -> str:
        """Host (first CPU socket) of the server of `node`.

        Raises
        ------
        MachineError
            The node belongs to no server, or its server has no CPU.
        """
        server = self.nodes[node].server
        slot, _ = self._locate(node)
        if slot is not None:
            for cpu in slot.blueprint.ids("cpu"):
                if self.nodes[self._prefix(slot) + cpu].server == server:
                    return self._prefix(slot) + cpu
        raise MachineError(f"{node} has no host: its server needs a CPU")

    def nearest(self, node: str, kind: str) -> str:
        """Device of `kind` in the server of `node` with the lowest latency from it, such as its NIC or its socket."""
        slot, local = self._locate(node)
        found = slot.blueprint.nearest(local, kind) if slot is not None else None
        if slot is None or found is None:
            raise MachineError(f"{node} reaches no {kind} in its server: a link is missing")
        return self._prefix(slot) + found

    def cores(self, host: str) -> float:
        """CPU cores of all sockets of the server of `host`; no limit where the machine names no part for a CPU.

        Where hosts share their cores it is all of these.
        """
        if self.hosting.shared_cores is not None:
            return self.hosting.shared_cores
        server = self.nodes[host].server
        slot, _ = self._locate(host)
        names = () if slot is None else (self._prefix(slot) + cpu for cpu in slot.blueprint.ids("cpu"))
        parts = [self.nodes[cpu].part for cpu in names if self.nodes[cpu].server == server]
        return sum(part.cores for part in parts if isinstance(part, CpuPart)) or inf

    def route(self, src: str, dst: str, *, via: Sequence[str] = ()) -> Route:
        """Find the way from `src` to `dst`: lowest latency, then widest, and the same one every time.

        Between GPUs of one server NVLink is taken where they are linked directly or by NVSwitch; a GPU
        does not forward for others, so that the rest goes over PCIe (through host memory without peer
        access). To another server it leaves and arrives by the NICs nearest to its ends.

        Parameters
        ----------
        src, dst : str
            Node ids.
        via : sequence of str
            Nodes to pass in this order, such as a GPU that forwards.

        Raises
        ------
        UnknownNameError
            No such node.
        MachineError
            There is no way.
        """
        if via:
            stops = (src, *via, dst)
            edges = [edge for a, b in pairwise(stops) for edge in self.route(a, b).edges]
            return self._route(src, dst, tuple(edges))
        if (src, dst) not in self._routes:
            self._routes[src, dst] = self._route(src, dst, self._find(src, dst))
        return self._routes[src, dst]

    def leaving(self, node: str) -> list[Edge]:
        """Edges that leave a node, in the order of `edges`; only those of its server are looked at."""
        slot, local = self._locate(node)
        if slot is None:
            return [edge for edge in self.edges.values() if edge.src == node]
        head = self._prefix(slot)
        keys = [f"{node}>{head}{edge.dst}" for edge in slot.blueprint.out[local]]
        keys += [f"{node}>{port.switch}" for port in slot.ports if port.local == local]
        return [self.edges[key] for key in keys]

    @property
    def equal_servers(self) -> Machine | None:
        """The machine whose equal servers have equal routes, but for the servers' names, if there is one."""
        return self if self.fabric is not None and not self.fabric.lanes else None

    @property
    def graph(self) -> networkx.MultiDiGraph:
        """The machine as a networkx graph: nodes with ``kind``, ``part``, ``server``; edges keyed by id."""
        if self._graph is None:
            from simperf.hardware.graph import to_networkx

            self._graph = to_networkx(self.name, self.nodes.values(), self.edges.values())
        return self._graph

    # -- routes ---------------------------------------------------------------------------------

    def _find(self, src: str, dst: str) -> tuple[Edge, ...]:
        if self.topology is not None:
            return tuple(self.edges[key] for key in self.topology.path(src, dst))
        (one, a), (two, b) = self._locate(src), self._locate(dst)
        if one is not None and one is two:
            local = one.blueprint.path(a, b)
            if local is not None:
                return self._lift(one, local)
        elif self.fabric is not None:
            across = self._choices.choose(one, a, two, b, key=f"{src}>{dst}")
            if across is not None:
                up, middle, down = across
                edges: list[Edge] = []
                if one is not None:
                    leave = self.edges[f"{one.name}/{up.port.local}>{up.port.switch}"]
                    edges += [*self._lift(one, up.inside), leave]
                edges += middle
                if two is not None:
                    arrive = self.edges[f"{down.port.switch}>{two.name}/{down.port.local}"]
                    edges += [arrive, *self._lift(two, down.inside)]
                return tuple(edges)
        raise MachineError(f"there is no route from {src} to {dst} in {self.name}: links that join them are expected")

    def _route(self, src: str, dst: str, edges: tuple[Edge, ...]) -> Route:
        used = {edge.resource: edge.bandwidth for edge in edges}
        passed = edges[1:] if self.topology is None else ()  # nodes of a topology limit nothing
        for edge in passed:
            used |= {key: cap for key, cap in self._capacities(edge.src).items() if ":" not in key}
        if edges:
            used |= {key: cap for key, cap in self._capacities(src).items() if key.endswith(":read")}
            used |= {key: cap for key, cap in self._capacities(dst).items() if key.endswith(":write")}
        return Route(
            src,
            dst,
            edges,
            tuple(used),
            sum(edge.latency for edge in edges),
            min(used.values(), default=inf),
            min((edge.flow_limit for edge in edges), default=inf),
        )

    # -- making nodes and edges -----------------------------------------------------------------

    def _prefix(self, slot: ServerSlot) -> str:
        return f"{slot.name}/" if self.fabric is not None else ""

    def _locate(self, node: str) -> tuple[ServerSlot | None, str]:
        if self.topology is not None:
            return None, self.nodes[node].id
        if self.fabric is None:
            slot: ServerSlot | None = self.servers[0]
            local = node
        elif node in self._inner.nodes:
            return None, node
        else:
            server, _, local = node.partition("/")
            slot = self._slots.get(server)
        if slot is None or local not in slot.blueprint.nodes:
            near = slot or self.servers[0]
            known = [self._prefix(near) + name for name in near.blueprint.nodes]
            raise UnknownNameError(f"node of {self.name}", node, [*known, *self._inner.nodes])
        return slot, local

    def _capacities(self, node: str) -> dict[str, float]:
        return node_capacities(self.nodes[node])

    def _lift(self, slot: ServerSlot, path: tuple[Edge, ...]) -> tuple[Edge, ...]:
        if self.fabric is None:
            return path
        head = f"{slot.name}/"
        return tuple(self.edges[f"{head}{edge.src}>{head}{edge.dst}"] for edge in path)

    def _make_node(self, key: str) -> Node:
        slot, local = self._locate(key)
        if slot is None:
            return self._inner.nodes[local]
        node = slot.blueprint.nodes[local]
        return Node(key, node.kind, node.part, node.server or slot.name)

    def _make_edge(self, key: str) -> Edge:
        if key in self._inner.edges:
            return self._inner.edges[key]
        src, _, dst = key.partition(">")
        (one, a), (two, b) = self._locate(src), self._locate(dst)
        if one is not None and one is two:
            edge = one.blueprint.edges.get(f"{a}>{b}")
            if edge is not None:
                if self.fabric is None:
                    return edge
                head = f"{one.name}/"
                resource = key if ">" in edge.resource else "=".join(head + end for end in edge.resource.split("="))
                limits = edge.part, edge.count, edge.flow_limit, edge.technology
                return Edge(key, src, dst, edge.bandwidth, edge.latency, resource, *limits)
        else:
            port = self._ports.get((one.name, a, b) if one else (two.name, b, a) if two else ("", "", ""))
            if port is not None:
                delay = port.up if one else port.down
                return Edge(
                    key, src, dst, port.bandwidth, delay, key, port.part, port.count, port.flow_limit, port.technology
                )
        raise UnknownNameError(f"edge of {self.name}", key, [])

    def _capacity(self, key: str) -> float:
        if key in self._limits:
            return self._limits[key]
        server, inside, _ = key.partition("/")
        if inside and server in self._slots:  # by the blueprint, without an edge of its own
            found = self._slots[server].blueprint.capacities.get(key.replace(f"{server}/", ""))
            if found is not None:
                return found
        if ">" in key:
            return self.edges[key].bandwidth
        if "=" in key:
            return self.edges[">".join(key.split("="))].bandwidth
        capacities = self._capacities(key.partition(":")[0])
        if key not in capacities:
            raise UnknownNameError(f"resource of {self.name}", key, capacities)
        return capacities[key]

    def _node_ids(self) -> Iterator[str]:
        for slot in self.servers:
            head = self._prefix(slot)
            yield from (head + node for node in slot.blueprint.nodes)
        yield from self._inner.nodes

    def _edge_ids(self) -> Iterator[str]:
        for slot in self.servers:
            head = self._prefix(slot)
            yield from (f"{head}{edge.src}>{head}{edge.dst}" for edge in slot.blueprint.edges.values())
            for port in slot.ports:
                yield f"{head}{port.local}>{port.switch}"
                yield f"{port.switch}>{head}{port.local}"
        yield from self._inner.edges

    def _resource_ids(self) -> Iterator[str]:
        for slot in self.servers:
            head = self._prefix(slot)
            for key in slot.blueprint.capacities:
                mark = ">" if ">" in key else "="
                yield mark.join(head + end for end in key.split(mark))
            for port in slot.ports:
                yield f"{head}{port.local}>{port.switch}"
                yield f"{port.switch}>{head}{port.local}"
        yield from dict.fromkeys(edge.resource for edge in self._inner.edges.values())
        yield from self._limits
