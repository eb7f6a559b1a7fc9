"""Schemas of the files of parts: pydantic models, one a kind, made of the annotations of the part's class.

The models check each number's unit, sign and size as it is read; `validate` turns all that is
wrong into `Problem` rows with file and line, and refuses a number without a source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
)

from simperf.errors import Problem, nearest
from simperf.file_problems import explain
from simperf.files import TomlFile
from simperf.hardware.netstack import NetworkStackPart
from simperf.hardware.part import Part
from simperf.hardware.quantity import REQUIRED, InFile

__all__ = ["PartFile", "StackChoice", "TomlTable", "file_model", "unsourced", "validate"]


class TomlTable(BaseModel):
    """A table of a file; keys that it does not know are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class PartFile(TomlTable):
    """Keys that every part's file has."""

    kind: str
    title: str
    source: dict[str, str] = Field(default_factory=dict)


def _file_keys(part: type[Any], *, optional: bool = False) -> dict[str, Any]:
    """Key, type and default of each field of a part that its file may write, for `pydantic.create_model`.

    Parameters
    ----------
    part : type
        A class of parts, or of what a part's file holds a list of.
    optional : bool
        Whether every key may be left out, as where a table changes some numbers of a part.
    """
    hints = get_type_hints(part, include_extras=True)
    keys: dict[str, Any] = {}
    for item in fields(part):
        hint, key, default = hints[item.name], item.name, item.default
        if item.name in ("name", "title", "sources"):
            continue
        written = next((mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, InFile)), None)
        if written is not None:
            if written.type is None:
                continue
            hint, key, default = written.type, written.key or key, written.default
            hint = _read_as(hint, key)
        elif default is MISSING:
            default = REQUIRED
        if optional:
            keys[key] = (hint | None, None)
        elif default is REQUIRED:
            keys[key] = (hint, ...)
        elif isinstance(default, dict):
            keys[key] = (hint, Field(default_factory=dict))
        else:
            keys[key] = (hint, default)
    return keys


def _read_as(kind: Any, key: str) -> Any:
    """The model of a list's entries in place of their class."""
    if get_origin(kind) is not list or not is_dataclass(entry := get_args(kind)[0]):
        return kind
    name = f"_{key.title()}"
    return list[create_model(name, __base__=TomlTable, **_file_keys(entry))]  # type: ignore[arg-type,misc]


if TYPE_CHECKING:

    class NetworkStackSpec(TomlTable):
        """A machine's network stack: one of the catalogue, with numbers of its own."""

        use: str
else:
    NetworkStackSpec = create_model(
        "NetworkStackSpec",
        __base__=TomlTable,
        __doc__="A machine's network stack: one of the catalogue, with numbers of its own.",
        use=(str, ...),
        **_file_keys(NetworkStackPart, optional=True),
    )


def _named_stack(value: Any) -> Any:
    return {"use": value} if isinstance(value, str) else value


#: the network stack of a machine's table: a name, or a table with ``use``
StackChoice = Annotated[NetworkStackSpec, BeforeValidator(_named_stack)]


def file_model(part: type[Part]) -> type[TomlTable]:
    """The model of the file of a class of parts, made of its annotations."""
    return create_model("_" + part.__name__.removesuffix("Part"), __base__=PartFile, **_file_keys(part))


_WORDS = (
    *("kind", "format", "title", "source", "technology", "architecture", "memory", "shared", "reduces", "vendor"),
    *("gpu", "dataset", "made", "machine", "versions", "model"),  # a profile is its own source
)


def validate(
    model: type[TomlTable], data: Mapping[str, Any], toml: TomlFile, *, at: tuple[str | int, ...] = ()
) -> tuple[TomlTable | None, list[Problem]]:
    """Read `data`, which stands at key path `at` of `toml`, as `model`; or say all that is wrong with it."""
    try:
        return model.model_validate(data), []
    except ValidationError as error:
        rows = [_problem(model, row, toml, at) for row in error.errors(include_url=False)]
        return None, sorted(rows, key=lambda row: row.line)


def unsourced(model: type[TomlTable], data: Mapping[str, Any], toml: TomlFile) -> list[Problem]:
    """Say which numbers of a part's file, a `model`, have no entry in its ``[source]`` table."""
    source = data.get("source")
    named: dict[str, Any] = source if isinstance(source, dict) else {}
    rows = []
    for key in named:
        if key != "default" and key.split(".", 1)[0] not in data:
            known = [name for name in data if name not in _WORDS] + ["default"]
            rows.append(toml.problem(("source", key), f"a source for a key that is not there{nearest(key, known)}"))
    for key, value in data.items():
        if key in _WORDS or key in named or "default" in named or key not in model.model_fields:
            continue
        if isinstance(value, dict) and all(f"{key}.{entry}" in named for entry in value):
            continue
        hint = f'[source] with {key} = "..." or default = "..."'
        rows.append(toml.problem((key,), "this number has no source", expected=hint))
    return rows


def _problem(model: type[TomlTable], row: Any, toml: TomlFile, at: tuple[str | int, ...]) -> Problem:
    where = tuple(part for part in row["loc"] if part != "[key]")
    return explain(row, toml, (*at, *where), _fields(model, where[:-1]))


def _fields(model: type[TomlTable], where: tuple[str | int, ...]) -> list[str]:
    """Keys that the table at `where` may have."""
    found: type[TomlTable] | None = model
    named = False
    for part in where:
        if named:  # what stands in a table of tables, under a name of people's choice
            named = False
        elif found is not None and isinstance(part, str):
            entry = found.model_fields.get(part)
            named = entry is not None and get_origin(entry.annotation) is dict
            kinds = (entry.annotation, *get_args(entry.annotation)) if entry else ()
            found = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, TomlTable)), None)
    return sorted(found.model_fields) if found is not None else []
