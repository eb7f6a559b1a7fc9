"""A scenario in the making: its tables, where each value is from, and what is assumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import tomli_w

from simperf.errors import DeviceMemoryError, InputError, Problem, SimperfError
from simperf.files import dotted
from simperf.frameworks.options import GivenOption, JobOptionsRead
from simperf.scenario import Scenario, make_scenario
from simperf.scenario.overrides import Changes, parse_changes
from simperf.study.check import refuse_layout

__all__ = ["JobDraft"]

#: tables in the order of the file
_ORDER = ("scenario", "machine", "frontend", "model", "layout", "program")
#: characters of a line of the file
_WIDTH = 150


@dataclass
class JobDraft:
    """Tables of a scenario that options of a framework become.

    Parameters
    ----------
    options : JobOptionsRead
    changes : mapping or sequence of str
        Values that the caller gives, such as ``{"model.vocabulary": 32000}``; they go before those of the options.
    """

    options: JobOptionsRead
    changes: Changes = ()
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    comments: dict[tuple[str, str], str] = field(default_factory=dict)
    origins: dict[str, GivenOption] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._changed = {dotted(one.path): one.value for one in parse_changes(self.changes)}

    def set(self, table: str, key: str, value: Any, *names: str, why: str = "") -> None:
        """Give a key its value.

        Parameters
        ----------
        table, key : str
        value : object
        *names : str
            Options that it follows from, the first of which messages name.
        why : str
            A comment, where the value is not what an option says.
        """
        found = next((self.options.given[name] for name in names if name in self.options.given), None)
        self.tables.setdefault(table, {})[key] = value
        if found is not None:
            self.origins[f"{table}.{key}"] = found
        if why:
            self.comments[table, key] = why
        elif found is None and names:
            assumed = self.options.assumed.get(names[0])
            self.comments[table, key] = assumed or f"default of {self.options.argument(names[0])}"

    def is_changed(self, key: str) -> bool:
        """Whether the caller gives a key."""
        return key in self._changed

    def value(self, key: str, otherwise: Any) -> Any:
        """The caller's value of a key, or another."""
        return self._changed.get(key, otherwise)

    def finished(self) -> None:
        """Put the caller's changes in.

        Raises
        ------
        InputError
            A key of more than two parts.
        """
        for key, value in self._changed.items():
            table, _, name = key.partition(".")
            if not name or "." in name or "[" in name:
                message, expected = "a key of a table is expected", "such as model.vocabulary"
                raise InputError(Problem(message, file="--set", key=key, expected=expected))
            self.tables.setdefault(table, {})[name] = value
            self.comments[table, name] = "given by --set"
            self.origins.pop(key, None)

    def scenario(self) -> Scenario:
        """The scenario, checked: its layout divides the model. That it does not fit is a note of the options.

        Raises
        ------
        InputError
            What contradicts, by the options that it is from.
        """
        try:
            made = make_scenario(self.tables)
            try:
                refuse_layout(made)
            except InputError as error:
                if not isinstance(error.__cause__, DeviceMemoryError):
                    raise
                self.options.notes += [f"does not fit: {one.message}" for one in error.problems]
        except InputError as error:
            raise InputError([self._placed(one) for one in error.problems]) from None
        except SimperfError as error:
            raise InputError(Problem(str(error), file=self.options.file)) from None
        return made

    def _placed(self, problem: Problem) -> Problem:
        """A problem of the scenario at the option that its value is from."""
        key = problem.key
        while key and key not in self.origins:
            key = key.rpartition(".")[0]
        file = self.options.file
        if not key:
            return replace(problem, file="--set" if self.is_changed(problem.key) else file, line=0)
        one = self.origins[key]
        name = f"{one.name} ({problem.key})"
        return replace(problem, file=file, line=one.line, key=name, value=one.told or problem.value)

    def text(self, head: Sequence[str]) -> str:
        """The scenario's file, with a comment for what is assumed.

        Parameters
        ----------
        head : sequence of str
            Lines of a comment at its top.
        """
        parts = ["\n".join(f"# {_plain(line)}".rstrip() for line in head)] if head else []
        for name in (*_ORDER, *(key for key in self.tables if key not in _ORDER)):
            if name in self.tables:
                parts.append(self._table(name, self.tables[name]))
        return "\n\n".join(parts) + "\n"

    def _table(self, name: str, table: Mapping[str, Any]) -> str:
        lines, inner = [f"[{name}]"], []
        for key, value in table.items():
            if isinstance(value, Mapping) and name == "machine":
                inner.append(f"[{name}.{key}]\n" + tomli_w.dumps(value).rstrip())
                continue
            line = f"{tomli_w.dumps({key: '?'}).partition(' = ')[0]} = {_value(value)}"
            why = self.comments.get((name, key), "")
            if why and len(line) + len(why) + 5 > _WIDTH:
                lines.append(f"# {_plain(why)}")
                why = ""
            lines.append(f"{line}  # {_plain(why)}" if why else line)
        return "\n\n".join(["\n".join(lines), *inner])


def _value(value: Any) -> str:
    """A value in one line of TOML."""
    if isinstance(value, list):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + " }"
    return tomli_w.dumps({"x": value}).partition(" = ")[2].rstrip("\n")


def _plain(text: str) -> str:
    """A text that stays in its line of a comment."""
    return "".join(one if one.isprintable() else " " for one in text)
