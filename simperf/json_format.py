"""Files of JSON that have a format and a schema: checked as they are read, all that is wrong at once."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from simperf.errors import InputError, Problem
from simperf.file_problems import explain, key_of
from simperf.files import TomlFile, dotted

__all__ = ["FORMAT", "JsonTable", "finite", "json_text", "read_format"]

#: format of results and plans that this version writes, and the only one that it reads; raised when a key changes its
#: meaning or is removed
FORMAT = 1
#: problems that are told of one file
_MOST = 10

T = TypeVar("T", bound=BaseModel)


def finite(value: float) -> float | None:
    """A number as JSON has it: None of one that is infinite, or none."""
    return value if math.isfinite(value) else None


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """A value as JSON that every program reads: null where a number is infinite, or none."""
    return json.dumps(_finite(value), indent=indent, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class JsonTable(BaseModel):
    """A table of such a file: no other keys than its fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def read_format(kind: type[T], data: Any, what: str, *, file: str | TomlFile, again: str) -> T:
    """The content of a file, checked.

    Parameters
    ----------
    kind : type
        The schema.
    data : object
        What the JSON says.
    what : str
        What a file is that cannot be read, such as ``"not a saved result"``.
    file : str or TomlFile
        It, or its name, for messages.
    again : str
        How to make a file of this format.

    Raises
    ------
    InputError
        It is no such file, or one of another format.
    """
    place = file if isinstance(file, TomlFile) else TomlFile(file, {}, "")
    if not isinstance(data, Mapping):
        raise InputError(place.problem((), f"{what}: a table is expected"))
    if "format" not in data:
        message = f"{what}: the key `format` is missing"
        raise InputError(Problem(message, file=place.path, expected=f'"format": {FORMAT}'))
    if data["format"] != FORMAT or isinstance(data["format"], bool):
        message = f"{what} that this simperf reads: format {data['format']!r}"
        raise InputError(place.problem(("format",), message, expected=f'"format": {FORMAT}; {again}'))
    try:
        return kind.model_validate(dict(data))
    except ValidationError as error:
        raise InputError(_problems(error, kind, what, place, again)) from None


def _problems(error: ValidationError, kind: type[BaseModel], what: str, file: TomlFile, again: str) -> list[Problem]:
    """What pydantic found wrong, a problem for each key."""
    told: dict[tuple[str | int, ...], Problem] = {}
    for row in error.errors(include_url=False):
        one = cast(Mapping[str, Any], row)
        loc = key_of(one, "int", "float")
        found = explain(one, file, loc, list(kind.model_fields) if len(loc) == 1 else [])
        message = found.message.removesuffix("; none is known")
        told[loc] = replace(
            found,
            message=f"{what}: {dotted(loc)}: {message}",
            key="",
            expected=found.expected or f"what was saved; {again}",
        )
        if len(told) == _MOST:
            break
    return list(told.values())
