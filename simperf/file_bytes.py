"""Bytes and texts of files that people name: regular files alone, within a size, packed ones within the same size."""

from __future__ import annotations

import os
import re
import stat
import zlib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from simperf.errors import InputError, Problem

__all__ = [
    "MOST_BYTES",
    "decode",
    "has_many_parts",
    "read_bytes",
    "read_text",
    "refuse_irregular",
    "unpacked",
]

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
    return unpacked(raw, name, most=most, whole=whole, expected=expected) if unpack and _is_packed(raw) else raw


def read_text(
    path: str | os.PathLike[str],
    *,
    most: int = MOST_BYTES,
    unpack: bool = False,
    log: bool = False,
    what: str = "",
    expected: str = "",
) -> str:
    """The content of a regular file of UTF-8; a mark at its beginning is left out.

    Parameters
    ----------
    path, most, unpack, expected
        As in `read_bytes`.
    log : bool
        Whether the file is one that a program writes as it runs: what is there of a packed one that breaks off is read,
        and U+FFFD takes the place of bytes that are not valid UTF-8 or would move a terminal's cursor.
    what : str
        As in `decode`.

    Raises
    ------
    InputError
        It cannot be read, is empty, or is no text.
    """
    raw = read_bytes(path, most=most, unpack=unpack, whole=not log, expected=expected)
    text = decode(raw, os.fspath(path), what=what, exact=not log, expected=expected)
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


def _is_packed(raw: bytes) -> bool:
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
        raise InputError(Problem(f"no such file{_meant(name)}", file=name, expected=_cause(name) or expected)) from None
    except OSError as error:
        if os.path.isdir(name):
            _refuse_kind(name, stat.S_IFDIR, expected)
        raise InputError(Problem(f"cannot be read: {error.strerror}", file=name, expected=expected)) from None
    try:
        found = os.fstat(handle)
        _refuse_kind(name, found.st_mode, expected)
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


def refuse_irregular(path: str | os.PathLike[str]) -> None:
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
    _refuse_kind(name, found, "")


def _refuse_kind(name: str, mode: int, expected: str) -> None:
    """Refuse what the system's `mode` of a file says is no regular one."""
    if stat.S_ISREG(mode):
        return
    kind = next((kind for is_, kind in _KINDS if is_(mode)), "no file")
    wanted = "a file in it" if kind == "a directory" else "a regular file"
    told = f"{wanted}: {expected}" if expected else wanted
    raise InputError(Problem(f"this is {kind}, not a file", file=name, expected=told))


def _too_large(name: str, message: str, most: int, expected: str) -> Problem:
    told = f"at most {most // _MIB} MiB" + (f": {expected}" if expected else "")
    return Problem(f"{message}, more than is read", file=name, expected=told)


def unpacked(raw: bytes, name: str, *, most: int = MOST_BYTES, whole: bool = True, expected: str = "") -> bytes:
    """Bytes that gzip has packed, all members of it; the parameters are those of `read_bytes`.

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


def _meant(name: str) -> str:
    """The file of the same folder that may be meant, as a question."""
    folder = Path(name).parent
    try:
        close = get_close_matches(Path(name).name, [path.name for path in folder.iterdir()], n=1)
    except OSError:
        return ""
    return f"; did you mean {str(folder / close[0])!r}?" if close and not os.path.islink(name) else ""


def _cause(name: str) -> str:
    """What is expected of a name whose link or folder leads nowhere; empty if it has neither."""
    folder = Path(name).parent
    if os.path.islink(name):
        return f"a link to a file; it leads to {os.path.realpath(name)!r}, which does not exist"
    try:
        if not folder.is_dir():
            return f"an existing path; the folder {str(folder)!r} does not exist either"
    except OSError:
        pass
    return ""


def has_many_parts(text: str, most: int) -> bool:
    """Whether a text of brackets and commas may hold more than `most` values."""
    return text.count(",") + text.count("[") + text.count("{") > most
