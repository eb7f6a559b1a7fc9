"""Plans of NCCL: rings and chains found on the topology, trees over servers, the switch's own reduction.

A `NcclPlans` says it for one machine, set of ranks and collective, without any clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from simperf.collectives.algorithms import make_plan
from simperf.collectives.machine_plans import switch_sites
from simperf.collectives.nccl_kernels import SWITCH_CHANNELS, switch_chunk
from simperf.collectives.nccl_rings import PASSES, chains, turned
from simperf.collectives.plan import Plan
from simperf.hardware import Machine, find_rings
from simperf.layout import by_server

__all__ = ["ALGORITHMS", "COLLECTIVES", "NcclPlans"]

#: what a collective can be run by
ALGORITHMS = ("ring", "tree", "in-network", "direct")

#: what can be run
COLLECTIVES = ("all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce", "all-to-all")

#: bytes that one slot of a connection takes, slots of a connection, and the size to which a
#: slice is cut down to fill them: NCCL_BUFFSIZE of 4 MiB over NCCL_STEPS of 8, and
#: src/enqueue.cc [B]
SLICE = 512 * 1024
SLOTS = 8
SMALL_SLICE = 128 * 1024

#: GPUs of a server from which on NCCL has the switch add up
LEAST_SWITCHED = 3


class NcclPlans:
    """Plans for a collective on one machine.

    Parameters
    ----------
    machine : Machine
        The machine.
    ranks : sequence of str
        GPUs that take part, server by server.
    collective : str
        One of `COLLECTIVES`.
    spread : bool
        Whether channels take turns over all GPUs near a NIC.

    Attributes
    ----------
    groups : list of list of int
        Ranks of each server.
    orders, shares : list
        Ranks around each ring, and the part of the payload that goes around it.
    """

    def __init__(self, machine: Machine, ranks: Sequence[str], collective: str, *, spread: bool = False) -> None:
        self.machine, self.ranks, self.collective, self.spread = machine, tuple(ranks), collective, spread
        servers = by_server(machine, self.ranks)
        self.groups = [list(ranks) for ranks in servers.values()]
        self._servers = tuple(servers)
        self._heads: dict[bool, tuple[int, ...]] = {}
        self.orders, self.shares = self._rings()

    def algorithms(self, *, only: Sequence[str] = (), in_network: bool = False) -> list[str]:
        """Algorithms that can run the collective on this machine; of `only`, if any of these can."""
        found = ["direct"] if self.collective == "all-to-all" else ["ring"]
        if self.collective == "all-reduce" and len(self.ranks) > 1:
            even = len(set(map(len, self.groups))) == 1
            found += ["tree"] if even and len(self.groups) > 1 else []
            found += ["in-network"] if even and in_network else []
        return [name for name in found if not only or name in only] or found[:1]

    def switched(self) -> bool:
        """Whether switches that add up join the GPUs of every server, and enough of them take part for NCCL to ask."""
        if self.collective != "all-reduce" or min(map(len, self.groups)) < LEAST_SWITCHED:
            return False
        switches: dict[str, list[str]] = {}
        for name in self.machine.ids("nvswitch"):
            switches.setdefault(self.machine.nodes[name].server, []).append(name)
        return all(
            len(switches.get(server, ())) == 1
            and getattr(self.machine.nodes[switches[server][0]].part, "reduces", False)
            for server in self._servers
        )

    def make(self, algorithm: str, chunks: int) -> tuple[Plan, tuple[str, ...] | None]:
        """A plan of so many chunks that follow each other, and the nodes of its servers."""
        nranks = len(self.ranks)
        if algorithm == "direct":
            return make_plan("all-to-all", "direct", nranks=nranks), None
        if algorithm == "ring":
            if self.collective not in PASSES and nranks > 1:
                return chains(self.collective, self.orders, self.shares, chunks=chunks), None
            if self.collective not in PASSES:
                return make_plan(self.collective, "pipelined-tree", nranks=1), None
            rings: dict[str, Any] = {"orders": self.orders, "weights": self.shares} if nranks > 1 else {}
            return make_plan(self.collective, "multi-ring", nranks=nranks, **rings), None
        heads = self.heads(inside=algorithm == "in-network" and len(self.groups) == 1)
        options: dict[str, Any] = {"group": len(self.groups[0]), "heads": heads, "chunks": chunks}
        if algorithm == "tree":
            return make_plan("all-reduce", "server-trees", nranks=nranks, **options), None
        plan = make_plan("all-reduce", "in-network", nranks=nranks, **options)
        return plan, switch_sites(self.machine, self.ranks, heads)

    def chunks(self, algorithm: str, nbytes: float) -> int:
        """Chunks into which NCCL would cut a payload of `nbytes` [B]; 1 where chunks do not follow each other."""
        if algorithm == "direct" or (algorithm == "ring" and self.collective in PASSES):
            return 1
        if algorithm == "in-network" and len(self.groups) == 1:
            half = SWITCH_CHANNELS * len(self.ranks) * switch_chunk(nbytes, len(self.ranks)) / 2
            return max(1, round(nbytes / half))
        if algorithm == "ring":
            channels = max(1, len(self.orders))
        else:
            heads = self.heads(inside=algorithm == "in-network" and len(self.groups) == 1)
            channels = len(heads) * (2 if len(self.groups) > 1 else 1)
        share = nbytes / channels
        return max(1, round(max(share / SLICE, min(share / SMALL_SLICE, SLOTS))))

    def _rings(self) -> tuple[list[list[int]], list[float]]:
        if len(self.ranks) < 2:
            return [], []
        index = {node: rank for rank, node in enumerate(self.ranks)}
        rings = find_rings(self.machine, self.ranks)
        orders = [[index[node] for node in ring.order] for ring in rings]
        weights = [ring.bandwidth for ring in rings]
        if all(ring.links for ring in rings):
            # each direction of an NVLink is a link of its own; elsewhere one way round is all that NCCL looks for
            orders, weights = orders + [order[::-1] for order in orders], weights * 2
        elif self.spread and len(self.groups) > 1:
            turns = max(1, len(self.heads(inside=False)) // len(rings))
            orders = [order for by in range(turns) for order in turned(orders, self.groups, by)]
            weights = weights * turns
        return orders, [weight / sum(weights) for weight in weights]

    def nics(self) -> int:
        """NICs that a server uses, which are the channels that NCCL looks for between servers."""
        heads, away = self.heads(inside=False), self.ranks[self.groups[1][0]]
        cables = 0
        for head in heads:
            edges = self.machine.route(self.ranks[self.groups[0][head]], away).edges
            cables += next((edge.count for edge in edges if self.machine.nodes[edge.src].kind == "nic"), 1)
        return cables

    @cached_property
    def far_nics(self) -> bool:
        """Whether a processor stands between a GPU that talks to other servers and its NIC."""
        if len(self.groups) < 2:
            return False
        away = self.ranks[self.groups[1][0]]
        for head in self.heads(inside=False):
            for edge in self.machine.route(self.ranks[self.groups[0][head]], away).edges:
                kind = self.machine.nodes[edge.src].kind
                if kind == "cpu":
                    return True
                if kind == "nic":
                    break
        return False

    @property
    def simple_trees(self) -> bool:
        """Whether a server's NIC is near one GPU only, so that this one talks to the servers above and below."""
        return self.far_nics and len(self.groups) > 2 and len(self.groups[0]) > 1

    def heads(self, *, inside: bool) -> tuple[int, ...]:
        """Places in a server of the ranks that talk to others: one for each NIC, or all that are as near to it."""
        if inside not in self._heads:
            self._heads[inside] = self._find_heads(inside=inside)
        return self._heads[inside]

    def _find_heads(self, *, inside: bool) -> tuple[int, ...]:
        group = self.groups[0]
        if inside:
            return tuple(range(len(group)))
        if not self.machine.ids("nic") or len(self.groups) < 2:
            return (0,)
        away = self.ranks[self.groups[1][0]]
        nearest: dict[str, list[tuple[float, int]]] = {}
        for at, rank in enumerate(group):
            delay, card = 0.0, ""
            for edge in self.machine.route(self.ranks[rank], away).edges:
                if self.machine.nodes[edge.src].kind == "nic":
                    card = edge.src
                    break
                delay += edge.latency
            nearest.setdefault(card, []).append((delay, at))
        heads = []
        for found in nearest.values():
            least = min(found)[0]
            near = [at for delay, at in found if delay <= least * (1 + 1e-9)]
            heads += near if self.spread else near[:1]
        return tuple(heads)
