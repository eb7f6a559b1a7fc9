"""The scenarios that come with simperf: in the wheel, or in the repository beside the package."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from simperf.errors import InputError, Problem, UnknownNameError, nearest
from simperf.files import read_toml, write_bytes

__all__ = ["copy_scenario", "files_beside", "find_scenario", "shipped_folder", "shipped_scenarios"]


def shipped_folder() -> Path | None:
    """Folder of the shipped scenarios, None if this installation has none."""
    package = Path(str(files("simperf")))
    for folder in (package / "_shipped" / "scenarios", package.parent / "scenarios"):
        if folder.is_dir():
            return folder
    return None


def shipped_scenarios() -> dict[str, Path]:
    """Name, such as ``"d2l/sync-160mb"``, to file of each shipped scenario, sorted by name."""
    folder = shipped_folder()
    if folder is None:
        return {}
    found = {path.relative_to(folder).with_suffix("").as_posix(): path for path in folder.rglob("*.toml")}
    return dict(sorted(found.items()))


def _shipped(name: str) -> Path | None:
    """File of a shipped scenario by its name, its last part, or its path in the repository."""
    known = shipped_scenarios()
    plain = name.removesuffix(".toml").removeprefix("scenarios/")
    if plain in known:
        return known[plain]
    ends = [path for other, path in known.items() if other.endswith("/" + plain)]
    return ends[0] if len(ends) == 1 else None


def find_scenario(path: str | os.PathLike[str]) -> str:
    """The file that `path` names: an existing one, else a shipped scenario.

    Raises
    ------
    InputError
        Neither is there; the message offers the nearest.
    """
    if not isinstance(path, str | os.PathLike):
        message = f"a scenario is expected, not {type(path).__name__}"
        expected = 'its name, such as "d2l/async", the path of its file, or a Scenario'
        raise InputError(Problem(message, value=repr(path), expected=expected))
    name = os.fspath(path)
    if os.path.lexists(name) and not (os.path.isdir(name) and _shipped(name)):
        return name
    shipped = _shipped(name)
    if shipped is not None:
        return str(shipped)
    folder = Path(name).parent
    here = [str(other) for other in folder.glob("*.toml")] if folder.is_dir() else []
    hint = nearest(name, [*here, *shipped_scenarios()])
    expected = "a file, or a name of `simperf scenarios list`"
    message = "no such file or shipped scenario" + (hint if "mean" in hint else "")
    raise InputError(Problem(message, file=name, expected=expected))


def copy_scenario(name: str, target: str | os.PathLike[str] = "") -> Path:
    """Copy the shipped scenario `name`, with the files beside it that it names, to a file, a folder, or its name here.

    Raises
    ------
    UnknownNameError
        There is no such scenario.
    InputError
        A file that would be written exists, which is never overwritten.
    """
    source = _shipped(name)
    if source is None:
        raise UnknownNameError("shipped scenario", name, shipped_scenarios())
    written = Path(target) if os.fspath(target) else Path(source.name)
    if written.is_dir():
        written = written / source.name
    pairs = [(source, written), *((one, written.parent / one.name) for one in files_beside(source))]
    if not written.parent.is_dir():
        message, expected = "the folder of this file does not exist", "a name in an existing folder"
        raise InputError(Problem(message, file=str(written), expected=expected))
    other = "a new name" if len(pairs) == 1 else "another folder"
    problems = [
        Problem("the file exists and is not overwritten", file=str(path), expected=other)
        for _, path in pairs
        if path.exists()
    ]
    if problems:
        raise InputError(problems)
    for one, path in reversed(pairs):  # the scenario last: where it is, its files are
        write_bytes(path, one.read_bytes())
    return written


def files_beside(path: Path) -> list[Path]:
    """Files in the folder of a scenario that its values name, such as a trace, sorted by name."""
    known = {one.name for one in path.parent.iterdir() if one.is_file() and one.suffix != ".toml"}
    return [path.parent / name for name in sorted(known & set(_texts(read_toml(path).data)))]


def _texts(value: Any) -> Iterator[str]:
    """All texts in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(one)
