"""The schema of a traced model's file: every row's types, and the range of every number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError

from simperf.errors import InputError, Problem
from simperf.file_problems import explain
from simperf.files import TomlFile

__all__ = ["check_document"]

#: largest amount: elements, FLOP, or a size of a matrix product
_HUGE = 1e18
#: problems that are told of one file
_MOST_TOLD = 20

_Text = Annotated[str, Field(strict=True)]
_Index = Annotated[int, Field(strict=True, ge=0, le=10**9)]
_Count = Annotated[int, Field(strict=True, ge=0, le=10**6)]
_Size = Annotated[int, Field(strict=True, ge=0, le=10**12)]
_Whole = Annotated[int, Field(strict=True, ge=0, le=_HUGE)]
_Real = Annotated[float, Field(strict=True, ge=0, le=_HUGE, allow_inf_nan=False)]


def _kind(value: Any) -> str:
    """Which of two types a value is meant to be: a wrong one is reported for that one alone."""
    return "row" if isinstance(value, list | tuple) else "real" if isinstance(value, float) else "whole"


def _length(row: Any) -> str:
    return "long" if isinstance(row, list | tuple) and len(row) > 5 else "short"


_Number = Annotated[Annotated[_Whole, Tag("whole")] | Annotated[_Real, Tag("real")], Discriminator(_kind)]
_Amount = Annotated[
    Annotated[_Whole, Tag("whole")] | Annotated[_Real, Tag("real")] | Annotated[tuple[_Number, _Number], Tag("row")],
    Discriminator(_kind),
]
_Shape = Annotated[list[_Size], Field(max_length=16)]
_Slice = tuple[_Index, _Amount, _Count]
_Operand = Annotated[
    Annotated[_Index, Tag("whole")] | Annotated[_Index, Tag("real")] | Annotated[_Slice, Tag("row")],
    Discriminator(_kind),
]
_End = Annotated[int, Field(strict=True, ge=-1, le=10**9)]
_Unnamed = tuple[_Amount, _Count, _Index, _Index, _End]
_Named = tuple[_Amount, _Count, _Index, _Index, _End, _Text]
_Storage = Annotated[Annotated[_Unnamed, Tag("short")] | Annotated[_Named, Tag("long")], Discriminator(_length)]
_Plain = tuple[_Text, _Index, _Amount, list[_Operand], list[_Operand]]
_Product = tuple[_Text, _Index, _Amount, list[_Operand], list[_Operand], list[_Amount]]
_Kernel = Annotated[Annotated[_Plain, Tag("short")] | Annotated[_Product, Tag("long")], Discriminator(_length)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class _Optimizer(_Table):
    name: _Text
    states: _Count
    temporaries: _Count
    kernels: list[tuple[_Text, _Number, _Count, _Count] | tuple[_Text, _Number, _Count, _Count, bool]]
    looped: bool = False


class _Input(_Table):
    shape: _Shape
    dtype: _Text


class _Document(_Table):
    format: _Text
    name: _Text
    title: _Text
    source: _Text
    sample: _Text
    notes: list[_Text]
    traced: dict[str, _Text]
    forward: _Index
    optimizer: _Optimizer
    inputs: list[_Input]
    parameters: list[tuple[_Text, _Shape, _Index]]
    gradients: list[tuple[_Index, _Index, _Index]]
    storages: list[_Storage]
    tensors: list[_Index]
    kinds: list[tuple[_Text, _Text]]
    ops: list[_Kernel]


@cache
def _built() -> type[_Document]:
    _Document.model_rebuild()
    return _Document


def check_document(data: dict[str, Any], file: TomlFile) -> None:
    """Refuse a document whose rows are not those of a traced model.

    Raises
    ------
    InputError
        What is wrong with it, with file, line and key.
    """
    try:
        _built().model_validate(data)
    except ValidationError as error:
        raise InputError(_problems(error, file)) from None


def _problems(error: ValidationError, file: TomlFile) -> list[Problem]:
    """A problem for each key."""
    told: dict[tuple[str | int, ...], Problem] = {}
    for row in error.errors(include_url=False):
        loc = tuple(part for part in row["loc"] if part not in ("whole", "real", "row", "short", "long"))
        if loc not in told:
            problem = explain(cast(Mapping[str, Any], row), file, loc, sorted(_KEYS))
            told[loc] = replace(problem, message=f"not a traced model: {problem.message}")
        if len(told) == _MOST_TOLD:
            break
    return list(told.values())


_KEYS = frozenset((*_Document.model_fields, *_Optimizer.model_fields, *_Input.model_fields))
