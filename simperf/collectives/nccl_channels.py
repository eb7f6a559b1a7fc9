"""Channels of one of NCCL's algorithms on one machine, for payloads of any size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

import numpy as np

from simperf.collectives.channels import ChannelFlow, ChannelSet
from simperf.collectives.lanes import Lanes, pairs_of
from simperf.collectives.links import FloatArray
from simperf.collectives.nccl_kernels import LARGEST_CHUNK, SWITCH_CHANNELS, SWITCH_CHUNK, KernelCost, switch_chunk
from simperf.collectives.nccl_plans import NcclPlans
from simperf.collectives.nccl_rings import PASSES, first_arrival, longest, sends_in_turn
from simperf.collectives.networks import NcclNetwork
from simperf.collectives.placement import Transport, place
from simperf.collectives.plan import IntArray
from simperf.collectives.staging import StagedMachine

__all__ = ["MachineAlgorithm", "Participants"]

#: messages to another server that a ring's chunk is cut into: chunks of NCCL_STEPS / 2 in slices of NCCL_STEPS / 4
#: (NVIDIA/nccl 2.28, src/include/collectives.h)
SLICES = {"Simple": 2}

#: latencies of all connections that are kept, by protocol and latency of a hop over NVLink
MOST_LATENCIES = 64


class Participants(Protocol):
    """The ranks of a collective on a machine, as a tuner of NCCL knows them.

    Attributes
    ----------
    ranks : tuple of str
    collective : str
    shape : NcclPlans
    staged, inside : StagedMachine
        The machine with staging, and what of it is inside servers.
    network : NcclNetwork
    kernels : mapping of str to KernelCost
    least : float
        Time from one call to the next that launching takes [s].
    """

    ranks: tuple[str, ...]
    collective: str
    shape: NcclPlans
    staged: StagedMachine
    inside: StagedMachine
    network: NcclNetwork
    kernels: Mapping[str, KernelCost]
    least: float

    @property
    def copy_rate(self) -> float:
        """At which the slowest GPU moves bytes inside its memory [B/s]."""

    def stages(self) -> bool:
        """Whether rings pass host memory."""


class MachineAlgorithm:
    """An algorithm on one machine, whatever the size: its plan, its connections, and their pace.

    Parameters
    ----------
    tuner : Participants
        Ranks and collective on the machine.
    algorithm : str
        One of `simperf.collectives.nccl.ALGORITHMS`.

    Attributes
    ----------
    kernels : mapping of str to KernelCost
        Costs by protocol where all GPUs are in one server, NVLink joins them and they are known; empty elsewhere.
    """

    def __init__(self, tuner: Participants, algorithm: str) -> None:
        self.tuner, self.algorithm, self.shape = tuner, algorithm, tuner.shape
        self.rings = algorithm == "ring" and tuner.collective in PASSES and len(tuner.ranks) > 1
        self.plan, servers = self.shape.make(algorithm, 1)
        self.placement = place(self.plan, tuner.staged, ranks=tuner.ranks, servers=servers)
        if self.rings:
            pairs = [(np.array(order), np.roll(order, -1)) for order in self.shape.orders]
        else:
            pairs = pairs_of(self.plan)
        self.lanes = Lanes(self.placement, pairs)
        self.paces = self.lanes.paces(connections=tuner.network.sockets)
        self.host: Lanes | None = None
        self.host_paces: tuple[float, ...] = ()
        if self.rings and tuner.stages():
            self.host = Lanes(place(self.plan, tuner.inside, ranks=tuner.ranks), pairs)
            self.host_paces = self.host.paces()
        nvlink = "nvlink" in self.lanes.media and "pcie" not in self.lanes.media
        self.kernels = tuner.kernels if nvlink and len(tuner.shape.groups) == 1 else {}
        self._latency: dict[tuple[str, float], FloatArray] = {}
        self._paths: dict[tuple[str, float, int], float] = {}
        self._arrivals: dict[tuple[int, bytes], float] = {}
        self._sends: dict[int, list[tuple[IntArray, IntArray, IntArray]]] = {}

    def _kernel(self, protocol: str) -> KernelCost | None:
        """Costs of its kernel under a protocol; None where they are not known."""
        name = {"direct": f"direct-{protocol}", "in-network": "in-network"}.get(self.algorithm, protocol)
        return self.kernels.get(name)

    def transport(self, protocol: str, constants: Transport, nbytes: float) -> Transport:
        """Transport of a payload [B] on this generation of GPUs.

        Parameters
        ----------
        protocol : str
        constants : Transport
            Of NCCL's tuner, and of the network.
        nbytes : float
        """
        kernel = self._kernel(protocol)
        if kernel is None or self.plan.nranks == 1:
            return constants
        chunk, start = nbytes / self.plan.nranks, kernel.start
        if self.algorithm == "direct":
            media = {**constants.media, "nvlink": 0.0}
            start += chunk / min(kernel.copy, self.tuner.copy_rate)
            return replace(constants, start=start, media=media, efficiency=kernel.pace, cap=kernel.rate)
        scale = min(kernel.pace, kernel.rate / (constants.efficiency * sum(self.paces)))
        caps = tuple(pace * scale for pace in self.paces)
        rate = constants.efficiency * sum(caps)
        if self.algorithm == "in-network":
            size = SWITCH_CHANNELS * self.plan.nranks * switch_chunk(nbytes, self.plan.nranks)
            largest = SWITCH_CHANNELS * self.plan.nranks * SWITCH_CHUNK
            start += kernel.wave * (nbytes / size - nbytes / largest) + kernel.fill * min(nbytes, size) / rate
        elif self.rings:
            start += kernel.fill * min(chunk, LARGEST_CHUNK) / rate
        media = {**constants.media, "nvlink": kernel.hop(nbytes, self.plan.nranks, chunk / rate)}
        return replace(constants, start=start, media=media, caps=caps)

    def channels(self, protocol: str, transport: Transport, nbytes: float) -> ChannelSet | None:
        """Its channels as flows, for a payload [B]; None where every rank sends to every other, send by send.

        Parameters
        ----------
        protocol : str
        transport : Transport
        nbytes : float
        """
        if self.algorithm == "direct" and len(self.tuner.ranks) > 1:
            return None
        wire = nbytes / transport.efficiency
        if self.plan.nranks == 1:
            return ChannelSet((ChannelFlow(transport.start, 0.0, math.inf),), (), (), least=self.tuner.least)
        latency = self._latencies(protocol, transport)
        make = self._ring if self.rings else self._pipeline
        numbers = range(len(self.plan.channels))
        flows = tuple(make(number, protocol, transport, latency, wire, nbytes) for number in numbers)
        drains = self.host.classes if self.host is not None else ()
        copied = self.rings and self.host is None
        kernel = self._kernel(protocol)
        rate = self.tuner.copy_rate if kernel is None else min(kernel.copy, kernel.rate, self.tuner.copy_rate)
        last = nbytes / self.plan.nranks / rate if copied else 0.0
        return ChannelSet(flows, self.lanes.classes, drains, last=last, least=self.tuner.least)

    def _latencies(self, protocol: str, transport: Transport) -> FloatArray:
        """Latency of each connection [s]."""
        key = (protocol, transport.media["nvlink"])
        if key not in self._latency:
            if len(self._latency) >= MOST_LATENCIES:
                self._latency.clear()
                self._paths.clear()
            self._latency[key] = self.lanes.latency(transport)
        return self._latency[key]

    def _ring(
        self, number: int, protocol: str, transport: Transport, latency: FloatArray, wire: float, nbytes: float
    ) -> ChannelFlow:
        """A ring: as many latencies and chunks as it makes steps; what was staged is read once more than it is sent."""
        steps = PASSES[self.plan.collective] * (self.plan.nranks - 1)
        key = (protocol, transport.media["nvlink"], number)
        if key not in self._paths:
            a, b = self.lanes.bounds[number : number + 2]
            self._paths[key] = longest(latency[a:b], steps)
        chunk, cap = wire * self.plan.channels[number].share / self.plan.nranks, transport.caps[number]
        begun, drain, pace = transport.start + self._paths[key], 0.0, math.inf
        servers = len(self.shape.groups)
        if servers > 1:
            message, taken = chunk / SLICES.get(protocol, 1), self._paths[key] / steps + chunk / cap
            begun += steps * self.tuner.network.exposed(protocol, message, taken, servers / self.plan.nranks)
        if self.host_paces:
            pace = self.host_paces[number]
            drain = max(0.0, (steps + 1) * chunk - steps * chunk * pace / cap)
        return ChannelFlow(begun, steps * chunk, cap, drain, pace)

    def _pipeline(
        self, number: int, protocol: str, transport: Transport, latency: FloatArray, wire: float, nbytes: float
    ) -> ChannelFlow:
        """Slices that follow each other along a tree or a chain: the first one's way, and the time of the others."""
        channel, cap = self.plan.channels[number], transport.caps[number]
        slice_time = wire * channel.share / self.shape.chunks(self.algorithm, nbytes) / cap
        a, b = self.lanes.bounds[number : number + 2]
        cost = latency[a:b] + slice_time
        key = (number, cost.tobytes())  # slices of one size come with payloads of many
        if key not in self._arrivals:
            if number not in self._sends:
                self._sends[number] = sends_in_turn(self.plan, number, self.lanes.pairs[number])
            self._arrivals[key] = first_arrival(self._sends[number], cost, participants=self.plan.nparticipants)
        first = self._arrivals[key]
        return ChannelFlow(transport.start + max(first - slice_time, 0.0), wire * channel.share, cap)
