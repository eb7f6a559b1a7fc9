"""A program's parameters: what a file says, held against the program's signature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from simperf.errors import Problem, SimperfError, nearest
from simperf.file_problems import problems_of
from simperf.files import TomlFile
from simperf.programs import ProgramSpec
from simperf.programs.adapters import adapter

__all__ = ["adapter", "read_parameters"]

Key = tuple[str | int, ...]


def read_parameters(
    spec: ProgramSpec, data: Mapping[str, Any], toml: TomlFile, at: Key, problems: list[Problem]
) -> dict[str, Any]:
    """All parameters of the program `spec`, those that `data` gives and the others' defaults.

    What is wrong with them is added to `problems`.
    """
    for name in data:
        if name not in spec.parameters:
            hint = nearest(name, spec.parameters)
            message = f"the program {spec.name!r} has no parameter {name!r}{hint}"
            problems.append(toml.problem((*at, name), message))
    values = {}
    for name, parameter in spec.parameters.items():
        if name not in data:
            values[name] = parameter.default
            continue
        try:
            values[name] = adapter(parameter).validate_python(data[name])
        except ValidationError as error:
            problems += problems_of(error, toml, (*at, name), known=[])
        except SimperfError as error:
            problems.append(toml.problem((*at, name), str(error)))
    return values
