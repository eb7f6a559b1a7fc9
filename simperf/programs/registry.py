"""Programs by name: what a scenario file may ask for under ``[program] use = ...``."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from functools import wraps
from typing import Any, Protocol, get_type_hints

from simperf.errors import Problem, SimperfError, nearest
from simperf.execution.frontend import Program
from simperf.programs.parameters import Events, Parameter, Rules, idle_problems, no_rules, parameter_docs, uncounted
from simperf.registry import Registry

__all__ = ["PROGRAMS", "Options", "ProgramSpec", "program"]


class Options(Protocol):
    """Options that a program takes as one object: its parameters, and the object that their values make."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """By name."""

    def completed(self, given: Mapping[str, Any], *, folder: str | os.PathLike[str] = ".") -> dict[str, Any]:
        """Values of all parameters; `folder` is where paths begin."""

    def made(self, given: Mapping[str, Any]) -> Any:
        """The object, of values of parameters; the others have their defaults."""


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """A program and what may be set about it.

    Parameters
    ----------
    name : str
    function : callable
        Takes a `Session` and keyword arguments, returns a generator over verbs. A program that takes a dataclass in
        their place is given one that is made of them.
    parameters : mapping of str to Parameter
    title : str
        First line of its docstring.
    rules : callable, optional
        Which parameters have no effect, from the values of all.
    options : Options, optional
        Parameters of the object that it takes.
    events : callable, optional
        About how many events a run simulates, from the values of all.
    """

    name: str
    function: Callable[..., Program]
    parameters: Mapping[str, Parameter]
    title: str
    rules: Rules = no_rules
    options: Options | None = None
    events: Events = uncounted

    @classmethod
    def of(
        cls,
        name: str,
        function: Callable[..., Any],
        *,
        rules: Rules = no_rules,
        options: Options | None = None,
        events: Events = uncounted,
    ) -> ProgramSpec:
        """Read a function's signature and docstring.

        Parameters
        ----------
        name : str
        function : callable
            Its parameters after the session have annotations and defaults; or it has one, a dataclass.
        rules : callable, optional
            Which parameters have no effect, from the values of all.
        options : Options, optional
            Parameters of the object that it takes; by default the fields of its dataclass.
        events : callable, optional
            About how many events a run simulates, from the values of all.

        Raises
        ------
        SimperfError
            It is no generator function, or a parameter has no annotation or no default.
        """
        if not inspect.isgeneratorfunction(function):
            raise SimperfError(f"the program {name!r} is no generator function: it needs a yield")
        hints = get_type_hints(function, include_extras=True)
        docs = parameter_docs(inspect.getdoc(function) or "")
        title = (inspect.getdoc(function) or name).splitlines()[0]
        taken = list(inspect.signature(function).parameters.values())[1:]
        if options is None and len(taken) == 1 and is_dataclass(kind := hints.get(taken[0].name)):
            from simperf.programs.fields import Fields

            options = Fields(kind, rules)  # type: ignore[arg-type]
        if options is not None:
            return cls(name, _of_keywords(name, function, options), options.parameters, title, rules, options, events)
        parameters = {}
        for parameter in taken:
            if parameter.name not in hints or parameter.default is inspect.Parameter.empty:
                raise SimperfError(
                    f"the parameter {parameter.name!r} of the program {name!r} needs an annotation and a default, "
                    "such as `n: int = 100` or `size: Bytes = 1e6`"
                )
            parameters[parameter.name] = Parameter(
                parameter.name, hints[parameter.name], parameter.default, docs.get(parameter.name, "")
            )
        return cls(name, function, parameters, title, rules, None, events)

    def idle(self, given: Mapping[str, Any]) -> frozenset[str]:
        """Parameters that have no effect beside the others, which are `given` or have their defaults."""
        values = {name: one.default for name, one in self.parameters.items()} | dict(given)
        return frozenset(name for rule in self.rules(values) if not rule.used for name in rule.names)

    def unused(self, given: Mapping[str, Any]) -> list[Problem]:
        """Parameters that differ from their defaults although they have no effect, where `given` has all of them."""
        return idle_problems(self.parameters, self.rules, given)


def _of_keywords(name: str, function: Callable[..., Program], options: Options) -> Callable[..., Program]:
    """The program that makes the object which `function` takes of keyword arguments."""

    @wraps(function)
    def play(m: Any, **given: Any) -> Program:
        for key in given:
            if key not in options.parameters:
                raise TypeError(f"the program {name!r} has no parameter {key!r}{nearest(key, options.parameters)}")
        return (yield from function(m, options.made(given)))

    return play


#: name of a program -> module of `simperf.programs` that it is in; only that one is imported when it is run
MODULES = {
    "async-chain": "asynchrony",
    "what-blocks": "asynchrony",
    "launch-queue": "asynchrony",
    "run-ahead": "asynchrony",
    "forward-passes": "asynchrony",
    "expression": "asynchrony",
    "copy-overlap": "copies",
    "host-copy": "copies",
    "epoch": "epochs",
    "checkpointed-training": "epochs",
    "memory-reads": "hardware",
    "pointer-chase": "hardware",
    "disk-reads": "hardware",
    "sends": "hardware",
    "round-trips": "hardware",
    "server-loss": "loss",
    "two-devices": "parallel",
    "streams": "parallel",
    "timers": "parallel",
    "input-pipeline": "pipeline",
    "failing-job": "reality",
    "recommender": "recommender",
    "recorded-step": "recorded_step",
    "operations": "regimes",
    "additions": "regimes",
    "decoder-forward": "regimes",
    "servers-or-ring": "servers_or_ring",
    "parameter-server": "servers",
    "training-step": "step",
    "all-reduce": "synchronisation",
    "train": "training",
    "stragglers": "uneven",
    "link-flaps": "uneven",
}

PROGRAMS: Registry[ProgramSpec] = Registry(
    "program", package="simperf.programs", group="simperf.programs", modules=MODULES
)


def program(
    name: str, *, rules: Rules = no_rules, options: Options | None = None, events: Events = uncounted
) -> Callable[[Callable[..., Program]], Callable[..., Program]]:
    """Register a generator function as the program `name`.

    Parameters
    ----------
    name : str
    rules : callable, optional
        Which of its parameters have no effect, from the values of all.
    options : Options, optional
        Parameters of the one object that it takes beside the session.
    events : callable, optional
        About how many events a run simulates, from the values of all: what would simulate too many is refused before it
        begins.
    """

    def decorate(function: Callable[..., Program]) -> Callable[..., Program]:
        PROGRAMS.add(name, ProgramSpec.of(name, function, rules=rules, options=options, events=events))
        return function

    return decorate
