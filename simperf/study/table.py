"""The rows of a study as a table: sorted by point, the same bytes wherever they were made."""

from __future__ import annotations

import csv
import html
import io
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simperf.errors import InputError, Problem, UnknownNameError
from simperf.files import write_bytes
from simperf.study.points import Row
from simperf.units import format_quantity, headed

__all__ = ["SUFFIXES", "Table", "check_output"]

#: how a table can be written, by the end of the file's name
SUFFIXES = (".jsonl", ".json", ".csv", ".parquet")
_FIRST = ("error", "time", "regime", "limited_by", "floor")
_UNITS = {"time": "s", "floor": "s"}


def check_output(path: str | os.PathLike[str]) -> None:
    """Refuse, before anything is run, a name that says no known format, or one whose library is missing.

    Raises
    ------
    InputError
        With what would be right.
    """
    name = Path(path)
    if name.suffix.lower() not in SUFFIXES:
        expected = "FILE" + ", FILE".join(SUFFIXES)
        raise InputError(Problem("the name says no known format", file="--output", key=str(path), expected=expected))
    if not name.absolute().parent.is_dir():
        raise InputError(Problem(f"there is no folder {str(name.parent)!r}", file="--output", key=str(path)))
    if name.suffix.lower() == ".parquet":
        _pandas("parquet")


def _pandas(why: str) -> Any:
    try:
        import pandas
        import pyarrow  # noqa: F401
    except ImportError:
        message = f"pandas and pyarrow are not installed, which {why} needs"
        raise InputError(Problem(message, expected='pip install "simperf[tables]"')) from None
    return pandas


