"""Fields of a job and of what it is made of: their types, checked before the run, and which of them files set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from simperf.errors import InputError, Problem

__all__ = ["PARAMETERS", "keys", "refuse_types"]

#: metadata of a field: which fields of the dataclass that it is are parameters of a program
PARAMETERS = "parameters"


def keys(*names: str, **renamed: str) -> Mapping[str, Mapping[str, str]]:
    """Metadata of a field that is a dataclass itself: which of its fields a file sets; the others keep the default's.

    Parameters
    ----------
    names : str
        Fields that are parameters under their own names.
    renamed : str
        Others, as ``parameter="field"``.

    Notes
    -----
    Two parameters of a program, ``steps`` and ``variation``::

        @dataclass(frozen=True, slots=True)
        class Options:
            steps: int = 2
            disturbances: Disturbances = field(default=Disturbances(), metadata=keys("variation"))
    """
    return {PARAMETERS: {**{name: name for name in names}, **renamed}}


def refuse_types(value: Any) -> None:
    """Refuse a dataclass of which a field, or one of the dataclasses in it, holds a value of another type.

    Raises
    ------
    InputError
        All of them.
    """
    problems = list(_problems_of_types(value))
    if problems:
        raise InputError(problems)


def _problems_of_types(value: Any, at: str = "") -> Iterator[Problem]:
    """Fields of a dataclass, and of the dataclasses in it, that hold a value of another type.

    Parameters
    ----------
    value : object
        A dataclass.
    at : str
        Key of the value itself, which begins those of its fields.

    Yields
    ------
    Problem
        With the key, the value and the type that is meant.
    """
    kind: Any = type(value)
    hints = _hints(kind)
    for one in fields(value) if hints else ():
        given, key = getattr(value, one.name), f"{at}{one.name}"
        expected = _expected(hints[one.name], given)
        if expected:
            choice = get_origin(hints[one.name]) is Literal
            message = "not one of the choices" if choice else "a value of another type is expected"
            yield Problem(message, key=key, value=repr(given), expected=expected)
        elif is_dataclass(given) and not isinstance(given, type):
            yield from _problems_of_types(given, f"{key}.")


@cache
def _hints(kind: Any) -> dict[str, Any]:
    try:
        return get_type_hints(kind)
    except NameError:  # a type of a model's work, named for type checkers only
        return {}


def _expected(hint: Any, given: Any) -> str:
    """What a field of the type `hint` may hold, where `given` is something else; else an empty text."""
    if isinstance(hint, UnionType) or get_origin(hint) is Union:
        each = [_expected(one, given) for one in get_args(hint)]
        return " or ".join(each) if all(each) else ""
    if hint is type(None):
        return "" if given is None else "None"
    if hint is bool:
        return "" if isinstance(given, bool) else "True or False"
    if hint is int:
        return "" if isinstance(given, Integral) and not isinstance(given, bool) else "a whole number"
    if hint is float:
        return "" if isinstance(given, Real) and not isinstance(given, bool) else "a number, in SI units"
    if hint is str:
        return "" if isinstance(given, str) else "a text"
    origin = get_origin(hint)
    if origin is Literal:
        known = get_args(hint)
        return "" if given in known else ", ".join(map(str, known))
    if origin is tuple:
        return "" if isinstance(given, tuple | list) else "a tuple"
    if origin is Mapping:
        return "" if isinstance(given, Mapping) else "a mapping"
    if isinstance(hint, type) and is_dataclass(hint):
        return "" if isinstance(given, hint) else f"{hint.__name__}(...)"
    return ""
