"""The executor of a library's channels: a flow each, on the one network (`simperf.collectives.channels`)."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import simpy

from simperf.collectives.channels import ChannelBytes, ChannelFlow, ChannelSet
from simperf.collectives.executors.base import Context, Execution, Executor, PlacedPlan
from simperf.engine.flow import FlowRoute
from simperf.engine.link_table import LinkClass
from simperf.engine.network import FlowNetwork

__all__ = ["ChannelFlows", "play_channels"]


class ChannelFlows(Executor):
    """A library's channels under way; the parameters are those of every `Executor`.

    They begin when the last rank has come, and end on all ranks at one time.
    """

    method: ClassVar[str] = "channels"

    @classmethod
    def accepts(cls, placed: PlacedPlan, context: Context, *, exact: bool = False) -> bool:
        """A plan that a library has made channels of, which have no sends."""
        return placed.channels is not None

    def _prepare(self) -> None:
        assert self.placed.channels is not None
        self.channels = self.placed.channels
        self._ranks = self.plan.nranks

    def enter(self, members: Collection[int], delay: float = 0.0) -> None:
        """Let participants take part, `delay` [s] from now."""
        if delay:
            later = self.env.timeout(delay)
            assert later.callbacks is not None
            later.callbacks.append(lambda event: self.enter(members))
            return
        came = len(self.ranks_of(members))
        self._ranks -= came
        if came and not self._ranks:
            end = start_channels(self.env, self.network, self.channels, self.context.routes)
            assert end.callbacks is not None
            end.callbacks.append(self._end)

    @property
    def critical(self) -> float:
        """Time of the channels if nothing hinders them [s]."""
        return self.channels.time

    def _end(self, _: simpy.Event) -> None:
        self.release(range(self.plan.nparticipants))


def play_channels(
    channels: ChannelSet,
    nranks: int,
    *,
    start: float = 0.0,
    capacities: Mapping[str, float] | None = None,
    traffic: Sequence[tuple[Sequence[str], float]] = (),
) -> Execution:
    """Simulate channels on a network of their own.

    Parameters
    ----------
    channels : ChannelSet
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
    one = channels
    if not (channels.drains or traffic):  # nothing draws on one link of a class alone
        one = replace(channels, classes=tuple(replace(c, names=c.names[:1]) for c in channels.classes))
    env.run(start_channels(env, network, one, {}))
    time = start + float(env.now)
    return Execution(time, (time,) * nranks, ChannelFlows.method, ChannelBytes(channels))


def start_channels(
    env: simpy.Environment,
    network: FlowNetwork,
    channels: ChannelSet,
    routes: dict[tuple[LinkClass, ...], list[FlowRoute]],
) -> simpy.Event:
    """Begin now; the event succeeds at the end."""

    def known(classes: tuple[LinkClass, ...]) -> list[FlowRoute]:
        if not classes:  # no link is drawn on, as between ranks of one node
            return [FlowRoute(())] * len(channels.flows)
        if classes not in routes:
            routes[classes] = network.routes(classes)
        return routes[classes]

    def drain(sent: simpy.Event, route: FlowRoute, flow: ChannelFlow) -> Generator[simpy.Event, None, None]:
        yield sent
        yield network.transfer(route, flow.drain, cap=flow.drain_cap)

    def play() -> Generator[simpy.Event, None, None]:
        began, ends = env.now, []
        sending = known(channels.classes)
        reading = known(channels.drains) if channels.drains else sending
        for flow, route, other in zip(channels.flows, sending, reading, strict=True):
            sent = network.transfer(route, flow.nbytes, latency=flow.latency, cap=flow.cap)
            ends.append(env.process(drain(sent, other, flow)) if flow.drain else sent)
        for end in ends:  # noqa: UP028  (the clock sends values in)
            yield end
        if channels.last:
            yield env.timeout(channels.last)
        rest = channels.least - (env.now - began)
        if rest > 0.0:
            yield env.timeout(rest)

    if len(channels.flows) == 1 and not (channels.last or channels.least or channels.flows[0].drain):
        (flow,), (route,) = channels.flows, known(channels.classes)
        return network.transfer(route, flow.nbytes, latency=flow.latency, cap=flow.cap)  # as most messages are
    process: simpy.Event = env.process(play())
    return process