@dataclass(frozen=True)
class Table:
    """What a sweep found: a row a point.

    Parameters
    ----------
    rows : sequence of dict
        As `simperf.study.points.run_task` gives them, sorted by point.
    keys : tuple of str
        What was varied.
    title : str
        Of the scenario.
    """

    rows: tuple[Row, ...]
    keys: tuple[str, ...] = ()
    title: str = ""
    _units: dict[str, str] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._units.update(_UNITS)
        for row in self.rows:
            for name, (_, unit) in row.get("metrics", {}).items():
                self._units.setdefault(f"metrics.{name}", unit)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.records())

    def __repr__(self) -> str:
        failed = len(self.failed)
        return f"<Table {self.title!r}: {len(self)} points of {', '.join(self.keys)}, {failed} failed>"

    @property
    def failed(self) -> tuple[Row, ...]:
        """Rows of points that gave no result."""
        return tuple(row for row in self.rows if row["error"] is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns: the point, the keys, the seed, what was found."""
        metrics = dict.fromkeys(f"metrics.{name}" for row in self.rows for name in row.get("metrics", {}))
        ends = dict.fromkeys(name for row in self.rows for name in row.get("intervals", {}))
        intervals = [f"{name}.{end}" for name in ends for end in ("low", "high")]
        return ("point", *self.keys, "seed", *_FIRST, *metrics, *intervals)

    def unit(self, column: str) -> str:
        """SI unit of a column, ``"1"`` for a plain number, empty for texts."""
        return self._units.get(column.removesuffix(".low").removesuffix(".high"), "")

    def records(self) -> list[dict[str, Any]]:
        """Flat rows: column to value, None where a point has none."""
        columns = self.columns
        found = []
        for row in self.rows:
            flat: dict[str, Any] = {"point": row["point"], **row["set"], "seed": row["seed"]}
            flat |= {name: row.get(name) for name in _FIRST}
            flat |= {f"metrics.{name}": value for name, (value, _) in row.get("metrics", {}).items()}
            for name, (low, high) in row.get("intervals", {}).items():
                flat |= {f"{name}.low": low, f"{name}.high": high}
            found.append({column: flat.get(column) for column in columns})
        return found

    def column(self, name: str) -> list[Any]:
        """Values of one column, by its name or by that of a metric.

        Raises
        ------
        UnknownNameError
            No such column.
        """
        columns = self.columns
        full = name if name in columns else f"metrics.{name}"
        if full not in columns:
            raise UnknownNameError("column", name, columns)
        return [record[full] for record in self.records()]

    def best(self, column: str = "time", *, highest: bool = False) -> Row | None:
        """Row with the lowest (or highest) value of a column; None if no point has one."""
        values = self.column(column)
        rows = [(value, index) for index, value in enumerate(values) if isinstance(value, int | float)]
        if not rows:
            return None
        return self.rows[(max(rows, key=lambda pair: (pair[0], -pair[1])) if highest else min(rows))[1]]

    def to_pandas(self) -> Any:
        """As a `pandas.DataFrame`, which the extra ``tables`` brings."""
        return _pandas("a data frame").DataFrame(self.records(), columns=list(self.columns))

    def to_bytes(self, suffix: str = ".jsonl") -> bytes:
        """As the file whose name ends in `suffix` holds it; the same rows give the same bytes.

        Quantities are in SI units, which the columns of CSV name: ``time [s]``.
        """
        if suffix == ".parquet":
            stream = io.BytesIO()
            frame = self.to_pandas()
            texts = [name for name in frame.columns if frame[name].dtype == object]
            frame[texts] = frame[texts].astype("string")
            frame.to_parquet(stream, index=False)
            return stream.getvalue()
        if suffix == ".csv":
            text = io.StringIO()
            writer = csv.DictWriter(text, list(self.columns), lineterminator="\n")
            writer.writerow({name: headed(name, self.unit(name)) for name in self.columns})
            writer.writerows({key: _cell(value) for key, value in row.items()} for row in self.records())
            return text.getvalue().encode()
        if suffix == ".json":
            return (json.dumps(self.records(), indent=1, ensure_ascii=False) + "\n").encode()
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.records()).encode()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it whole or not at all: JSON lines, JSON, CSV or Parquet by the end of the name.

        Raises
        ------
        InputError
            The name ends otherwise, or it cannot be written.
        """
        check_output(path)
        write_bytes(path, self.to_bytes(Path(path).suffix.lower()))

    def shown(self, *, most: int = 8) -> tuple[list[str], list[list[str]]]:
        """Header and rows for people: quantities with units, columns that never change left out."""
        records = self.records()
        metrics = [name for name in self.columns if name.startswith("metrics.")]
        metrics = [name for name in metrics if len({record[name] for record in records}) > 1][:most]
        fixed = ["time", *(["limited_by"] if any(record["limited_by"] for record in records) else [])]
        fixed = ["time", *(["regime"] if any(record["regime"] for record in records) else []), *fixed[1:]]
        columns = ["point", *self.keys, *fixed, *metrics]
        if self.failed:
            columns.append("error")
        rows = [[self._text(record, name) for name in columns] for record in records]
        header = [name.removeprefix("metrics.").replace("_", " ") for name in columns]
        return header, rows

    def _text(self, record: dict[str, Any], column: str) -> str:
        value, unit = record[column], self.unit(column)
        if value is None:
            return "" if column == "error" else "-"
        if column == "error":
            return str(value).splitlines()[0]
        if isinstance(value, float) and unit:
            text = format_quantity(value, unit)
            low, high = record.get(f"{column}.low"), record.get(f"{column}.high")
            return (
                text
                if low is None or high is None
                else f"{text} [{format_quantity(low, unit)} .. {format_quantity(high, unit)}]"
            )
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    def _repr_html_(self) -> str:
        return html_table(*self.shown(), caption=self.title)


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return repr(value) if isinstance(value, float) else value


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "") -> str:
    """A plain table for notebooks."""

    def line(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    body = "".join(line(row, "td") for row in rows)
    return f"<table>{title}<thead>{line(header, 'th')}</thead><tbody>{body}</tbody></table>"
