"""Problems of a file: what pydantic finds wrong with it, in plain words, with file, line and key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import ValidationError

from simperf.errors import Problem, nearest
from simperf.files import TomlFile

__all__ = ["explain", "key_of", "problems_of"]

#: what pydantic calls a choice of types, such as list[str], which is no key
_CHOICE = re.compile(r"^[a-z][\w-]*\[.*\]$|^constrained-")

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


def key_of(row: Mapping[str, Any], *types: str) -> tuple[str | int, ...]:
    """Key path of an error of pydantic, without the choices of types that it tells, `types` among them.

    A key that is unknown or missing is the last of a path, however it is called.
    """
    loc: tuple[str | int, ...] = row["loc"]
    last = loc[-1:] if row["type"] in ("extra_forbidden", "missing") else ()
    rest = loc[: len(loc) - len(last)]
    kept = (part for part in rest if isinstance(part, int) or not (_CHOICE.search(part) or part in types))
    return (*kept, *last)


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
    if kind == "finite_number":
        return toml.problem(key, "a finite number is expected", value=shown)
    if kind == "union_tag_invalid":  # a list where a number stands
        return toml.problem(key, "a value of another type is expected", value=shown, expected="a number")
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
        one = cast(Mapping[str, Any], row)
        loc = key_of(one)
        loc = loc[:-1] if row["type"] == "string_type" and loc[-1:] == ("str",) else loc
        yield explain(one, toml, (*at, *loc), known)
