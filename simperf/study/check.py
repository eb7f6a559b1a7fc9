"""Files that are read without a run, or held to what they expect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from simperf.errors import InputError, Problem, SimperfError, UnknownNameError, nearest
from simperf.files import read_toml
from simperf.hardware import KINDS, PART_KINDS, Catalog, build_machine, check_machine, read_part
from simperf.json_file import read_json
from simperf.layout import DIMENSIONS
from simperf.layout.layout_file import read_layout
from simperf.programs.job_options import JobOptions
from simperf.programs.stack_file import load_stack
from simperf.results import Result
from simperf.run import MOST_EVENTS, run_placed, session_of
from simperf.scenario import (
    Scenario,
    check_comparison,
    check_error,
    check_expectations,
    find_scenario,
    load_scenario,
)
from simperf.scenario.expectation import KINDS as EXPECTATIONS
from simperf.scenario.placing import placed
from simperf.scenario.profile_use import refuse_unused
from simperf.study.layouts import load_layouts
from simperf.study.planning.candidates import choices
from simperf.study.planning.request import load_request
from simperf.workload.modelfile import FORMAT as TRACED
from simperf.workload.modelfile import read_model
from simperf.workload.transformers.hugging_face import read_config
from simperf.workload.transformers.transformer_file import read_transformer

__all__ = ["FileCheck", "check_file", "refuse_layout"]


class FileCheck(NamedTuple):
    """Result of the check of a file: whether it is as it should be, and what is said of it, a line each."""

    ok: bool
    lines: tuple[str, ...]


def check_file(
    name: str,
    folders: Sequence[Path] = (),
    *,
    run: bool = False,
    play: Callable[..., Result] = run_placed,
) -> FileCheck:
    """Check a scenario, a plan, a model, a layout, or the file of a part, server, cluster, profile or stack.

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
    missing = [folder for folder in folders if not folder.is_dir()]
    if missing:
        expected = "an existing folder"
        raise InputError(
            [Problem("no such folder", file="--folder", value=str(one), expected=expected) for one in missing]
        )
    what = _what(path)
    if what in _PARTS:
        return FileCheck(True, (f"ok  {name}: {_PARTS[what](path, folders)}",))
    if folders:
        message = f"{name} is {what}, which names no part of a folder"
        raise InputError(Problem(message, file="--folder", value=str(folders[0]), expected="no such option"))
    if what in _OTHERS:
        return FileCheck(True, (f"ok  {name}: {_OTHERS[what](path)}",))
    scenario = load_scenario(path, code=run)
    if run:
        return _run(name, scenario, play)
    for one in (scenario, *scenario.variants):
        refuse_layout(one)
    with_variants = f", {len(scenario.variants)} variants" if scenario.variants else ""
    kinds = [one.kind for each in (scenario, *scenario.variants) for one in each.expectations]
    expected = f", {_counted(kinds)}" if kinds else ""
    line = f"ok  {name}: scenario of the program {scenario.program.name}{with_variants}{expected}"
    return FileCheck(True, (line,))


def _what(path: str) -> str:
    """What a file is, by its format, its kind or its keys."""
    if path.endswith((".json", ".json.gz")):
        return _what_json(path)
    toml = read_toml(path)
    data = toml.data
    if "layouts" in data:
        return "a search of layouts"
    if "program" in data:
        return "a scenario"
    if "kind" in data:
        return "a stack" if data["kind"] == "stack" else "a part"
    if data.get("format") == TRACED or not data.keys().isdisjoint(("layers", "hidden", "heads", "vocabulary")):
        return "a model"
    if not data.keys().isdisjoint((*DIMENSIONS, "sharding")):
        return "a layout"
    if "plan" not in data and isinstance(data.get("title"), str):  # a scenario has none at its top
        message = "this is the file of a part, and it does not say of which kind"
        raise InputError(
            toml.problem((), message, expected='kind = "gpu", or another of ' + ", ".join((*KINDS, "stack")))
        )
    return "a plan" if "plan" in data else "a scenario"


def _what_json(path: str) -> str:
    """What a file of JSON is, of those that are checked."""
    data = read_json(path).data
    keys = data.keys() if isinstance(data, dict) else ()
    if "model_type" in keys:
        return "a configuration"
    if "format" in keys and data["format"] == TRACED:
        return "a model"
    message = "this is JSON, and neither a traced model nor the configuration of a transformer"
    expected = "a TOML file; `simperf show` reads a saved result, `simperf calibrate fit` measurements"
    raise InputError(Problem(message, file=path, expected=expected))


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
        raise InputError(
            toml.problem(
                (), "a scenario names a stack by a path that ends in .toml", expected="a name such as mine.toml"
            )
        )
    stack = load_stack(path)
    if stack.frontend:
        try:
            _catalog(path, folders).frontend(stack.frontend)
        except UnknownNameError as error:
            raise InputError(toml.problem(("frontend",), str(error))) from None
    count = len(stack.options)
    return f"stack {stack.title} of strategy {stack.strategy}, {count} value{'' if count == 1 else 's'} with a source"


def _model(path: str) -> str:
    """Check the file of a model; says what it is."""
    if path.endswith(".toml") and read_toml(path).data.get("format") != TRACED:
        model = read_transformer(path)
        return f"model {model.name} by its dimensions, {model.parameters:,} parameters"
    traced = read_model(path)
    return f"model {traced.name}, traced, {traced.parameter_count:,.0f} parameters"


def _configuration(path: str) -> str:
    """Check the configuration of a transformer; says what it is."""
    return f"configuration of a transformer of {read_config(path).parameters:,} parameters"


def _layout(path: str) -> str:
    """Check the file of a layout; says what it is."""
    layout = read_layout(path)
    return f"layout {layout} of {layout.ranks} rank{'' if layout.ranks == 1 else 's'}"


def _plan(path: str) -> str:
    """Check a plan's file; says what it is."""
    request = load_request(path)
    count = len(choices(request))
    return f"plan for {request.model.name}, {count} candidate{'' if count == 1 else 's'}"


def _layouts(path: str) -> str:
    """Check the file of a search of layouts; says what it is."""
    request = load_layouts(path)
    machines = ", ".join(f"{one.gpus} GPUs of {one.name}" for one in request.machines)
    return f"search of layouts of {request.name} on {machines}"


#: checks of files that may name parts of folders, and of others; each says what the file is
_PARTS: dict[str, Callable[[str, Sequence[Path]], str]] = {"a part": _part, "a stack": _stack}
_OTHERS: dict[str, Callable[[str], str]] = {
    "a configuration": _configuration,
    "a layout": _layout,
    "a model": _model,
    "a plan": _plan,
    "a search of layouts": _layouts,
}


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


def refuse_layout(scenario: Scenario) -> None:
    """Refuse a model that its layout does not divide, or that does not fit, unless that is what is expected.

    Raises
    ------
    SimperfError
        With the place in the file.
    """
    if scenario.parameters.get("strategy") != "model-parallel" or not isinstance(scenario.program.options, JobOptions):
        return
    from simperf.training.pipelined.run import refuse_divided

    session = session_of(scenario, most=None if scenario.force else MOST_EVENTS)
    try:
        refuse_divided(session, scenario.program.options.made(scenario.parameters))
    except SimperfError as error:
        if not check_error(scenario, error):
            raise placed(error, scenario) from error


def _needs_timeline(scenario: Scenario) -> bool:
    return any(e.key == "regime" or e.key.startswith("breakdown.") for e in scenario.expectations)
