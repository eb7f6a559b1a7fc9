"""Bytes and texts of files that people name: regular files alone, within a size, packed ones within the same size.

Where keys of TOML stand in a text is found here, too.
"""

from __future__ import annotations

import os
import re
import stat
import zlib
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from simperf.errors import InputError, Problem

__all__ = [
    "MOST_BYTES",
    "decode",
    "has_many_parts",
    "is_packed",
    "key_lines",
    "read_bytes",
    "read_text",
    "refuse_irregular",
    "unpacked",
]

Key = tuple[str | int, ...]

#: what a file that is valid consists of; each alternative begins with another letter, so that none is read twice
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'|#[^\n]*|[^\s\"'#\[\]{}=,.]+|\S|\n",
    re.DOTALL,
)

_MIB = 1024 * 1024
#: bytes of a file, unpacked, unless its reader says less [B]
MOST_BYTES = 256 * _MIB
#: of a packed file, whose tools make one of 64 KiB at least; and bytes of a member that are looked at first [B]
_MOST_MEMBERS, _FIRST_PIECE = 100_000, 256
#: what a log may hold of a terminal's codes; ends of lines of every system, and of pages, are none
_LOGGED = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_GZIP = b"\x1f\x8b"
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def read_bytes(
    path: str | os.PathLike[str],
    *,
    most: int = MOST_BYTES,
    unpack: bool = False,
    whole: bool = True,
    expected: str = "",
) -> bytes:
    """The content of a regular file.

    Parameters
    ----------
    path : path
    most : int
        Largest size that is read, after unpacking [B].
    unpack : bool
        Whether a file that begins as gzip does is unpacked.
    whole : bool
        Whether a packed file that breaks off is refused; otherwise what is there is returned.
    expected : str
        What a file is expected to be, for messages.

    Raises
    ------
    InputError
        No such file, a directory, pipe or device, one that cannot be read, or one that is too large.
    """
    name = os.fspath(path)
    raw = _content(name, most, expected)
    return unpacked(raw, name, most=most, whole=whole, expected=expected) if unpack and is_packed(raw) else raw


def read_text(
    path: str | os.PathLike[str], *, most: int = MOST_BYTES, unpack: bool = False, log: bool = False, expected: str = ""
) -> str:
    """The content of a regular file of UTF-8; a mark at its beginning is left out.

    Parameters
    ----------
    path, most, unpack, expected
        As in `read_bytes`.
    log : bool
        Whether the file is one that a program writes as it runs: what is there of a packed one that breaks off is read,
        and a question mark takes the place of what is no UTF-8 or would move a terminal's cursor.

    Raises
    ------
    InputError
        It cannot be read, is empty, or is no text.
    """
    raw = read_bytes(path, most=most, unpack=unpack, whole=not log, expected=expected)
    text = decode(raw, os.fspath(path), exact=not log, expected=expected)
    return _LOGGED.sub("\ufffd", text) if log else text


def decode(raw: bytes, name: str, *, what: str = "", exact: bool = True, expected: str = "") -> str:
    """The text that the bytes of the file `name` are; `what` a file is that is wrong begins messages.

    Unless it is to be `exact`, U+FFFD takes the place of bytes that are no UTF-8.

    Raises
    ------
    InputError
        It is empty, or no UTF-8.
    """
    begin = f"{what}: " if what else ""
    try:
        text = raw.decode("utf-8-sig", errors="strict" if exact else "replace")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        message = f"{begin}not a text file: it holds bytes that are not UTF-8"
        raise InputError(Problem(message, file=name, line=line, expected=expected)) from None
    if not text.strip():
        raise InputError(Problem(f"{begin}the file is empty", file=name, expected=expected))
    if "\0" in text[:4096]:
        raise InputError(Problem(f"{begin}not a text file: it holds null bytes", file=name, expected=expected))
    return text


def is_packed(raw: bytes) -> bool:
    """Whether bytes begin as gzip's do."""
    return raw[:2] == _GZIP


def _content(name: str, most: int, expected: str) -> bytes:
    """At most `most` bytes of a regular file, and no wait for what is none."""
    if "\0" in name:
        raise InputError(Problem("no name of a file: it holds a null byte", file=repr(name), expected=expected))
    try:
        # without O_NONBLOCK the opening of a pipe waits for a writer
        handle = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise InputError(Problem("no such file", file=name, expected=_similar(name) or expected)) from None
    except OSError as error:
        if os.path.isdir(name):
            raise InputError(_no_file(name, "a directory", expected)) from None
        raise InputError(Problem(f"cannot be read: {error.strerror}", file=name, expected=expected)) from None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise InputError(_no_file(name, next((k for is_, k in _KINDS if is_(found.st_mode)), "no file"), expected))
        if found.st_size > most:
            raise InputError(_too_large(name, f"the file has {found.st_size / _MIB:.0f} MiB", most, expected))
        with os.fdopen(handle, "rb", closefd=False) as stream:
            raw = stream.read(found.st_size + 1)  # takes memory for as much as it may read
            if len(raw) > found.st_size:
                raw += stream.read(most + 1 - len(raw))
    except OSError as error:
        raise InputError(Problem(f"cannot be read: {error.strerror}", file=name, expected=expected)) from None
    finally:
        os.close(handle)
    if len(raw) > most:
        raise InputError(_too_large(name, "the file is larger", most, expected))
    return raw


