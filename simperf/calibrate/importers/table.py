"""Tables with named units in their header (``size [MiB], ranks, time [us]``), also as times of a collective."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from simperf.calibrate.dataset import Dataset, Measurement, Value
from simperf.calibrate.importers.imported import Imported, Points
from simperf.calibrate.importers.nccl_tests import COLLECTIVES, known_collective
from simperf.errors import InputError, Problem, UnitError
from simperf.units import DIMENSIONS, parse

__all__ = ["Column", "as_collective", "column_of", "import_table", "ranks_column"]

_HEADER = re.compile(r"^\s*(.*?)\s*[\[(]\s*([^\])]*?)\s*[\])]\s*$")
#: names of the payload's size
_SIZES = ("size", "bytes", "nbytes", "message size", "message", "payload")
#: of a reading: thirty years [s]; of a collective
_LONGEST, _MOST_RANKS = 1e9, 1_000_000
#: dimensions that can be a reading, the first that is there is taken
_READINGS = ("s", "B/s", "FLOP/s", "1/s")


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name as a condition, its unit as written, and the dimension of that."""

    name: str
    unit: str = ""
    dimension: str = ""

    def value(self, text: str) -> Value:
        """A cell, in the SI unit where there is a unit.

        Raises
        ------
        UnitError
            No number where one is expected.
        """
        if self.dimension:
            return parse(f"{text} {self.unit}", self.dimension)
        for convert in (int, float):
            try:
                number = convert(text)
            except ValueError:
                continue
            if math.isfinite(number):
                return number
        return {"true": True, "false": False}.get(text.lower(), text)


def column_of(text: str) -> Column:
    """Read a header's cell.

    Raises
    ------
    UnitError
        An unknown unit.

    Examples
    --------
    >>> column_of("size [MiB]")
    Column(name='nbytes', unit='MiB', dimension='B')
    >>> column_of("ranks").dimension
    ''
    """
    found = _HEADER.match(text)
    name, unit = (found.group(1), found.group(2)) if found else (text.strip(), "")
    dimension = ""
    if unit and unit != "1":
        for candidate in DIMENSIONS:
            try:
                parse(f"1 {unit}", candidate)
            except UnitError:
                continue
            dimension = candidate
            break
        if not dimension:
            try:
                parse(f"1 {unit}", "B/s" if "/s" in unit else "B" if unit.lower().endswith("b") else "s")
            except UnitError as error:
                raise UnitError(f"column {name!r}: {error}") from None
    plain = name.lower()
    if dimension == "B" and plain in _SIZES:
        name = "nbytes"
    return Column(name, unit, dimension)


def import_table(text: str, name: str, *, series: str = "") -> Imported:
    """Import a table separated by commas, semicolons or tabs.

    Parameters
    ----------
    text, name : str
        The table, and the file's name for messages.
    series : str
        Of all rows, if there is no column ``series``; default: the file's name.

    Returns
    -------
    Imported
        The first column with a unit of time is the reading (else the first that is a rate), all others are conditions;
        rows of equal conditions are one point.
    """
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#")), len(lines))
    if start == len(lines):
        return Imported(
            Dataset(""), (Problem("no header in it", file=name, expected="a first line with the names of the columns"),)
        )
    mark = max(",;\t", key=lines[start].count)
    problems: list[Problem] = []
    columns: list[Column] = []
    for cell in next(csv.reader([lines[start]], delimiter=mark)):
        try:
            column = column_of(cell)
            if column in columns and column.dimension not in _READINGS:
                problems.append(Problem("the column stands twice", file=name, line=start + 1, value=cell.strip()))
            columns.append(_apart(column, columns))
        except UnitError as error:
            problems.append(Problem(str(error), file=name, line=start + 1, value=cell))
    if problems:
        return Imported(Dataset(""), tuple(problems))
    reading = _reading(columns)
    if reading is None:
        message = "no column says in its header that it is a time or a rate"
        problem = Problem(message, file=name, line=start + 1, value=lines[start][:80], expected="time [us]")
        return Imported(Dataset(""), (problem,))
    points = Points()
    for number, line in enumerate(lines[start + 1 :], start + 2):
        row = next(csv.reader([line], delimiter=mark), [])
        if not any(cell.strip() for cell in row) or row[0].lstrip().startswith("#"):
            continue
        if len(row) != len(columns):
            message, shown = f"not read: {len(row)} cells under {len(columns)} headers", mark.join(row)[:80]
            problems.append(Problem(message, file=name, line=number, value=shown, expected="as many as headers"))
            continue
        try:
            at = {column.name: column.value(cell.strip()) for column, cell in zip(columns, row, strict=True)}
            value = float(str(at.pop(reading.name)))
            _refuse_odd(reading, value, at)
        except (UnitError, ValueError) as error:
            problems.append(Problem(f"not read: {error}", file=name, line=number, value=mark.join(row)[:80]))
            continue
        points.add(_series(at, series, name), at, [value], unit=reading.dimension)
    if not points.all() and not problems:
        problems.append(Problem("no rows under the header", file=name, line=start + 1, expected="a row for each point"))
    return Imported(Dataset(f"{Path(name).stem}, a table", {}, {}, {}, points.all()), tuple(problems))


