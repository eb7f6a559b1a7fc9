"""Machines and profiles by a name of the catalogue or by a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from simperf.errors import InputError, Problem
from simperf.files import read_toml
from simperf.hardware.catalog import Catalog, build_machine
from simperf.hardware.machine import Machine
from simperf.hardware.profile import ProfilePart

__all__ = ["find_machine", "find_profile"]


def find_machine(name: str, folders: Sequence[Path] = ()) -> Machine:
    """The server or cluster of that name, or that a file describes, with the parts beside it.

    Parameters
    ----------
    name : str
        Of the catalogue, or a file that ends in ``.toml``.
    folders : sequence of Path
        With parts of one's own.

    Raises
    ------
    SimperfError
        There is none, or it cannot exist.
    """
    if not name.endswith(".toml"):
        return Catalog.load(folders).machine(name)
    toml = read_toml(name)
    kind = toml.data.get("kind")
    if kind not in ("server", "cluster"):
        found = "" if kind is None else str(kind)
        raise InputError(
            Problem("not a server or cluster file", file=name, key="kind", value=found, expected="server or cluster")
        )
    catalog = Catalog.load(folders) if folders else Catalog.beside(name)
    return build_machine(toml.data, catalog, toml, name=Path(name).stem, at=())


def find_profile(profile: str | os.PathLike[str]) -> ProfilePart:
    """A profile by its file or its name in the catalogue.

    Raises
    ------
    InputError
        There is none, or it is a data set.
    """
    if not isinstance(profile, str | os.PathLike):
        message = f"a profile is expected, not {type(profile).__name__}"
        raise InputError(Problem(message, value=repr(profile), expected="the path of a profile, or its name"))
    name, catalog = os.fspath(profile), Catalog.load()
    if name.endswith(".toml") and not Path(name).is_file():
        names = ", ".join(catalog.names("profile"))
        expected = f"a file that `simperf calibrate fit DATA.json -o {name}` writes, or a shipped profile: {names}"
        message = "this is a directory, not a file" if Path(name).is_dir() else "no such file"
        raise InputError(Problem(message, file=name, expected=expected))
    if name.endswith((".json", ".json.gz")):
        expected = "the profile that `simperf calibrate fit` wrote; data sets stand behind it"
        raise InputError(Problem("this is no profile", file=name, expected=expected))
    return catalog.profile(name)
