"""Options of a training framework: their names, kinds and defaults as data, and their values as a file has them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from simperf.errors import InputError, Problem
from simperf.files import read_toml

__all__ = ["GivenOption", "JobOptionsRead", "OptionSpec", "OptionTable", "option_table"]

_FOLDER = Path(__file__).parent / "data"
#: characters of an option's value that a message repeats
_LONGEST = 100
_NOTE = 300
#: of options of a whole number: as many as a scenario's numbers
_MOST = 2**63 - 1
_EXPECTED = {"int": "a whole number", "float": "a number", "text": "one word", "texts": "one word or more"}


@dataclass(frozen=True, slots=True)
class GivenOption:
    """An option as a file has it.

    Parameters
    ----------
    name : str
        As the file writes it, such as ``--num-layers`` or ``training.seq_len``.
    words : tuple of str
        Its value, word by word; none for a flag.
    value : object
        Its value where the file is typed, such as TOML; else None.
    line : int
        1-based; 0 if it has none.
    unset : tuple of str
        Variables in it that have no value.
    """

    name: str
    words: tuple[str, ...] = ()
    value: Any = None
    line: int = 0
    unset: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """The value as messages repeat it."""
        text = " ".join(self.words) if self.value is None else str(self.value)
        return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """An option that is read.

    Parameters
    ----------
    arguments : tuple of str
        What files call it.
    kind : str
        ``int``, ``float``, ``text``, ``texts``, ``bool``, or a flag that sets true (``on``) or false (``off``).
    default : object
        None for none.
    """

    arguments: tuple[str, ...]
    kind: str
    default: Any = None


@dataclass(frozen=True, slots=True)
class OptionTable:
    """All options of a framework that are known.

    Parameters
    ----------
    title, stack, source : str
        Name of the framework, software stack that simulates its kernels, and where the names and defaults are from.
    options : mapping of str to OptionSpec
        By the names that the importer has for them.
    without_effect : tuple of str
        Shell patterns of options that change no time of a step.
    unplayed, refused : mapping of str to str
        Patterns of what is not simulated, with what is simulated instead; and of what cannot be, with what would do.
    """

    title: str
    stack: str
    source: str
    options: Mapping[str, OptionSpec]
    without_effect: tuple[str, ...]
    unplayed: Mapping[str, str]
    refused: Mapping[str, str]

    @property
    def names(self) -> Mapping[str, str]:
        """Names of options in files -> the importer's names."""
        return {argument: name for name, one in self.options.items() for argument in one.arguments}


@cache
def option_table(name: str) -> OptionTable:
    """The shipped table of a framework."""
    data = read_toml(_FOLDER / f"{name}.toml").data
    options = {}
    for key, one in data["option"].items():
        said = one.get("argument", key)
        options[key] = OptionSpec((said,) if isinstance(said, str) else tuple(said), one["kind"], one.get("default"))
    without = tuple(data.get("without_effect", {}).get("patterns", ()))
    unplayed, refused = data.get("unplayed", {}), data.get("refused", {})
    return OptionTable(data["title"], data["stack"], data["source"], options, without, unplayed, refused)