def refuse_irregular(path: str | os.PathLike[str], *, expected: str = "") -> None:
    """Refuse a file that is there and is none that is read: a directory, pipe or device; opening would wait for it.

    Raises
    ------
    InputError
        With what it is.
    """
    name = os.fspath(path)
    try:
        found = os.stat(name).st_mode
    except (OSError, ValueError):
        return  # there is none, and whoever opens it says so
    if not stat.S_ISREG(found):
        raise InputError(_no_file(name, next((kind for is_, kind in _KINDS if is_(found)), "no file"), expected))


def _no_file(name: str, kind: str, expected: str) -> Problem:
    wanted = "a file in it" if kind == "a directory" else "a regular file"
    told = f"{wanted}: {expected}" if expected else wanted
    return Problem(f"this is {kind}, not a file", file=name, expected=told)


def _too_large(name: str, message: str, most: int, expected: str) -> Problem:
    told = f"at most {most // _MIB} MiB" + (f": {expected}" if expected else "")
    return Problem(f"{message}, more than is read", file=name, expected=told)


def unpacked(raw: bytes, name: str, *, most: int = MOST_BYTES, whole: bool = True, expected: str = "") -> bytes:
    """What gzip has packed, all members of it; the parameters are those of `read_bytes`.

    Raises
    ------
    InputError
        It is not packed, is damaged or breaks off, or unpacks to more than `most` bytes.
    """
    found = bytearray()
    rest, members = memoryview(raw), 0
    while rest:
        member = zlib.decompressobj(wbits=31)
        members += 1
        if members > _MOST_MEMBERS:
            message = f"the file is packed in more than {_MOST_MEMBERS:,} parts"
            raise InputError(Problem(message, file=name, expected=expected or "one part"))
        try:
            rest = _member(member, rest, found, most)
        except zlib.error as error:
            if found and not whole:
                break
            told = f"the whole of it{f': {expected}' if expected else ''}"
            message = f"the file is damaged, or not packed with gzip: {str(error).rpartition(': ')[2]}"
            raise InputError(Problem(message, file=name, expected=told)) from None
        if len(found) > most:
            raise InputError(_too_large(name, "the file unpacks to more", most, expected))
        if not member.eof:
            if whole:
                told = f"the whole of it{f': {expected}' if expected else ''}"
                raise InputError(Problem("the file breaks off, or is damaged", file=name, expected=told))
            break
        rest = _padded(rest)
        if rest[:2] != _GZIP:
            break  # gzip leaves out what stands behind the last member
    return bytes(found)


def _member(member: Any, rest: memoryview, found: bytearray, most: int) -> memoryview:
    """Add to `found` what the first member of `rest` packs; gives what stands behind it.

    It is read in pieces that grow, as what is left of a piece is copied: many small members take no longer than one.
    """
    size = _FIRST_PIECE
    while rest and not member.eof and len(found) <= most:
        piece = rest[:size]
        found += member.decompress(piece, most + 1 - len(found))
        rest = rest[len(piece) - len(member.unused_data) - len(member.unconsumed_tail) :]
        size = min(2 * size, _MIB)
    return rest


def _padded(rest: memoryview) -> memoryview:
    """What is left without the zeros at its beginning."""
    while rest and not any(rest[:_FIRST_PIECE]):
        rest = rest[_FIRST_PIECE:]
    skip = next((index for index, byte in enumerate(rest[:_FIRST_PIECE]) if byte), 0)
    return rest[skip:]


def _similar(name: str) -> str:
    folder = Path(name).parent
    if os.path.islink(name):
        return f"a link to a file; it leads to {os.path.realpath(name)!r}, which does not exist"
    try:
        if not folder.is_dir():
            return f"an existing path; the folder {str(folder)!r} does not exist either"
        close = get_close_matches(Path(name).name, [path.name for path in folder.iterdir()], n=1)
    except OSError:
        return ""
    return f"did you mean {str(folder / close[0])!r}?" if close else ""


def has_many_parts(text: str, most: int) -> bool:
    """Whether a text of brackets and commas may hold more than `most` values."""
    return text.count(",") + text.count("[") + text.count("{") > most


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
