"""JSON files that know where their keys stand, within limits of size, nesting and numbers."""

from __future__ import annotations

import json
import math
import os
import re
from typing import Any

from simperf.errors import InputError, Problem
from simperf.file_bytes import has_many_parts, read_text
from simperf.files import DEEPEST, TomlFile, control_characters, dotted, is_deeper

__all__ = ["MOST_VALUES", "JsonFile", "parse_json", "read_json"]

#: bytes of a file, unpacked [B]; its content takes ten times as much in memory
_MOST_BYTES = 128 * 1024 * 1024
#: values of a file: tables and lists of so many fit a computer's memory
MOST_VALUES = 10_000_000
#: by what opens or divides them, what a table, a list and a value take in CPython [B]; all that a file may take [B]
_MEMORY = {"{": 240, "[": 72, ",": 60}
_MOST_MEMORY = 1_000_000_000
_SPACE = re.compile(r"[ \t\n\r]*")
#: a text, perhaps the name of a value; or what opens, divides or closes tables and lists
_TOKEN = re.compile(r'("(?:\\.|[^"\\])*")([ \t\n\r]*:)?|[\[\]{},]')
#: problems with numbers that are told of one file
_MOST_TOLD = 10


class JsonFile(TomlFile):
    """A parsed JSON file; `line` is looked for where a problem is reported."""

    def line(self, key: tuple[str | int, ...]) -> int:
        """Line of a key path; that of the nearest parent where there is no such key."""
        return self.text.count("\n", 0, _place(self.text, key)) + 1


def read_json(
    path: str | os.PathLike[str], *, what: str = "not a JSON file", expected: str = "", finite: bool = True
) -> JsonFile:
    """Read a JSON file, packed with gzip or not.

    Parameters
    ----------
    path : path
    what : str
        What a file that is wrong is, such as ``"not a saved result"``; begins messages.
    expected : str
        What is expected, for messages.
    finite : bool
        Refuse numbers that are not finite, or whole ones of more than 64 bits.

    Raises
    ------
    InputError
        It cannot be read, is too large or too deeply nested, or is no JSON; a key stands twice in a table; a text has
        characters that a terminal would obey.
    """
    name = os.fspath(path)
    text = read_text(name, most=_MOST_BYTES, unpack=True, what=what, expected=expected)
    return parse_json(text, name, what=what, expected=expected, finite=finite)


def parse_json(
    text: str, name: str, *, what: str = "not a JSON file", expected: str = "", finite: bool = True
) -> JsonFile:
    """Parse the text of a JSON file; see `read_json`."""
    if has_many_parts(text, MOST_VALUES):
        message = f"{what}: more than {MOST_VALUES:,} values"
        raise InputError(Problem(message, file=name, expected=expected))
    memory = sum(text.count(mark) * size for mark, size in _MEMORY.items())
    if memory > _MOST_MEMORY:
        message = f"{what}: its tables and lists would take {memory / 1e9:.1f} GB of memory"
        told = f"at most {_MOST_MEMORY / 1e9:.1f} GB" + (f": {expected}" if expected else "")
        raise InputError(Problem(message, file=name, expected=told))
    try:
        file = JsonFile(name, json.loads(text, object_pairs_hook=_table), text)
    except json.JSONDecodeError as error:
        message = f"{what}: invalid JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        raise InputError(Problem(message, file=name, line=error.lineno, expected=expected)) from None
    except _TwiceError:
        key, place = _twice(text)
        line, message = text.count("\n", 0, place) + 1, f"{what}: the key stands twice in its table"
        raise InputError(Problem(message, file=name, line=line, key=dotted(key), expected="one of both")) from None
    except RecursionError:
        file = None
    except MemoryError:
        message = f"{what}: it needs more memory than this computer has"
        raise InputError(Problem(message, file=name, expected=expected)) from None
    except ValueError:  # a whole number of thousands of digits
        found = re.search(r"\d{1000,}", text)
        line = text.count("\n", 0, found.start() if found else 0) + 1
        message = f"{what}: a whole number of at most 64 bits is expected"
        raise InputError(Problem(message, file=name, line=line, expected=expected)) from None
    if file is None or is_deeper([file.data], DEEPEST + 1):
        line = text.count("\n", 0, _deep(text)) + 1
        message = f"{what}: tables and lists in one another to a depth of more than {DEEPEST}"
        raise InputError(Problem(message, file=name, line=line, expected=expected))
    wrong = [*_odd_numbers(file.data, finite=finite), *control_characters(file.data, text)]
    if wrong:
        raise InputError([file.problem(key, f"{what}: {told}", expected=expected) for key, told in wrong])
    return file


