"""A plan on links of its own, for entry times that are all known: without a clock, or on a network made for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import simpy

from simperf.collectives.executors.base import Context, Execution, PlacedPlan, used_links
from simperf.collectives.executors.recurrence import collapse
from simperf.collectives.executors.rotation import rotate
from simperf.collectives.executors.stepwise import Stepwise
from simperf.collectives.plan_bounds import ASKED, PlanBounds
from simperf.collectives.traffic import LinkTraffic
from simperf.engine.network import FlowNetwork

__all__ = ["WITHOUT_EVENTS", "play", "play_isolated"]

#: resources that other traffic draws on, and the rate that it wants [B/s]
Traffic = Sequence[tuple[Sequence[str], float]]


def by_rotation(placed: PlacedPlan, nbytes: float, entry: Sequence[float]) -> Execution | None:
    """The plan as any one of its ranks sees it; None if ranks differ."""
    plan = placed.plan
    run = rotate(plan, placement=placed.placement, nbytes=nbytes, transport=placed.transport, entry=entry)
    return None if run is None else Execution(run.time, (run.time,) * plan.nranks, "collapsed", run.moved())


def by_recurrence(placed: PlacedPlan, nbytes: float, entry: Sequence[float]) -> Execution | None:
    """The plan round by round; None if sends of different rounds meet on a link."""
    run = collapse(placed.plan, placement=placed.placement, nbytes=nbytes, transport=placed.transport, entry=entry)
    if run is None:
        return None
    finish = run.finish().tolist()
    return Execution(max(finish), tuple(finish), "collapsed", LinkTraffic(run.links, run.moved))


#: ways to find the times of the step-exact executor without events, in the order in which they are tried
WITHOUT_EVENTS: tuple[Callable[[PlacedPlan, float, Sequence[float]], Execution | None], ...] = (
    by_rotation,
    by_recurrence,
)


def play(placed: PlacedPlan, nbytes: float, entry: Sequence[float], *, traffic: Traffic = ()) -> Execution:
    """Simulate every send on a network of its own.

    Parameters
    ----------
    placed : PlacedPlan
    nbytes : float
        Payload [B].
    entry : sequence of float
        When each participant takes part [s].
    traffic : sequence of (sequence of str, float)
        Resources that others draw on all the time, and the rate that they want [B/s].
    """
    names = sorted(used_links(placed.plan, placed.placement).union(*(flow for flow, _ in traffic)))
    env, resources = simpy.Environment(), placed.placement.machine.resources
    network = FlowNetwork(env, {name: resources[name] for name in names})
    for flow, rate in traffic:
        network.background(flow, rate)
    run = Stepwise(placed, nbytes, Context(env, network), entry=entry)
    env.run(run.done)
    return Execution(float(env.now), tuple(run.finish), Stepwise.method, network.moved)


def play_isolated(
    placed: PlacedPlan,
    nbytes: float,
    entry: Sequence[float],
    *,
    traffic: Traffic = (),
    exact: bool = False,
    bounds: PlanBounds = ASKED,
) -> Execution:
    """Find the times of a plan on its own links, without events where that gives the times of the step-exact executor.

    Parameters
    ----------
    placed, nbytes, entry, traffic
        As for `play`.
    exact : bool
        Simulate every send.
    bounds : PlanBounds
        Most that is simulated send by send where `exact` does not force it.

    Raises
    ------
    PlanBoundsError
        It would take more.
    """
    plan, placement = placed.plan, placed.placement
    names = {name for flow, _ in traffic for name in flow}
    if not exact and not (names and not used_links(plan, placement).isdisjoint(names)):
        for find in WITHOUT_EVENTS:
            run = find(placed, nbytes, entry)
            if run is not None:
                return run
    if not exact:
        bounds.check_events(plan)
    bounds.check_memory(plan)
    return play(placed, nbytes, entry, traffic=traffic)
