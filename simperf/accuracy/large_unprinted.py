"""Values that published cases do not print, as their sources say them elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from simperf.files import read_toml

__all__ = ["completed"]

_DATA = Path(__file__).parent / "data" / "large_unprinted.toml"
#: tables of a case that may be completed
_TABLES = ("hardware", "model", "parallelism", "measured", "measured_memory")


def completed(family: str, case: Mapping[str, Any], assumed: list[str]) -> Mapping[str, Any]:
    """A case with what its source does not print: what is known of the case, then what its program does.

    Parameters
    ----------
    family : str
    case : mapping
        As its file has it.
    assumed : list of str
        Gets each value, with its source.
    """
    found = dict(case)
    for entry in _entries():
        if entry["family"] == family and fnmatchcase(str(case.get("id", "")), str(entry["id"])):
            for table in _TABLES:
                values = entry.get(table, {})
                found[table] = {**(found.get(table) or {}), **values}
                assumed += [f"{table}.{key} = {value} ({entry['source'][key]})" for key, value in values.items()]
    how = dict(found["parallelism"]) if isinstance(found.get("parallelism"), dict) else {}
    hardware = found["hardware"] if isinstance(found.get("hardware"), dict) else {}
    for entry in _entries("default"):
        if family in entry["family"] and _matches(entry, str(case.get("id", "")), hardware, how):
            for key, value in entry["parallelism"].items():
                dimension = entry["needs"].get(key, "")  # along which several ranks are needed for an effect
                if how.get(key) is None and (not dimension or (how.get(dimension) or 1) != 1):
                    how[key] = value
                    assumed.append(f"parallelism.{key} = {value}")
    return {**found, "parallelism": how}


def _matches(entry: Mapping[str, Any], name: str, hardware: Mapping[str, Any], how: Mapping[str, Any]) -> bool:
    """Whether an entry is of a case: by its id, its GPU, and what it prints of its layout."""
    named = fnmatchcase(name, str(entry.get("id", "*"))) and fnmatchcase(
        str(hardware.get("gpu", "")), str(entry.get("gpu", "*"))
    )
    return named and all(how.get(key) == value for key, value in entry.get("where", {}).items())


@cache
def _entries(kind: str = "case") -> tuple[Mapping[str, Any], ...]:
    return tuple(read_toml(_DATA).data[kind])
