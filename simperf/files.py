"""Reading TOML with the line of every key, and writing files whole or not at all."""

from __future__ import annotations

import gzip
import os
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from simperf.errors import CONTROL, InputError, Problem
from simperf.file_bytes import has_many_parts, read_text

__all__ = [
    "DEEPEST",
    "MOST_TOML_BYTES",
    "TomlFile",
    "atomic_writer",
    "control_characters",
    "is_deeper",
    "is_endless",
    "is_special",
    "read_toml",
    "refuse_format",
    "refuse_other",
    "shown",
    "write_bytes",
    "write_packed",
    "write_text",
]

_LONGEST = 120  # characters of a value that a message repeats
#: of a TOML file [B]; the largest that simperf writes has 0.5 MiB
MOST_TOML_BYTES = 16 * 1024 * 1024
#: values and parts of keys of a TOML file, whose parser takes a kilobyte for each part
_MOST_VALUES = 250_000
#: tables and lists in one another
DEEPEST = 64
#: how what a terminal would obey may be written in TOML and JSON; and problems with it that are told of one file
_OBEYED = re.compile(r"[\x7f-\x9f]|\\(?:[bfre]|(?:x|u00|U000000)(?:[01]|7[fF]|[89]))")
_MOST_TOLD = 10
#: what a newcomer most often meant, by what tomllib says
_HINTS = {
    "Cannot overwrite": "every key once in its table",
    "Cannot declare": "every [table] once; [[table]] for a list of tables",
    "Expected newline": 'one key = value a line, and quantities in quotes, such as time = "60 ms"',
    "Invalid value": 'a text or quantity in quotes, such as "60 ms", a number, true, false, [list] or {table}',
    "Expected '='": 'key = value, such as title = "Ring", or a [table]',
    "Illegal character": "the closing quote in the same line",
    "Unterminated string": "a closing quote",
    'Expected "\'"': "a closing quote",
    "Expected \"'''\"": "three closing quotes, as there are three opening ones",
    "Unclosed array": "a closing ]",
    "Found invalid character": "lines that end as on Unix or Windows, and no control characters",
    "Invalid initial character for a key": "[table] or [[table]], with a name of letters, digits, '-' and '_'",
    "Unclosed inline table": "{ key = value, key = value }, closed in the same line",
    "Expected ']": "a table's name between brackets, closed in the same line: [table] or [[table]]",
    "Unescaped": "a text with backslashes in 'single quotes'",
    "Invalid statement": 'key = value, such as title = "Ring", or a [table]; other letters than a to z in quotes',
}
#: by the key at its top that only this kind of file has: what it is, and the command that takes it
_KINDS = {
    "program": ("a scenario", "simperf run"),
    "plan": ("a plan", "simperf plan"),
    "kind": ("a part, server or cluster", "simperf check"),
}


@dataclass(frozen=True)
class TomlFile:
    """A parsed TOML file that knows where its keys stand.

    Parameters
    ----------
    path : str
        As the user wrote it, for messages.
    data : dict
        What the file says.
    text : str
        The file itself.
    """

    path: str
    data: dict[str, Any]
    text: str

    @property
    def folder(self) -> str:
        """Folder that paths of the file are relative to; the working folder where there is no file."""
        return str(Path(self.path).absolute().parent) if self.path else str(Path.cwd())

    def line(self, key: tuple[str | int, ...]) -> int:
        """Line of a key path such as ``("machine", "link", 2, "bandwidth")``; nearest parent if absent."""
        from simperf.toml_lines import key_lines  # for problems alone

        lines = key_lines(self.text)
        while key:
            if key in lines:
                return lines[key]
            key = key[:-1]
        return 1

    def problem(self, key: tuple[str | int, ...], message: str, *, value: object = "", expected: str = "") -> Problem:
        """A `Problem` at `key` of this file."""
        return Problem(
            message,
            file=self.path,
            line=self.line(key),
            key=dotted(key),
            value=shown(value),
            expected=expected,
        )


