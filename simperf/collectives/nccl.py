"""What NCCL would do: paced rings and trees under its protocols, and the fastest of them.

The constants are those of NCCL's tuner (`simperf.collectives.protocols`) and of what lies
between it and the wire (`simperf.collectives.networks`); the plans are rings found on the
wiring, chains and trees over servers, and the switch's own reduction where it has one.
Host memory takes its part where GPUs or adapters cannot write to each other
(`simperf.collectives.staging`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from simperf.collectives.execute import Execution, execute
from simperf.collectives.forwarding import Forwarding
from simperf.collectives.nccl_plans import ALGORITHMS, Shape
from simperf.collectives.nccl_rings import PASSES, Pace, ring_time
from simperf.collectives.networks import (
    Network,
    in_network_efficiency,
    low_latency_limit,
    network,
    network_of,
    tree_limit,
)
from simperf.collectives.pace import paces
from simperf.collectives.placement import Placement, Transport, place
from simperf.collectives.plan import Plan
from simperf.collectives.protocols import PROTOCOLS, protocol_transport
from simperf.collectives.staging import StagedMachine
from simperf.errors import UnknownNameError
from simperf.hardware import GpuPart, Machine

__all__ = ["ALGORITHMS", "COLLECTIVES", "Choice", "Tuner"]

#: what can be run
COLLECTIVES = ("all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce", "all-to-all")

#: time in which a process launches one kernel [s]: 4 to 5 us are usual (the launch queue's
#: pace while it is not full, as simperf's other scenarios have it)
LAUNCH = 4.5e-6

#: chunks of one pipeline that are played; from there on each further one takes as long as
#: one of the last half of these
MOST_CHUNKS = 8

#: chunks of a pipeline that is handed on to be run beside other traffic
MOST_GIVEN = 64

#: latency of the network that is in NCCL's constants already [s]: InfiniBand from adapter to
#: adapter over one switch takes 1 to 2 us
REFERENCE = 2e-6


@dataclass(frozen=True, slots=True)
class Choice:
    """One way in which NCCL could run a collective, and its time.

    Parameters
    ----------
    algorithm : str
        One of `ALGORITHMS`.
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
        One of `COLLECTIVES`.
    in_network : bool
        Whether switches that can add up do.
    launches : int
        GPUs that one process drives: it launches a kernel on each, one after the other,
        and calls of the collective cannot follow each other faster than it does.
    network : Network or str
        How other servers are reached; by the adapters' names if left out.
    only : sequence of str
        Algorithms to choose from, as NCCL_ALGO says; all if left out.
    spread : bool
        Whether channels take turns over all GPUs near an adapter, as they did up to NCCL 2.4;
        since then (src/graph/search.cc) they pass the same ones.
    speed : float
        How many times as fast the constants of protocols and networks are, to see what that would gain [1].

    Raises
    ------
    UnknownNameError
        No such collective, network or algorithm.
    """

    def __init__(
        self,
        machine: Machine,
        ranks: Sequence[str],
        *,
        collective: str = "all-reduce",
        in_network: bool = False,
        launches: int = 1,
        network: Network | str = "",
        only: Sequence[str] = (),
        spread: bool = False,
        speed: float = 1.0,
    ) -> None:
        if collective not in COLLECTIVES:
            raise UnknownNameError("collective of the tuner", collective, COLLECTIVES)
        for name in only:
            if name not in ALGORITHMS:
                raise UnknownNameError("algorithm of the tuner", name, ALGORITHMS)
        self.machine, self.ranks, self.collective = machine, tuple(ranks), collective
        self.speed = speed
        self.network = _network(network, machine, self.ranks).faster(speed)
        self.only = tuple(only)
        self.in_network = in_network
        self.floor = launches * LAUNCH / speed
        passed: Any = Forwarding(machine) if collective == "all-to-all" else machine
        self.staged = StagedMachine(passed, self.network)
        self._inside = StagedMachine(passed, self.network, inside=True)
        self.shape = Shape(machine, self.ranks, collective, spread=spread)
        self._made: dict[tuple[str, int], tuple[Plan, Placement]] = {}
        self._caps: dict[str, Pace] = {}
        self._known: dict[tuple[str, str, int, float], Execution] = {}
        self._quick: dict[tuple[str, str], float] = {}
        self._extra = self._network_latency()

    def choices(self, nbytes: float) -> list[Choice]:
        """All algorithms and protocols at one size [B], the fastest first."""
        found = [self._choice(*way, nbytes) for way in self._ways()]
        return sorted(found, key=lambda choice: choice.run.time)

    def best(self, nbytes: float) -> Choice:
        """The fastest at one size [B]; what cannot be is not played."""
        ways = sorted((self._least(*way, nbytes), *way) for way in self._ways())
        best: Choice | None = None
        for least, algorithm, protocol in ways:
            if best is None or least < best.run.time:
                choice = self._choice(algorithm, protocol, nbytes)
                best = choice if best is None or choice.run.time < best.run.time else best
        assert best is not None
        return best

    def _ways(self) -> list[tuple[str, str]]:
        """Algorithms and protocols to choose from."""
        return [
            (algorithm, protocol)
            for algorithm in self.shape.algorithms(only=self.only, in_network=self.in_network)
            for protocol in (PROTOCOLS if algorithm in {"ring", "tree"} else PROTOCOLS[-1:])
        ]

    def _least(self, algorithm: str, protocol: str, nbytes: float) -> float:
        """A time [s] below which this way cannot get: that of no bytes, and that of the channels at their pace."""
        if (algorithm, protocol) not in self._quick:
            self._quick[algorithm, protocol] = self._choice(algorithm, protocol, 0.0).run.time
        if len(self.ranks) < 2:
            return self._quick[algorithm, protocol]
        plan, placement = self._plan(algorithm, 1)
        transport = self._transport(algorithm, protocol, self._pace(algorithm, plan, placement))
        busy = max((one.share / cap for one, cap in zip(plan.channels, transport.caps, strict=True)), default=0.0)
        crossed = 1.0 if self.collective in {"all-reduce", "broadcast", "reduce"} else 0.0
        return max(self._quick[algorithm, protocol], crossed * busy * nbytes / transport.efficiency)

    # Times ---------------------------------------------------------------------------

    def _choice(self, algorithm: str, protocol: str, nbytes: float) -> Choice:
        chunks = self.shape.chunks(algorithm, nbytes)
        plan, placement = self._plan(algorithm, min(chunks, MOST_CHUNKS))
        pace = self._pace(algorithm, plan, placement)
        transport = self._transport(algorithm, protocol, pace)
        if algorithm == "ring" and self.collective in PASSES and plan.nranks > 1:
            pace = replace(pace, lanes=transport.caps)
            time = ring_time(plan, self.shape.orders, placement, transport, pace, nbytes)
            run = Execution(time, (time,) * plan.nranks, "collapsed", self._moved(plan, placement, transport, nbytes))
        else:
            run = self._played(algorithm, protocol, transport, nbytes, chunks)
        plan, placement = self._plan(algorithm, min(chunks, MOST_GIVEN))
        servers = placement.nodes[plan.nranks :] or None
        return Choice(algorithm, protocol, max(run.time, self.floor), run, plan, transport, servers)

    def _played(self, algorithm: str, protocol: str, transport: Transport, nbytes: float, chunks: int) -> Execution:
        """Play a pipeline, of many chunks only the first ones: the others follow at the same distance."""

        def play(count: int) -> Execution:
            part = nbytes * min(1.0, count / chunks)
            key = (algorithm, protocol, count, part)
            if key not in self._known:
                plan, where = self._plan(algorithm, count)
                self._known[key] = execute(plan, self.staged, nbytes=part, transport=transport, placement=where)
            return self._known[key]

        if chunks <= MOST_CHUNKS:
            return play(chunks)
        many, half = play(MOST_CHUNKS), play(MOST_CHUNKS // 2)
        more = (chunks - MOST_CHUNKS) * (many.time - half.time) / (MOST_CHUNKS - MOST_CHUNKS // 2)
        moved = {name: size * chunks / MOST_CHUNKS for name, size in many.moved.items()}
        return Execution(many.time + more, tuple(time + more for time in many.finish), many.method, moved)

    def _plan(self, algorithm: str, chunks: int) -> tuple[Plan, Placement]:
        if (algorithm, chunks) not in self._made:
            plan, servers = self.shape.make(algorithm, chunks)
            self._made[algorithm, chunks] = plan, place(plan, self.staged, ranks=self.ranks, servers=servers)
        return self._made[algorithm, chunks]

    def _moved(self, plan: Plan, placement: Placement, transport: Transport, nbytes: float) -> dict[str, float]:
        """Bytes on the wire by resource, of rings."""
        key = "moved"
        if key not in placement.kept:
            found: dict[str, float] = {}
            steps = PASSES[plan.collective] * (plan.nranks - 1) / plan.nranks
            for channel, order in zip(plan.channels, self.shape.orders, strict=True):
                for a, b in zip(order, [*order[1:], order[0]], strict=True):
                    for name in placement.hop(a, b).resources:
                        found[name] = found.get(name, 0.0) + steps * channel.share
            placement.kept[key] = found
        scale = nbytes / transport.efficiency
        return {name: size * scale for name, size in placement.kept[key].items() if ":" not in name}

    def _transport(self, algorithm: str, protocol: str, pace: Pace) -> Transport:
        """Latencies of the protocol over this network, and channels that keep their pace and the protocol's limit."""
        base = protocol_transport(algorithm, protocol).faster(self.speed)
        if algorithm == "in-network":
            base = replace(base, efficiency=in_network_efficiency(self.machine, self.ranks) or base.efficiency)
        media = dict(base.media)
        if algorithm == "ring" and len(self.shape.groups) == len(self.ranks):
            # with one rank a server nothing hides the network (src/graph/tuning.cc)
            media["network"] = protocol_transport("tree", protocol).media["network"] / self.speed
        media["network"] += self._extra
        caps, limit = pace.lanes, math.inf
        if protocol == "LL":
            limit = low_latency_limit(self.machine, self.ranks) * self.speed
        if algorithm == "tree":
            # an all-reduce's bus bandwidth is about twice what goes up and down the tree
            most = tree_limit(self.machine, self.ranks) * self.speed
            limit = min(limit, most * self.shape.adapters()) / 2
        if limit < math.inf and caps:
            scale = min(1.0, limit / (base.efficiency * sum(caps)))
            caps = tuple(cap * scale for cap in caps)
        return replace(base, media=media, caps=caps, connections=self.network.sockets)

    def _network_latency(self) -> float:
        """What a hop between servers takes beyond NCCL's constants [s]."""
        away = next((group[0] for group in self.shape.groups[1:]), None)
        if away is None:
            return 0.0
        wire = self.machine.route(self.ranks[0], self.ranks[away]).latency
        return max(self.network.latency, wire - REFERENCE / self.speed, 0.0)

    def _pace(self, algorithm: str, plan: Plan, placement: Placement) -> Pace:
        if algorithm not in self._caps:
            lanes = paces(plan, placement, connections=self.network.sockets)
            host: tuple[float, ...] = ()
            if algorithm == "ring" and self._stages():
                host = paces(plan, place(plan, self._inside, ranks=self.ranks))
            self._caps[algorithm] = Pace(lanes, host, self._copy_rate())
        return self._caps[algorithm]

    def _copy_rate(self) -> float:
        """At which the slowest GPU moves bytes inside its memory, which reads and writes them [B/s]."""
        parts = [self.machine.nodes[rank].part for rank in self.ranks]
        rates = [p.memory_bandwidth * p.efficiency["copy"] / 2 for p in parts if isinstance(p, GpuPart)]
        return min(rates, default=math.inf)

    def _stages(self) -> bool:
        order = self.shape.orders[0] if self.shape.orders else []
        nodes = [self.ranks[rank] for rank in order]
        return any(self.staged.staged(a, b) for a, b in pairwise(nodes))


def _network(given: Network | str, machine: Machine, ranks: Sequence[str]) -> Network:
    if isinstance(given, Network):
        return given
    return network(given) if given else network_of(machine, ranks)
