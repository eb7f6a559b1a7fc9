"""Software stacks of published cases: by the release or framework that a case names, else by family, else assumed.

A program of several releases has a stack for some of them. A case takes that of the latest one that is not newer than
its own, or the oldest, and says so where it is another release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from simperf.accuracy.large_layouts import LargeLayout
from simperf.errors import InputError, Problem
from simperf.files import read_toml
from simperf.memory import DRIVER
from simperf.units import parse

__all__ = ["assumed_release", "context_of", "profile_of", "stack_of"]

_DATA = Path(__file__).parent / "data" / "large_stacks.toml"


class _Case(Protocol):
    """Properties of a case that determine its stack."""

    @property
    def family(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def layout(self) -> LargeLayout: ...


def stack_of(case: _Case) -> str:
    """Name of the stack of a case.

    Raises
    ------
    InputError
        Its framework is not simulated.
    """
    entry = _entry(case.family, case.name, case.layout)
    if "use" in entry:
        return str(entry["use"])
    raise InputError(Problem(str(entry["source"]), key="framework", value=case.layout.framework or case.family))


def profile_of(case: _Case) -> str:
    """Profile of isolated kernels of a case's machine; empty where none was measured."""
    return str(_entry(case.family, case.name, case.layout).get("profile", ""))


def context_of(case: _Case) -> float:
    """Memory of the driver's context of a process [B]: as the case's source measured it, else that of any process."""
    text = _entry(case.family, case.name, case.layout).get("context")
    return DRIVER if text is None else parse(str(text), "B")


def assumed_release(family: str, name: str, how: LargeLayout) -> str:
    """In words, of which release the stack of a case is, where that is not its own; else empty."""
    entry = _entry(family, name, how)
    if "release" not in entry or _number(printed := _release(entry, how)) == _number(entry["release"]):
        return ""
    return f"{entry['program']} {printed}: the stack of {entry['release']}"


def _entry(family: str, name: str, how: LargeLayout) -> Mapping[str, Any]:
    found = [entry for entry in _entries() if _matches(entry, family, name, how)]
    if "release" not in found[0]:
        return found[0]
    printed = _number(_release(found[0], how))
    choice = found[0]["program"], found[0].get("id")
    releases = [one for one in found if (one.get("program"), one.get("id")) == choice]
    releases.sort(key=lambda one: _number(one["release"]))
    return next((one for one in reversed(releases) if _number(one["release"]) <= printed), releases[0])


def _matches(entry: Mapping[str, Any], family: str, name: str, how: LargeLayout) -> bool:
    if "framework" in entry:
        named = str(entry["framework"]) in how.framework and str(entry.get("software", "")) in how.software
        return named and entry.get("compiled", how.compiled) == how.compiled
    if "program" in entry and not _release(entry, how):
        return False
    return str(entry.get("family", family)) == family and fnmatchcase(name, str(entry.get("id", "*")))


def _release(entry: Mapping[str, Any], how: LargeLayout) -> str:
    """Release of an entry's program that the software of a case is; empty if it is another program."""
    found = re.search(rf"{re.escape(str(entry['program']))}[^\d.]*(\d+(?:\.\d+)*)", how.software)
    return found[1] if found else ""


def _number(release: str) -> tuple[int, ...]:
    """Parts of a release: 26.04.01 is newer than 26.04, and 26.4 is the same."""
    return tuple(map(int, release.split(".")))


@cache
def _entries() -> tuple[Mapping[str, Any], ...]:
    return tuple(read_toml(_DATA).data["stack"])
