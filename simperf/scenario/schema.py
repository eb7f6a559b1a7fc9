"""The tables of a scenario's file, and plain words for what pydantic finds wrong with them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError

from simperf.answer import Better
from simperf.errors import Problem
from simperf.file_problems import problems_of
from simperf.files import TomlFile
from simperf.hardware.quantity import Efficiency
from simperf.hardware.schema import TomlTable

__all__ = [
    "AnswerTable",
    "CalibrationTable",
    "CostTable",
    "ExecutionTable",
    "HeadTable",
    "RunTable",
    "VariantTable",
    "read_table",
]

Key = tuple[str | int, ...]
Text = Annotated[str, Field(strict=True)]
T = TypeVar("T", bound=TomlTable)


class AnswerTable(TomlTable):
    """``[scenario] answer``: the number that answers the question, and which end of it is better."""

    metric: Annotated[str, Field(strict=True, min_length=1)]
    better: Better | None = None


class HeadTable(TomlTable):
    """``[scenario]``: what the file is for."""

    title: Text = ""
    question: Text = ""
    rows: list[Text] = Field(default_factory=list)
    source: Text = ""
    notes: Text = ""
    case: Text = ""
    fitted: Text = ""
    answer: AnswerTable | None = None


class ExecutionTable(TomlTable):
    """``[execution]``: how operations reach the devices."""

    mode: Text = "eager"


class CostTable(TomlTable):
    """``[cost]``: how long an operation takes alone."""

    corner: Literal["smooth", "sharp"] = "smooth"
    efficiency: Efficiency = Field(default_factory=dict)


class CalibrationTable(TomlTable):
    """``[calibration]``: profiles whose fitted constants stand for the catalogue's."""

    use: Text | list[Text] = ""
    draw: Annotated[int, Field(strict=True, ge=0, lt=2**31)] = 0


class RunTable(TomlTable):
    """``[run]``: what a repetition needs, and whether runs and studies may take as long as they will."""

    seed: Annotated[int, Field(strict=True, ge=0, lt=2**63)] = 0
    force: Annotated[bool, Field(strict=True)] = False


class VariantTable(TomlTable):
    """``[[compare]]``: a variant of the file."""

    name: Annotated[str, Field(strict=True, min_length=1)]
    set: dict[str, Any] = Field(default_factory=dict)
    expect: dict[str, Any] = Field(default_factory=dict)
    measured: dict[str, Any] = Field(default_factory=dict)


def read_table(model: type[T], data: Any, toml: TomlFile, at: Key, problems: list[Problem]) -> T | None:
    """Read `data`, which stands at key path `at`, as `model`, noting all that is wrong with it."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems += problems_of(error, toml, at, known=list(model.model_fields))
        return None