def _refuse_odd(reading: Column, value: float, at: Mapping[str, Value]) -> None:
    """Refuse a reading, a size or a number of ranks without measurements.

    Raises
    ------
    UnitError
        With what is wrong.
    """
    most = _LONGEST if reading.dimension == "s" else math.inf
    if not 0.0 < value < most:
        below = f", below {most:g}" if most < math.inf else ""
        raise UnitError(f"{reading.name} is {value:g} {reading.dimension}, and above 0{below} is expected")
    size, ranks = at.get("nbytes", 0), at.get("ranks", 1)
    if isinstance(size, int | float) and size < 0:
        raise UnitError(f"nbytes is {size:g} B, and 0 or more is expected")
    if isinstance(ranks, int | float) and not (ranks == int(ranks) and 1 <= ranks <= _MOST_RANKS):
        raise UnitError(f"ranks is {ranks:g}, and 1 to {_MOST_RANKS:,} are expected")


def _apart(column: Column, others: list[Column]) -> Column:
    """The column under a name that no other has: a second ``time`` is ``time 2``."""
    taken = {other.name for other in others}
    names = (column.name, *(f"{column.name} {number}" for number in range(2, len(taken) + 3)))
    return replace(column, name=next(name for name in names if name not in taken))


def _reading(columns: list[Column]) -> Column | None:
    for dimension in _READINGS:
        for column in columns:
            if column.dimension == dimension:
                return column
    return None


def _series(at: Mapping[str, Value], series: str, name: str) -> str:
    given = at.get("series")
    if isinstance(at, dict):
        at.pop("series", None)
    return str(given) if given else series or Path(name).stem


#: what the columns of benchmarks call the number of ranks
_RANKS = ("ranks", "n", "num_gpus", "gpus", "world_size")


def ranks_column(point: Measurement) -> str:
    """The column of a table that says among how many ranks a point was measured; empty if there is none."""
    return next((word for word in _RANKS if word in point.at), "")


def as_collective(found: Imported, name: str, *, collective: str, ranks: int = 0) -> Imported:
    """The points of a table as times of a collective by NCCL.

    A reading is the column called ``median`` where there is one; what else was measured is left out.

    Parameters
    ----------
    found : Imported
        What `simperf.calibrate.importers.import_table` read.
    name : str
        The file's, for messages.
    collective : str
        Which one.
    ranks : int
        Where no column says how many.

    Raises
    ------
    InputError
        No such collective, or a table without sizes or ranks.
    """
    kind = known_collective(collective)
    if not kind:
        expected = ", ".join(COLLECTIVES.values())
        raise InputError(Problem("no such collective", key="--collective", value=repr(collective), expected=expected))
    points = Points()
    for point in found.dataset:
        column = ranks_column(point)
        count = int(point.number(column)) if column else ranks
        if "nbytes" not in point.at or point.unit != "s":
            message = "a collective's table has the size of its payload and a time"
            raise InputError(Problem(message, file=name, expected="size [B], time [us]"))
        if count < 2:
            message = "the table does not say among how many ranks"
            raise InputError(Problem(message, file=name, key="--ranks", expected="a column ranks, or --ranks 8"))
        at: dict[str, Value] = {"nbytes": int(point.number("nbytes")), "ranks": count, "in_place": False}
        points.add(f"{kind}/nccl", at, [_median(point)])
    title = f"{kind} of {Path(name).name}"
    return replace(found, dataset=replace(found.dataset, title=title, measurements=points.all()))


def _median(point: Measurement) -> float:
    median = point.at.get("median")
    return float(median) if isinstance(median, int | float) and median > 0 else point.median
