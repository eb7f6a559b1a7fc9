"""Changing what a file says before it is checked: ``--set a.b=v`` and the variants' ``set``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from simperf.errors import InputError, Problem
from simperf.files import TomlFile, dotted

__all__ = ["Layered", "Override", "apply", "parse_assignment", "parse_path", "variant_overrides"]

_STEP = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^.\[\]"']+?))\s*((?:\[\s*\d+\s*\])*)\s*(?:\.|$)""")
_COMMAND = "--set"
Key = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Override:
    """One value that replaces what the file says.

    Parameters
    ----------
    path : tuple
        Key path, such as ``("machine", "link", 0, "bandwidth")``.
    value : object
    origin : tuple
        Key path in the file of the variant's entry; empty if it comes from the command line.
    """

    path: Key
    value: Any
    origin: Key = ()


@dataclass(frozen=True)
class Layered(TomlFile):
    """A file with overrides on top, so that a problem is placed where its value was written."""

    overrides: tuple[Override, ...] = field(default=())

    def problem(self, key: Key, message: str, *, value: object = "", expected: str = "") -> Problem:
        """A `Problem` at `key`: in the file, in a variant's ``set``, or on the command line."""
        override = self.override_of(key)
        if override is None:
            return TomlFile.problem(self, key, message, value=value, expected=expected)
        if override.origin:
            place = TomlFile.problem(self, override.origin, message, value=value, expected=expected)
            rest = key[len(override.path) :]
            return Problem(
                message, place.file, place.line, dotted((*override.origin, *rest)), place.value, place.expected
            )
        shown = repr(value) if value != "" else ""
        return Problem(message, file=_COMMAND, key=dotted(key), value=shown, expected=expected)

    def override_of(self, key: Key) -> Override | None:
        """The override that says what stands at `key`, the last one first."""
        for override in reversed(self.overrides):
            if key[: len(override.path)] == override.path:
                return override
            if key and override.path[: len(key)] == key and not _has(self.data, key):
                return override
        return None


def parse_path(text: str) -> Key:
    """Read ``machine.link[0].part`` or ``expect."metrics.peak memory"`` as a key path.

    Raises
    ------
    ValueError
        It is no path.

    Examples
    --------
    >>> parse_path("machine.link[0].part")
    ('machine', 'link', 0, 'part')
    """
    path: list[str | int] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or match.end() == at:
            raise ValueError(f"{text!r} is no key: write it as program.nbytes or machine.link[0].bandwidth")
        name = next(group for group in match.groups()[:3] if group is not None)
        path.append(int(name) if name.isdigit() and match.group(3) else name)
        path += [int(number) for number in re.findall(r"\d+", match.group(4))]
        at = match.end()
    if not path or isinstance(path[0], int) or text.rstrip().endswith("."):
        raise ValueError(f"{text!r} is no key: write it as program.nbytes or machine.link[0].bandwidth")
    return tuple(path)


def parse_assignment(text: str) -> Override:
    """Read ``program.nbytes=320 MB``: the value is TOML, or a text where it is not.

    Raises
    ------
    InputError
        There is no ``=``, or no key before it.

    Examples
    --------
    >>> parse_assignment("program.nbytes=320 MB").value, parse_assignment("run.seed=7").value
    ('320 MB', 7)
    """
    name, equals, written = text.partition("=")
    if not equals or not written.strip():
        example = "program.nbytes='320 MB'"
        raise InputError(Problem(f"{text!r} does not set anything", file=_COMMAND, expected=f"{_COMMAND} {example}"))
    try:
        return Override(parse_path(name), _value(written.strip()))
    except ValueError as error:
        raise InputError(Problem(str(error), file=_COMMAND)) from None


def _value(written: str) -> Any:
    try:
        value = tomllib.loads(f"value = {written}")
    except tomllib.TOMLDecodeError:
        return written
    known = isinstance(value["value"], str | int | float | list | dict)
    return value["value"] if known and len(value) == 1 else written


def variant_overrides(table: Mapping[str, Any], at: Key, toml: TomlFile, problems: list[Problem]) -> list[Override]:
    """Read a variant's ``set`` table; ``{ program.n = 3 }`` and ``{ "program.n" = 3 }`` say the same."""
    found = []
    for key, value in table.items():
        try:
            path = parse_path(key)
        except ValueError as error:
            problems.append(toml.problem((*at, key), str(error)))
            continue
        if len(path) == 1 and isinstance(value, Mapping):
            found += [Override((*path, name), each, (*at, key, name)) for name, each in value.items()]
        else:
            found.append(Override(path, value, (*at, key)))
    return found


def apply(
    data: Mapping[str, Any], toml: TomlFile, overrides: Sequence[Override], problems: list[Problem]
) -> tuple[dict[str, Any], Layered]:
    """Return `data` with `overrides` on top, and the file that places problems by them.

    Setting ``machine.use`` replaces a machine that the file wires itself.
    """
    changed = deepcopy(dict(data))
    before = toml.overrides if isinstance(toml, Layered) else ()
    layered = Layered(toml.path, toml.data, toml.text, (*before, *overrides))
    for override in overrides:
        _set(changed, override, layered, problems)
    return changed, layered


def _set(data: dict[str, Any], override: Override, toml: Layered, problems: list[Problem]) -> None:
    here: Any = data
    path = override.path
    for index, step in enumerate(path[:-1]):
        if isinstance(here, dict) and isinstance(step, str) and isinstance(path[index + 1], int) and step not in here:
            problems.append(toml.problem(path, f"the file has no list {dotted(path[: index + 1])}"))
            return
        if isinstance(here, dict) and isinstance(step, str):
            here = here.setdefault(step, {})
        elif isinstance(here, list) and isinstance(step, int) and step < len(here):
            here = here[step]
        else:
            problems.append(toml.problem(path, _no_place(here, path[: index + 1])))
            return
    last = path[-1]
    if isinstance(here, dict) and isinstance(last, str):
        if path == ("machine", "use"):
            kept = {key: here[key] for key in ("folder",) if key in here}
            here.clear()
            here.update(kept)
        here[last] = deepcopy(override.value)
    elif isinstance(here, list) and isinstance(last, int) and last < len(here):
        here[last] = deepcopy(override.value)
    else:
        problems.append(toml.problem(path, _no_place(here, path)))


def _no_place(here: Any, path: Key) -> str:
    parent = dotted(path[:-1])
    if isinstance(here, list):
        size = len(here)
        have = f"entries 0 to {size - 1}" if size > 1 else "one entry, 0" if size else "no entries"
        return f"{parent} has {have}; write {parent}[0]"
    if isinstance(here, dict):
        return f"{parent} is a table, not a list: it has no entry {path[-1]}"
    return f"{parent} is a single value, with nothing below it"


def _has(data: Any, key: Key) -> bool:
    for step in key:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True
