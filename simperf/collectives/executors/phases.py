"""The rest of a collective as flows on the one network, phase by phase (`simperf.collectives.flow_phases`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from functools import partial

import simpy

from simperf.collectives.executors.base import Context
from simperf.collectives.flow_phases import FlowPhases, LinkFlow
from simperf.collectives.rounds import ROUNDING
from simperf.engine.flow import FlowRoute

__all__ = ["play_phases"]

#: participants that are done together, group by group
Parties = Sequence[Collection[int]]


def play_phases(
    context: Context,
    phases: FlowPhases,
    elapsed: float,
    ends: Sequence[tuple[float, Parties]],
    released: Callable[[Parties], None],
) -> None:
    """Simulate what is left of a collective from now on; bytes that were moved before are counted at once.

    Parameters
    ----------
    context : Context
    phases : FlowPhases
    elapsed : float
        Time since the start, in which there was no other traffic [s]; negative if it starts later.
    ends : sequence of (float, sequence of collection of int)
        When participants are done without other traffic, from the start [s], and which.
    released : callable
        Called with participants when they are done.
    """
    context.env.process(_play(context, phases, elapsed, sorted(ends, key=lambda end: end[0]), released))


def _play(
    context: Context,
    phases: FlowPhases,
    elapsed: float,
    ends: list[tuple[float, Parties]],
    released: Callable[[Parties], None],
) -> Generator[simpy.Event, None, None]:
    env = context.env
    context.network.count(phases.rest)
    if elapsed < 0.0:
        yield env.timeout(-elapsed)
    before = 0.0  # when a part begins, without other traffic
    for phase in phases.phases:
        over = min(phase.parts, int(max(0.0, elapsed - before) / phase.time)) if phase.time else 0
        for flow in phase.flows if over else ():
            _count(context, flow, over * flow.nbytes)
        for part in range(over, phase.parts):
            since = max(0.0, elapsed - (before + part * phase.time))
            until = before + (part + 1) * phase.time
            waits: list[simpy.Event] = [env.timeout(max(0.0, phase.time - since))]
            waits += [_start(context, flow, since) for flow in phase.flows]
            while ends and ends[0][0] < until * (1.0 - ROUNDING):
                time, parties = ends.pop(0)
                done = env.timeout(max(0.0, time - max(elapsed, until - phase.time)))
                assert done.callbacks is not None
                done.callbacks.append(partial(_let_go, released, parties))
            for event in waits:  # noqa: UP028  (the clock sends values in)
                yield event
        before += phase.parts * phase.time
    for _, parties in ends:
        released(parties)


def _let_go(released: Callable[[Parties], None], parties: Parties, _: simpy.Event) -> None:
    released(parties)


def _start(context: Context, flow: LinkFlow, since: float) -> simpy.Event:
    """Start what is left of a flow whose part began `since` [s] ago and had its links to itself."""
    wait = flow.latency - since
    done = 0.0
    if wait < 0.0:
        done = flow.nbytes * min(1.0, -wait / flow.busy) if flow.busy else flow.nbytes
        _count(context, flow, done)
    cap = flow.nbytes / flow.busy if flow.busy else float("inf")
    route = _route(context, flow)
    return context.network.transfer(
        route, max(0.0, flow.nbytes - done), latency=max(0.0, wait), cap=cap, weight=flow.weight
    )


def _route(context: Context, flow: LinkFlow) -> FlowRoute:
    if flow.classes not in context.routes:
        context.routes[flow.classes] = context.network.routes(flow.classes)
    return context.routes[flow.classes][0]


def _count(context: Context, flow: LinkFlow, nbytes: float) -> None:
    if nbytes:
        context.network.count({name: nbytes for one in flow.classes for name in one.names})
