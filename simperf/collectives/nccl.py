"""What NCCL would do: paced rings and trees under its protocols, and the fastest of them.

The constants are those of NCCL's tuner (`simperf.collectives.protocols`), the plans are
rings found on the wiring, chains and trees over servers, and the switch's own reduction
where it has one; the times come out of the executor, as for any other plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from simperf.collectives.algorithms import algorithms, make_plan
from simperf.collectives.execute import Execution, execute
from simperf.collectives.pace import paces
from simperf.collectives.placement import Transport, place
from simperf.collectives.plan import Plan
from simperf.collectives.protocols import PROTOCOLS, protocol_transport
from simperf.collectives.suit import switch_sites
from simperf.errors import UnknownNameError
from simperf.hardware import Machine, find_rings

__all__ = ["Choice", "Tuner"]

#: time in which a process launches one kernel [s]: 4 to 5 us are usual (the launch queue's
#: pace while it is not full, as simperf's other scenarios have it)
LAUNCH = 4.5e-6

#: sockets of one connection: 2 threads with 8 each, NCCL's default on AWS (its user guide,
#: NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD)
CONNECTIONS = 16

#: bytes that one slot of a connection takes, slots of a connection, and the size to which a
#: slice is cut down to fill them: NCCL_BUFFSIZE of 4 MiB over NCCL_STEPS of 8, and
#: src/enqueue.cc [B]
SLICE = 512 * 1024
SLOTS = 8
SMALL_SLICE = 128 * 1024

#: chunks of one tree, which bounds the work of trees over many ranks
MOST_CHUNKS = 64


@dataclass(frozen=True, slots=True)
class Choice:
    """One way in which NCCL could run a collective, and its time.

    Parameters
    ----------
    algorithm : str
        ``"ring"``, ``"tree"`` or ``"in-network"``.
    protocol : str
        ``"LL"``, ``"LL128"`` or ``"Simple"``.
    time : float
        Time from one call to the next, call after call [s].
    run : Execution
        What came out of one call.
    plan : Plan
    transport : Transport
    servers : tuple of str or None
        What was run, for whoever wants to run it beside other traffic.
    """

    algorithm: str
    protocol: str
    time: float
    run: Execution
    plan: Plan
    transport: Transport
    servers: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """Such as ``"ring/LL"``."""
        return f"{self.algorithm}/{self.protocol}"


class Tuner:
    """Chooses algorithm and protocol by size, on one machine.

    Parameters
    ----------
    machine : Machine
        The machine.
    ranks : sequence of str
        GPUs that take part, server by server.
    collective : str
        ``"all-reduce"``, ``"reduce-scatter"`` or ``"all-gather"``.
    in_network : bool
        Whether switches that can add up do.
    launches : int
        GPUs that one process drives: it launches a kernel on each, one after the other,
        and calls of the collective cannot follow each other faster than it does.
    """

    def __init__(
        self,
        machine: Machine,
        ranks: Sequence[str],
        *,
        collective: str = "all-reduce",
        in_network: bool = False,
        launches: int = 1,
    ) -> None:
        if "multi-ring" not in algorithms(collective):
            known = ("all-reduce", "reduce-scatter", "all-gather")
            raise UnknownNameError("collective of the tuner", collective, known)
        self.machine, self.ranks, self.collective = machine, tuple(ranks), collective
        self.in_network = in_network and collective == "all-reduce"
        self.floor = launches * LAUNCH
        self._caps: dict[str, tuple[float, ...]] = {}
        self._ring = self._rings()

    def choices(self, nbytes: float) -> list[Choice]:
        """All algorithms and protocols at one size [B], the fastest first."""
        found = []
        for algorithm, plan, servers in self._plans(nbytes):
            for protocol in PROTOCOLS if algorithm != "in-network" else PROTOCOLS[-1:]:
                pace = self._pace(algorithm, plan, servers)
                transport = replace(protocol_transport(algorithm, protocol), caps=pace, connections=CONNECTIONS)
                run = execute(plan, self.machine, nbytes=nbytes, ranks=self.ranks, servers=servers, transport=transport)
                found.append(Choice(algorithm, protocol, max(run.time, self.floor), run, plan, transport, servers))
        return sorted(found, key=lambda choice: choice.run.time)

    def best(self, nbytes: float) -> Choice:
        """The fastest at one size [B]."""
        return self.choices(nbytes)[0]

    # Plans ---------------------------------------------------------------------------

    def _plans(self, nbytes: float) -> Iterator[tuple[str, Plan, tuple[str, ...] | None]]:
        yield "ring", self._ring, None
        if self.collective != "all-reduce" or len(self.ranks) < 2:
            return
        groups = self._groups()
        even = len(set(map(len, groups))) == 1
        if even and len(groups) > 1:
            yield "tree", self._pipeline("server-trees", nbytes, self._heads(groups[0])), None
        if even and self.in_network:
            heads = self._heads(groups[0]) if len(groups) > 1 else tuple(range(len(groups[0])))
            sites = switch_sites(self.machine, self.ranks, heads)
            yield "in-network", self._pipeline("in-network", nbytes, heads), sites

    def _pipeline(self, plan: str, nbytes: float, heads: tuple[int, ...]) -> Plan:
        """Trees with the chunks into which NCCL would cut a payload of `nbytes` [B]."""
        group = len(self._groups()[0])

        share = nbytes / (2 * len(heads) if len(self.ranks) > group else len(heads))
        chunks = max(1, min(MOST_CHUNKS, max(share / SLICE, min(share / SMALL_SLICE, SLOTS))))
        options = {"group": group, "heads": heads, "chunks": round(chunks)}
        return make_plan("all-reduce", plan, nranks=len(self.ranks), **options)

    def _rings(self) -> Plan:
        index = {node: rank for rank, node in enumerate(self.ranks)}
        if len(self.ranks) < 2:
            return make_plan(self.collective, "multi-ring", nranks=len(self.ranks))
        rings = find_rings(self.machine, self.ranks)
        orders = [[index[node] for node in ring.order] for ring in rings]
        weights = [ring.bandwidth for ring in rings]
        orders, weights = orders + [order[::-1] for order in orders], weights * 2
        return make_plan(self.collective, "multi-ring", nranks=len(self.ranks), orders=orders, weights=weights)

    def _groups(self) -> list[list[str]]:
        groups: dict[str, list[str]] = {}
        for node in self.ranks:
            groups.setdefault(self.machine.nodes[node].server, []).append(node)
        return list(groups.values())

    def _heads(self, group: Sequence[str]) -> tuple[int, ...]:
        """One rank for each network card of a server."""
        if not self.machine.ids("nic"):
            return (0,)
        first: dict[str, int] = {}
        for place_, node in enumerate(group):
            away = next(rank for rank in self.ranks if rank not in group)
            card = next(
                (e.src for e in self.machine.route(node, away).edges if self.machine.nodes[e.src].kind == "nic"), ""
            )
            first.setdefault(card, place_)
        return tuple(first.values())

    def _pace(self, algorithm: str, plan: Plan, servers: tuple[str, ...] | None) -> tuple[float, ...]:
        if algorithm not in self._caps:
            self._caps[algorithm] = paces(
                plan, place(plan, self.machine, ranks=self.ranks, servers=servers), connections=CONNECTIONS
            )
        return self._caps[algorithm]
