"""From a scenario to a result: everything is put together here, and nowhere else."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from simperf.engine.recorder import Recorder
from simperf.engine.simulation import Simulation
from simperf.errors import InputError, MachineError, Problem, ProgramError, SimperfError, UnknownNameError
from simperf.execution.modes import mode
from simperf.execution.profile import ObservedFrontend
from simperf.execution.session import Session
from simperf.results import Result
from simperf.run_result import collect
from simperf.scenario.load import change_scenario, load_scenario, pick_variant
from simperf.scenario.overrides import Changes
from simperf.scenario.settings import Scenario

if TYPE_CHECKING:
    from simperf.hardware import ProfilePart

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
