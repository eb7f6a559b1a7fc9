"""The rows of a study as a table: sorted by point, the same bytes wherever they were made."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simperf.analysis.ranking import Entrant, Ranking, rank, suggested
from simperf.answer import TIME, Answer
from simperf.errors import InputError, Problem, UnknownNameError
from simperf.files import write_bytes
from simperf.json_format import json_text
from simperf.outputs import data_frame, drawn, html_table, report_module, write_page
from simperf.study.points import Row
from simperf.units import format_quantity, headed

__all__ = ["SUFFIXES", "Table", "check_output"]

#: how a table can be written, by the end of the file's name
SUFFIXES = (".jsonl", ".json", ".csv", ".parquet")
_FIRST = ("error", "time", "regime", "limited_by", "floor")
_UNITS = {"time": "s", "floor": "s"}
#: columns that CSV heads with another name than their key in rows and JSON
_HEADS = {"floor": "lower_bound"}


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
        message = f"there is no folder {str(name.parent)!r}"
        raise InputError(Problem(message, file="--output", key=str(path), expected="an existing folder"))
    if name.is_dir():
        raise InputError(Problem("this is a directory, a file is expected", file="--output", key=str(path)))
    if name.suffix.lower() == ".parquet":
        _pandas("parquet")


def _pandas(why: str) -> Any:
    try:
        import pandas
        import pyarrow  # noqa: F401
    except ImportError:
        message = f"pandas and pyarrow are not installed, which {why} needs"
        raise InputError(Problem(message, expected="pip install pandas pyarrow")) from None
    return pandas


@dataclass(frozen=True)
class Table:
    """Table of a sweep: a row a point.

    Parameters
    ----------
    rows : sequence of dict
        As `simperf.study.run_point.run_task` gives them, sorted by point.
    keys : tuple of str
        What was varied.
    title : str
        Of the scenario.
    answer : Answer or None
        What the scenario asks for; None ranks by time.
    """

    rows: tuple[Row, ...]
    keys: tuple[str, ...] = ()
    title: str = ""
    answer: Answer | None = None
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

    @property
    def ranking(self) -> Ranking:
        """The points by what the scenario asks for; by time if it does not say, and all did the same work."""
        answer = self.answer or Answer()
        units = [{name: unit for name, (_, unit) in row["metrics"].items()} for row in self.rows if "metrics" in row]
        entrants = [
            Entrant(
                self.label(row),
                _value(row, answer.metric),
                _ends(row.get("intervals", {}).get(answer.metric)),
                {name: (amount, unit) for name, (amount, unit) in row.get("work", {}).items()},
            )
            for row in self.rows
        ]
        column = answer.metric if answer.is_time else f"metrics.{answer.metric}"
        return rank(entrants, answer, unit=self.unit(column) or "1", advice=suggested(units))

    def label(self, row: Row) -> str:
        """A point by its values, such as ``"gpus 8, batch 32"`` or ``"ring"``."""
        values = list(row["set"].values())
        if len(values) == 1 and isinstance(values[0], str):
            return values[0]
        return ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in row["set"].items())

    def winner(self) -> Row | None:
        """The row of the best value, the first of them where several tie; None if `ranking` names none."""
        place = self.ranking.reference
        return None if place is None else self.rows[place]

    def best(self, column: str = "", *, highest: bool = False) -> Row | None:
        """Row with the lowest (or highest) value of a column; None if no point has one.

        Without a column it is the `winner`.
        """
        if not column:
            return self.winner()
        values = self.column(column)
        rows = [(value, index) for index, value in enumerate(values) if isinstance(value, int | float)]
        if not rows:
            return None
        return self.rows[(max(rows, key=lambda pair: (pair[0], -pair[1])) if highest else min(rows))[1]]

    def plot(self, path: str | os.PathLike[str] | None = None, kind: str = "auto", *, metric: str = "") -> Any:
        """Draw the sweep, and write the picture to `path` if there is one.

        Parameters
        ----------
        path : path, optional
            PNG, SVG or PDF by its end.
        kind, metric : str
            As `simperf.report.sweeps.draw_table` takes them.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return drawn(report_module("sweeps").draw_table(self, kind, metric=metric), path)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page that needs no network: the best point, pictures, and all points."""
        write_page(path, lambda pages: pages.sweep_report(self))

    def to_pandas(self) -> Any:
        """As a `pandas.DataFrame`, which the extra ``tables`` brings."""
        return data_frame(self.records(), self.columns)

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
            writer.writerow({name: headed(_HEADS.get(name, name), self.unit(name)) for name in self.columns})
            writer.writerows({key: _cell(value) for key, value in row.items()} for row in self.records())
            return text.getvalue().encode()
        if suffix == ".json":
            return (json_text(self.records(), indent=1) + "\n").encode()
        return "".join(json_text(row, indent=None) + "\n" for row in self.records()).encode()

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
        asked = "" if self.answer is None or self.answer.is_time else f"metrics.{self.answer.metric}"
        metrics = [name for name in metrics if name != asked and len({record[name] for record in records}) > 1][:most]
        fixed = ["time", *(["limited_by"] if any(record["limited_by"] for record in records) else [])]
        fixed = ["time", *(["regime"] if any(record["regime"] for record in records) else []), *fixed[1:]]
        columns = ["point", *self.keys, *([asked] if asked in self.columns else []), *fixed, *metrics]
        if self.failed:
            columns.append("error")
        rows = [[self._text(record, name) for name in columns] for record in records]
        words = {"limited_by": "limited by"}  # keys and metrics as they are written
        header = [words.get(name, name.removeprefix("metrics.")) for name in columns]
        return header, rows

    def _text(self, record: dict[str, Any], column: str) -> str:
        value, unit = record[column], self.unit(column)
        if value is None:
            return "" if column == "error" else "-"
        if column == "error":
            return str(value).splitlines()[0]
        if isinstance(value, float) and unit:
            text = format_quantity(value, unit)
            name = column.removeprefix("metrics.")  # intervals have no prefix
            low, high = record.get(f"{name}.low"), record.get(f"{name}.high")
            return (
                text
                if low is None or high is None
                else f"{text} [{format_quantity(low, unit)} .. {format_quantity(high, unit)}]"
            )
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    def _repr_html_(self) -> str:
        told = self.ranking.headline
        return html_table(*self.shown(), caption=f"{self.title}: {told}" if told else self.title)


def _value(row: Row, metric: str) -> float | None:
    """The time or a metric of a row, if it has one."""
    found = row.get("time") if metric == TIME else row.get("metrics", {}).get(metric, [None])[0]
    return None if found is None else float(found)


def _ends(interval: Sequence[float] | None) -> tuple[float, float] | None:
    return None if interval is None else (interval[0], interval[1])


def _cell(value: Any) -> Any:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return repr(value) if isinstance(value, float) else value
