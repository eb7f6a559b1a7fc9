"""Files of JSON that have a format and a schema: checked as they are read, all that is wrong at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from simperf.errors import InputError, Problem
from simperf.files import dotted

__all__ = ["FORMAT", "JsonTable", "read_format"]

#: format of results and plans that this version writes, and the only one that it reads; raised when a key changes its
#: meaning or is removed
FORMAT = 1
#: what pydantic calls a choice of types, which is no key
_CHOICE = re.compile(r"\[|^constrained-|^(int|float)$")
#: problems that are told of one file
_MOST = 10

T = TypeVar("T", bound=BaseModel)


class JsonTable(BaseModel):
    """A table of such a file: no other keys than its fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def read_format(kind: type[T], data: Any, what: str, *, file: str, again: str) -> T:
    """The content of a file, checked.

    Parameters
    ----------
    kind : type
        The schema.
    data : object
        What the JSON says.
    what : str
        What a file is that cannot be read, such as ``"no saved result"``.
    file : str
        Its name, for messages.
    again : str
        How to make a file of this format.

    Raises
    ------
    InputError
        It is no such file, or one of another format.
    """
    if not isinstance(data, Mapping):
        raise InputError(Problem(f"{what}: a table is expected", file=file))
    if "format" not in data:
        raise InputError(Problem(f"{what}: the key `format` is missing", file=file, expected=f'"format": {FORMAT}'))
    if data["format"] != FORMAT or isinstance(data["format"], bool):
        message = f"{what} that this simperf reads: format {data['format']!r}"
        raise InputError(Problem(message, file=file, expected=f'"format": {FORMAT}; {again}'))
    try:
        return kind.model_validate(dict(data))
    except ValidationError as error:
        raise InputError(_problems(error, what, file)) from None


def _problems(error: ValidationError, what: str, file: str) -> list[Problem]:
    """What pydantic found wrong, a problem for each key."""
    told: dict[str, str] = {}
    for row in error.errors(include_url=False, include_input=False, include_context=False):
        loc = tuple(part for part in row["loc"] if isinstance(part, int) or not _CHOICE.search(part))
        told[dotted(loc)] = f"{row['msg'][:1].lower()}{row['msg'][1:]}"
    return [Problem(f"{what}: {key}: {message}", file=file) for key, message in list(told.items())[:_MOST]]
