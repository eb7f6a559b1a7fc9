"""The tables of a scenario's file, and plain words for what pydantic finds wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar, cast

from pydantic import Field, ValidationError

from simperf.errors import Problem, nearest
from simperf.files import TomlFile
from simperf.hardware.schema import Efficiency, Table

__all__ = ["CostTable", "ExecutionTable", "HeadTable", "RunTable", "VariantTable", "problems_of", "read_table"]

Key = tuple[str | int, ...]
Text = Annotated[str, Field(strict=True)]
T = TypeVar("T", bound=Table)


class HeadTable(Table):
    """``[scenario]``: what the file is for."""

    title: Text = ""
    question: Text = ""
    rows: list[Text] = Field(default_factory=list)
    source: Text = ""
    notes: Text = ""
    case: Text = ""
    fitted: Text = ""


class ExecutionTable(Table):
    """``[execution]``: how operations reach the devices."""

    mode: Text = "eager"


class CostTable(Table):
    """``[cost]``: how long an operation takes alone."""

    corner: Literal["smooth", "sharp"] = "smooth"
    efficiency: Efficiency = Field(default_factory=dict)


class RunTable(Table):
    """``[run]``: what a repetition needs."""

    seed: Annotated[int, Field(strict=True, ge=0, lt=2**63)] = 0


class VariantTable(Table):
    """``[[compare]]``: a variant of the file."""

    name: Annotated[str, Field(strict=True, min_length=1)]
    set: dict[str, Any] = Field(default_factory=dict)
    expect: dict[str, Any] = Field(default_factory=dict)
    measured: dict[str, Any] = Field(default_factory=dict)


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


def read_table(model: type[T], data: Any, toml: TomlFile, at: Key, problems: list[Problem]) -> T | None:
    """Read `data`, which stands at key path `at`, as `model`, noting all that is wrong with it."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems += problems_of(error, toml, at, known=list(model.model_fields))
        return None


def problems_of(error: ValidationError, toml: TomlFile, at: Key, *, known: list[str]) -> Iterator[Problem]:
    """Say what pydantic found wrong with the value at key path `at`, whose keys are `known`."""
    for row in error.errors(include_url=False):
        loc = tuple(part for part in row["loc"] if part != "[key]")
        yield _problem(cast(Mapping[str, Any], row), toml, (*at, *loc), known)


def _problem(row: Mapping[str, Any], toml: TomlFile, key: Key, known: list[str]) -> Problem:
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
