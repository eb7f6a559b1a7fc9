"""Readers of parameters: from what a file says to a value, by the parameter's annotation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, get_args, get_origin

from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError, WithJsonSchema
from pydantic.errors import PydanticSchemaGenerationError

from simperf.errors import Problem, SimperfError, nearest
from simperf.file_problems import problems_of
from simperf.files import TomlFile
from simperf.programs.parameters import Parameter
from simperf.programs.registry import ProgramSpec
from simperf.units import Unit, parse

__all__ = ["adapter", "read_parameters"]

Key = tuple[str | int, ...]

#: beyond this no quantity [SI] of a program means anything, and sums would overflow
_HUGE = 1e30
#: whole numbers beyond this are slips of the keyboard, not numbers of operations
_MANY = 10**12


@dataclass(frozen=True, slots=True)
class _Quantity:
    """Reads a text with a unit of `dimension`."""

    unit: Unit
    signed: bool

    def __call__(self, value: Any) -> float:
        dimension = self.unit.dimension
        number = parse(value, dimension)
        if number < 0 and not self.signed:
            raise ValueError("it cannot be negative")
        if number == 0 and self.unit.above_0:
            raise ValueError(f"above 0 {dimension} is expected; without the key, {self.unit.above_0}")
        if abs(number) > _HUGE:
            raise ValueError(f"far too large: at most {_HUGE:g} {dimension} is meant to be written here")
        return number


def _count(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise ValueError("it cannot be negative")
        if value > _MANY:
            raise ValueError(f"far too large: at most {_MANY:g}")
    return value


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a finite number is expected")
    return value


def _readable(annotation: Any, *, signed: bool) -> Any:
    """`annotation` with its units made readable, inside lists and tables too."""
    if get_origin(annotation) is Annotated:
        base, *metadata = get_args(annotation)
        unit = next((entry for entry in metadata if isinstance(entry, Unit)), None)
        if unit is not None:
            schema = WithJsonSchema(_schema(unit.dimension))
            return Annotated[float, BeforeValidator(_Quantity(unit, signed)), schema]
        return Annotated[_readable(base, signed=signed), *metadata]
    if annotation is int:
        return int if signed else Annotated[int, BeforeValidator(_count)]
    if annotation is float:
        return Annotated[float, BeforeValidator(_finite)]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (list, dict):
        return origin[tuple(_readable(argument, signed=signed) for argument in arguments)]
    return annotation


def _schema(dimension: str) -> dict[str, Any]:
    """Mark for `simperf.scenario.json_schema`, which writes the pattern and examples."""
    return {"type": ["string", "number"], "description": f"quantity [{dimension}]"}


@lru_cache(maxsize=1024)
def _adapter(annotation: Any, signed: bool) -> TypeAdapter[Any]:
    return TypeAdapter(_readable(annotation, signed=signed), config=ConfigDict(strict=True))


def adapter(parameter: Parameter) -> TypeAdapter[Any]:
    """Reader of one parameter; quantities and whole numbers are 0 or more, unless the default is less.

    Raises
    ------
    SimperfError
        Its annotation is nothing that a file can say.
    """
    signed = isinstance(parameter.default, int | float) and parameter.default < 0
    try:
        return _adapter(parameter.annotation, signed)
    except (PydanticSchemaGenerationError, TypeError):
        raise SimperfError(
            f"the parameter {parameter.name!r} is annotated as {parameter.annotation!r}, which a file cannot say; use "
            "int, float, bool, str, Literal, list, dict, or a quantity of simperf.units such as Seconds or Bytes"
        ) from None


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
