"""Frozen dataclasses as tables of a file: every problem with its line, and back again without what is left out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from simperf.errors import InputError, Problem, nearest
from simperf.files import TomlFile, write_text

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["FORMAT", "read_fields", "table_of", "write_table"]

#: format of models and layouts that this version writes, and the only one that it reads
FORMAT = 1

Key = tuple[str | int, ...]
T = TypeVar("T", bound="DataclassInstance")


def read_fields(kind: type[T], data: Mapping[str, Any], toml: TomlFile, at: Key = (), *, what: str) -> T:
    """Make a dataclass of a table that has its fields as keys, and maybe ``format``.

    Parameters
    ----------
    kind : type
        A dataclass that checks its fields and names them as keys of its problems.
    data : mapping
        The table.
    toml : TomlFile
        Where it stands.
    at : tuple of str or int
        Its key path in the file.
    what : str
        What the table is, for messages.

    Raises
    ------
    InputError
        All that is wrong with it, with file, line and key.
    """
    known = [one.name for one in fields(kind)]
    problems = _of_format(data, toml, at, what)
    given = {}
    for key, value in data.items():
        if key in known:
            given[key] = value
        elif key != "format":
            hint = nearest(key, known)
            expected = "" if hint else ", ".join(known)
            problems.append(toml.problem((*at, key), f"{what} has no {key!r}{hint}", expected=expected))
    missing = [one.name for one in fields(kind) if one.default is MISSING and one.name not in given]
    problems += [replace(toml.problem((*at, key), f"{what} needs it"), value="") for key in missing]
    if missing:
        raise InputError(problems)
    try:
        made = kind(**given)
    except InputError as error:
        problems += [
            replace(toml.problem((*at, *one.key.split(".")), one.message), value=one.value, expected=one.expected)
            for one in error.problems
        ]
    if problems:
        raise InputError(problems)
    return made


def _of_format(data: Mapping[str, Any], toml: TomlFile, at: Key, what: str) -> list[Problem]:
    found = data.get("format", FORMAT)
    if found == FORMAT and not isinstance(found, bool):
        return []
    message = f"{what} of another format than this version reads"
    return [toml.problem((*at, "format"), message, value=found, expected=f"format = {FORMAT}")]


def table_of(value: DataclassInstance) -> dict[str, Any]:
    """The table of a dataclass: ``format``, and the fields that differ from their defaults."""
    return {
        "format": FORMAT,
        **{one.name: found for one in fields(value) if (found := getattr(value, one.name)) != one.default},
    }


def write_table(table: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a table to a TOML file."""
    import tomli_w

    write_text(path, tomli_w.dumps(table))