def shown(value: object) -> str:
    """A value as messages repeat it: not longer than a line."""
    text = repr(value) if value != "" else ""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def dotted(key: tuple[str | int, ...]) -> str:
    """Write a key path as ``machine.link[2].bandwidth``; a key without a name is ``""``."""
    text = ""
    for given in key:
        part = '""' if given == "" else given
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_toml(path: str | os.PathLike[str], *, bounded: bool = True) -> TomlFile:
    """Read a TOML file.

    Parameters
    ----------
    path : path
    bounded : bool
        Refuse integers of more than 64 bits, as TOML does; otherwise whoever reads on has to, beside the rest.

    Raises
    ------
    InputError
        The file is missing, a directory, empty, binary, not TOML, or too large.
    """
    name = os.fspath(path)
    wanted = "a TOML file; see `simperf scenarios list`"
    text = read_text(name, most=MOST_TOML_BYTES, expected=wanted)
    if text.lstrip().startswith("{"):
        expected = "a TOML file; `simperf show` prints a saved result"
        raise InputError(Problem("this is JSON, not TOML", file=name, line=1, expected=expected))
    if has_many_parts(text, _MOST_VALUES - text.count(".") - text.count("\n")):
        message = f"the file may hold more than {_MOST_VALUES:,} values and parts of keys: not a simperf file"
        raise InputError(Problem(message, file=name, expected=wanted))
    try:
        toml = TomlFile(name, tomllib.loads(text), text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line = int(found.group(1)) if found else text.count("\n") + 1
        message = re.sub(r"\s*\(at .*\)$", "", str(error))
        lines = text.split("\n")
        read = lines[line - 1].strip() if line <= len(lines) else ""
        expected = next((hint for words, hint in _HINTS.items() if words in message), _HINTS["Expected '='"])
        raise InputError(
            Problem(f"not valid TOML: {message}", file=name, line=line, value=read[:120], expected=expected)
        ) from None
    except RecursionError:
        raise InputError(_too_deep(name, text)) from None
    except ValueError:  # a whole number of thousands of digits, or a date that there is not
        raise InputError(_no_value(name, text)) from None
    if is_deeper(toml.data, DEEPEST):
        raise InputError(_too_deep(name, text))
    if bounded:
        numbers = [(key, "a whole number of at most 64 bits is expected") for key in _oversized(toml.data, ())]
        problems = [toml.problem(key, told) for key, told in (*numbers, *control_characters(toml.data, text))]
        if problems:
            raise InputError(problems)
    return toml


def control_characters(data: Any, text: str) -> list[tuple[tuple[str | int, ...], str]]:
    """Keys of texts, or of tables with names, that a terminal would obey, each with what is wrong.

    Parameters
    ----------
    data : object
        What was read: tables, lists and values.
    text : str
        What it was read from.
    """
    found: list[tuple[tuple[str | int, ...], str]] = []
    rest: list[tuple[Any, tuple[str | int, ...]]] = [(data, ())] if _OBEYED.search(text) else []
    while rest and len(found) < _MOST_TOLD:
        value, key = rest.pop()
        if isinstance(value, dict):
            rest += [(each, (*key, name)) for name, each in value.items()]
            rest += [(name, (*key, name)) for name in value if CONTROL.search(name)]
        elif isinstance(value, list):
            rest += [(each, (*key, index)) for index, each in enumerate(value)]
        elif isinstance(value, str) and (odd := CONTROL.search(value)):
            told = f"a text with the control character U+{ord(odd.group()):04X}; one without is expected"
            found.append((key, told))
    return found


def is_deeper(value: Any, most: int) -> bool:
    """Whether tables and lists stand in one another to more than a depth."""
    level = [value]
    for _ in range(most + 1):
        level = [
            each
            for one in level
            for each in (one.values() if isinstance(one, dict) else one)
            if each.__class__ is dict or each.__class__ is list
        ]
        if not level:
            return False
    return True


def is_endless(value: Any) -> bool:
    """Whether tables and lists of Python stand in one another to more than `DEEPEST`, or hold themselves."""
    rest = [(value, 0)]
    while rest:
        one, depth = rest.pop()
        if isinstance(one, Mapping | list | tuple):
            if depth > DEEPEST:
                return True
            rest += [(each, depth + 1) for each in (one.values() if isinstance(one, Mapping) else one)]
    return False


def _too_deep(name: str, text: str) -> Problem:
    """A file of tables in one another without an end, with the line that is at fault as far as can be determined."""
    lines = text.split("\n")
    depths = [max(line.count("["), line.count("{"), line.partition("=")[0].count(".")) for line in lines]
    line = depths.index(max(depths)) + 1 if depths else 0
    message = f"tables and lists in one another to a depth of more than {DEEPEST}"
    return Problem(message, file=name, line=line, expected="keys of a few parts, such as machine.link.bandwidth")


def _no_value(name: str, text: str) -> Problem:
    """A number that is too long to be read."""
    found = re.search(r"\d{1000,}", text)
    line = text.count("\n", 0, found.start()) + 1 if found else 0
    return Problem("a number of thousands of digits", file=name, line=line, expected="a number of at most 64 bits")


def refuse_other(toml: TomlFile, wanted: str) -> None:
    """Refuse a file that is plainly of another kind, in place of calling each of its keys unknown.

    Parameters
    ----------
    toml : TomlFile
    wanted : str
        The key that a file of the kind has at its top: ``"program"``, ``"plan"`` or ``"kind"``.

    Raises
    ------
    InputError
        It has no such key, but that of another kind.
    """
    found = [key for key in _KINDS if key in toml.data]
    if found and wanted not in found:
        what, command = _KINDS[found[0]]
        if found[0] == "kind" and toml.data["kind"] == "stack":
            what = "a stack"
        message = f"this is the file of {what}, not of {_KINDS[wanted][0]}"
        raise InputError(toml.problem((found[0],), message, expected=f"`{command} FILE`"))


def refuse_format(toml: TomlFile) -> None:
    """Refuse a file whose ``format`` is another one; a file from before formats had numbers says none, and is read.

    Parameters
    ----------
    toml : TomlFile

    Raises
    ------
    InputError
        With what to change.
    """
    given = toml.data.get("format", 1)
    if isinstance(given, bool) or given != 1:
        message = "this simperf reads format 1 of such files"
        expected = "format = 1, with the keys that `simperf schema` prints; or a newer simperf"
        raise InputError(toml.problem(("format",), message, value=given, expected=expected))


def _oversized(value: Any, key: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    """Keys of the integers that TOML does not allow: floats could not hold them."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from _oversized(item, (*key, name))
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        yield key


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is a pipe or a device, which takes bytes as they come and must never be replaced."""
    given = Path(path)
    return given.exists() and not given.is_dir() and (not given.is_file() or os.fspath(path).startswith("/dev/"))


@contextmanager
def atomic_writer(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a file whole or not at all: a temporary file beside it, renamed at the end.

    A link stays and what it leads to is replaced; a pipe or device, such as ``/dev/stdout``, takes the bytes.

    Raises
    ------
    InputError
        The folder does not exist or cannot be written.
    """
    if is_special(path):
        with _naming(path), Path(path).open("wb") as stream:
            yield stream
        return
    target = Path(os.path.realpath(path))
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    except OSError as error:
        raise InputError(Problem(f"cannot be written: {error.strerror}", file=str(target))) from None
    try:
        with _naming(target), os.fdopen(handle, "wb") as stream:
            yield stream
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        try:
            os.replace(temporary, target)
        except OSError as error:
            raise InputError(Problem(f"cannot be written: {error.strerror}", file=str(target))) from None
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


@contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of the disk are those of writing this file, unless they name another one; whoever stops reading may."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is not None:
            raise
        raise InputError(Problem(f"cannot be written: {error.strerror}", file=os.fspath(path))) from None


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path`, whole or not at all."""
    with atomic_writer(path) as stream:
        stream.write(data)


def write_packed(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path` whole or not at all, gzipped if it ends in ``.gz``: the same data, the same bytes."""
    packed = os.fspath(path).endswith(".gz")
    write_bytes(path, gzip.compress(data, 6, mtime=0) if packed else data)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` as UTF-8 to `path`, whole or not at all."""
    write_bytes(path, text.encode("utf-8"))
