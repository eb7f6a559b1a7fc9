"""Running a plan on a machine: alone, or inside a simulation beside other traffic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import simpy

from simperf.collectives.effort import ASKED, Effort
from simperf.collectives.executors.host_threads import Hosted, hosted
from simperf.collectives.executors.recurrence import collapse
from simperf.collectives.executors.rotation import rotate
from simperf.collectives.executors.stepwise import Stepwise
from simperf.collectives.moved import Moved
from simperf.collectives.placement import PLAIN, Placement, Transport, Wired, place
from simperf.collectives.plan import Plan
from simperf.engine.network import FlowNetwork
from simperf.engine.simulation import Simulation
from simperf.errors import InputError, Problem

__all__ = ["Execution", "check_size", "collective_event", "entries_of", "execute", "used_links"]


@dataclass(frozen=True, slots=True)
class Execution:
    """What came out of running a plan.

    Parameters
    ----------
    time : float
        When the last participant was done [s].
    finish : tuple of float
        When each participant was done [s].
    method : str
        ``"step-exact"`` or ``"collapsed"``.
    moved : mapping of str to float
        Bytes on the wire by resource [B].
    """

    time: float
    finish: tuple[float, ...]
    method: str
    moved: Mapping[str, float] = field(default_factory=dict)


def entries_of(plan: Plan, entry_times: Sequence[float] | None) -> list[float]:
    """Entry time of every participant; servers are there from the start."""
    if entry_times is None:
        return [0.0] * plan.nparticipants
    if len(entry_times) != plan.nranks:
        message = f"{len(entry_times)} entry times for {plan.nranks} ranks"
        raise InputError(Problem(message, key="entry_times"))
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


def used_links(plan: Plan, placement: Placement) -> set[str]:
    """All resources that the plan's sends draw on."""
    pairs: set[tuple[int, int]] = set()
    for channel in plan.channels:
        for phase in channel.phases:
            for index in range(min(1, phase.nrounds) if phase.repeats else phase.nrounds):
                one = phase.make(index)
                pairs.update(zip(one.src.tolist(), one.dst.tolist(), strict=True))
    return {name for pair in sorted(pairs) for name in placement.hop(*pair).resources}


def execute(
    plan: Plan,
    machine: Wired,
    *,
    nbytes: float,
    ranks: Sequence[str] | None = None,
    servers: Sequence[str] | None = None,
    entry_times: Sequence[float] | None = None,
    transport: Transport = PLAIN,
    background: Sequence[tuple[str, str, float]] = (),
    exact: bool = False,
    placement: Placement | None = None,
    effort: Effort = ASKED,
) -> Execution:
    """Run a plan alone on a machine.

    Parameters
    ----------
    plan : Plan
        What `simperf.collectives.make_plan` made.
    machine : Wired
        A `simperf.hardware.Machine` or a `Wiring`.
    nbytes : float
        Payload [B], as nccl-tests counts it: the larger of the two buffers of a rank.
    ranks : sequence of str, optional
        Node of each rank.
    servers : sequence of str, optional
        Node of each server.
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
        Where the participants sit, for one who runs the same plan with several payloads:
        it keeps the routes that were found. `ranks` and `servers` are not read then.
    effort : Effort
        Most that is simulated send by send where `exact` does not force it.

    Raises
    ------
    InputError
        A size, entry time or node that has no meaning, or a transport where hosts have network stacks.
    MachineError
        Two participants that must talk are not connected.
    """
    check_size(nbytes)
    entry = entries_of(plan, entry_times)
    placement = placement or place(plan, machine, ranks=ranks, servers=servers)
    traffic = [(tuple(machine.route(src, dst).resources), rate) for src, dst, rate in background]
    hosting = getattr(machine, "hosting", None)
    if hosted(machine) or (hosting is not None and hosting.shaped):
        effort.check_events(plan)
        return _between_hosts(plan, machine, placement, nbytes, entry, transport=transport, traffic=traffic)
    touched = bool(traffic) and not used_links(plan, placement).isdisjoint(name for flow, _ in traffic for name in flow)
    if touched and not exact:
        effort.check_events(plan)
    elif not exact:
        turned = rotate(plan, placement=placement, nbytes=nbytes, transport=transport, entry=entry)
        if turned is not None:
            return Execution(turned.time, (turned.time,) * plan.nranks, "collapsed", turned.moved())
        run = collapse(plan, placement=placement, nbytes=nbytes, transport=transport, entry=entry)
        if run is not None:
            finish = run.finish().tolist()
            return Execution(max(finish), tuple(finish), "collapsed", Moved(run.links, run.moved))
        effort.check_events(plan)
    effort.check_memory(plan)
    names = sorted(used_links(plan, placement).union(*(flow for flow, _ in traffic)))
    env = simpy.Environment()
    network = FlowNetwork(env, {name: placement.machine.resources[name] for name in names})
    for flow, rate in traffic:
        network.background(flow, rate)
    stepwise = Stepwise(env, network, plan=plan, placement=placement, nbytes=nbytes, transport=transport, entry=entry)
    env.run(stepwise.done)
    return Execution(float(env.now), tuple(stepwise.finish), "step-exact", network.moved)


def _between_hosts(
    plan: Plan,
    machine: Any,
    placement: Placement,
    nbytes: float,
    entry: Sequence[float],
    *,
    transport: Transport,
    traffic: Sequence[tuple[tuple[str, ...], float]],
) -> Execution:
    """Run a plan alone on hosts that have network stacks, or on links that are shaped."""
    simulation = Simulation(machine)
    for flow, rate in traffic:
        simulation.network.background(flow, rate)
    run = _start(simulation, plan, placement, nbytes, entry, transport=transport)
    simulation.env.run(run.done)
    method = "hosts" if simulation.stacks is not None else "step-exact"
    return Execution(simulation.now, tuple(run.finish), method, simulation.network.moved)


def _start(
    sim: Any, plan: Plan, placement: Placement, nbytes: float, entry: Sequence[float], *, transport: Transport
) -> Stepwise | Hosted:
    """Start a plan in a simulation, by threads of its hosts where these have network stacks."""
    recorder = getattr(sim, "recorder", None)
    if getattr(sim, "stacks", None) is not None:
        return Hosted(
            sim.env,
            sim.stacks,
            plan=plan,
            placement=placement,
            nbytes=nbytes,
            entry=entry,
            transport=transport,
            recorder=recorder,
        )
    return Stepwise(
        sim.env,
        sim.network,
        plan=plan,
        placement=placement,
        nbytes=nbytes,
        transport=transport,
        entry=entry,
        recorder=recorder,
    )


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
    return _start(sim, plan, placement, nbytes, entry, transport=transport).done
