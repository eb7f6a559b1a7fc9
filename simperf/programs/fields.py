"""Programs that take a dataclass: its fields, and those of the dataclasses in it, are the program's parameters."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from typing import Any

from simperf.errors import InputError, Problem
from simperf.programs.parameters import Parameter, Rules, field_types, field_value, idle_problems, no_rules
from simperf.training.field_types import PARAMETERS, keys

__all__ = ["Fields", "keys"]


class Fields:
    """A dataclass whose fields, and those of the dataclasses in it, are the parameters of a program.

    Parameters
    ----------
    kind : type
        The dataclass. A field that is one itself gives all its fields as parameters, or those that `keys` names.
    rules : callable
        Which of them have no effect, from the values of all.
    """

    def __init__(self, kind: type[Any], rules: Rules = no_rules) -> None:
        self._all = _Group(kind, None, {one.name: one.name for one in fields(kind)})
        self.parameters = {one.name: one for one in self._all.parameters()}
        self._rules = rules

    def completed(self, given: Mapping[str, Any], *, folder: str | os.PathLike[str] = ".") -> dict[str, Any]:
        """Values of all parameters."""
        return {name: one.default for name, one in self.parameters.items()} | dict(given)

    def made(self, given: Mapping[str, Any]) -> Any:
        """The dataclass, of values of parameters.

        Raises
        ------
        InputError
            What has no meaning, or no effect beside the others: all of it.
        """
        given = self.completed(given)
        idle = idle_problems(self.parameters, self._rules, given)
        try:
            made = self._all.made(given)
        except InputError as error:
            raise InputError([*error.problems, *idle]) from None
        if idle:
            raise InputError(idle)
        return made


@dataclass(frozen=True, slots=True)
class _Group:
    """A dataclass of which fields are parameters.

    Parameters
    ----------
    kind : type
    default : object
        Where the others, and the parameters' defaults, come from; None for the type's own.
    keys : mapping of str to str
        Parameter to field.
    """

    kind: type[Any]
    default: Any
    keys: Mapping[str, str]

    def parameters(self) -> Iterator[Parameter]:
        """One for each field, and for each of the groups in it, in their order."""
        inner = self._inner()
        for name, one in self.keys.items():
            if one in inner:
                yield from inner[one].parameters()
            else:
                default = MISSING if self.default is None else getattr(self.default, one)
                yield Parameter.of_field(self.kind, one, name=name, default=default)

    def made(self, given: Mapping[str, Any]) -> Any:
        """The dataclass, of the parameters' values; what is wrong is reported by their names.

        Raises
        ------
        InputError
            What has no meaning.
        """
        inner, made = self._inner(), {}
        problems: list[Problem] = []
        for one, each in inner.items():
            try:
                made[one] = each.made(given)
            except InputError as error:
                problems += error.problems
        if problems:
            raise InputError(problems)
        plain = {name: one for name, one in self.keys.items() if one not in inner}
        values = made | {one: field_value(self.kind, one, given[name]) for name, one in plain.items()}
        try:
            return self.kind(**values) if self.default is None else replace(self.default, **values)
        except InputError as error:
            names = {one: name for name, one in plain.items()}
            raise InputError([replace(one, key=names.get(one.key, one.key)) for one in error.problems]) from None

    def _inner(self) -> dict[str, _Group]:
        kind: Any = self.kind
        hints = field_types(kind)
        return {
            one.name: _group_of(one, hints[one.name], self.default)
            for one in fields(self.kind)
            if one.name in self.keys.values() and isinstance(hints[one.name], type) and is_dataclass(hints[one.name])
        }


def _group_of(one: Field[Any], kind: type[Any], owner: Any) -> _Group:
    """The group that a field is, by the default of its owner or its own."""
    factory: Any = one.default_factory
    own = factory() if factory is not MISSING else None if one.default is MISSING else one.default
    default = own if owner is None else getattr(owner, one.name)
    return _Group(kind, default, one.metadata.get(PARAMETERS) or {each.name: each.name for each in fields(kind)})
