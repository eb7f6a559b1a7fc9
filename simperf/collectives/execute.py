"""Running a plan on a machine, alone or inside a simulation: the one place that chooses its executor."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import simpy

from simperf.collectives.executors import (
    ChannelFlows,
    Collapsed,
    Context,
    Execution,
    Executor,
    HostThreads,
    PlacedPlan,
    Stepwise,
    used_links,
)
from simperf.collectives.executors.host_threads import has_network_stacks
from simperf.collectives.executors.isolated import play_isolated
from simperf.collectives.placement import PLAIN, Placement, Transport, place
from simperf.collectives.plan import Plan
from simperf.collectives.plan_bounds import ASKED, PlanBounds
from simperf.engine.simulation import Simulation
from simperf.errors import InputError, Problem, refuse_removed
from simperf.hardware import Machine

__all__ = [
    "EXECUTORS",
    "Context",
    "Execution",
    "PlacedPlan",
    "check_size",
    "collective_event",
    "entries_of",
    "execute",
    "start",
    "used_links",
]

#: in the order in which they are asked
EXECUTORS: tuple[type[Executor], ...] = (ChannelFlows, HostThreads, Collapsed, Stepwise)


def entries_of(plan: Plan, entry_times: Sequence[float] | None) -> list[float]:
    """Entry time of every participant; servers are there from the start."""
    if entry_times is None:
        return [0.0] * plan.nparticipants
    if len(entry_times) != plan.nranks:
        message = f"{len(entry_times)} entry times for {plan.nranks} ranks"
        raise InputError(Problem(message, key="entry_times", expected="one for each rank"))
    if not all(0.0 <= time < math.inf for time in entry_times):
        raise InputError(Problem("entry times must be finite and 0 or more", key="entry_times"))
    return [float(time) for time in entry_times] + [0.0] * plan.nservers


def check_size(nbytes: float) -> None:
    """Refuse a payload [B] that is negative or not finite.

    Raises
    ------
    InputError
        It is.
    """
    if not 0.0 <= nbytes < math.inf:
        raise InputError(Problem("the payload must be a finite size, 0 or more", key="nbytes", value=str(nbytes)))


def start(
    placed: PlacedPlan,
    nbytes: float,
    context: Context,
    *,
    entry: Sequence[float] | None = None,
    released: Callable[[Collection[int]], None] | None = None,
    exact: bool = False,
) -> Executor:
    """Start a collective in a simulation, by the first of `EXECUTORS` that accepts it.

    Parameters
    ----------
    placed, nbytes, context, entry, released
        As for `Executor`.
    exact : bool
        Every send is to be an event of its own, where it is made of sends.
    """
    chosen = next(one for one in EXECUTORS if one.accepts(placed, context, exact=exact))
    return chosen(placed, nbytes, context, entry=entry, released=released)


def execute(
    plan: Plan,
    machine: Machine,
    *,
    nbytes: float,
    ranks: Sequence[str] | None = None,
    entry_times: Sequence[float] | None = None,
    transport: Transport = PLAIN,
    background: Sequence[tuple[str, str, float]] = (),
    exact: bool = False,
    placement: Placement | None = None,
    bounds: PlanBounds = ASKED,
    **removed: Any,
) -> Execution:
    """Run a plan alone on a machine.

    Parameters
    ----------
    plan : Plan
        What `simperf.collectives.make_plan` made.
    machine : Machine
        Where it runs.
    nbytes : float
        Payload [B], as nccl-tests counts it: the larger of the two buffers of a rank.
    ranks : sequence of str, optional
        Node of each rank.
    entry_times : sequence of float, optional
        When each rank calls the collective [s].
    transport : Transport
        Per-step latency, protocol efficiency, reduction at the receiver; `PLAIN` where hosts have network stacks.
    background : sequence of (str, str, float)
        Traffic from node to node that wants so much bandwidth [B/s] all the time and
        shares the links with the collective.
    exact : bool
        Force the step-exact executor. Without it the fast one is asked first, and the
        step-exact one runs where only it knows the times: where sends of different
        rounds meet on a link, or where background traffic does.
    placement : Placement, optional
        Where the participants sit (`simperf.collectives.placement.place`), instead of `ranks`: servers on nodes of
        their own, or the same plan with several payloads, as it keeps the routes that were found.
    bounds : PlanBounds
        Most that is simulated send by send where `exact` does not force it.

    Raises
    ------
    InputError
        A size, entry time or node that has no meaning, ranks beside a placement, or a transport where hosts have
        network stacks.
    MachineError
        Two participants that must talk are not connected.
    """
    refuse_removed("execute", removed, {"servers": "placement=place(plan, machine, ranks=..., servers=...)"})
    check_size(nbytes)
    entry = entries_of(plan, entry_times)
    if placement is not None and ranks is not None:
        message = "a placement says where the ranks are"
        raise InputError(Problem(message, key="ranks", value=repr(ranks), expected="one of both"))
    placement = placement or place(plan, machine, ranks=ranks)
    traffic = [(tuple(machine.route(src, dst).resources), rate) for src, dst, rate in background]
    placed = PlacedPlan(plan, placement, transport)
    if has_network_stacks(machine) or machine.hosting.shaped:
        bounds.check_events(plan)
        return _between_hosts(placed, nbytes, entry, machine=machine, traffic=traffic)
    return play_isolated(placed, nbytes, entry, traffic=traffic, exact=exact, bounds=bounds)


def _between_hosts(
    placed: PlacedPlan,
    nbytes: float,
    entry: Sequence[float],
    *,
    machine: Machine,
    traffic: Sequence[tuple[tuple[str, ...], float]],
) -> Execution:
    """Run a plan alone on hosts that have network stacks, or on links that are shaped."""
    simulation = Simulation(machine)
    for flow, rate in traffic:
        simulation.network.background(flow, rate)
    run = start(placed, nbytes, Context.of(simulation), entry=entry, exact=True)
    simulation.env.run(run.done)
    return Execution(simulation.now, tuple(run.finish), run.method, simulation.network.moved)


def collective_event(
    sim: Any,
    plan: Plan,
    node_ids: Sequence[str],
    nbytes: float,
    *,
    servers: Sequence[str] | None = None,
    start_times: Sequence[float] | None = None,
    transport: Transport = PLAIN,
) -> simpy.Event:
    """Start a collective in a running simulation, beside whatever else is on its links.

    Parameters
    ----------
    sim : simperf.engine.Simulation
        The simulation; its machine gives the routes.
    plan : Plan
        The plan.
    node_ids : sequence of str
        Node of each rank.
    nbytes : float
        Payload [B].
    servers : sequence of str, optional
        Node of each server.
    start_times : sequence of float, optional
        Delay from now until each rank takes part [s].
    transport : Transport
        Per-step latency, protocol efficiency, reduction at the receiver.

    Returns
    -------
    simpy.Event
        Succeeds with the time of completion [s].
    """
    check_size(nbytes)
    placement = place(plan, sim.machine, ranks=node_ids, servers=servers)
    entry = entries_of(plan, start_times)
    return start(PlacedPlan(plan, placement, transport), nbytes, Context.of(sim), entry=entry, exact=True).done
