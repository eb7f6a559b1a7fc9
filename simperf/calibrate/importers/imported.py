"""Result of an import: the points that could be read from a file, and what could not be and why."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simperf.calibrate.dataset import Dataset, Measurement, Value
from simperf.errors import InputError, Problem
from simperf.file_bytes import has_many_parts, read_text
from simperf.json_file import MOST_VALUES

__all__ = ["KINDS", "Imported", "Points", "kind_of", "parsed_json", "read_measurements", "refuse_lines"]

#: what can be imported
KINDS = ("nccl-tests", "kineto", "csv")
#: problems of one file that are named one by one
MOST_NAMED = 20


@dataclass(frozen=True)
class Imported:
    """A data set, and what was not read.

    Parameters
    ----------
    dataset : Dataset
    problems : tuple of Problem
        Each with file, line and reason.
    unread : tuple of str
        Files of which nothing was read.
    used : frozenset of str
        What the caller said of the file, by parameter, that had an effect or agrees with it.
    """

    dataset: Dataset
    problems: tuple[Problem, ...] = ()
    unread: tuple[str, ...] = ()
    used: frozenset[str] = frozenset()


class Points:
    """Points under way: readings of equal conditions come together in the order in which they were read."""

    def __init__(self) -> None:
        self._points: dict[str, Measurement] = {}

    def add(
        self,
        series: str,
        at: dict[str, Value],
        samples: Iterable[float],
        *,
        unit: str = "s",
        warnings: Sequence[str] = (),
    ) -> None:
        """Add readings of a point."""
        new = Measurement(series, at, tuple(samples), unit, tuple(warnings))
        if not new.samples:
            return
        old = self._points.get(new.key)
        if old is not None:
            words = tuple(dict.fromkeys((*old.warnings, *new.warnings)))
            new = replace(new, samples=old.samples + new.samples, warnings=words)
        self._points[new.key] = new

    def extend(self, points: Iterable[Measurement]) -> None:
        """Add whole points."""
        for point in points:
            self.add(point.series, dict(point.at), point.samples, unit=point.unit, warnings=point.warnings)

    def all(self) -> tuple[Measurement, ...]:
        """Points that were added."""
        return tuple(self._points.values())


#: digits that are no number
_ENDLESS = re.compile(r"\d{400,}")
#: lines of a log or table, and characters of one
_MOST_LINES, _LONGEST_LINE = 200_000, 10_000


def read_measurements(path: str | os.PathLike[str]) -> str:
    """The text of a log, trace or table, unpacked if it is gzipped; what is cut off of a gzipped file is left out.

    Raises
    ------
    InputError
        It cannot be read, is too large, is empty, or is no text; a number or a line in it has no end.
    """
    name, expected = os.fspath(path), f"measurements: {', '.join(KINDS)}"
    text = read_text(name, unpack=True, log=True, expected=expected)
    if has_many_parts(text, MOST_VALUES):
        raise InputError(Problem(f"more than {MOST_VALUES:,} values", file=name, expected=expected))
    digits = _ENDLESS.search(text)
    if digits:
        line = text.count("\n", 0, digits.start()) + 1
        message = f"a number of {len(digits.group()):,} digits"
        raise InputError(Problem(message, file=name, line=line, expected="a number of at most 64 bits"))
    if text.lstrip()[:1] not in ("{", "["):
        refuse_lines(text, name, expected)
    return text


def refuse_lines(text: str, name: str, expected: str) -> None:
    """Refuse the text of a log or table of too many lines, or of one that is no line of such.

    Raises
    ------
    InputError
        With the line.
    """
    lines = text.splitlines()
    if len(lines) > _MOST_LINES:
        message = f"{len(lines):,} lines, more than are read"
        raise InputError(Problem(message, file=name, expected=f"at most {_MOST_LINES:,}: {expected}"))
    long = next((number for number, line in enumerate(lines, 1) if len(line) > _LONGEST_LINE), 0)
    if long:
        message = f"a line of {len(lines[long - 1]):,} characters"
        raise InputError(Problem(message, file=name, line=long, expected=f"at most {_LONGEST_LINE:,}: {expected}"))


def kind_of(text: str) -> str:
    """Kind of a file, from how it begins; empty if that cannot be determined.

    Examples
    --------
    >>> kind_of("size [MiB],time [us]"), kind_of('{"traceEvents": []}'), kind_of("# size count time algbw busbw")
    ('csv', 'kineto', 'nccl-tests')
    """
    start = text.lstrip()[:1]
    if start in ("{", "["):
        head = text[:200_000]
        if '"traceEvents"' in text or '"ph"' in head:
            return "kineto"
        return "nccl-tests" if '"results"' in head or '"bus_bw"' in text else ""
    if "busbw" in text or "_perf" in text or "algbw" in text:
        first = text.lstrip().splitlines()[0]
        if "," not in first or first.startswith("#"):
            return "nccl-tests"
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    return "csv" if any(mark in first for mark in ",;\t") else ""


def parsed_json(
    text: str,
    name: str,
    key: str,
    members: Sequence[str],
    *,
    what: str,
    writer: str,
    decoder: json.JSONDecoder | None = None,
) -> tuple[Any, tuple[Problem, ...]]:
    """Contents of JSON, whole or up to where it breaks off, and that it does.

    Parameters
    ----------
    text, name : str
        The file, and its name for messages.
    key : str
        Of the list whose whole objects are read of JSON that breaks off.
    members : sequence of str
        What else is looked for there.
    what, writer : str
        The objects and the program that writes them, for messages.
    decoder : JSONDecoder, optional
    """
    decoder = decoder or json.JSONDecoder()
    try:
        return decoder.decode(text), ()
    except json.JSONDecodeError as error:
        line = error.lineno
    except (RecursionError, ValueError):  # brackets in one another, or a number of thousands of digits
        line = 1
    rows, broken = _rows_of(text, key, decoder)
    begun = text.lstrip()[:1] in ("{", "[")
    message = f"no JSON from here on: {len(rows)} {what} before it were read" if begun else "no JSON"
    expected = f"the whole of what {writer} wrote"
    problem = Problem(message, file=name, line=broken if rows else line, expected=expected)
    return {key: rows, **{one: _member(text, one, decoder) for one in members}}, (problem,)


def _rows_of(text: str, key: str, decoder: json.JSONDecoder) -> tuple[list[Mapping[str, Any]], int]:
    """Whole objects of the list under `key` of JSON that breaks off (or of a bare list), and the line where it does."""
    begin = text.find("[", max(0, text.find(f'"{key}"')))
    rows: list[Mapping[str, Any]] = []
    place = begin + 1
    while 0 < place < len(text):
        gap = re.compile(r"[\s,]*").match(text, place)
        place = gap.end() if gap else place
        try:
            row, end = decoder.raw_decode(text, place)
        except (json.JSONDecodeError, RecursionError):
            break
        if not isinstance(row, Mapping):
            break
        rows.append(row)
        place = end
    return rows, text.count("\n", 0, place) + 1


def _member(text: str, key: str, decoder: json.JSONDecoder) -> Any:
    """What stands under `key` of JSON that breaks off later; None if it is not there or not whole."""
    found = re.search(rf'"{key}"\s*:\s*', text)
    if found is None:
        return None
    try:
        return decoder.raw_decode(text, found.end())[0]
    except (json.JSONDecodeError, RecursionError):
        return None
