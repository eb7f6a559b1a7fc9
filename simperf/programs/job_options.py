"""The parameters of programs that simulate a `Job`: fields of its types, under the names that files give them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from simperf.errors import InputError, Problem, UnknownNameError
from simperf.programs.parameters import Parameter, Rules, field_value, file_value, idle_problems
from simperf.programs.stack_file import load_stack
from simperf.training.job import Job
from simperf.training.stack import Stack
from simperf.workload.layer_kernels import LayerKernels

__all__ = ["JobOptions", "Section", "gathered", "set_by_stack", "stack_of"]


@dataclass(frozen=True, slots=True)
class Section:
    """Fields of one type of a job, and the parameters that set them.

    Parameters
    ----------
    kind : type
        The dataclass.
    keys : mapping of str to str
        Parameter to field.
    defaults : mapping of str to object
        Defaults of fields instead of the type's.
    """

    kind: type[Any]
    keys: Mapping[str, str]
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, kind: type[Any], *names: str, defaults: Mapping[str, Any] | None = None, **renamed: str) -> Section:
        """Fields under their own names, and others as ``parameter="field"``."""
        return cls(kind, {**{name: name for name in names}, **renamed}, defaults or {})

    def parameters(self) -> Iterator[Parameter]:
        """One for each key."""
        for name, one in self.keys.items():
            more = {"default": self.defaults[one]} if one in self.defaults else {}
            yield Parameter.of_field(self.kind, one, name=name, **more)

    def made(self, given: Mapping[str, Any], **more: Any) -> Any:
        """An object of the type, of the parameters' values and `more` fields.

        Raises
        ------
        InputError
            What has no meaning, by the names of the parameters.
        """
        values = {one: field_value(self.kind, one, given[name]) for name, one in self.keys.items()}
        try:
            return self.kind(**values, **more)
        except InputError as error:
            names = {one: name for name, one in self.keys.items()}
            told = [replace(one, key=names.get(one.key, one.key)) for one in error.problems]
            raise InputError(told) from None


class JobOptions:
    """Parameters of a program, and the job that they make.

    Parameters
    ----------
    parameters : sequence of Parameter or Section
        In the order in which they are shown; where two are of one name, the first is taken.
    rules : callable
        Which of them have no effect, from the values of all.
    make : callable
        The job, from the values of all.
    strategies : sequence of str
        Strategies that the job may have, the first by default.
    fields : mapping of (type, str) to str
        Parameters that set fields and are of no section.

    Attributes
    ----------
    names : dict of (type, str) to str
        The parameter that sets a field of a type.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter | Section],
        rules: Rules,
        make: Callable[[Mapping[str, Any]], Job],
        *,
        strategies: Sequence[str],
        fields: Mapping[tuple[type[Any], str], str] | None = None,
    ) -> None:
        self.parameters: dict[str, Parameter] = {_STACK.name: _STACK}
        self.names: dict[tuple[type[Any], str], str] = dict(fields or {})
        for one in parameters:
            if isinstance(one, Section):
                self.names |= {(one.kind, field): name for name, field in one.keys.items()}
            for parameter in one.parameters() if isinstance(one, Section) else [one]:
                self.parameters.setdefault(parameter.name, parameter)
        self.rules, self._make, self.strategies = rules, make, tuple(strategies)

    def completed(self, given: Mapping[str, Any], *, folder: str | os.PathLike[str] = ".") -> dict[str, Any]:
        """Values of all parameters: those that are given, else the stack's where they have an effect, else defaults.

        Parameters
        ----------
        given : mapping
        folder : path
            Where the path of a stack begins.

        Raises
        ------
        InputError
            There is no such stack, it is wrong, or it is of another strategy.
        """
        values = {name: one.default for name, one in self.parameters.items()} | dict(given)
        if not values["stack"]:
            return values
        if values["stack"].endswith(".toml"):
            values["stack"] = str(Path(folder) / values["stack"])
        stack = _loaded(values["stack"])
        strategy = values.get("strategy", self.strategies[0])
        if stack.strategy != strategy:
            message = f"this stack is of strategy {stack.strategy}, and has nothing for {strategy}"
            expected = f'strategy = "{stack.strategy}", another stack, or none'
            raise InputError(Problem(message, key="stack", value=stack.name, expected=expected))
        for one in stack.options:
            if (one.kind, one.field) not in self.names:
                message = f"strategy {strategy} has no use for {one.field}, which this stack sets"
                raise InputError(Problem(message, key="stack", value=stack.name, expected="another stack, or none"))
        names = {self.names[one.kind, one.field]: one for one in stack.options}
        added = {name: file_value(one.kind, one.field, one.value) for name, one in names.items() if name not in given}
        whole = values | added
        unused = {name: rule for rule in self.rules(whole) if not rule.used for name in rule.names}
        for name, one in names.items():
            if name in added and name in unused and one.kind in (Stack, LayerKernels):
                message = f"{unused[name].why}, and this stack sets {one.field}"
                expected = f"{unused[name].expected}, or another stack"
                raise InputError(Problem(message, key="stack", value=stack.name, expected=expected))
        return whole | {name: self.parameters[name].default for name in added if name in unused}

    def made(self, given: Mapping[str, Any]) -> Job:
        """The job.

        Raises
        ------
        InputError
            What has no meaning, or no effect beside the others: all of it.
        """
        given = self.completed(given)
        problems = idle_problems(self.parameters, self.rules, given)
        with gathered(problems):
            job = self._make(given)
        if problems:
            raise InputError(problems)
        return job


#: the parameter that names a stack
_STACK = Parameter("stack", str, "", "software stack: a shipped one, or a file of your own", "Stack")


def stack_of(given: Mapping[str, Any], *, kernels: LayerKernels, **parts: Any) -> Stack:
    """The stack that parameters name, with `parts`, and what is simulated in place of its kernels and optimizer.

    The allocator is the given one, whether a stack is named or not.
    """
    stack = _loaded(given["stack"]) if given["stack"] else Stack()
    if stack.optimizer:
        parts["optimizer"] = given["optimizer"]
    if stack.kernels != LayerKernels():
        parts["kernels"] = kernels
    if "allocator" in given:
        parts["allocator"] = given["allocator"]
    return replace(stack, **parts)


def set_by_stack(given: Mapping[str, Any], kind: type[Any], one: str, name: str) -> bool:
    """Whether a stack is named that sets a field as the parameter `name` has it."""
    if not given["stack"]:
        return False
    options = _loaded(given["stack"]).options
    return any(
        (each.kind, each.field) == (kind, one) and file_value(kind, one, each.value) == given[name] for each in options
    )


def _loaded(name: str) -> Stack:
    try:
        return load_stack(name)
    except UnknownNameError as error:
        raise InputError(Problem(str(error), key="stack", value=name)) from None


@contextmanager
def gathered(problems: list[Problem]) -> Iterator[None]:
    """Add the problems of an `InputError` inside to `problems`, and raise all of them together."""
    try:
        yield
    except InputError as error:
        raise InputError([*problems, *error.problems]) from None
