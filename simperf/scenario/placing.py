"""Place in a scenario's file of what a run finds wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from simperf.errors import InputError, Problem, SimperfError
from simperf.files import dotted, read_toml
from simperf.programs.job_options import JobOptions
from simperf.scenario.job_tables import job_place
from simperf.scenario.load import TABLES
from simperf.scenario.overrides import parse_path
from simperf.scenario.settings import Scenario

__all__ = ["placed", "renamed"]

#: what operations and kernels call it -> the parameter that it is of
_MEANT = {"dtype": "precision", "library": "attention_library"}


def renamed(error: InputError, scenario: Scenario) -> InputError:
    """The error of a run, with what operations and kernels call a parameter under the parameter's name.

    Parameters
    ----------
    error : InputError
        What simulating the scenario raised.
    scenario : Scenario
    """
    known, found = scenario.program.parameters, []
    for one in error.problems:
        key = _MEANT.get(one.key, one.key)
        found.append(replace(one, key=key) if key in known and not one.file else one)
    return error if tuple(found) == error.problems else type(error)(found)


def placed(error: SimperfError, scenario: Scenario) -> InputError:
    """The error of a run, with the place in the scenario's file of what is wrong.

    Parameters
    ----------
    error : SimperfError
        What `simperf.run` raised.
    scenario : Scenario
        What was run.
    """
    return InputError(_placed(error, scenario))


def _named(error: SimperfError, scenario: Scenario) -> str:
    """Key of the parameter whose name is unknown, or else the whole program."""
    name = getattr(error, "name", None)
    keys = [key for key, value in scenario.parameters.items() if isinstance(value, str) and value == name]
    return f"program.{keys[0]}" if len(keys) == 1 else "program"


def _placed(error: SimperfError, scenario: Scenario) -> list[Problem]:
    """Say where in the scenario's file stands what the program cannot run with."""
    problems = error.problems if isinstance(error, InputError) else (Problem(str(error), key=_named(error, scenario)),)
    toml = read_toml(scenario.path) if scenario.path else None
    placed = []
    for problem in problems:
        if toml is None or problem.file:
            placed.append(problem)
            continue
        key = problem.key if problem.key.partition(".")[0] in TABLES else _parameter(problem.key, scenario)
        renamed = key != "program" and "." not in problem.key
        said = renamed or key.rpartition(".")[2] == problem.key.rpartition(".")[2] or not problem.key
        message = problem.message if said else f"{problem.key}: {problem.message}"
        path = _path(key)
        if path[0] == "program" and len(path) > 1 and _of_file(path, scenario.data) is None:
            path = job_place(str(path[1]), scenario.data, scenario.program, toml) or path
            key = dotted(path)
        if scenario.name != scenario.title:
            message = f"in the variant {scenario.name!r}: {message}"
        read = _of_file(path, scenario.data)  # a quantity as it was written
        value = repr(read) if problem.value and isinstance(read, str) else problem.value
        origin = _origin(path, toml.data, scenario)
        option = "" if origin[0] == "compare" else _option(path, scenario)
        place = (option, 0) if option else (toml.path, toml.line(origin))
        placed.append(replace(problem, message=message, file=place[0], line=place[1], key=key, value=value))
    return placed


def _path(key: str) -> tuple[str | int, ...]:
    """The path of a key, or of the table around it where its name is none without quotes."""
    while key:
        try:
            return parse_path(key)
        except ValueError:
            key = key.rpartition(".")[0]
    return ("program",)


def _origin(path: tuple[str | int, ...], data: Mapping[str, Any], scenario: Scenario) -> tuple[str | int, ...]:
    """Where a file says the value at a key path of a scenario: there, in its variant, or nowhere but in the table."""
    if _of_file(path, data) == _of_file(path, scenario.data):
        return path
    rows = enumerate(data.get("compare", ()))
    own = next((index for index, row in rows if row.get("name") == scenario.name and len(path) > 1), None)
    return path[:1] if own is None or scenario.name == scenario.title else ("compare", own, "set")


def _option(path: tuple[str | int, ...], scenario: Scenario) -> str:
    """What the caller gave the value at a key path with, such as ``--set``; empty if the file says it."""
    options = [one.option for one in scenario.changes if path[: len(one.path)] == one.path and len(path) > 1]
    return options[-1] if options else ""


def _parameter(key: str, scenario: Scenario) -> str:
    """Key of the parameter of the program that a problem's key names, or else the whole program."""
    known, model, last = scenario.program.parameters, scenario.data.get("model"), key.rpartition(".")[2]
    name = next((part for part in (last, key.partition(".")[0]) if part in known), "")
    if name:
        return f"program.{name}"
    if isinstance(model, Mapping) and last in model:
        return f"model.{last}"
    options = scenario.program.options
    fields = options.names if isinstance(options, JobOptions) else {}
    of_fields = {name for (_, one), name in fields.items() if one == last and name in known}
    names = of_fields | {_MEANT[one] for one in (last,) if _MEANT.get(one) in known}
    return f"program.{names.pop()}" if len(names) == 1 else "program"


def _of_file(path: Sequence[str | int], data: Any) -> object:
    """What stands at a key path of a file's data; None if nothing does."""
    for step in path:
        if isinstance(data, Mapping):
            data = data.get(step)
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
        else:
            return None
    return data
