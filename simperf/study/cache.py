"""Rows of points that were run before, by what they were made of: content, and the version of simperf."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from simperf.errors import InputError
from simperf.file_bytes import read_bytes
from simperf.hardware import Catalog
from simperf.study.journal import LONGEST_ROW, canonical

__all__ = ["Cache", "cache_folder", "folder_hash", "own_files", "point_key"]

#: folder of the cache; "off" does without
VARIABLE = "SIMPERF_CACHE"
#: how long rows may wait to be written together [s]
_TOGETHER = 1.0
_PATIENCE = 10.0  # for another process that writes [s]
#: how the names of profiles and traced models end, where they are files
_FILES = (".toml", ".json", ".json.gz")


def cache_folder() -> Path | None:
    """Folder of the cache: ``SIMPERF_CACHE``, or simperf's in the user's; None if it is switched off."""
    given = os.environ.get(VARIABLE, "")
    if given.lower() in ("off", "0", "no"):
        return None
    if given:
        return Path(given)
    home = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(home) if home else Path.home() / ".cache") / "simperf"
    except RuntimeError:  # no home
        return None


@lru_cache(maxsize=1)
def _fingerprint() -> str:
    """Version of simperf: its number, and a hash of its files, so that a changed line is another version."""
    from simperf.version import __version__

    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.suffix in (".py", ".toml", ".json", ".gz") and path.is_file():
            state = path.stat()
            digest.update(f"{path.relative_to(root).as_posix()} {state.st_size} {state.st_mtime_ns}\n".encode())
    return f"{__version__}+{digest.hexdigest()[:12]}"


def point_key(task: Mapping[str, Any], *, files: str) -> str:
    """Hash of all that the row of a task depends on.

    Parameters
    ----------
    task : mapping
    files : str
        Hash of files that the scenario names, from `folder_hash`.
    """
    keys = ("set", "seed", "samples", "record", "data", "name", "most")
    content = {key: task[key] for key in keys if key in task}
    return hashlib.sha256(canonical([_fingerprint(), files, content]).encode()).hexdigest()


def own_files(data: Mapping[str, Any], folder: str, *, named: Iterable[str] = ()) -> list[Path]:
    """Files that a scenario reads beside simperf's own: Python programs with their neighbours, parts, profiles, models.

    Parameters
    ----------
    data : mapping
        Of the scenario.
    folder : str
        That its paths are relative to.
    named : iterable of str
        Further values that a study sets, some of which may be files.
    """
    root, program = Path(folder), _table(data, "program")
    use = _table(data, "calibration").get("use", ())
    profiles = [use] if isinstance(use, str) else use
    places: list[Iterable[Path]] = []
    if "folder" in _table(data, "machine"):
        places.append((root / str(data["machine"]["folder"])).rglob("*"))
    if "python" in program:
        places.append((root / str(program["python"]).rpartition(":")[0]).parent.glob("*"))
    found = [path for place in places for path in place if path.suffix in (".py", ".toml", ".json")]
    for text in (*profiles, *program.values(), *named):
        if isinstance(text, str) and text.endswith(_FILES):
            found += [Path(text), root / text]
    if profiles:
        catalog = Catalog.load()
        found += [Path(catalog.path("profile", name)) for name in catalog.names("profile") if name in profiles]
    return sorted({path.absolute() for path in found if path.is_file()})


def folder_hash(data: Mapping[str, Any], folder: str, *, named: Iterable[str] = ()) -> str:
    """Hash of `own_files`, their names and their content; "" if there are none."""
    files = own_files(data, folder, named=named)
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.name.encode() + b"\0" + _content(path) + b"\0")
    return digest.hexdigest() if files else ""


def _content(path: Path) -> bytes:
    """What a file holds; of one that no run can read, as it is too large or locked, its size and time stand for it."""
    try:
        return read_bytes(path)
    except InputError:
        state = path.stat()
        return f"{state.st_size} {state.st_mtime_ns}".encode()


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = data.get(name)
    return table if isinstance(table, Mapping) else {}


class Cache:
    """A table on disk from key to row; without a folder, or if it cannot be written, it remembers nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._base: sqlite3.Connection | None = None
        self._new: dict[str, str] = {}
        self._written = time.monotonic()
        if folder is None:
            return
        with contextlib.suppress(OSError, sqlite3.Error):
            folder.mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(folder / "points.sqlite", timeout=_PATIENCE)
            self._base.execute("CREATE TABLE IF NOT EXISTS points (key TEXT PRIMARY KEY, row TEXT NOT NULL)")

    def get(self, key: str, read: Callable[[bytes], dict[str, Any]]) -> dict[str, Any] | None:
        """The row under `key`, None if there is none, or one that `read` refuses: it is made again."""
        if self._base is None:
            return None
        try:
            query = "SELECT CAST(row AS BLOB) FROM points WHERE key = ? AND length(row) <= ?"
            found = self._base.execute(query, (key, LONGEST_ROW)).fetchone()
            return None if found is None else read(found[0])
        except (sqlite3.Error, InputError):
            return None

    def put(self, key: str, row: Mapping[str, Any]) -> None:
        """Remember a row."""
        if self._base is not None:
            self._new[key] = canonical(row)
            if time.monotonic() - self._written > _TOGETHER:
                self.write()

    def write(self) -> None:
        """Bring what is new to the disk; a disk that is full is no reason to stop."""
        if self._base is not None and self._new:
            with contextlib.suppress(sqlite3.Error), self._base:
                self._base.executemany("INSERT OR REPLACE INTO points VALUES (?, ?)", list(self._new.items()))
        self._new.clear()
        self._written = time.monotonic()

    def close(self) -> None:
        """Write and let go."""
        self.write()
        if self._base is not None:
            self._base.close()
            self._base = None
