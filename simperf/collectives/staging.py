"""Staging through host memory: what a byte costs where GPUs or NICs cannot write to each other.

Without peer access the sending GPU writes into host memory and the receiving one reads it
there; without GPUDirect the NIC does so at either end. Every staged byte thus crosses
PCIe on both sides, and the memory's bus as often as it is written and read. A GPU carries
less each way when it writes and reads at once, and software that copies (TCP) is bound by
what a core moves. All of this is capacity: a `StagedMachine` is the machine with these
capacities added to its routes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from simperf.collectives.machine_view import MachineView
from simperf.collectives.networks import NcclNetwork
from simperf.hardware import CpuPart, Edge, Machine, Route

__all__ = ["DUPLEX", "KERNEL", "MEMORY", "THROUGH", "StagedMachine"]

#: what a GPU's PCIe carries each way to host memory when both ways are busy, as a part of
#: one way alone: 18.8 of 26.0 GB/s (NVIDIA/nvbandwidth, README, host to device beside
#: device to host)
DUPLEX = 18.8 / 26.0

#: what a kernel gets over PCIe out of host memory, as a part of what copy engines get: 24.0 of
#: 25.8 GB/s (microsoft/superbenchmark, host to device by the cores of an A100 and by its engines)
KERNEL = 24.0 / 25.8

#: what mixed reads and writes reach of a memory's nominal bandwidth: about 80 %, as STREAM does
#: (McCalpin) on servers of several channels
MEMORY = 0.8


#: what is left of PCIe where devices write to each other through a processor's root complex, as a
#: part of what host memory gets: NCCL (src/graph/topo.h, INTEL_P2P_OVERHEAD) counts 6/5 of the
#: bytes there; a switch below the processor costs nothing
THROUGH = 5.0 / 6.0

#: copies of a byte that is staged and nothing more: written and read once. NCCL's buffers are
#: small and used again and again; where devices write into the last-level cache (`CpuPart.ddio`) they
#: stay there, so that the memory's bus sees nothing of it
STAGED = 2


class _Capacities(Mapping[str, float]):
    """Capacities of a machine, and more beside them."""

    def __init__(self, more: dict[str, float], base: Mapping[str, float]) -> None:
        self.more, self.base = more, base

    def __getitem__(self, key: str) -> float:
        found = self.more.get(key)
        return self.base[key] if found is None else found

    def __iter__(self) -> Iterator[str]:
        yield from self.more
        yield from self.base

    def __contains__(self, key: object) -> bool:
        return key in self.more or key in self.base

    def __len__(self) -> int:
        return len(self.more) + len(self.base)


class StagedMachine(MachineView):
    """A machine whose routes know host memory and the processor's work.

    Parameters
    ----------
    machine : Machine
        The machine.
    network : NcclNetwork
        How its servers are reached.
    inside : bool
        Whether routes draw on nothing but what is between the GPUs and host memory, as if
        the network were infinitely fast.
    """

    def __init__(self, machine: Machine, network: NcclNetwork, *, inside: bool = False) -> None:
        super().__init__(machine)
        self.network, self.inside = network, inside
        self._more: dict[str, float] = {}
        self.resources: Mapping[str, float] = _Capacities(self._more, machine.resources)
        self._plans = {slot.name: slot.blueprint for slot in machine.servers}

    def route(self, src: str, dst: str, /) -> Route:
        """The machine's route, with what staging draws on beside it."""
        base = self.machine.route(src, dst)
        one, two = self._server(src), self._server(dst)
        own, more = list(base.resources), []
        if one == two:
            if self.staged(src, dst):
                more += self._memory(base, first=True, copies=STAGED) + self._both_ways(base.edges)
            elif self.inside:
                own = []
            else:
                more += self._through(base.edges)
        else:
            own = [] if self.inside else own
            for server, first in ((one, True), (two, False)):
                near = self._near(base, first=first)
                if self._direct(server, "gpu_direct"):
                    more += [] if self.inside else self._through(self._own(base, server))
                else:
                    more += self._memory(base, first=first, copies=self.network.copies) + self._both_ways(near)
                    own += [edge.resource for edge in near if self.inside]
            more += [] if self.inside else self._software(src, dst, base)
        used = tuple(dict.fromkeys([*own, *more]))
        width = min((self.resources[name] for name in used), default=math.inf)
        # the limit of a flow is a capacity among these
        return replace(base, resources=used, bandwidth=width, flow_limit=math.inf)

    def staged(self, src: str, dst: str) -> bool:
        """Whether what one GPU sends another passes host memory."""
        one, two = self._server(src), self._server(dst)
        if one != two:
            return not (self._direct(one, "gpu_direct") and self._direct(two, "gpu_direct"))
        beside = any(edge.technology != "nvlink" for edge in self.machine.route(src, dst).edges)
        return beside and not self._direct(one, "peer_access")

    def _server(self, node: str) -> str:
        return self.machine.nodes[node].server

    def _direct(self, server: str, what: str) -> bool:
        plan = self._plans.get(server, self.machine.servers[0].blueprint)
        return bool(getattr(plan, what))

    def _sockets(self, route: Route) -> list[str]:
        nodes = [route.src, *(edge.dst for edge in route.edges)]
        return [node for node in nodes if isinstance(self.machine.nodes[node].part, CpuPart)]

    def _memory(self, route: Route, *, first: bool, copies: int) -> list[str]:
        """Memory of the socket beside the sender or the receiver."""
        sockets = self._sockets(route)
        if not sockets:
            return []
        socket = sockets[0] if first else sockets[-1]
        part = self.machine.nodes[socket].part
        assert isinstance(part, CpuPart)
        if copies == STAGED and part.ddio:
            return []
        name = f"{socket}:staged/{copies}"
        self._more[name] = MEMORY * part.memory_bandwidth / copies
        return [name]

    def _near(self, route: Route, *, first: bool) -> list[Edge]:
        """Edges between a GPU and the socket beside it."""
        edges: list[Edge] = []
        for edge in route.edges if first else reversed(route.edges):
            edges.append(edge)
            if isinstance(self.machine.nodes[edge.dst if first else edge.src].part, CpuPart):
                return edges
        return []

    def _own(self, route: Route, server: str) -> list[Edge]:
        """Edges inside a server."""
        nodes = self.nodes
        return [edge for edge in route.edges if nodes[edge.src].server == nodes[edge.dst].server == server]

    def _through(self, edges: Sequence[Edge]) -> list[str]:
        """PCIe on the way of what passes a processor from device to device."""
        if not any(self.nodes[edge.dst].kind == "cpu" for edge in edges):
            return []
        found = []
        for edge in edges:
            if edge.technology == "pcie":
                name = f"{edge.resource}:through"
                self._more[name] = THROUGH * edge.bandwidth
                found.append(name)
        return found

    def _both_ways(self, edges: Sequence[Edge]) -> list[str]:
        """The GPUs' own links, each way and both ways together, as their kernels use them."""
        found = []
        for edge in edges:
            if edge.technology == "pcie" and "gpu" in {self.nodes[edge.src].kind, self.nodes[edge.dst].kind}:
                both = "+".join(sorted((edge.src, edge.dst))) + ":both"
                self._more[both] = 2 * DUPLEX * KERNEL * edge.bandwidth
                self._more[f"{edge.id}:kernel"] = KERNEL * edge.bandwidth
                found += [both, f"{edge.id}:kernel"]
        return found

    def _software(self, src: str, dst: str, route: Route) -> list[str]:
        """The flow's limit, and the cores at both ends."""
        found = []
        if route.flow_limit < math.inf:
            name = f"{src}>{dst}:flow"
            self._more[name] = route.flow_limit * self.network.sockets
            found.append(name)
        if self.network.core < math.inf:
            ways = ("core", "core") if self.network.threads == 1 else ("send", "receive")
            for node, way in zip((src, dst), ways, strict=True):
                self._more[f"{node}:{way}"] = self.network.core
                found.append(f"{node}:{way}")
        return found
