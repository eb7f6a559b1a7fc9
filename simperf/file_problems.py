"""Problems of a file: the lines of its keys, and what pydantic finds wrong with it, in plain words.

Problems are told with file, line and key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

from pydantic import ValidationError

from simperf.errors import Problem, nearest
from simperf.files import TomlFile

__all__ = ["explain", "key_lines", "key_of", "problems_of"]

Key = tuple[str | int, ...]

#: what a file that is valid consists of; each alternative begins with another letter, so that none is read twice
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'|#[^\n]*|[^\s\"'#\[\]{}=,.]+|\S|\n",
    re.DOTALL,
)

#: what pydantic calls a choice of types, such as list[str], which is no key
_CHOICE = re.compile(r"^[a-z][\w-]*\[.*\]$|^constrained-")

_EXPECTED = {
    "string": 'a text in quotes, such as "eager"',
    "int": "a whole number, such as 100",
    "float": "a number, such as 0.8",
    "bool": "true or false",
    "list": "a list in [ ]",
    "tuple": "a list in [ ]",
    "dict": "a table in { }",
    "model": "a table",
}


def key_of(row: Mapping[str, Any], *types: str) -> tuple[str | int, ...]:
    """Key path of an error of pydantic, without the choices of types that it tells, `types` among them.

    A key that is unknown or missing is the last of a path, however it is called.
    """
    loc: tuple[str | int, ...] = row["loc"]
    last = loc[-1:] if row["type"] in ("extra_forbidden", "missing") else ()
    rest = loc[: len(loc) - len(last)]
    kept = (part for part in rest if isinstance(part, int) or not (_CHOICE.search(part) or part in types))
    return (*kept, *last)


def explain(row: Mapping[str, Any], toml: TomlFile, key: tuple[str | int, ...], known: list[str]) -> Problem:
    """Say what one error of pydantic means for the value at `key` of a file, whose table has the keys `known`."""
    kind, value, context = row["type"], row.get("input", ""), row.get("ctx", {})
    shown = value if isinstance(value, str | int | float) else ""
    if kind == "missing":
        return toml.problem(key, "this key is missing")
    if kind == "extra_forbidden":
        return toml.problem(key, f"unknown key{nearest(str(key[-1]), known)}")
    if kind == "literal_error":
        allowed = str(context["expected"]).replace(" or ", ", ").replace("'", "").split(", ")
        hint = nearest(str(value), allowed)
        return toml.problem(key, "not one of the choices" + hint, value=shown, expected="one of " + ", ".join(allowed))
    if kind == "value_error":
        return toml.problem(key, str(context["error"]), value=shown)
    word = kind.removesuffix("_type").removesuffix("_parsing").removesuffix("_from_float")
    if word in _EXPECTED:
        return toml.problem(key, "a value of another type is expected", value=shown, expected=_EXPECTED[word])
    words = {"greater_than_equal": "ge", "greater_than": "gt", "less_than_equal": "le", "less_than": "lt"}
    if kind in words:
        text = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}[words[kind]]
        return toml.problem(key, f"{text} {context[words[kind]]} is expected", value=shown)
    return toml.problem(key, str(row["msg"]), value=shown)


def problems_of(
    error: ValidationError, toml: TomlFile, at: tuple[str | int, ...], *, known: list[str]
) -> Iterator[Problem]:
    """Say what pydantic found wrong with the value at key path `at`, whose keys are `known`."""
    for row in error.errors(include_url=False):
        one = cast(Mapping[str, Any], row)
        loc = key_of(one)
        loc = loc[:-1] if row["type"] == "string_type" and loc[-1:] == ("str",) else loc
        yield explain(one, toml, (*at, *loc), known)


@lru_cache(maxsize=8)
def key_lines(text: str) -> dict[Key, int]:
    """Line of every key and of every entry of a list; keys inside inline tables share their parent's.

    Parameters
    ----------
    text : str
        Valid TOML.

    Returns
    -------
    dict of tuple to int
    """
    reader = _Reader()
    line = 1
    for match in _TOKEN.finditer(text):
        token = match.group()
        reader.take(token, line)
        line += token.count("\n")
    return reader.lines


class _Reader:
    """Goes from token to token: at the beginning of a statement, in a header, in a key, or in a value."""

    def __init__(self) -> None:
        self.lines: dict[Key, int] = {}
        self._counts: dict[Key, int] = {}
        self._table: Key = ()
        self._parts: list[str] = []
        self._place = "begin"
        self._header = 0
        self._open: list[str] = []
        self._path: Key = ()
        self._index, self._wanted = 0, False

    def take(self, token: str, line: int) -> None:
        """Read one token."""
        if token[0] == "#":
            return
        if token == "\n":
            if not self._open:
                self._place, self._parts = "begin", []
        elif self._place == "begin":
            self._begin(token)
        elif self._place == "header":
            self._in_header(token, line)
        elif self._place == "key":
            self._in_key(token, line)
        else:
            self._in_value(token, line)

    def _begin(self, token: str) -> None:
        if token == "[":
            self._place, self._header = "header", 1
        else:
            self._place, self._parts = "key", [_name(token)]

    def _in_header(self, token: str, line: int) -> None:
        if token == "[":
            self._header = 2
        elif token == "]":
            if self._parts:
                self._enter(line)
            self._parts = []
        elif token != ".":
            self._parts.append(_name(token))

    def _enter(self, line: int) -> None:
        """A header is read."""
        table: Key = ()
        for part in self._parts[:-1]:
            table = (*table, part)
            self.lines.setdefault(table, line)
            if table in self._counts:
                table = (*table, self._counts[table])
        table = (*table, self._parts[-1])
        self.lines.setdefault(table, line)
        if self._header == 2:
            self._counts[table] = self._counts.get(table, -1) + 1
            table = (*table, self._counts[table])
            self.lines.setdefault(table, line)
        self._table = table

    def _in_key(self, token: str, line: int) -> None:
        if token != "=":
            if token != ".":
                self._parts.append(_name(token))
            return
        path = self._table
        for part in self._parts:
            path = (*path, part)
            self.lines.setdefault(path, line)
        self._place, self._path, self._index, self._wanted = "value", path, 0, False

    def _in_value(self, token: str, line: int) -> None:
        if token in ("]", "}"):
            del self._open[-1:]
            return
        if self._wanted and self._open == ["["]:
            self.lines.setdefault((*self._path, self._index), line)
            self._index, self._wanted = self._index + 1, False
        if token in ("[", "{"):
            self._open.append(token)
            self._wanted = self._open == ["["]
        elif token == "," and self._open == ["["]:
            self._wanted = True


def _name(token: str) -> str:
    """The name that a part of a key is."""
    if token[0] == '"':
        return re.sub(r"\\(.)", r"\1", token[1:-1])
    return token[1:-1] if token[0] == "'" else token
