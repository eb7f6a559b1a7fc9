"""The parameters of programs that play a `Job`: fields of its types, under the names that files give them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from simperf.errors import InputError, Problem
from simperf.programs.registry import Parameter, Rules, field_value
from simperf.programs.unused import idle_problems
from simperf.training.job import Job

__all__ = ["JobOptions", "Section", "gathered"]


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
        """An object of the type, of the parameters' values and `more` fields."""
        return self.kind(**{one: field_value(self.kind, one, given[name]) for name, one in self.keys.items()}, **more)


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
    """

    def __init__(
        self, parameters: Sequence[Parameter | Section], rules: Rules, make: Callable[[Mapping[str, Any]], Job]
    ) -> None:
        self.parameters: dict[str, Parameter] = {}
        for one in parameters:
            for parameter in one.parameters() if isinstance(one, Section) else [one]:
                self.parameters.setdefault(parameter.name, parameter)
        self.rules, self._make = rules, make

    def made(self, given: Mapping[str, Any]) -> Job:
        """The job.

        Raises
        ------
        InputError
            What has no meaning, or no effect beside the others: all of it.
        """
        problems = idle_problems(self.parameters, self.rules, given)
        with gathered(problems):
            job = self._make(given)
        if problems:
            raise InputError(problems)
        return job


@contextmanager
def gathered(problems: list[Problem]) -> Iterator[None]:
    """Add the problems of an `InputError` inside to `problems`, and raise all of them together."""
    try:
        yield
    except InputError as error:
        raise InputError([*problems, *error.problems]) from None