class _TwiceError(Exception):
    """A key stands twice in a table."""


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table, if no key stands twice in it: of two values neither can be meant."""
    table = dict(pairs)
    if len(table) < len(pairs):
        raise _TwiceError
    return table


def _twice(text: str) -> tuple[tuple[str | int, ...], int]:
    """Path of the first key that stands twice in its table, and where its second value's name stands."""
    names: list[set[str] | None] = []  # of each open table; None for a list
    steps: list[str | int] = []
    for match in _TOKEN.finditer(text):
        mark = match.group()[0]
        known = names[-1] if names else None
        if mark in "[{":
            names.append(set() if mark == "{" else None)
            steps.append("" if mark == "{" else 0)
        elif mark in "]}":
            names.pop()
            steps.pop()
        elif mark == "," and steps and known is None:
            steps[-1] = int(steps[-1]) + 1
        elif match.group(2) and known is not None:
            steps[-1] = name = str(json.loads(match.group(1)))
            if name in known:
                return tuple(steps), match.start()
            known.add(name)
    return (), 0


def _odd_numbers(data: Any, *, finite: bool) -> list[tuple[tuple[str | int, ...], str]]:
    """Keys of numbers that are too long for a float, and if all must be finite, that are none or endless."""
    found: list[tuple[tuple[str | int, ...], str]] = []
    rest: list[tuple[Any, tuple[str | int, ...]]] = [(data, ())] if isinstance(data, dict | list) else []
    while rest and len(found) < _MOST_TOLD:
        value, key = rest.pop()
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            if each.__class__ is float:
                if finite and not math.isfinite(each):
                    found.append(((*key, name), "a finite number is expected"))
            elif each.__class__ is int:
                if not -(2**63) <= each < 2**63:
                    found.append(((*key, name), "a whole number of at most 64 bits is expected"))
            elif each.__class__ is dict or each.__class__ is list:
                rest.append((each, (*key, name)))
    return found


def _deep(text: str) -> int:
    """Where brackets stand in one another too deeply; strings are left out."""
    depth = 0
    for match in re.finditer(r'"(?:\\.|[^"\\])*"|[\[{]|[\]}]', text):
        mark = match.group()[0]
        depth += (mark in "[{") - (mark in "]}")
        if depth > DEEPEST:
            return match.start()
    return 0


def _place(text: str, key: tuple[str | int, ...]) -> int:
    """Where the value at a key path stands in valid JSON, or as far down as there are keys."""
    decoder = json.JSONDecoder()
    at = _skip(text, 0)
    for step in key:
        found = _member(text, at, step, decoder)
        if found < 0:
            break
        at = found
    return at


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _member(text: str, at: int, step: str | int, decoder: json.JSONDecoder) -> int:
    """Where the entry `step` of the table or list that begins at `at` stands; -1 if there is none."""
    wanted = "{" if isinstance(step, str) else "["
    if text[at : at + 1] != wanted:
        return -1
    at, count = _skip(text, at + 1), 0
    while at < len(text) and text[at] not in "]}":
        name: str | int = count
        if wanted == "{":
            name, at = decoder.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        if name == step:
            return at
        _, at = decoder.raw_decode(text, at)
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        count += 1
    return -1
