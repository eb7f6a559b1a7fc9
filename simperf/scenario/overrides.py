"""Changing what a file says before it is checked: ``--set a.b=v``, ``set={...}`` and the variants' ``set``."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from simperf.errors import InputError, Problem
from simperf.files import DEEPEST, TomlFile, dotted, is_deeper, shown

if TYPE_CHECKING:
    from simperf.hardware import ProfilePart

__all__ = [
    "Changes",
    "Override",
    "apply",
    "parse_assignment",
    "parse_changes",
    "parse_path",
    "parse_value",
    "plain_value",
    "profile_override",
    "variant_overrides",
]

_STEP = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([^.\[\]"']+?))\s*((?:\[\s*\d+\s*\])*)\s*(?:\.|$)""")
#: characters of a key
_LONGEST_KEY = 1000
_COMMAND, _PYTHON = "--set", "set"
_TOO_DEEP = f"tables and lists in one another to a depth of more than {DEEPEST}"
_VALUES = "a text or quantity, a number of at most 64 bits, true, false, [list] or {table}"
_EXAMPLE = '{"program.nbytes": "320 MB"}'
Key = tuple[str | int, ...]
#: values by key, or texts as ``--set`` takes them
Changes = Mapping[str, Any] | Sequence[str]


@dataclass(frozen=True, slots=True)
class Override:
    """One value that replaces what the file says.

    Parameters
    ----------
    path : tuple
        Key path, such as ``("machine", "link", 0, "bandwidth")``.
    value : object
    origin : tuple
        Key path in the file of the variant's entry; empty if it comes from the command line or from Python.
    option : str
        What gave it, where `origin` is empty.
    """

    path: Key
    value: Any
    origin: Key = ()
    option: str = _COMMAND


@dataclass(frozen=True)
class _Layered(TomlFile):
    """A file with overrides on top, so that a problem is placed where its value was written."""

    overrides: tuple[Override, ...] = field(default=())

    def problem(self, key: Key, message: str, *, value: object = "", expected: str = "") -> Problem:
        """A `Problem` at `key`: in the file, in a variant's ``set``, on the command line, or in Python's ``set``."""
        override = self.override_of(key)
        if override is None:
            return TomlFile.problem(self, key, message, value=value, expected=expected)
        if override.origin:
            place = TomlFile.problem(self, override.origin, message, value=value, expected=expected)
            rest = key[len(override.path) :]
            return Problem(
                message, place.file, place.line, dotted((*override.origin, *rest)), place.value, place.expected
            )
        return Problem(message, file=override.option, key=dotted(key), value=shown(value), expected=expected)

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
    wrong = f"{shown(text)} is no key: write it as program.nbytes or machine.link[0].bandwidth"
    if len(text) > _LONGEST_KEY:
        raise ValueError(wrong)
    path: list[str | int] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None or match.end() == at:
            raise ValueError(wrong)
        name = next(group for group in match.groups()[:3] if group is not None)
        path.append(int(name) if name.isdecimal() and match.group(3) else name)
        path += [int(number) for number in re.findall(r"\d+", match.group(4))]
        at = match.end()
    if not path or isinstance(path[0], int) or text.rstrip().endswith("."):
        raise ValueError(wrong)
    if len(path) > DEEPEST:
        raise ValueError(f"{shown(text)} has {len(path)} parts, and a key has {DEEPEST} at most")
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
        message = f"{shown(text)} does not set anything"
        raise InputError(Problem(message, file=_COMMAND, expected=f"{_COMMAND} {example}"))
    try:
        path = parse_path(name)
    except ValueError as error:
        raise InputError(Problem(str(error), file=_COMMAND)) from None
    try:
        return Override(path, parse_value(written.strip()))
    except ValueError as error:
        problem = Problem(str(error), file=_COMMAND, key=dotted(path), value=shown(written), expected=_VALUES)
        raise InputError(problem) from None


def parse_value(written: str) -> Any:
    """The value of TOML that a text is; the text itself where it is none.

    Raises
    ------
    ValueError
        It is nested too deeply, or a number of thousands of digits.
    """
    try:
        value = tomllib.loads(f"value = {written}")
    except tomllib.TOMLDecodeError:
        return written
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except ValueError:
        raise ValueError("a number of thousands of digits") from None
    if is_deeper(value, DEEPEST):
        raise ValueError(_TOO_DEEP)
    known = isinstance(value["value"], str | int | float | list | dict)
    return value["value"] if known and len(value) == 1 else written


def parse_changes(changes: Changes) -> list[Override]:
    """Read changes of a scenario: ``{"program.nbytes": "320 MB"}``, or texts as ``--set`` takes them.

    A table may be written as one: ``{"program": {"n": 200}}``. Values are those of a file: quantities are texts with
    units. What stands for them in Python is read: paths, tuples, numbers of NumPy.

    Raises
    ------
    InputError
        All that is no key or no value.

    Examples
    --------
    >>> [(one.path, one.value) for one in parse_changes({"program.n": 200, "run": {"seed": 7}})]
    [(('program', 'n'), 200), (('run', 'seed'), 7)]
    """
    problems: list[Problem] = []
    found: list[Override] = []
    given = [changes] if isinstance(changes, str) else changes
    if not isinstance(given, Mapping | Sequence):
        message = f"a mapping of keys to values is expected, not {type(changes).__name__}"
        raise InputError(Problem(message, file=_PYTHON, value=repr(changes), expected=_EXAMPLE))
    for item in given.items() if isinstance(given, Mapping) else given:
        try:
            found += [parse_assignment(item)] if isinstance(item, str) else _of_pair(item)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return found


