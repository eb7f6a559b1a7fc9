"""The catalog's files by kind and name; the parts among them, read when they are asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from os import PathLike, fspath
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from simperf.errors import InputError, Problem, UnknownNameError, nearest
from simperf.file_bytes import read_text
from simperf.files import MOST_TOML_BYTES, TomlFile, read_toml, refuse_format, refuse_other
from simperf.hardware.kinds import MODELS, PART_KINDS
from simperf.hardware.part import Part

if TYPE_CHECKING:
    from simperf.hardware.devices import LinkPart, StoragePart
    from simperf.hardware.frontend import FrontendPart
    from simperf.hardware.processors import ArchitecturePart, CpuPart, GpuPart, MemoryPart
    from simperf.hardware.profile import ProfilePart

__all__ = ["CALIBRATION", "KINDS", "CatalogFile", "PartCatalog", "read_part"]

KINDS = (*PART_KINDS, "server", "cluster")
_MOST_FILES = 10_000  # of a folder that people name, and of those in it
_BUILTIN = Path(__file__).parent / "data"
#: where recorded data sets and profiles are: in the wheel, or in the repository beside the package
CALIBRATION = (Path(__file__).parents[1] / "_shipped" / "calibration", Path(__file__).parents[2] / "calibration")
_KIND_LINE = re.compile(r"^\s*kind\s*=\s*[\"']([^\"']*)[\"']", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CatalogFile:
    """One file of the catalog."""

    kind: str
    name: str
    path: str


@lru_cache(maxsize=512)
def _read(path: str, changed: int, size: int) -> TomlFile:
    """A file as it was at one time, for one catalog after the other."""
    return read_toml(path)


class PartCatalog:
    """Names of everything that a machine can be built of, each part read once, when it is first asked for.

    What makes machines of servers' and clusters' files is `simperf.hardware.catalog.Catalog`.
    """

    def __init__(self, entries: Mapping[str, Mapping[str, CatalogFile]]) -> None:
        self._entries = entries
        self._parts: dict[tuple[str, str], Part] = {}
        self._files: dict[str, TomlFile] = {}
        self._adjust: Callable[[Part], Part] | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {sum(map(len, self._entries.values()))} parts and machines>"

    @classmethod
    def load(cls, folders: Sequence[str | PathLike[str]] | str | PathLike[str] = ()) -> Self:
        """Index the built-in parts and those of people's own `folders` (their sub-folders too).

        The file's name is the part's name; its ``kind`` key says what it is.

        Raises
        ------
        InputError
            A folder does not exist, a file does not say a known kind, or a name is taken: an own part never
            replaces another silently.
        """
        entries = {kind: dict(found) for kind, found in _builtin().items()}
        problems: list[Problem] = []
        for folder in [folders] if isinstance(folders, str | PathLike) else folders:
            problems += _index(Path(fspath(folder)), entries)
        if problems:
            raise InputError(problems)
        return cls(entries)

    @classmethod
    def beside(cls, path: str | PathLike[str]) -> Self:
        """Index the built-in parts and those in the folder of the file `path`, which may hold other files too."""
        entries = {kind: dict(found) for kind, found in _builtin().items()}
        _index(Path(fspath(path)).parent, entries, deep=False)
        return cls(entries)

    def names(self, kind: str) -> tuple[str, ...]:
        """Names of one kind, sorted."""
        return tuple(sorted(self._table(kind)))

    def path(self, kind: str, name: str) -> str:
        """File that defines `name`."""
        return self._entry(kind, name).path

    def kinds_of(self, name: str) -> tuple[str, ...]:
        """Kinds that have something of this name."""
        return tuple(kind for kind in KINDS if name in self._entries[kind])

    def part(self, kind: str, name: str) -> Part:
        """Read the part `name` of `kind`.

        Raises
        ------
        UnknownNameError
            No such kind or name.
        InputError
            Its file is wrong: all its problems.
        """
        if (kind, name) not in self._parts:
            if kind not in PART_KINDS:
                raise UnknownNameError("kind of part", kind, PART_KINDS)
            part = read_part(self.file(kind, name), name, catalog=self, kind=kind)
            self._parts[kind, name] = part if self._adjust is None else self._adjust(part)
        return self._parts[kind, name]

    def gpu(self, name: str) -> GpuPart:
        """Read the GPU `name`."""
        return cast("GpuPart", self.part("gpu", name))

    def cpu(self, name: str) -> CpuPart:
        """Read the CPU `name`."""
        return cast("CpuPart", self.part("cpu", name))

    def link(self, name: str) -> LinkPart:
        """Read the link `name`."""
        return cast("LinkPart", self.part("link", name))

    def frontend(self, name: str) -> FrontendPart:
        """Read the frontend `name`."""
        return cast("FrontendPart", self.part("frontend", name))

    def storage(self, name: str) -> StoragePart:
        """Read the storage device `name`."""
        return cast("StoragePart", self.part("storage", name))

    def file(self, kind: str, name: str) -> TomlFile:
        """Read the file that defines `name`, without checking what it says."""
        path = self._entry(kind, name).path
        if path not in self._files:
            state = Path(path).stat() if Path(path).is_file() else None
            self._files[path] = _read(path, state.st_mtime_ns, state.st_size) if state else read_toml(path)
        return self._files[path]

    def with_part(self, part: Part) -> Self:
        """Return a catalog in which `part` stands for the part of its kind and name: for what-if questions.

        Examples
        --------
        >>> from dataclasses import replace
        >>> catalog = PartCatalog.load()
        >>> faster = catalog.with_part(replace(catalog.link("nvlink2"), protocol_efficiency=1.0))
        >>> faster.link("nvlink2").bandwidth
        25000000000.0
        """
        entries = {kind: dict(table) for kind, table in self._entries.items()}
        entries[part.KIND].setdefault(part.name, CatalogFile(part.KIND, part.name, "(given in Python)"))
        changed = type(self)(entries)
        changed._parts = {key: old for key, old in self._parts.items() if key[0] != "cpu" or part.KIND != "memory"}
        changed._files = self._files
        changed._parts[part.KIND, part.name] = part
        return changed

    def adjusted(self, adjust: Callable[[Part], Part]) -> Self:
        """Return a catalog whose parts go through `adjust` when they are read: how a profile reaches a machine."""
        changed = type(self)(self._entries)
        changed._files, changed._adjust = self._files, adjust
        return changed

    def profile(self, name: str) -> ProfilePart:
        """Read the profile `name`, or the one in the file that `name` is the path of.

        Raises
        ------
        UnknownNameError
            There is neither.
        InputError
            All that is wrong with the file.
        """
        if name not in self._entries["profile"] and isfile(name):
            return cast("ProfilePart", read_part(read_toml(name), Path(name).stem, catalog=self, kind="profile"))
        return cast("ProfilePart", self.part("profile", name))

    def _table(self, kind: str) -> Mapping[str, CatalogFile]:
        if kind not in self._entries:
            raise UnknownNameError("kind", kind, KINDS)
        return self._entries[kind]

    def _entry(self, kind: str, name: str) -> CatalogFile:
        table = self._table(kind)
        if name not in table:
            raise UnknownNameError(kind, name, table, other=next(iter(self.kinds_of(name)), ""))
        return table[name]


def read_part(toml: TomlFile, name: str, *, catalog: PartCatalog, kind: str = "") -> Part:
    """Check a part's file and make the part.

    Raises
    ------
    InputError
        All that is wrong with the file, with lines.
    """
    from simperf.hardware.schema import unsourced, validate

    refuse_other(toml, "kind")
    said = toml.data.get("kind", kind)
    if said not in MODELS or (kind and said != kind):
        hint = nearest(str(said), MODELS)
        raise InputError(toml.problem(("kind",), f"not a kind of part{hint}", value=said, expected=kind))
    if said == "profile":
        refuse_format(toml)
    model, problems = validate(MODELS[said], toml.data, toml)
    problems += unsourced(MODELS[said], toml.data, toml)
    if said == "profile" and model is not None:
        from simperf.hardware.profile_schema import ProfileFile, constant_problems

        problems += constant_problems(cast("ProfileFile", model), toml)
    if model is None or problems:
        raise InputError(sorted(problems, key=lambda row: row.line))
    values: dict[str, Any] = {"name": name, "title": "", "sources": {}}
    values |= {key: getattr(model, key) for key in type(model).model_fields if key not in ("kind", "format")}
    values["sources"] = values.pop("source")
    if said == "gpu":
        values = _inherit(values, toml, catalog)
    elif said == "cpu":
        values = _with_memory(values, toml, catalog)
    elif said == "profile":
        from simperf.hardware.profile import fitted_models

        values |= {"model": fitted_models(values["model"]), "file": toml.path}
    return PART_KINDS[said](**values)


def _inherit(values: dict[str, Any], toml: TomlFile, catalog: PartCatalog) -> dict[str, Any]:
    """Fill what a GPU's file leaves out from its architecture."""
    base = cast("ArchitecturePart", _refer("architecture", values["architecture"], toml, catalog))
    sources = dict(values["sources"])
    for key in ("kernel_floor", "copy_engines", "l1", "threads", "lanes", "exchange", "fp32_products"):
        if values[key] is None and getattr(base, key) is not None:
            values[key] = getattr(base, key)
            sources[key] = base.source(key)
    for table in ("efficiency", "attention", "experts", "product"):
        shared, given = getattr(base, table), values[table]
        sources |= {f"{table}.{key}": base.source(f"{table}.{key}") for key in shared if key not in given}
        values[table] = {**shared, **given}
    values["sources"] = sources
    return values


