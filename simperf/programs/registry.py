"""Programs by name: what a scenario file may ask for under ``[program] use = ...``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

from annotated_types import Ge

from simperf.errors import SimperfError
from simperf.execution.frontend import Program
from simperf.registry import Registry

__all__ = ["PROGRAMS", "Count", "Parameter", "ProgramSpec", "program"]

#: how many, one at least; a scenario file is held to it
Count = Annotated[int, Ge(1)]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a program: its annotation (with its `Unit`), default and meaning."""

    name: str
    annotation: Any
    default: Any
    doc: str


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """A program and what may be set about it.

    Parameters
    ----------
    name : str
    function : callable
        Takes a `Session` and keyword arguments, returns a generator over verbs.
    parameters : mapping of str to Parameter
    title : str
        First line of its docstring.
    """

    name: str
    function: Callable[..., Program]
    parameters: Mapping[str, Parameter]
    title: str

    @classmethod
    def of(cls, name: str, function: Callable[..., Any]) -> ProgramSpec:
        """Read a function's signature and docstring.

        Raises
        ------
        SimperfError
            It is no generator function, or a parameter has no annotation or no default.
        """
        if not inspect.isgeneratorfunction(function):
            raise SimperfError(f"the program {name!r} is no generator function: it has no yield in it")
        hints = get_type_hints(function, include_extras=True)
        docs = _parameter_docs(inspect.getdoc(function) or "")
        parameters = {}
        for parameter in list(inspect.signature(function).parameters.values())[1:]:
            if parameter.name not in hints or parameter.default is inspect.Parameter.empty:
                raise SimperfError(
                    f"the parameter {parameter.name!r} of the program {name!r} needs an annotation and a default, "
                    "such as `n: int = 100` or `size: Bytes = 1e6`"
                )
            parameters[parameter.name] = Parameter(
                parameter.name, hints[parameter.name], parameter.default, docs.get(parameter.name, "")
            )
        title = (inspect.getdoc(function) or name).splitlines()[0]
        return cls(name, function, parameters, title)


def _parameter_docs(doc: str) -> dict[str, str]:
    """First description line of each parameter of a NumPy-style docstring."""
    found: dict[str, str] = {}
    name = ""
    for line in doc.partition("Parameters\n")[2].splitlines()[1:]:
        if line and not line.startswith(" "):
            name = line.partition(":")[0].strip()
        elif name and line.strip() and name not in found:
            found[name] = line.strip()
    return found


PROGRAMS: Registry[ProgramSpec] = Registry("program", package="simperf.programs", group="simperf.programs")


def program(name: str) -> Callable[[Callable[..., Program]], Callable[..., Program]]:
    """Register a generator function as the program `name`."""

    def decorate(function: Callable[..., Program]) -> Callable[..., Program]:
        PROGRAMS.add(name, ProgramSpec.of(name, function))
        return function

    return decorate
