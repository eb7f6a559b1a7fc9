"""From a scenario to a result: everything is put together here, and nowhere else."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from simperf.answer import PUBLISHED, TIME, unpublished
from simperf.engine.recorder import Recorder
from simperf.engine.simulation import Simulation
from simperf.errors import InputError, MachineError, Problem, ProgramError, SimperfError, UnknownNameError
from simperf.execution.modes import mode
from simperf.execution.profile import ObservedFrontend
from simperf.execution.session import Session
from simperf.results import Ceiling, Metric, OperationUse, ResourceUse, Result
from simperf.scenario.load import change_scenario, load_scenario, pick_variant
from simperf.scenario.overrides import Changes
from simperf.scenario.settings import Scenario

if TYPE_CHECKING:
    from simperf.hardware import ProfilePart
    from simperf.scenario.profile_use import ProfileUse

__all__ = ["Attempt", "run", "run_placed", "run_variants", "run_within", "session_of", "settle_answers"]

#: new objects after which Python looks for garbage while a run goes on; nearly all that a run makes either stays or is
#: freed without a look, and 700, the usual number, costs a seventh of its time
YOUNG = 50_000
#: events that a run may play: 10 s to a minute, and a timeline of 1 GB; the longest shipped scenario plays 1e6
MOST_EVENTS = 3_000_000


class Attempt(NamedTuple):
    """One variant that was run: its result, or the error that it ended with (out of memory is an answer)."""

    name: str
    scenario: Scenario
    result: Result | None
    error: SimperfError | None


def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    set: Changes = (),
    variant: str = "",
    profile: ProfilePart | str | os.PathLike[str] | None = None,
    seed: int | None = None,
    record: bool = True,
    watch: Callable[[Simulation], object] | None = None,
    unused: Literal["refuse", "tell"] = "refuse",
) -> Result:
    """Simulate a scenario's program on its machine.

    Parameters
    ----------
    scenario : Scenario, str or path
        Name of a shipped scenario, such as ``"d2l/async"``, the path of a file, or what `simperf.load_scenario` read.
    set : mapping or sequence of str
        Values of keys in place of the scenario's, such as ``{"program.n": 200, "program.t2": "5 us"}``: as a file
        has them, so that quantities are texts with units.
    variant : str
        Name of the ``[[compare]]`` variant to run.
    profile : ProfilePart or path, optional
        Fitted constants that stand for the catalogue's, in place of those that ``[calibration]`` names.
    seed : int, optional
        Instead of the scenario's.
    record : bool
        Keep the timeline. Without it there is no breakdown, and large runs are faster.
    watch : callable, optional
        Is given the simulation before it begins; its clock may be read while it continues.
    unused : {"refuse", "tell"}
        What becomes of a profile that changes nothing: an error, or only `Result.unused`, for studies of which another
        run may use it (`simperf.scenario.profile_use.refuse_unused`).

    Raises
    ------
    InputError
        No such scenario, variant, key or value; a profile changes nothing; its ``answer`` names no metric
        of the result; or it would simulate more than `MOST_EVENTS` events and has no ``run.force``.
    SimperfError
        The program cannot run on the machine, or runs out of memory.
    FloorError
        The result is below its lower bound.

    Examples
    --------
    >>> run("d2l/async", set={"program.n": 200}).time
    0.00402...
    """
    if watch is not None and not callable(watch):
        expected = "def watch(simulation): ..."
        raise InputError(Problem("a function is expected", key="watch", value=repr(watch), expected=expected))
    if unused not in ("refuse", "tell"):
        raise InputError(Problem("no such choice", key="unused", value=repr(unused), expected="refuse or tell"))
    if isinstance(scenario, Scenario):
        chosen = pick_variant(scenario, variant) if variant else scenario
        changed = change_scenario(chosen, set, seed=seed, profile=profile)
        with _named(changed):
            return _play(changed, record, watch, unused)
    loaded = load_scenario(scenario, set, variant=variant, profile=profile, seed=seed)
    try:
        return _play(loaded, record, watch, unused)
    except (InputError, MachineError, ProgramError, UnknownNameError) as error:
        from simperf.scenario.placing import placed

        raise placed(error, loaded) from error


def run_within(scenario: Scenario, most: int | None, *, record: bool = True) -> Result:
    """As `run` of a scenario that is read, of at most `most` events; options without effect are reported.

    Without a number the limit is that of any run.
    """
    with _named(scenario):
        return _play(scenario, record, None, "tell", most)


@contextmanager
def _named(scenario: Scenario) -> Iterator[None]:
    """Within it errors name keys as the scenario has them."""
    try:
        yield
    except InputError as error:
        from simperf.scenario.placing import renamed

        named = renamed(error, scenario)
        if named is error:
            raise
        raise named from error


def _play(
    scenario: Scenario,
    record: bool,
    watch: Callable[[Simulation], object] | None,
    unused: Literal["refuse", "tell"],
    limit: int | None = None,
) -> Result:
    """Simulate a scenario that is ready."""
    recorder = Recorder() if record else None
    most = None if scenario.force else limit or MOST_EVENTS
    if most is not None and scenario.program.events(scenario.parameters) > most:
        from simperf.programs.event_limit import refuse_many_events

        refuse_many_events(scenario.program, scenario.parameters, most)
    session = session_of(scenario, recorder=recorder, most=most)
    if watch is not None:
        watch(session.simulation)
    with _patient():
        time = session.play(scenario.program.function(session, **scenario.parameters))
        result = collect(scenario, session, time)
    if unused == "refuse" and result.unused:
        from simperf.scenario.profile_use import refuse_unused

        refuse_unused([result.unused])
    return result


def session_of(scenario: Scenario, *, recorder: Recorder | None = None, most: int | None = None) -> Session:
    """The session of a scenario, in which nothing has been simulated.

    Parameters
    ----------
    scenario : Scenario
    recorder : Recorder, optional
        Of a timeline.
    most : int, optional
        Events that may be simulated; any number by default.
    """
    depth = scenario.frontend.depth
    simulation = Simulation(scenario.machine, seed=scenario.seed, recorder=recorder, depth=depth, most=most)
    return Session(
        simulation,
        mode=mode(scenario.mode),
        profile=ObservedFrontend.of(scenario.frontend) if scenario.profiles else scenario.frontend,
        cost=scenario.cost,
    )


@contextmanager
def _patient() -> Iterator[None]:
    """Let Python look for garbage more rarely for a while, unless it was told when to."""
    before = gc.get_threshold()
    if 0 < before[0] < YOUNG:
        gc.set_threshold(YOUNG, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def run_placed(
    scenario: Scenario,
    *,
    record: bool = True,
    watch: Callable[[Simulation], object] | None = None,
    unused: Literal["refuse", "tell"] = "refuse",
) -> Result:
    """Run a scenario; errors say where in its file, or in the code of its program, what is wrong stands.

    Parameters
    ----------
    scenario : Scenario
    record, watch, unused
        As in `run`.

    Raises
    ------
    SimperfError
        As `run`, with file and line; and for what the program itself raises.
    """
    try:
        return run(scenario, record=record, watch=watch, unused=unused)
    except (InputError, MachineError, ProgramError, UnknownNameError) as error:
        from simperf.scenario.placing import placed

        raise placed(error, scenario) from error
    except SimperfError:
        raise
    except Exception as error:
        import traceback
        from inspect import unwrap

        code = unwrap(scenario.program.function).__code__
        if not any(frame.filename == code.co_filename for frame in traceback.extract_tb(error.__traceback__)):
            raise
        from simperf.scenario.python_program import failure

        raise failure(error, scenario.program) from error


def run_variants(scenario: Scenario, *, record: bool = True) -> list[Attempt]:
    """Run every variant of a scenario; a file without variants is its only one.

    Raises
    ------
    InputError
        A profile that changes nothing in any of them.
    """
    attempts = []
    for variant in scenario.variants or (scenario,):
        try:
            result = run(replace(variant, answer=None), record=record, unused="tell")
            attempts.append(Attempt(variant.name, variant, result, None))
        except SimperfError as error:
            attempts.append(Attempt(variant.name, variant, None, error))
    attempts = settle_answers(attempts)
    found = [attempt.result.unused for attempt in attempts if attempt.result is not None]
    if any(found):
        from simperf.scenario.profile_use import refuse_unused

        refuse_unused(found)
    return attempts


def settle_answers(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Give each result of a comparison the answer that its scenario asks for.

    The results come from runs without an answer. One that lacks the metric that others have keeps its other numbers;
    where none has it, each attempt ends with the error that a run gives.
    """
    units: dict[str, str] = {}
    for one in attempts:
        if one.result is not None:
            units |= {name: metric.unit for name, metric in one.result.metrics.items()}
    return [_settle(one, units) for one in attempts]


def _settle(attempt: Attempt, units: Mapping[str, str]) -> Attempt:
    result, asked = attempt.result, attempt.scenario.answer
    if result is None or asked is None:
        return attempt
    try:
        return attempt._replace(result=replace(result, answer=asked.of(units)))
    except InputError as error:
        return attempt._replace(result=None, error=error)


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
