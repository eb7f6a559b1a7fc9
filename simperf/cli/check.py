"""`simperf check`: read files without running them, or hold them to what they expect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from simperf.scenario import Scenario

__all__ = ["check"]


def check(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="Scenarios (files or shipped names), plans, or files of your own parts."),
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Run them too, and hold the results to their [expect].")] = False,
    shipped: Annotated[bool, typer.Option("--shipped", help="Check every scenario that comes with simperf.")] = False,
    folder: Annotated[
        list[Path] | None,
        typer.Option(
            "--folder", metavar="FOLDER", help="A folder with parts that the files may name; may be repeated."
        ),
    ] = None,
) -> int:
    """Check files: every problem of each, with file, line and key."""
    from simperf.cli.work import note
    from simperf.errors import SimperfError
    from simperf.scenario import shipped_scenarios

    names = [*(files or ()), *(shipped_scenarios() if shipped else ())]
    if not names:
        raise typer.BadParameter("name a file, or say --shipped")
    code = 0
    for name in names:
        try:
            ok = _check(name, folder or [], run)
            code = max(code, 0 if ok else 1)
        except SimperfError as error:
            for problem in getattr(error, "problems", (error,)):
                note(f"error: {problem}")
            code = max(code, error.exit_code)
    return code


def _check(name: str, folders: list[Path], run: bool) -> bool:
    from simperf.files import read_toml
    from simperf.scenario import find_scenario, load_scenario

    path = find_scenario(name)
    data = read_toml(path).data
    if "kind" in data and "program" not in data:
        typer.echo(f"ok  {name}: {_part(path, folders)}")
        return True
    if "plan" in data and "program" not in data:
        typer.echo(f"ok  {name}: {_plan(path)}")
        return True
    scenario = load_scenario(path)
    if run:
        return _run(name, scenario)
    with_variants = f", {len(scenario.variants)} variants" if scenario.variants else ""
    kinds = [one.kind for each in (scenario, *scenario.variants) for one in each.expectations]
    expected = f", {_counted(kinds)}" if kinds else ""
    typer.echo(f"ok  {name}: scenario of the program {scenario.program.name}{with_variants}{expected}")
    return True


def _counted(kinds: list[str]) -> str:
    """How many expectations there are, of which kinds."""
    from simperf.scenario.expectation import KINDS

    parts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in KINDS if kind in kinds)
    return f"{len(kinds)} expectation{'' if len(kinds) == 1 else 's'} ({parts})"


def _part(path: str, folders: list[Path]) -> str:
    """Check the file of a part, server or cluster; says what it is."""
    from simperf.errors import InputError, nearest
    from simperf.files import read_toml
    from simperf.hardware import KINDS, PART_KINDS, Catalog, build_machine, check_machine, read_part

    toml = read_toml(path)
    kind, stem = toml.data["kind"], Path(path).stem
    if kind not in KINDS:
        expected = "one of " + ", ".join(KINDS)
        raise InputError(
            toml.problem(("kind",), f"no kind of part{nearest(str(kind), KINDS)}", value=kind, expected=expected)
        )
    catalog = Catalog.load(folders) if folders else Catalog.beside(path)
    if kind in PART_KINDS:
        return f"{kind} {read_part(toml, stem, catalog=catalog, kind=kind).title}"
    machine = build_machine(toml.data, catalog, toml, name=stem, at=())
    check_machine(machine)
    servers = f" and {len(machine.servers)} servers" if kind == "cluster" else ""
    return f"{kind} of {len(machine.gpus)} GPU{'' if len(machine.gpus) == 1 else 's'}{servers}"


def _plan(path: str) -> str:
    """Check a plan's file; says what it is."""
    from simperf.study.planning.candidates import choices
    from simperf.study.planning.request import load_request

    request = load_request(path)
    count = len(choices(request))
    return f"plan for {request.model.name}, {count} candidate{'' if count == 1 else 's'}"


def _run(name: str, scenario: Scenario) -> bool:
    """Run a scenario and its variants and say which expectations are not met."""
    from simperf.cli.work import play
    from simperf.errors import SimperfError
    from simperf.scenario import check_comparison, check_error, check_expectations
    from simperf.scenario.profile_use import refuse_unused

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
    for place, miss in missed:
        typer.echo(f"FAILED  {place}: {miss}{miss.origin}")
    if not missed:
        met = f"{_counted([check.kind for _, check in checks])} met" if checks else "no expectations"
        typer.echo(f"ok  {name}: {met}")
    return not missed


def _needs_timeline(scenario: Scenario) -> bool:
    return any(e.key == "regime" or e.key.startswith("breakdown.") for e in scenario.expectations)
