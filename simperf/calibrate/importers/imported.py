"""What came of a file: the points that could be read, and what could not be and why."""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from simperf.calibrate.dataset import Dataset, Measurement, Value
from simperf.errors import InputError, Problem, UnknownNameError

__all__ = ["KINDS", "Imported", "Points", "import_file", "import_files", "kind_of", "member", "read_text", "rows_of"]

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
    """

    dataset: Dataset
    problems: tuple[Problem, ...] = ()
    unread: tuple[str, ...] = ()


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
        """What was added."""
        return tuple(self._points.values())


def read_text(path: str | os.PathLike[str]) -> str:
    """A file as text, unpacked if it is gzipped; what is cut off of a gzipped file is left out.

    Raises
    ------
    InputError
        It cannot be read, is empty, or is no text.
    """
    name = os.fspath(path)
    try:
        raw = Path(name).read_bytes()
    except OSError as error:
        raise InputError(Problem(f"cannot be read: {error.strerror}", file=name)) from None
    if raw[:2] == b"\x1f\x8b":
        unpacker = zlib.decompressobj(wbits=31)
        try:
            raw = unpacker.decompress(raw) + unpacker.flush()
        except zlib.error as error:
            raise InputError(Problem(f"a broken gzip file: {error}", file=name)) from None
    if not raw.strip():
        raise InputError(Problem("the file is empty", file=name))
    if b"\0" in raw[:4096]:
        raise InputError(Problem("not a text file", file=name, expected=", ".join(KINDS)))
    return raw.decode("utf-8", errors="replace")


def kind_of(text: str) -> str:
    """What a file is, from how it begins; empty if that cannot be told.

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


def import_file(
    path: str | os.PathLike[str], *, kind: str = "", collective: str = "", ranks: int = 0, series: str = ""
) -> Imported:
    """Import one file.

    Parameters
    ----------
    path : str or os.PathLike
    kind : str
        One of `KINDS`; found out if left out.
    collective : str
        Of an nccl-tests log that does not say which; that a table is of.
    ranks : int
        Of a log or such a table that does not say how many; 0 if it does.
    series : str
        Of a table without such a column; default: the file's name.

    Raises
    ------
    InputError
        Nothing in it could be read; every reason is given.
    UnknownNameError
        There is no such kind.
    """
    from simperf.calibrate.importers.collective_table import as_collective
    from simperf.calibrate.importers.kineto import import_kineto
    from simperf.calibrate.importers.nccl_json import import_nccl_json
    from simperf.calibrate.importers.nccl_text import import_nccl_text
    from simperf.calibrate.importers.table import import_table

    if kind and kind not in KINDS:
        raise UnknownNameError("kind of measurements", kind, KINDS)
    name = os.fspath(path)
    text = read_text(path)
    kind = kind or kind_of(text)
    if kind == "kineto":
        found = import_kineto(text, name)
    elif kind == "csv":
        found = import_table(text, name, series=series)
        if collective and found.dataset.measurements:
            found = as_collective(found, name, collective=collective, ranks=ranks)
    elif kind == "nccl-tests":
        if text.lstrip()[:1] in ("{", "["):
            found = import_nccl_json(text, name, collective=collective, ranks=ranks)
        else:
            found = import_nccl_text(text, name, collective=collective, ranks=ranks)
    else:
        known = ", ".join(KINDS)
        raise InputError(Problem("what this is cannot be told", file=name, key="--kind", expected=known))
    if not found.dataset.measurements:
        raise InputError(list(found.problems) or [Problem("nothing in it could be read", file=name, expected=kind)])
    return found


def import_files(paths: Sequence[str | os.PathLike[str]], **given: str | int) -> Imported:
    """Import files into one data set; what some of them lack does not stop the others.

    Parameters
    ----------
    paths : sequence of str or os.PathLike
    **given
        As of `import_file`.

    Raises
    ------
    InputError
        Nothing in any of them could be read.
    """
    points = Points()
    problems: list[Problem] = []
    notes: list[str] = []
    sources: list[str] = []
    unread: list[str] = []
    machine: dict[str, Value] = {}
    versions: dict[str, str] = {}
    for path in paths:
        try:
            found = import_file(path, **given)  # type: ignore[arg-type]
        except InputError as error:
            problems += error.problems
            unread.append(str(path))
            continue
        points.extend(found.dataset)
        problems += found.problems
        machine |= found.dataset.machine
        versions |= found.dataset.versions
        notes += found.dataset.notes
        sources.append(Path(path).name)
    if not points.all():
        more = len(problems) - MOST_NAMED
        rest = [Problem(f"and {more} problems more")] if more > 0 else []
        raise InputError([*problems[:MOST_NAMED], *rest])
    made: dict[str, Value] = {"command": "simperf calibrate import", "source": ", ".join(sources)}
    # without folders, which may have a user's name in them
    notes += [str(replace(problem, file=Path(problem.file).name)) for problem in problems[:MOST_NAMED]]
    if len(problems) > MOST_NAMED:
        notes.append(f"{len(problems) - MOST_NAMED} more problems are not named here")
    title = f"imported from {', '.join(sources)}"
    data = Dataset(title, machine, versions, made, points.all(), tuple(dict.fromkeys(notes)))
    return Imported(data, tuple(problems), tuple(unread))


def rows_of(text: str, key: str, decoder: json.JSONDecoder) -> tuple[list[Mapping[str, Any]], int]:
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


def member(text: str, key: str, decoder: json.JSONDecoder) -> Any:
    """What stands under `key` of JSON that breaks off later; None if it is not there or not whole."""
    found = re.search(rf'"{key}"\s*:\s*', text)
    if found is None:
        return None
    try:
        return decoder.raw_decode(text, found.end())[0]
    except (json.JSONDecodeError, RecursionError):
        return None
