"""Parameters of programs: what a file may say of each, the field that it sets, and when it would have no effect."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from annotated_types import Ge

from simperf.errors import InputError, Problem, SimperfError

__all__ = [
    "Count",
    "Events",
    "Parameter",
    "Rules",
    "Unless",
    "field_types",
    "field_value",
    "file_value",
    "idle_problems",
    "no_rules",
    "parameter_docs",
    "uncounted",
]

#: how many, one at least; a scenario file is held to it
Count = Annotated[int, Ge(1)]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a program: its annotation (with its `Unit`), default and meaning, and the type that it is of."""

    name: str
    annotation: Any
    default: Any
    doc: str
    section: str = ""

    @classmethod
    def of_field(cls, kind: Any, field: str, *, name: str = "", default: Any = MISSING) -> Parameter:
        """The parameter that sets a field of a dataclass; files say lists for its tuples, and auto for its None.

        Parameters
        ----------
        kind : type
            The dataclass, whose docstring says what its fields mean.
        field : str
        name : str
            Of the parameter; the field's by default.
        default : object
            Instead of the field's.
        """
        hint = field_types(kind)[field]
        if default is MISSING:
            one = next(each for each in fields(kind) if each.name == field)
            factory: Any = one.default_factory
            default = one.default if factory is MISSING else factory()
        if default is MISSING:
            raise SimperfError(f"the field {field!r} of {kind.__name__} needs a default, such as `n: int = 100`")
        if hint == bool | None:
            hint, default = _AUTO, _WORDS[default]
        elif get_origin(hint) is tuple:
            hint, default = list[get_args(hint)[0]], list(default)  # type: ignore[misc]
        elif get_origin(hint) is not None and issubclass(_plain(get_origin(hint)), Mapping):
            hint, default = dict[get_args(hint)], dict(default)  # type: ignore[misc]
        return cls(name or field, hint, default, parameter_docs(kind.__doc__ or "").get(field, ""), kind.__name__)


#: a choice that is made where nobody makes it
_AUTO = Literal["auto", "yes", "no"]
_WORDS = {None: "auto", True: "yes", False: "no"}


@cache
def field_types(kind: Any) -> dict[str, Any]:
    """Annotation of each field of a dataclass, with its unit."""
    return get_type_hints(kind, include_extras=True)


def _plain(origin: Any) -> type[Any]:
    return origin if isinstance(origin, type) else object


def field_value(kind: Any, field: str, value: Any) -> Any:
    """Value of a field of a dataclass, where a parameter made by `Parameter.of_field` is `value`."""
    hint = field_types(kind)[field]
    if hint == bool | None:
        return {word: choice for choice, word in _WORDS.items()}[value]
    return tuple(value) if get_origin(hint) is tuple else value


def file_value(kind: Any, field: str, value: Any) -> Any:
    """Value of the parameter made by `Parameter.of_field`, where a field of a dataclass is `value`."""
    if field_types(kind)[field] == bool | None:
        if value is not None and not isinstance(value, bool):
            message = "a value of another type is expected"
            raise InputError(Problem(message, key=field, value=repr(value), expected="True, False, or None for auto"))
        return _WORDS[value]
    return list(value) if isinstance(value, tuple) else value


def parameter_docs(doc: str) -> dict[str, str]:
    """Description of each parameter of a NumPy-style docstring, in one line."""
    found: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc(doc).partition("Parameters\n")[2].splitlines()[1:]:
        if line and not line.startswith(" "):
            name = line.partition(":")[0].strip()
        elif name and line.strip():
            found[name] = f"{found.get(name, '')} {line.strip()}".strip()
    return found


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


def no_rules(given: Mapping[str, Any]) -> Iterable[Unless]:
    """Rules of a program of which every parameter always has an effect."""
    return ()


#: from the value of each parameter to about how many events a run plays; what it counts grows with them
Events = Callable[[Mapping[str, Any]], float]


def uncounted(given: Mapping[str, Any]) -> float:
    """Estimate of a program that says nothing about its events: none are counted before it is simulated."""
    return 0.0


def idle_problems(parameters: Mapping[str, Parameter], rules: Rules, given: Mapping[str, Any]) -> list[Problem]:
    """Parameters that differ from their defaults although they have no effect beside the others, which are `given`."""
    return [
        Problem(rule.why, key=name, value=str(given[name]), expected=f"{rule.expected}, or no {name}")
        for rule in rules(given)
        for name in rule.names
        if not rule.used and given[name] != parameters[name].default
    ]
