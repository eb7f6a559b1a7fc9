"""Software stacks of published cases: by the framework that a case names, else by its family, else assumed."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from simperf.accuracy.large_cases import LargeCase
from simperf.errors import InputError, Problem
from simperf.files import read_toml
from simperf.memory import DRIVER
from simperf.units import parse

__all__ = ["context_of", "profile_of", "stack_of"]

_DATA = Path(__file__).parent / "data" / "large_stacks.toml"


def stack_of(case: LargeCase) -> str:
    """Name of the stack of a case.

    Raises
    ------
    InputError
        Its framework is not played.
    """
    entry = _entry(case)
    if "use" in entry:
        return str(entry["use"])
    raise InputError(Problem(str(entry["source"]), key="framework", value=case.layout.framework or case.family))


def profile_of(case: LargeCase) -> str:
    """Profile of isolated kernels of a case's machine; empty where nobody measured any."""
    return str(_entry(case).get("profile", ""))


def context_of(case: LargeCase) -> float:
    """Memory of the driver's context of a process [B]: as the case's source measured it, else that of any process."""
    text = _entry(case).get("context")
    return DRIVER if text is None else parse(str(text), "B")


def _entry(case: LargeCase) -> Mapping[str, Any]:
    return next(entry for entry in _entries() if _matches(entry, case))


def _matches(entry: Mapping[str, Any], case: LargeCase) -> bool:
    how = case.layout
    if "framework" in entry:
        named = str(entry["framework"]) in how.framework and str(entry.get("software", "")) in how.software
        return named and entry.get("compiled", how.compiled) == how.compiled
    of = str(entry.get("family", case.family)) == case.family
    return of and fnmatchcase(case.name, str(entry.get("id", "*")))


@cache
def _entries() -> tuple[Mapping[str, Any], ...]:
    return tuple(read_toml(_DATA).data["stack"])
