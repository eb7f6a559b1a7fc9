"""Lines of the keys of TOML, which tomllib does not tell."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["key_lines"]

Key = tuple[str | int, ...]

#: what a file that is valid consists of; each alternative begins with another letter, so that none is read twice
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'|#[^\n]*|[^\s\"'#\[\]{}=,.]+|\S|\n",
    re.DOTALL,
)


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