def _of_pair(pair: Any) -> list[Override]:
    """The overrides of an entry of a mapping."""
    if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], str):
        told = repr(pair[0]) if isinstance(pair, tuple) and pair else repr(pair)
        raise InputError(Problem("a key is a text", file=_PYTHON, value=told, expected=_EXAMPLE))
    key, value = pair
    try:
        path = parse_path(key)
        plain = plain_value(value)
    except ValueError as error:
        raise InputError(Problem(str(error), file=_PYTHON, key=shown(key)[1:-1])) from None
    if len(path) == 1 and isinstance(plain, dict):
        return [Override((*path, name), each, option=_PYTHON) for name, each in plain.items()]
    return [Override(path, plain, option=_PYTHON)]


def plain_value(value: Any, *, depth: int = 0) -> Any:
    """A value of Python as a file has it; `depth` tables and lists are around it.

    Raises
    ------
    ValueError
        No file has it, or it is nested too deeply.
    """
    if depth > DEEPEST:
        raise ValueError(_TOO_DEEP)
    if type(value) in (bool, int, float, str):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(key): plain_value(each, depth=depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(each, depth=depth + 1) for each in value]
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return plain_value(value.item(), depth=depth + 1)
    raise ValueError(
        f"{type(value).__name__} is no value: a number, a text such as '320 MB', true or false, a list or a table is"
    )


def profile_override(profile: ProfilePart | str | os.PathLike[str]) -> Override:
    """The change that names a profile: by its name, or by its file, which is looked up where the caller stands.

    Raises
    ------
    InputError
        A profile that was not read from a file.
    """
    if not isinstance(profile, str | os.PathLike):
        if not hasattr(profile, "file"):
            message = f"a profile is expected, not {type(profile).__name__}"
            expected = "the path of a profile, or its name"
            raise InputError(Problem(message, key="profile", value=repr(profile), expected=expected))
        if not profile.file:
            message = f"the profile {profile.name!r} was not read from a file"
            raise InputError(Problem(message, file="profile", expected="the path of a profile, or its name"))
        name = profile.file
    else:
        name = os.fspath(profile)
    found = os.path.abspath(name) if os.path.isfile(name) else name
    return Override(("calibration", "use"), found, option="profile")


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
) -> tuple[dict[str, Any], _Layered]:
    """Return `data` with `overrides` on top, and the file that places problems by them.

    Setting ``machine.use`` replaces a machine that the file wires itself; setting ``model.name`` or ``model.config``
    replaces a model that the file describes.
    """
    changed = deepcopy(dict(data))
    before = toml.overrides if isinstance(toml, _Layered) else ()
    layered = _Layered(toml.path, toml.data, toml.text, (*before, *overrides))
    for override in overrides:
        _set(changed, override, layered, problems)
    return changed, layered


def _set(data: dict[str, Any], override: Override, toml: _Layered, problems: list[Problem]) -> None:
    here: Any = data
    path = override.path
    for index, step in enumerate(path[:-1]):
        if isinstance(here, dict) and isinstance(step, str) and isinstance(path[index + 1], int) and step not in here:
            name = dotted(path[: index + 1])
            problems.append(toml.problem(path, f"the file has no list {name}", expected=f"a file with {name} = [...]"))
            return
        if isinstance(here, dict) and isinstance(step, str):
            here = here.setdefault(step, {})
        elif isinstance(here, list) and isinstance(step, int) and step < len(here):
            here = here[step]
        else:
            problems.append(_no_place(here, path[: index + 1], path, toml))
            return
    last = path[-1]
    if isinstance(here, dict) and isinstance(last, str):
        if path == ("machine", "use"):
            kept = {key: here[key] for key in ("folder",) if key in here}
            here.clear()
            here.update(kept)
        elif path in (("model", "name"), ("model", "config")):
            _drop_model(here, toml)
        here[last] = deepcopy(override.value)
    elif isinstance(here, list) and isinstance(last, int) and last < len(here):
        here[last] = deepcopy(override.value)
    else:
        problems.append(_no_place(here, path, path, toml))


def _drop_model(table: dict[str, Any], toml: _Layered) -> None:
    """Take the file's own model out of ``[model]``, but not what other overrides say.

    Dimensions beside a name would make it a label, and the run one of another model. A length beside a named model
    stays, as it is of the data.
    """
    others = {key for key in table if key not in ("name", "config", "sequence")}
    given = {one.path[1] for one in toml.overrides if one.path[0] == "model" and len(one.path) > 1}
    for key in others | {"name", "config"} | ({"sequence"} if others else set()):
        if key not in given:
            table.pop(key, None)


def _no_place(here: Any, path: Key, key: Key, toml: _Layered) -> Problem:
    """Why there is no place for the last step of `path`, on the way to `key`."""
    parent, last = dotted(path[:-1]), path[-1]
    if isinstance(here, list):
        size = len(here)
        have = f"entries 0 to {size - 1}" if size > 1 else "one entry, 0" if size else "no entries"
        return toml.problem(key, f"{parent} has {have}; write {parent}[0]")
    if isinstance(here, dict):
        return toml.problem(key, f"{parent} is a table, not a list: it has no entry {last}")
    what = f"a list with the entry {last}" if isinstance(last, int) else f"a table with the key {last}"
    return toml.problem(key, f"{parent} is a single value, with nothing below it", expected=f"{parent} as {what}")


def _has(data: Any, key: Key) -> bool:
    for step in key:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return False
    return True