def _with_memory(values: dict[str, Any], toml: TomlFile, catalog: PartCatalog) -> dict[str, Any]:
    """Put the memory part into a CPU and add its channels up."""
    from simperf.hardware.processors import CacheLevel

    memory = cast("MemoryPart", _refer("memory", values["memory"], toml, catalog))
    values["memory"] = memory
    values["memory_bandwidth"] = memory.bandwidth * values["memory_channels"]
    values["memory_latency"] = memory.first_access
    values["caches"] = tuple(CacheLevel(**dict(cache)) for cache in values.pop("cache"))
    values["sources"] = {
        **values["sources"],
        "memory_bandwidth": f"{values['memory_channels']} channels; {memory.source('bandwidth')}",
        "memory_latency": memory.source("first_access"),
    }
    return values


def _refer(key: str, name: str, toml: TomlFile, catalog: PartCatalog) -> Part:
    try:
        return catalog.part(key, name)
    except UnknownNameError as error:
        raise InputError(toml.problem((key,), str(error), value=name)) from None


@lru_cache(maxsize=1)
def _builtin() -> dict[str, dict[str, CatalogFile]]:
    entries: dict[str, dict[str, CatalogFile]] = {kind: {} for kind in KINDS}
    for kind in KINDS:
        folder = _BUILTIN / kind
        if folder.is_dir():
            entries[kind] = {
                path.stem: CatalogFile(kind, path.stem, str(path))
                for path in folder.iterdir()
                if path.suffix == ".toml"
            }
    shipped = next((folder for folder in CALIBRATION if folder.is_dir()), None)
    for path in sorted(shipped.rglob("*.toml")) if shipped is not None else ():
        entries["profile"][path.stem] = CatalogFile("profile", path.stem, str(path))
    return entries