@dataclass
class JobOptionsRead:
    """The options of a job, typed, with where each stands.

    Parameters
    ----------
    file : str
        What they were read from, for messages.
    table : OptionTable
    values : dict of str to object
        By the importer's names: those that the file gives.
    given : dict of str to GivenOption
    problems : list of Problem
    notes : list of str
        What is not simulated, and what is not understood.
    without_effect : list of str
        Options that change no time of a step.
    assumed : dict of str to str
        By the importer's names: where a value is from that no option gives.
    unnamed : list of GivenOption
        Options whose names the importer still has to find out.
    """

    file: str
    table: OptionTable
    values: dict[str, Any] = field(default_factory=dict)
    given: dict[str, GivenOption] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    without_effect: list[str] = field(default_factory=list)
    assumed: dict[str, str] = field(default_factory=dict)
    unnamed: list[GivenOption] = field(default_factory=list)

    def read(self, options: Iterable[GivenOption]) -> None:
        """Take options in the order of the file, of which the last of a name holds."""
        names = self.table.names
        for one in options:
            if one.name in names:
                self.take(names[one.name], one)
            elif why := _matching(self.table.refused, one.name):
                self.problems.append(self.problem_at(one, "cannot be simulated", expected=why))
            elif why := _matching(self.table.unplayed, one.name):
                self.notes.append(f"{one.name}{_at(one)}: not simulated: {why}")
            elif any(fnmatchcase(one.name, each) for each in self.table.without_effect):
                self.without_effect.append(one.name)
            else:
                self.notes.append(f"{one.name}{_at(one)}: not understood (read: '{one.told}')")

    def __getitem__(self, name: str) -> Any:
        return self.values.get(name, self.table.options[name].default)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def argument(self, name: str) -> str:
        """Name by which the file calls an option, or would."""
        return self.given[name].name if name in self.given else self.table.options[name].arguments[0]

    def problem(self, name: str, message: str, *, expected: str = "") -> Problem:
        """A problem of an option by the importer's name."""
        if name in self.given:
            return self.problem_at(self.given[name], message, expected=expected)
        return Problem(message, file=self.file, key=self.argument(name), expected=expected)

    def problem_at(self, one: GivenOption, message: str, *, expected: str = "") -> Problem:
        """A problem of an option as the file has it."""
        return Problem(message, file=self.file, line=one.line, key=one.name, value=one.told, expected=expected)

    def choice(self, name: str, choices: Mapping[str, Any], default: Any = None) -> Any:
        """Value that an option's word stands for; a problem and `default` where it stands for nothing."""
        value = str(self[name])
        if value in choices:
            return choices[value]
        self.problems.append(self.problem(name, "is not simulated", expected=", ".join(one for one in choices if one)))
        return default

    def note_optimizer(self) -> None:
        """Note an optimizer that is not simulated."""
        if not str(self["optimizer"]).lower().removeprefix("fused").startswith("adam"):
            self.notes.append(f"{self.argument('optimizer')} {self['optimizer']}: not simulated; Adam's is"[:_NOTE])

    def take(self, name: str, one: GivenOption) -> None:
        """Take an option by the importer's name."""
        kind = self.table.options[name].kind
        try:
            value = _typed(kind, one)
        except ValueError:
            expected = "no value: it is a flag" if kind in ("on", "off") else _EXPECTED.get(kind, "true or false")
            if one.unset:
                expected += f"; {', '.join(one.unset)} is not set in the file: --variable {one.unset[0]}=VALUE"
            self.problems.append(self.problem_at(one, "is no value of this option", expected=expected))
            return
        self.values[name], self.given[name] = value, one


def _at(one: GivenOption) -> str:
    return f" (line {one.line})" if one.line else ""


def _matching(patterns: Mapping[str, str], name: str) -> str:
    return next((why for pattern, why in patterns.items() if fnmatchcase(name, pattern)), "")


def _typed(kind: str, one: GivenOption) -> Any:
    """The value of an option in its kind.

    Raises
    ------
    ValueError
        It is none.
    """
    if one.value is not None:
        return _of_value(kind, one.value)
    if kind in ("on", "off"):
        if one.words:
            raise ValueError
        return kind == "on"
    if kind == "texts":
        if not one.words:
            raise ValueError
        return list(one.words)
    (word,) = one.words
    if kind == "int":
        return _whole(word)
    return _finite(word) if kind == "float" else word


def _of_value(kind: str, value: Any) -> Any:
    """A typed value in its kind."""
    if kind in ("on", "off", "bool"):
        if not isinstance(value, bool):
            raise ValueError
        return value
    if isinstance(value, bool):
        raise ValueError
    if kind == "int":
        if isinstance(value, float):
            if not value.is_integer():
                raise ValueError
            value = int(value)
        return _whole(str(value))
    if kind == "float":
        return _finite(str(value))
    if kind == "texts":
        found = value if isinstance(value, list) else [one.strip() for one in str(value).split(",") if one.strip()]
        if not all(isinstance(each, str) for each in found):
            raise ValueError
        return found
    if isinstance(value, list | dict):
        raise ValueError
    return str(value)


def _whole(word: str) -> int:
    if len(word) > len(str(_MOST)) + 1:
        raise ValueError
    value = int(word)
    if abs(value) > _MOST:
        raise ValueError
    return value


def _finite(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise ValueError
    return value


def raise_problems(problems: Iterable[Problem]) -> None:
    """Raise all problems together, if there are any.

    Raises
    ------
    InputError
    """
    found = list(dict.fromkeys(problems))
    if found:
        raise InputError(found)
