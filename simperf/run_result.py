"""Result of a run: times and metrics with intervals, use of resources, sources, and the scope of the simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from simperf.answer import PUBLISHED, TIME, unpublished
from simperf.engine.simulation import Simulation
from simperf.execution.session import Session
from simperf.results import Ceiling, Metric, OperationUse, ResourceUse, Result
from simperf.scenario.settings import Scenario

if TYPE_CHECKING:
    from simperf.scenario.profile_use import ProfileUse

__all__ = ["collect"]


def collect(scenario: Scenario, session: Session, time: float) -> Result:
    """Gather what a run left behind into a `Result`."""
    from simperf.version import __version__

    simulation, recorder = session.simulation, session.simulation.recorder
    moved = simulation.network.moved
    modelled, not_modelled = _scope(session, moved=any(moved.values()))
    uses = _profile_uses(scenario, session)
    told = [one.note for one in uses if one.note] + [str(one.refusal) for one in uses if one.refusal]
    told += [doubt for one in uses for doubt in one.doubts]
    ends, interval_sources, no_interval = _intervals(scenario, {TIME: (time, "s"), **session.metrics})
    metrics = {}
    for name, (value, unit) in session.metrics.items():
        low, high = ends.get(name, (None, None))
        metrics[name] = Metric(value, unit, low=low, high=high)
    return Result(
        name=scenario.name,
        time=time,
        floors=simulation.floors(moved),
        metrics=metrics,
        work={name: Metric(amount, unit) for name, (amount, unit) in session.done.items()},
        resources=_resources(simulation, moved),
        spans=tuple(recorder.spans) if recorder else (),
        samples=tuple(recorder.samples) if recorder else (),
        arrows=tuple(recorder.arrows) if recorder else (),
        memory=tuple(recorder.memory) if recorder else (),
        ranks=dict(session.ranks),
        question=scenario.question,
        answer=scenario.answer.of({name: metric.unit for name, metric in metrics.items()}) if scenario.answer else None,
        scenario=dict(scenario.data),
        seed=scenario.seed,
        version=__version__,
        modelled=modelled,
        not_modelled=not_modelled,
        sources=_sources(scenario, session, uses),
        assumed=dict(session.assumed),
        operations=tuple(
            OperationUse(
                use.name,
                use.device,
                use.dtype,
                use.count,
                use.cost.flops,
                use.cost.nbytes,
                use.cost.time,
                use.cost.regime,
            )
            for use in session.operations.values()
        ),
        ceilings=_ceilings(session),
        notes=(*session.notes, *told),
        intervals=ends,
        interval_sources=interval_sources,
        no_interval=no_interval,
        unused={one.profile.name: one.refusal for one in uses if one.refusal},
    )


def _profile_uses(scenario: Scenario, session: Session) -> list[ProfileUse]:
    if not scenario.profiles:
        return []
    from simperf.scenario.profile_use import profile_uses

    return list(profile_uses(scenario, session))


def _intervals(
    scenario: Scenario, numbers: Mapping[str, tuple[float, str]]
) -> tuple[Mapping[str, tuple[float, float]], Mapping[str, str], str]:
    """Ends by metric, what they are made of, and why there are none."""
    if scenario.program.name not in PUBLISHED:
        return {}, {}, unpublished(scenario.program.name)
    from simperf.analysis.intervals import intervals_of
    from simperf.scenario.own_constants import estimated_architecture, own_constants

    gpus = len(scenario.machine.gpus) if scenario.machine is not None else 0
    return intervals_of(
        scenario.program.name,
        scenario.parameters,
        numbers,
        gpus=gpus,
        case=scenario.case,
        changed=own_constants(scenario),
        estimated=estimated_architecture(scenario.machine) if scenario.machine is not None else "",
    )


def _resources(simulation: Simulation, moved: Mapping[str, float]) -> dict[str, ResourceUse]:
    """What devices, hosts, memories and links did, which `moved` bytes [B]; what did nothing is left out."""
    found: dict[str, ResourceUse] = {}
    for name, device in simulation.devices.items():
        found[name] = ResourceUse("device", device.share.capacity, device.share.floor())
        if device.memory.peak and device.memory.capacity < float("inf"):
            found[f"{name} memory"] = ResourceUse("memory", device.memory.capacity, device.memory.peak)
    for name, host in simulation.hosts.items():
        work = host.share.floor() * host.cores if host.cores < float("inf") else 0.0
        if work:
            found[name] = ResourceUse("host", host.cores, work)
    machine = simulation.machine
    if machine is None:
        return found
    alike: dict[tuple[float, float], ResourceUse] = {}
    for name, nbytes in moved.items():
        if nbytes and (capacity := machine.resources.get(name)) is not None:  # others limit one copy engine
            key = capacity, nbytes
            found[name] = alike.get(key) or alike.setdefault(key, ResourceUse("link", *key))
    return found


def _ceilings(session: Session) -> dict[str, Ceiling]:
    used = dict.fromkeys(use.device for use in session.operations.values())
    parts = {name: session.simulation.devices[name].part for name in used}
    return {
        name: Ceiling(part.name, part.memory_bandwidth, dict(part.peak))  # type: ignore[attr-defined]
        for name, part in parts.items()
        if part is not None
    }


def _sources(scenario: Scenario, session: Session, uses: Sequence[ProfileUse]) -> dict[str, str]:
    sources = ({"scenario": scenario.source} if scenario.source else {}) | session.sources
    frontend = scenario.frontend
    if frontend.name != "free" and session.launched:
        used = ["launch", "result"]
        used += ["scripted"] if session.mode.scripted else []
        used += ["compiled", "compiled_call"] if session.mode.guarded else []
        used += ["graph_launch", "capture"] if session.mode.captures else []
        if any(device.copies for device in session.simulation.devices.values()):
            used += ["copy_setup", "pageable", "allocate", "pin"]
        sources |= {f"{frontend.name}: {key}": frontend.source(key) for key in used if frontend.source(key)}
    for use in uses:
        if use.used:
            sources[f"profile {use.profile.name}"] = f"{', '.join(use.used)}, fitted to {use.profile.dataset}"
    machine = scenario.machine
    if machine is not None and "cost per step" in session.metrics:
        plans = dict.fromkeys(slot.blueprint for slot in machine.servers)
        asked = (f"{plan.name}: {plan.price} USD/h ({plan.price_source})" for plan in plans)
        sources["machine price"] = "; ".join(asked)
    for device in session.simulation.devices.values():
        part = device.part
        if part is not None and hasattr(part, "source"):
            sources[f"gpu {part.name}"] = part.source("peak")  # type: ignore[attr-defined]
    return sources


def _scope(session: Session, *, moved: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What this run contains and what it leaves out, in words; `moved` says whether links carried anything."""
    simulation = session.simulation
    inside, outside = [], []
    if session.launched:
        inside.append(f"frontend: {session.mode.title}; launch queue of {simulation.depth:g} a stream")
        inside.append("streams in order, sharing their device by demand; memory held from launch to end")
        clocks = "clocks under load" + " but of matrix products" * ("clock" in session.accounted)
        outside.append(f"order of thread blocks on the device, {clocks}, fragmentation of memory")
    if session.operations:
        told, left_out = _kernel_scope(session)
        inside += told
        outside += left_out
    if moved:
        inside.append("links shared max-min fairly, re-shared at every change; protocol overhead of each link")
        outside.append("packets, TCP slow start and loss, queues in switches")
    return (*inside, *session.contains), (*outside, *session.leaves_out)


def _kernel_scope(session: Session) -> tuple[list[str], list[str]]:
    """What costs of operations contain and what they leave out, in words."""
    inside, outside = [], []
    if session.corrected:
        inside.append("kernels by shape: the catalogue's times, times factors fitted to tables of the profile's GPU")
        inside.append("kernels without such factors by the roofline")
    elif session.fitted:
        inside.append("kernels by constants fitted to measurements; by the roofline where none were fitted")
    else:
        sharp, losses = "catalogue peaks, sharp corner", "efficiency per kernel family, tiles, smooth corner"
        inside.append(f"kernels by the roofline: {sharp if session.cost.sharp else losses}")
    if session.fitted:
        outside.append("clocks, temperature and other load that differ from those when it was measured")
    if "clock" in session.accounted:
        inside.append("matrix products by shape, at the clock that the board's power sustains")
    if "cache" in session.accounted:
        inside.append(
            "operands of matrix products, attention and experts that stay in the L2 between calls of a timing loop"
        )
        outside.append("caches of the device for other operations: their operands come from and go to device memory")
    elif session.corrected or not session.fitted:
        outside.append("caches of the device: every operand comes from and goes to device memory")
    return inside, outside