def _toml_files(folder: Path, *, deep: bool) -> list[Path] | None:
    """Files of a folder that end in ``.toml``, sorted; None if there are more than `_MOST_FILES` of any kind."""
    seen, found = 0, []
    for place, _, names in os.walk(folder):
        seen += len(names) + 1
        found += [Path(place, name) for name in names if name.endswith(".toml")]
        if seen > _MOST_FILES:
            return None
        if not deep:
            break
    return sorted(found)


def _index(folder: Path, entries: dict[str, dict[str, CatalogFile]], *, deep: bool = True) -> list[Problem]:
    if not folder.is_dir():
        message = "this is a file, not a folder" if folder.is_file() else "no such folder"
        return [Problem(message, file=str(folder), expected="a folder with one .toml file a part")]
    problems: list[Problem] = []
    files = _toml_files(folder, deep=deep)
    if files is None:
        message = f"the folder and those in it hold more than {_MOST_FILES:,} files"
        return [Problem(message, file=str(folder), expected="a folder with parts of your own alone")]
    for path in files:
        try:
            text = read_text(path, most=MOST_TOML_BYTES, expected="a TOML file of a part")
        except InputError as error:
            problems += error.problems
            continue
        found = _KIND_LINE.search(text)
        kind = found.group(1) if found else ""
        if kind not in KINDS:
            hint = nearest(kind, KINDS)
            message = f"{kind!r} is not a kind{hint}" if found else "the file does not say its kind"
            problems.append(Problem(message, file=str(path), key="kind", expected="one of " + ", ".join(KINDS)))
            continue
        taken = entries[kind].get(path.stem)
        if taken is not None:
            message = f"the {kind} {path.stem!r} is already defined in {taken.path}: give the file another name"
            problems.append(Problem(message, file=str(path)))
            continue
        entries[kind][path.stem] = replace(CatalogFile(kind, path.stem, ""), path=str(path))
    return problems
