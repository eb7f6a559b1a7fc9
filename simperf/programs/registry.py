"""Programs by name: what a scenario file may ask for under ``[program] use = ...``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, get_type_hints

from annotated_types import Ge

from simperf.errors import SimperfError
from simperf.execution.frontend import Program
from simperf.registry import Registry

__all__ = ["PROGRAMS", "Count", "Parameter", "ProgramSpec", "Unless", "program"]

#: how many, one at least; a scenario file is held to it
Count = Annotated[int, Ge(1)]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a program: its annotation (with its `Unit`), default and meaning."""

    name: str
    annotation: Any
    default: Any
    doc: str


class Unless(NamedTuple):
    """Parameters that have an effect only under a condition.

    Parameters
    ----------
    used : bool
        Whether the condition holds.
    names : sequence of str
        The parameters.
    why : str
        Why they have no effect where it does not.
    expected : str
        What would give them one.
    """

    used: bool
    names: tuple[str, ...]
    why: str
    expected: str


#: from the value of each parameter to what has an effect only together with something else
Rules = Callable[[Mapping[str, Any]], Iterable[Unless]]


def _no_rules(given: Mapping[str, Any]) -> Iterable[Unless]:
    return ()


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
    rules : callable, optional
        Which parameters have no effect, from the values of all.
    """

    name: str
    function: Callable[..., Program]
    parameters: Mapping[str, Parameter]
    title: str
    rules: Rules = _no_rules

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

    def idle(self, given: Mapping[str, Any]) -> frozenset[str]:
        """Parameters that have no effect beside the others, which are `given` or have their defaults."""
        values = {name: one.default for name, one in self.parameters.items()} | dict(given)
        return frozenset(name for rule in self.rules(values) if not rule.used for name in rule.names)


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


def program(name: str, *, rules: Rules = _no_rules) -> Callable[[Callable[..., Program]], Callable[..., Program]]:
    """Register a generator function as the program `name`, and which of its parameters have no effect when."""

    def decorate(function: Callable[..., Program]) -> Callable[..., Program]:
        PROGRAMS.add(name, replace(ProgramSpec.of(name, function), rules=rules))
        return function

    return decorate
