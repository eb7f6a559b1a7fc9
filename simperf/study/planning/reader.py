"""Reading the tables of a plan's file: every value checked, all problems kept for one error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simperf.errors import Problem, UnitError, nearest
from simperf.files import TomlFile
from simperf.units import parse

__all__ = ["RequestTable"]

Key = tuple[str | int, ...]
_MOST = 1e18  # of a plain number


class RequestTable:
    """One table of a file; what is wrong is added to `problems`.

    Parameters
    ----------
    toml : TomlFile
    name : str
        Of the table.
    known : sequence of str
        Keys that it may have.
    problems : list of Problem
    """

    def __init__(self, toml: TomlFile, name: str, known: Sequence[str], problems: list[Problem]) -> None:
        self.toml, self.name, self.problems = toml, name, problems
        given = toml.data.get(name, {})
        if not isinstance(given, dict):
            self.wrong((), "a table is expected", value=given, expected=f"[{name}]")
            given = {}
        self.data: dict[str, Any] = given
        for key in given:
            if key not in known:
                self.wrong((key,), f"unknown key{nearest(key, known, show=len(known))}")

    def wrong(self, key: Key, message: str, *, value: object = "", expected: str = "") -> None:
        """Add a problem at a key of the table."""
        self.problems.append(self.toml.problem((self.name, *key), message, value=value, expected=expected))

    def __contains__(self, key: str) -> bool:
        return key in self.data

    def quantity(self, key: str, dimension: str, default: float = 0.0, *, zero: bool = False) -> float:
        """A number with a unit, above 0 unless `zero` is allowed."""
        if key not in self.data:
            return default
        try:
            value = parse(self.data[key], dimension)
        except UnitError as error:
            self.wrong((key,), str(error), value=self.data[key])
            return default
        if value < 0 or (value == 0 and not zero):
            self.wrong((key,), "it must be above 0", value=self.data[key])
            return default
        return value

    def number(self, key: str, default: float = 0.0) -> float:
        """A plain number above 0."""
        value = self.data.get(key, default)
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        if key in self.data and not (plain and 0 < value < _MOST):
            self.wrong((key,), f"a number above 0 and below {_MOST:g} is expected", value=value)
            return default
        return float(value)

    def count(self, key: str, default: int = 0) -> int:
        """A whole number above 0."""
        value = self.data.get(key, default)
        if key in self.data and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            self.wrong((key,), "a whole number above 0 is expected", value=value)
            return default
        return int(value)

    def counts(self, key: str, default: Sequence[int] = (), *, most: int) -> tuple[int, ...]:
        """Whole numbers above 0 and not above `most`, one or a list."""
        if key not in self.data:
            return tuple(default)
        given = self.data[key]
        values = given if isinstance(given, list) else [given]
        good = [value for value in values if isinstance(value, int) and not isinstance(value, bool) and value >= 1]
        if len(good) != len(values) or not values:
            self.wrong((key,), "whole numbers above 0 are expected, such as [1, 2, 4]", value=given)
        elif max(good) > most:
            self.wrong((key,), f"whole numbers of at most {most:,} are expected", value=max(good))
        return tuple(dict.fromkeys(good)) or tuple(default)

    def flag(self, key: str) -> bool:
        """True or false; false if it is not there."""
        value = self.data.get(key, False)
        if not isinstance(value, bool):
            self.wrong((key,), "true or false is expected", value=value)
        return value is True

    def text(self, key: str, default: str = "") -> str:
        """A text."""
        value = self.data.get(key, default)
        if not isinstance(value, str):
            self.wrong((key,), "a text in quotes is expected", value=value)
            return default
        return value

    def texts(self, key: str, default: Sequence[str] = ()) -> tuple[str, ...]:
        """Texts, one or a list."""
        if key not in self.data:
            return tuple(default)
        given = self.data[key]
        values = given if isinstance(given, list) else [given]
        if not values or not all(isinstance(value, str) for value in values):
            self.wrong((key,), 'texts in quotes are expected, such as ["p3-16xlarge"]', value=given)
            return tuple(default)
        return tuple(dict.fromkeys(values))

    def choice(self, key: str, choices: Sequence[str], default: str) -> str:
        """One of several words."""
        value = self.text(key, default)
        if value not in choices:
            self.wrong((key,), f"not one of the choices{nearest(value, choices)}", value=value)
            return default
        return value
