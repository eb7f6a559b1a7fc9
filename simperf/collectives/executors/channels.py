"""Channels under way: a collective of a library as flows on the one network.

A channel is a pipeline of slices: once the first slice has come around, all of its connections carry bytes at one
rate, that of the slowest. So a channel is one flow that draws on the links of all its connections
at once, beside whatever else is on them, after the time that the first slice takes to get to the last rank. Links
that are drawn on alike are one (`simperf.engine.link_table`), so that a ring over a thousand servers costs what one
over two does. Without other traffic this is the time of the same channels send by send.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import simpy

from simperf.collectives.execute import Execution
from simperf.engine.flow import Route
from simperf.engine.link_table import LinkClass
from simperf.engine.network import FlowNetwork

__all__ = ["ChannelBytes", "ChannelFlow", "ChannelRun", "ChannelSet"]


@dataclass(frozen=True, slots=True)
class ChannelFlow:
    """One channel at work.

    Parameters
    ----------
    latency : float
        Time until all of its connections carry bytes [s].
    nbytes : float
        That every connection carries [B on the wire].
    cap : float
        Rate that the channel cannot exceed [B/s].
    drain : float
        What is left to be read out of host memory after the last send [B on the wire].
    drain_cap : float
        Rate of that [B/s].
    """

    latency: float
    nbytes: float
    cap: float
    drain: float = 0.0
    drain_cap: float = float("inf")

    @property
    def time(self) -> float:
        """Time of the channel if nothing hinders it [s]: a lower bound beside other traffic."""
        return self.latency + self.nbytes / self.cap + (self.drain / self.drain_cap if self.drain else 0.0)


@dataclass(frozen=True, slots=True)
class ChannelSet:
    """All channels of one collective of one size.

    Parameters
    ----------
    flows : tuple of ChannelFlow
        A channel each.
    classes : tuple of LinkClass
        Links that the channels draw on: ``counts[i]`` times by channel i.
    drains : tuple of LinkClass
        Links over which channels read out of host memory.
    last : float
        Time after the last channel's end, in which GPUs move what has arrived inside their memory [s].
    least : float
        Time from the start that the collective takes at least, such as that of its launches [s].
    """

    flows: tuple[ChannelFlow, ...]
    classes: tuple[LinkClass, ...]
    drains: tuple[LinkClass, ...]
    last: float = 0.0
    least: float = 0.0

    @property
    def time(self) -> float:
        """Time if nothing hinders it [s]."""
        return max(max((flow.time for flow in self.flows), default=0.0) + self.last, self.least)

    def slower(self, factor: float, launching: float) -> ChannelSet:
        """The same channels whose latencies and bytes on the wire are `factor` times as many.

        Parameters
        ----------
        factor : float
            Of the time of the channels [1].
        launching : float
            Of the least time, which launching takes [1].
        """
        if factor == launching == 1.0:
            return self
        flows = tuple(
            replace(one, latency=one.latency * factor, nbytes=one.nbytes * factor, drain=one.drain * factor)
            for one in self.flows
        )
        return replace(self, flows=flows, last=self.last * factor, least=self.least * launching)

    def alone(
        self,
        nranks: int,
        *,
        start: float = 0.0,
        capacities: Mapping[str, float] | None = None,
        traffic: Sequence[tuple[Sequence[str], float]] = (),
    ) -> Execution:
        """Play it on a network of its own.

        Parameters
        ----------
        nranks : int
            Ranks that take part.
        start : float
            When the last of them has come [s].
        capacities : mapping of str to float, optional
            Capacity of each resource [B/s], for the traffic's.
        traffic : sequence of (sequence of str, float)
            Resources that others draw on all the time, and the rate that they want [B/s].
        """
        env = simpy.Environment()
        network = FlowNetwork(env, capacities if capacities and traffic else {})
        for resources, rate in traffic:
            network.background(resources, rate)
        one = self
        if not (self.drains or traffic):  # nothing draws on one link of a class alone
            one = replace(self, classes=tuple(replace(c, names=c.names[:1]) for c in self.classes))
        env.run(ChannelRun(env, network, one).start())
        time = start + float(env.now)
        return Execution(time, (time,) * nranks, "channels", ChannelBytes(self))

    def moved(self) -> Iterator[tuple[LinkClass, float]]:
        """Bytes that every link of a class moves [B]."""
        for one in self.classes:
            yield one, sum(count * flow.nbytes for count, flow in zip(one.counts, self.flows, strict=True))
        for one in self.drains:
            yield one, sum(count * flow.drain for count, flow in zip(one.counts, self.flows, strict=True))


class ChannelBytes(Mapping[str, float]):
    """Bytes by resource [B], named on first use; those that no machine has but host memory, are left out."""

    def __init__(self, channels: ChannelSet) -> None:
        self._channels = channels
        self._named: dict[str, float] | None = None

    def _all(self) -> dict[str, float]:
        if self._named is None:
            named: dict[str, float] = {}
            for one, nbytes in self._channels.moved():
                for name in one.names:
                    if ":" not in name:
                        named[name] = named.get(name, 0.0) + nbytes
            self._named = named
        return self._named

    def by_class(self) -> list[tuple[LinkClass, float]]:
        """Links that moved equally much, and how much each of them moved [B]; empty if a link is of several classes."""
        return [] if self._channels.drains else list(self._channels.moved())

    def __getitem__(self, name: str) -> float:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


class ChannelRun:
    """A collective that is played on a network.

    Parameters
    ----------
    env : simpy.Environment
    network : FlowNetwork
        Carries its flows beside all others.
    channels : ChannelSet
    routes : dict, optional
        Routes over classes of links that this network has made, by class; they are added to.
    """

    def __init__(
        self,
        env: simpy.Environment,
        network: FlowNetwork,
        channels: ChannelSet,
        routes: dict[tuple[LinkClass, ...], list[Route]] | None = None,
    ) -> None:
        self.env, self.network, self.channels = env, network, channels
        self._known = {} if routes is None else routes

    def start(self) -> simpy.Event:
        """Begin now; the event succeeds at the end."""
        process: simpy.Event = self.env.process(self._play())
        return process

    def _play(self) -> Generator[simpy.Event, Any, None]:
        channels, began = self.channels, self.env.now
        routes = self._routes(channels.classes)
        drains = self._routes(channels.drains) if channels.drains else routes
        ends = []
        for flow, route, drain in zip(channels.flows, routes, drains, strict=True):
            sent = self.network.transfer(route, flow.nbytes, latency=flow.latency, cap=flow.cap)
            ends.append(self.env.process(self._drain(sent, drain, flow)) if flow.drain else sent)
        for end in ends:  # noqa: UP028  (the clock sends values in)
            yield end
        if channels.last:
            yield self.env.timeout(channels.last)
        rest = channels.least - (self.env.now - began)
        if rest > 0.0:
            yield self.env.timeout(rest)

    def _drain(self, sent: simpy.Event, route: Route, flow: ChannelFlow) -> Generator[simpy.Event, Any, None]:
        yield sent
        yield self.network.transfer(route, flow.drain, cap=flow.drain_cap)

    def _routes(self, classes: tuple[LinkClass, ...]) -> list[Route]:
        if not classes:  # no link is drawn on, as between ranks of one node
            return [Route(())] * len(self.channels.flows)
        found = self._known.get(classes)
        if found is None:
            found = self._known[classes] = self.network.routes(classes)
        return found
