"""NCCL's choice: paced rings and trees under its protocols, and the one of them that it takes.

The constants by which it chooses are those of its tuner (`simperf.collectives.protocols`) and of what lies
between it and the wire (`simperf.collectives.networks`); what the choice takes depends on the generation of the GPUs
(`simperf.collectives.nccl_kernels`). The plans are rings found on the topology, chains and trees over servers, and the
switch's own reduction where it has one. Host memory takes its part where GPUs or NICs cannot write to each other
(`simperf.collectives.staging`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

from simperf.collectives.channels import ChannelSet
from simperf.collectives.execute import Execution, PlacedPlan, entries_of, execute
from simperf.collectives.executors.channel_flows import play_channels
from simperf.collectives.floor import floor
from simperf.collectives.forwarding import Forwarding
from simperf.collectives.nccl_blocks import channels_of, kernel_blocks
from simperf.collectives.nccl_channels import MachineAlgorithm
from simperf.collectives.nccl_estimate import network_estimate, server_estimate
from simperf.collectives.nccl_kernels import KernelCost, direct_protocol, kernel_costs
from simperf.collectives.nccl_plans import ALGORITHMS, COLLECTIVES, NcclPlans
from simperf.collectives.nccl_rings import PASSES
from simperf.collectives.networks import (
    in_network_efficiency,
    low_latency_limit,
    network,
    network_of,
    simple_tree_efficiency,
    tree_limit,
)
from simperf.collectives.placement import Placement, Transport
from simperf.collectives.plan import Plan
from simperf.collectives.plan_bounds import ASKED, PlanBounds
from simperf.collectives.protocols import PROTOCOLS, protocol_transport
from simperf.collectives.settings import DEFAULTS, TIMINGS, NcclSettings
from simperf.collectives.staging import StagedMachine
from simperf.cost.collectives import MeasuredCollective
from simperf.errors import InputError, Problem, UnknownNameError
from simperf.hardware import GpuPart, Machine
from simperf.layout import local_name
from simperf.units import format_quantity

__all__ = ["ALGORITHMS", "COLLECTIVES", "Choice", "Tuner"]

#: time in which a process launches one kernel [s]: 4 to 5 us are usual (the launch queue's
#: pace while it is not full, as simperf's other scenarios have it)
LAUNCH = 4.5e-6

#: sizes whose choices a tuner keeps: those of a model's buckets or slices come again and again
MOST_SIZES = 256

#: latency of the network that is in NCCL's constants already [s]: InfiniBand from NIC to
#: NIC over one switch takes 1 to 2 us
REFERENCE = 2e-6


@dataclass(frozen=True)
class Choice:
    """One way in which NCCL could run a collective of one size.

    Parameters
    ----------
    algorithm : str
        One of `ALGORITHMS`.
    protocol : str
        ``"LL"``, ``"LL128"`` or ``"Simple"``.
    nbytes : float
        Payload [B].
    machine : Machine
        The machine, without staging.
    plan : Plan
        Who sends what to whom.
    placement : Placement
        Where the participants sit; its routes draw on host memory where bytes are staged there.
    transport : Transport
        Latencies and efficiency of the protocol, and the pace of the channels.
    channels : ChannelSet or None
        The channels as flows; None where every rank sends to every other, send by send.
    least : float
        Time from one call to the next that launching takes [s].
    blocks : int
        Multiprocessors that its kernel holds on each GPU.
    """

    algorithm: str
    protocol: str
    nbytes: float
    machine: Machine
    plan: Plan
    placement: Placement
    transport: Transport
    channels: ChannelSet | None
    least: float
    blocks: int = 0

    @property
    def name(self) -> str:
        """Such as ``"ring/LL"``."""
        return f"{self.algorithm}/{self.protocol}"

    @property
    def placed(self) -> PlacedPlan:
        """Its plan on the machine, for `simperf.collectives.execute.start`."""
        return PlacedPlan(self.plan, self.placement, self.transport, self.channels, self.blocks)

    @cached_property
    def run(self) -> Execution:
        """Execution of this choice alone."""
        return self.play()

    def play(
        self,
        *,
        entry_times: Sequence[float] | None = None,
        background: Sequence[tuple[str, str, float]] = (),
        bounds: PlanBounds = ASKED,
    ) -> Execution:
        """Simulate it on a network of its own.

        Parameters
        ----------
        entry_times : sequence of float, optional
            When each rank calls the collective [s]; channels begin when the last one has.
        background : sequence of (str, str, float)
            Traffic from node to node that wants so much bandwidth [B/s] all the time and shares the links.
        bounds : PlanBounds
            Most that is simulated send by send, where sends are simulated one by one.
        """
        last = max(entries_of(self.plan, entry_times)[: self.plan.nranks])
        if self.channels is not None:
            traffic = [(tuple(self.machine.route(src, dst).resources), rate) for src, dst, rate in background]
            capacities = self.placement.machine.resources
            return play_channels(self.channels, self.plan.nranks, start=last, capacities=capacities, traffic=traffic)
        bounds.check(self.plan, self.placement)
        run = execute(
            self.plan,
            self.machine,
            nbytes=self.nbytes,
            entry_times=entry_times,
            transport=self.transport,
            background=background,
            placement=self.placement,
            bounds=bounds,
        )
        return replace(run, time=max(run.time, last + self.least))

    @property
    def time(self) -> float:
        """Time if it is simulated alone, call after call [s]."""
        return self.run.time


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
    settings : NcclSettings
        How NCCL is set up. Calls of the collective cannot follow each other faster than a process launches them.
        Unless they say it, switches add up where they can, more than two GPUs of each server take part, and so many
        of all servers: what NCCL does by itself since 2.18 (NCCL_NVLS_ENABLE).
    speed : float
        How many times as fast the constants of protocols and networks are, to see what that would gain [1].
    measured : MeasuredCollective, optional
        Times of this collective among as many ranks: at their sizes it takes so long, if nothing hinders it.
    reference : Tuner, optional
        Of the machine and the settings that were measured, where these are others; what it misses is missed here too.

    Raises
    ------
    UnknownNameError
        No such collective, network, algorithm, protocol or timing.
    InputError
        No algorithm of the collective has the protocol.
    """

    def __init__(
        self,
        machine: Machine,
        ranks: Sequence[str],
        collective: str = "all-reduce",
        settings: NcclSettings = DEFAULTS,
        *,
        speed: float = 1.0,
        measured: MeasuredCollective | None = None,
        reference: Tuner | None = None,
    ) -> None:
        if collective not in COLLECTIVES:
            raise UnknownNameError("collective of the tuner", collective, COLLECTIVES)
        for name in settings.only:
            if name not in ALGORITHMS:
                raise UnknownNameError("algorithm of the tuner", name, ALGORITHMS)
        if settings.protocol and settings.protocol not in PROTOCOLS:
            raise UnknownNameError("protocol", settings.protocol, PROTOCOLS)
        if settings.timing not in TIMINGS:
            raise UnknownNameError("timing of the tuner", settings.timing, TIMINGS)
        self.machine, self.ranks, self.collective = machine, tuple(ranks), collective
        self.settings, self.speed = settings, speed
        reached = network(settings.network) if settings.network else network_of(machine, self.ranks)
        self.network = reached.faster(speed)
        self.least = max(1, settings.launches) * LAUNCH / speed if settings.timing == "loop" else 0.0
        passed: Any = Forwarding(machine) if collective == "all-to-all" else machine
        self.staged = StagedMachine(passed, self.network)
        self.inside = StagedMachine(passed, self.network, inside=True)
        self.shape = NcclPlans(machine, self.ranks, collective, spread=settings.spread)
        self.in_network = self.shape.switched() if settings.switched is None else settings.switched
        self.kernels: Mapping[str, KernelCost] = {
            name: one.faster(speed) for name, one in kernel_costs(machine, self.ranks).items()
        }
        self._algorithms: dict[str, MachineAlgorithm] = {}
        self._transports: dict[tuple[str, str], Transport] = {}
        self._extra = self._network_latency()
        self.measured, self._reference = measured, reference or self
        self._factors: dict[float, tuple[float, float]] = {}
        self._best: dict[float, Choice] = {}
        self._pairs = self._find_pairs()
        if not self._pairs:
            message = f"no algorithm that NCCL has for {collective} runs under this protocol"
            raise InputError(Problem(message, key="protocol", value=settings.protocol, expected=PROTOCOLS[-1]))

    def choices(self, nbytes: float) -> list[Choice]:
        """All algorithms and protocols at one size [B], the one that NCCL takes first, by its own estimate."""
        found = sorted(self._pairs, key=partial(self._estimate, nbytes=nbytes))
        return [self._as_measured(self._choice(pair, nbytes)) for pair in found]

    def best(self, nbytes: float) -> Choice:
        """The one that NCCL's own estimate has for the fastest at one size [B]; nothing is simulated for it."""
        choice = self._best.get(nbytes)
        if choice is None:
            choice = self._as_measured(self._modelled(nbytes))
            if self.measured is not None:
                self._check(choice, self.measured)
            while len(self._best) >= MOST_SIZES:
                del self._best[next(iter(self._best))]
            self._best[nbytes] = choice
        return choice

    def message(self, nbytes: float) -> Choice:
        """Choice for one send of so many bytes [B] between two ranks, without a part that stays where it is."""
        pair = min(self._pairs, key=partial(self._estimate, nbytes=len(self.ranks) * nbytes))
        return self._choice(pair, 0.0)

    def _modelled(self, nbytes: float) -> Choice:
        """What NCCL takes, without what was measured."""
        return self._choice(min(self._pairs, key=partial(self._estimate, nbytes=nbytes)), nbytes)

    def _as_measured(self, choice: Choice) -> Choice:
        """The choice with channels that take what was measured."""
        if self.measured is None or choice.channels is None:
            return choice
        nbytes = choice.nbytes
        if nbytes not in self._factors:
            self._factors[nbytes] = self._reference.misses(self.measured, nbytes)
        return replace(choice, channels=choice.channels.slower(*self._factors[nbytes]))

    def _check(self, choice: Choice, measured: MeasuredCollective) -> None:
        """Refuse a measured time that the links of this machine do not allow."""
        if choice.channels is None:
            return
        time, helpers = choice.channels.time, choice.placement.nodes[len(self.ranks) :]
        least = floor(
            self.machine,
            self.collective,
            ranks=self.ranks,
            nbytes=choice.nbytes,
            helpers=helpers,
            transport=replace(choice.transport, start=0.0),
        )
        if time < least * (1 - 1e-9):
            size, short, bound = (format_quantity(*one) for one in ((choice.nbytes, "B"), (time, "s"), (least, "s")))
            message = (
                f"{self.collective} of {size} in {short} by what was measured, below the bound of the links, {bound}"
            )
            what, there = f"constants of {measured.name or 'collectives by NCCL'}", "the machine that was measured"
            raise InputError(Problem(message, file=measured.source, value=what, expected=there))

    def misses(self, measured: MeasuredCollective, nbytes: float) -> tuple[float, float]:
        """Measured over modelled time of a payload [B], and of launching for it [1].

        Launches take as long as modelled, unless what was measured is longer as a whole, or shorter than they alone.
        """

        def modelled(size: float) -> float:
            return _expected(self._modelled(size))

        time = measured.time(nbytes, modelled)
        factor = time / modelled(nbytes)
        return factor, max(factor, min(1.0, time / self.least))

    def _find_pairs(self) -> list[tuple[str, str]]:
        """Algorithms and protocols to choose from."""
        return [
            (algorithm, protocol)
            for algorithm in self.shape.algorithms(only=self.settings.algorithms, in_network=self.in_network)
            for protocol in self._protocols(algorithm)
            if self.settings.protocol in ("", protocol)
        ]

    def _protocols(self, algorithm: str) -> tuple[str, ...]:
        if algorithm == "direct" and self._algorithm(algorithm).kernels:
            return PROTOCOLS[0], PROTOCOLS[-1]
        if algorithm not in {"ring", "tree"}:
            return PROTOCOLS[-1:]
        if self.shape.far_nics and self.settings.protocol != "LL128":
            # NCCL has LL128 where GPU and NIC are below one PCIe switch, or if it is asked for
            # (src/graph/tuning.cc: typeInter)
            return PROTOCOLS[0], PROTOCOLS[-1]
        return PROTOCOLS

    def _algorithm(self, algorithm: str) -> MachineAlgorithm:
        if algorithm not in self._algorithms:
            self._algorithms[algorithm] = MachineAlgorithm(self, algorithm)
        return self._algorithms[algorithm]

    def _constants(self, algorithm: str, protocol: str) -> Transport:
        if (algorithm, protocol) not in self._transports:
            paces = self._algorithm(algorithm).paces
            self._transports[algorithm, protocol] = self._transport(algorithm, protocol, paces)
        return self._transports[algorithm, protocol]

    def _estimate(self, pair: tuple[str, str], nbytes: float) -> float:
        """Time that NCCL's tuner has for an algorithm and a protocol [s]."""
        algorithm, protocol = pair
        one, transport = self._algorithm(algorithm), self._constants(algorithm, protocol)
        if algorithm == "direct":
            return float(protocol != direct_protocol(nbytes, len(self.ranks)))
        if one.kernels:
            passes, paces = PASSES.get(self.collective, 0), sum(one.paces)
            found = server_estimate(
                self.machine, self.ranks, pair, transport, passes=passes, bandwidth=paces, speed=self.speed
            )
            return found.time(nbytes)
        if self._by_formula:
            medium = "nvlink" if "nvlink" in one.lanes.media else "pcie"
            return network_estimate(
                self.shape, pair, transport, self.network, medium=medium, nbytes=nbytes, speed=self.speed
            )
        channels = one.channels(protocol, transport, nbytes)
        return channels.time if channels is not None else 0.0

    @cached_property
    def _by_formula(self) -> bool:
        """Whether NCCL's formula chooses: between rings and trees over three servers or more whose NICs move bytes.

        It does not know what software moves; for two servers it takes bandwidths inside them.
        """
        return (
            len(self.shape.groups) > 2
            and self.collective in PASSES
            and not self.in_network
            and self.network.core == math.inf
        )

    def _choice(self, pair: tuple[str, str], nbytes: float) -> Choice:
        algorithm, protocol = pair
        one = self._algorithm(algorithm)
        transport = one.transport(protocol, self._constants(algorithm, protocol), nbytes)
        channels = one.channels(protocol, transport, nbytes)
        return Choice(
            algorithm,
            protocol,
            nbytes,
            self.machine,
            one.plan,
            one.placement,
            transport,
            channels,
            self.least,
            self._blocks(algorithm, protocol, nbytes),
        )

    def _blocks(self, algorithm: str, protocol: str, nbytes: float) -> int:
        """Multiprocessors that a kernel holds on each GPU."""
        servers, part = len(self.shape.groups), self.machine.nodes[self.ranks[0]].part
        generation = part.architecture if isinstance(part, GpuPart) else ""
        return kernel_blocks(
            algorithm,
            protocol,
            nbytes,
            self._channels,
            ranks=len(self.ranks),
            servers=servers,
            generation=generation,
        )

    @cached_property
    def _channels(self) -> int:
        """Channels of the communicator."""
        nics = self.shape.nics() if len(self.shape.groups) > 1 else 0
        return channels_of(self.machine, self.ranks, nics=nics, speed=self.speed)

    def _transport(self, algorithm: str, protocol: str, caps: tuple[float, ...]) -> Transport:
        """Latencies of the protocol over this network, and channels that keep their pace and the protocol's limit."""
        base = protocol_transport(algorithm, "Simple" if algorithm == "direct" else protocol).faster(self.speed)
        if algorithm == "in-network":
            base = replace(base, efficiency=in_network_efficiency(self.machine, self.ranks) or base.efficiency)
        media = dict(base.media)
        if algorithm == "ring" and len(self.shape.groups) == len(self.ranks):
            # with one rank a server nothing hides the network (src/graph/tuning.cc)
            media["network"] = protocol_transport("tree", protocol).media["network"] / self.speed
        media["network"] += self._extra
        limit = math.inf
        if protocol == "LL" and algorithm != "direct":
            limit = low_latency_limit(self.machine, self.ranks) * self.speed
        if algorithm == "tree":
            # an all-reduce's bus bandwidth is about twice what goes up and down the tree
            most = tree_limit(self.machine, self.ranks) * self.speed
            limit = min(limit, most * self.shape.nics()) / 2
        if limit < math.inf and caps:
            scale = min(1.0, limit / (base.efficiency * sum(caps)))
            caps = tuple(cap * scale for cap in caps)
        if algorithm == "tree" and self.shape.simple_trees:
            caps = tuple(cap * simple_tree_efficiency() for cap in caps)
        return replace(base, media=media, caps=caps, connections=self.network.sockets)

    def _network_latency(self) -> float:
        """What a hop between servers takes beyond NCCL's constants [s]."""
        away = next((group[0] for group in self.shape.groups[1:]), None)
        if away is None:
            return 0.0
        wire = self.machine.route(self.ranks[0], self.ranks[away]).latency
        return max(self.network.latency, wire - REFERENCE / self.speed, 0.0)

    @cached_property
    def copy_rate(self) -> float:
        """At which the slowest GPU moves bytes inside its memory, which reads and writes them [B/s]."""
        parts = [self.machine.nodes[rank].part for rank in self.ranks]
        rates = [p.memory_bandwidth * p.efficiency["copy"] / 2 for p in parts if isinstance(p, GpuPart)]
        return min(rates, default=math.inf)

    def stages(self) -> bool:
        """Whether rings pass host memory."""
        order = self.shape.orders[0] if self.shape.orders else []
        plans = {slot.name: slot.blueprint for slot in self.machine.servers}

        def look(node: str) -> tuple[Any, str]:
            plan = plans.get(self.machine.nodes[node].server)
            return plan, node if plan is None else local_name(node)

        pairs: dict[tuple[Any, ...], tuple[str, str]] = {}  # one of those between like places of like servers
        for a, b in pairwise(self.ranks[rank] for rank in order):
            same = self.machine.nodes[a].server == self.machine.nodes[b].server
            pairs.setdefault((same, look(a), look(b)), (a, b))
        return any(self.staged.staged(a, b) for a, b in pairs.values())


def _expected(choice: Choice) -> float:
    return choice.channels.time if choice.channels is not None else 0.0
