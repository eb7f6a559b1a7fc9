"""Files that are read without a run, or held to what they expect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from simperf.errors import InputError, SimperfError, UnknownNameError, nearest
from simperf.files import read_toml
from simperf.hardware import KINDS, PART_KINDS, Catalog, build_machine, check_machine, read_part
from simperf.programs.stack_file import load_stack
from simperf.results import Result
from simperf.run import run_placed
from simperf.scenario import (
    Scenario,
    check_comparison,
    check_error,
    check_expectations,
    find_scenario,
    load_scenario,
)
from simperf.scenario.expectation import KINDS as EXPECTATIONS
from simperf.scenario.profile_use import refuse_unused
from simperf.study.planning.candidates import choices
from simperf.study.planning.request import load_request

__all__ = ["FileCheck", "check_file"]


class FileCheck(NamedTuple):
    """Whether a file is as it should be, and what is said of it, a line each."""

    ok: bool
    lines: tuple[str, ...]


def check_file(
    name: str,
    folders: Sequence[Path] = (),
    *,
    run: bool = False,
    play: Callable[..., Result] = run_placed,
) -> FileCheck:
    """Check a scenario, a plan, or the file of a part, server, cluster or stack.

    Parameters
    ----------
    name : str
        A file, or the name of a shipped scenario.
    folders : sequence of Path
        With parts that the file may name.
    run : bool
        Run a scenario and its variants too, and hold the results to their expectations. Without it no Python file that
        a scenario names is run.
    play : callable
        Runs one of them, as `simperf.run.run_placed`.

    Raises
    ------
    SimperfError
        With every problem of the file.
    """
    path = find_scenario(name)
    data = read_toml(path).data
    if data.get("kind") == "stack" and "program" not in data:
        return FileCheck(True, (f"ok  {name}: {_stack(path, folders)}",))
    if "kind" in data and "program" not in data:
        return FileCheck(True, (f"ok  {name}: {_part(path, folders)}",))
    if "plan" in data and "program" not in data:
        return FileCheck(True, (f"ok  {name}: {_plan(path)}",))
    scenario = load_scenario(path, code=run)
    if run:
        return _run(name, scenario, play)
    with_variants = f", {len(scenario.variants)} variants" if scenario.variants else ""
    kinds = [one.kind for each in (scenario, *scenario.variants) for one in each.expectations]
    expected = f", {_counted(kinds)}" if kinds else ""
    line = f"ok  {name}: scenario of the program {scenario.program.name}{with_variants}{expected}"
    return FileCheck(True, (line,))


def _counted(kinds: list[str]) -> str:
    """How many expectations there are, of which kinds."""
    parts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in EXPECTATIONS if kind in kinds)
    return f"{len(kinds)} expectation{'' if len(kinds) == 1 else 's'} ({parts})"


def _part(path: str, folders: Sequence[Path]) -> str:
    """Check the file of a part, server or cluster; says what it is."""
    toml = read_toml(path)
    kind, stem = toml.data["kind"], Path(path).stem
    if kind not in KINDS:
        kinds = (*KINDS, "stack")
        expected = "one of " + ", ".join(kinds)
        raise InputError(
            toml.problem(("kind",), f"no kind of part{nearest(str(kind), kinds)}", value=kind, expected=expected)
        )
    catalog = _catalog(path, folders)
    if kind in PART_KINDS:
        return f"{kind} {read_part(toml, stem, catalog=catalog, kind=kind).title}"
    machine = build_machine(toml.data, catalog, toml, name=stem, at=())
    check_machine(machine)
    servers = f" and {len(machine.servers)} servers" if kind == "cluster" else ""
    return f"{kind} of {len(machine.gpus)} GPU{'' if len(machine.gpus) == 1 else 's'}{servers}"


def _catalog(path: str, folders: Sequence[Path]) -> Catalog:
    """What the file may name: parts of the folders, or those beside it."""
    return Catalog.load(folders) if folders else Catalog.beside(path)


def _stack(path: str, folders: Sequence[Path]) -> str:
    """Check the file of a stack and that there is its frontend; says what it is."""
    toml = read_toml(path)
    if not path.endswith(".toml"):
        raise InputError(toml.problem((), "a scenario names a stack by a path that ends in .toml"))
    stack = load_stack(path)
    if stack.frontend:
        try:
            _catalog(path, folders).frontend(stack.frontend)
        except UnknownNameError as error:
            raise InputError(toml.problem(("frontend",), str(error))) from None
    count = len(stack.options)
    return f"stack {stack.title} of strategy {stack.strategy}, {count} value{'' if count == 1 else 's'} with a source"


def _plan(path: str) -> str:
    """Check a plan's file; says what it is."""
    request = load_request(path)
    count = len(choices(request))
    return f"plan for {request.model.name}, {count} candidate{'' if count == 1 else 's'}"


def _run(name: str, scenario: Scenario, play: Callable[..., Result]) -> FileCheck:
    """Run a scenario and its variants and say which expectations are not met."""
    checks, results = [], {}
    for one in (scenario, *scenario.variants):
        place = name if one is scenario else f"{name}, {one.name}"
        try:
            result = play(one, record=_needs_timeline(one), unused="tell")
        except SimperfError as error:
            found = check_error(one, error)
            if not found:
                raise
        else:
            found = check_expectations(one, result)
            results[one.name] = result
        checks += [(place, check) for check in found]
    refuse_unused(result.unused for result in results.values())
    ratios = check_comparison(scenario, {v.name: results[v.name] for v in scenario.variants if v.name in results})
    checks += [(name, check) for check in ratios]
    missed = [(place, check) for place, check in checks if not check.ok]
    if missed:
        return FileCheck(False, tuple(f"FAILED  {place}: {miss}{miss.origin}" for place, miss in missed))
    met = f"{_counted([check.kind for _, check in checks])} met" if checks else "no expectations"
    return FileCheck(True, (f"ok  {name}: {met}",))


def _needs_timeline(scenario: Scenario) -> bool:
    return any(e.key == "regime" or e.key.startswith("breakdown.") for e in scenario.expectations)
