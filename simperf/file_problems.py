"""Problems of a file: what pydantic finds wrong with it, in plain words, with file, line and key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import ValidationError

from simperf.errors import Problem, nearest
from simperf.files import TomlFile

__all__ = ["explain", "problems_of"]

_EXPECTED = {
    "string": 'a text in quotes, such as "eager"',
    "int": "a whole number, such as 100",
    "float": "a number, such as 0.8",
    "bool": "true or false",
    "list": "a list in [ ]",
    "tuple": "a list in [ ]",
    "dict": "a table in { }",
    "model": "a table",
}


def explain(row: Mapping[str, Any], toml: TomlFile, key: tuple[str | int, ...], known: list[str]) -> Problem:
    """Say what one error of pydantic means for the value at `key` of a file, whose table has the keys `known`."""
    kind, value, context = row["type"], row.get("input", ""), row.get("ctx", {})
    shown = value if isinstance(value, str | int | float) else ""
    if kind == "missing":
        return toml.problem(key, "this key is missing")
    if kind == "extra_forbidden":
        return toml.problem(key, f"unknown key{nearest(str(key[-1]), known)}")
    if kind == "literal_error":
        allowed = str(context["expected"]).replace(" or ", ", ").replace("'", "").split(", ")
        hint = nearest(str(value), allowed)
        return toml.problem(key, "not one of the choices" + hint, value=shown, expected="one of " + ", ".join(allowed))
    if kind == "value_error":
        return toml.problem(key, str(context["error"]), value=shown)
    word = kind.removesuffix("_type").removesuffix("_parsing").removesuffix("_from_float")
    if word in _EXPECTED:
        return toml.problem(key, "a value of another type is expected", value=shown, expected=_EXPECTED[word])
    words = {"greater_than_equal": "ge", "greater_than": "gt", "less_than_equal": "le", "less_than": "lt"}
    if kind in words:
        text = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}[words[kind]]
        return toml.problem(key, f"{text} {context[words[kind]]} is expected", value=shown)
    return toml.problem(key, str(row["msg"]), value=shown)


def problems_of(
    error: ValidationError, toml: TomlFile, at: tuple[str | int, ...], *, known: list[str]
) -> Iterator[Problem]:
    """Say what pydantic found wrong with the value at key path `at`, whose keys are `known`."""
    for row in error.errors(include_url=False):
        # what pydantic calls a choice of types, such as list[str], is no key
        loc = tuple(part for part in row["loc"] if isinstance(part, int) or "[" not in part)
        loc = loc[:-1] if row["type"] == "string_type" and loc[-1:] == ("str",) else loc
        yield explain(cast(Mapping[str, Any], row), toml, (*at, *loc), known)
