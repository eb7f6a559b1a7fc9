"""Files to start from: a commented scenario, server or plan, and the line that names the schema of a file."""

from __future__ import annotations

import os
from pathlib import Path

from simperf.errors import InputError, Problem, UnknownNameError
from simperf.files import write_bytes, write_text
from simperf.json_format import json_text
from simperf.scenario import copy_scenario
from simperf.study.file_schemas import file_schema

__all__ = ["STARTS", "add_schema", "copy_with_schema", "write_start"]

_FOLDER = Path(__file__).parent / "starts"
#: kinds of files that can be started
STARTS = ("scenario", "server", "plan")


def write_start(kind: str, target: str | os.PathLike[str] = "") -> tuple[Path, Path | None]:
    """Write a commented file of a kind, which `simperf check` accepts as it stands.

    Parameters
    ----------
    kind : {"scenario", "server", "plan"}
    target : path, optional
        A new file, or a folder; default: ``KIND.toml`` here.

    Returns
    -------
    tuple of Path and Path or None
        The file, and the schema that was written beside it, if there was none.

    Raises
    ------
    UnknownNameError
        There is no such kind.
    InputError
        The file exists, which is never overwritten, or its folder does not.
    """
    if kind not in STARTS:
        raise UnknownNameError("kind of file", kind, STARTS)
    path = Path(target) if os.fspath(target) else Path(f"{kind}.toml")
    path = path / f"{kind}.toml" if path.is_dir() else path
    if not path.parent.is_dir():
        message, expected = "the folder of this file does not exist", "a name in an existing folder"
        raise InputError(Problem(message, file=str(path), expected=expected))
    if path.suffix != ".toml":
        raise InputError(Problem("the name must end in .toml", file=str(path), expected="FILE.toml"))
    if path.exists():
        raise InputError(Problem("the file exists and is not overwritten", file=str(path), expected="a new name"))
    write_bytes(path, (_FOLDER / f"{kind}.toml").read_bytes())
    return path, add_schema(path, kind)


def copy_with_schema(name: str, target: str | os.PathLike[str] = "") -> tuple[Path, Path | None]:
    """Copy a shipped scenario, with the line that names its schema.

    Parameters
    ----------
    name, target
        As of `simperf.scenario.copy_scenario`, which says what is refused.

    Returns
    -------
    tuple of Path and Path or None
        The file, and the schema that was written beside it, if there was none.
    """
    path = copy_scenario(name, target)
    return path, add_schema(path, "scenario")


def add_schema(path: Path, kind: str) -> Path | None:
    """Begin a TOML file with the line that names its schema, and write the schema beside it unless it is there.

    Editors that know the directive ``#:schema`` (those that use taplo) complete and check the file by it.

    Parameters
    ----------
    path : Path
    kind : str
        Of file, as of `simperf.study.file_schemas.file_schema`.

    Returns
    -------
    Path or None
        The schema, if it was written.
    """
    beside = path.parent / f"{kind}.schema.json"
    write_text(path, f"#:schema {beside.name}\n" + path.read_text("utf-8"))
    if beside.exists():
        return None
    write_text(beside, json_text(file_schema(kind)) + "\n")
    return beside
