"""Data set of measurements: raw samples by series and conditions, with the machine and versions that gave them."""

from __future__ import annotations

import json
import math
import os
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from simperf.errors import InputError, Problem, nearest
from simperf.files import TomlFile, write_packed
from simperf.hardware.facts import NUMBERS
from simperf.json_file import read_json

__all__ = ["SCHEMA", "Dataset", "Measurement", "Value"]

#: of the file; raised when a reader of the old one would misread the new one
SCHEMA = "simperf-dataset/1"
_WRITTEN = "what `simperf calibrate measure`, `cluster` or `import` writes"
#: what a condition may be: a name, a count or a quantity in SI units
Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Measurement:
    """One point of a series: what was measured under which conditions, raw.

    Parameters
    ----------
    series : str
        What was done, such as ``"gemm"``, ``"copy/h2d-pinned"`` or ``"all-reduce/ring"``.
    at : mapping of str to Value
        The conditions, every quantity in SI units: shapes, ``nbytes`` [B], ``ranks``, ``rate`` [B/s], ``dtype``.
    samples : tuple of float
        Raw readings in the order in which they were taken, in `unit`.
    unit : str
        ``"s"`` unless said otherwise, such as ``"samples/s"`` or ``"launches"``.
    warnings : tuple of str
        Why the reading should be doubted, such as a wide interquartile range.
    stolen : float, optional
        Share of the time for which the machine had work meanwhile, that its host gave to others [1]; None if unknown.
    sensors : mapping of str to float
        The device's state meanwhile, such as ``clock`` [Hz], ``power`` [W], ``temperature`` [°C]; empty if unknown.
    """

    series: str
    at: Mapping[str, Value]
    samples: tuple[float, ...]
    unit: str = "s"
    warnings: tuple[str, ...] = ()
    stolen: float | None = None
    sensors: Mapping[str, float] = field(default_factory=dict)

    @property
    def median(self) -> float:
        """The middle reading [`unit`]."""
        return statistics.median(self.samples)

    @property
    def spread(self) -> float:
        """The interquartile range over the median [1]; zero of fewer than four readings."""
        if len(self.samples) < 4:
            return 0.0
        low, _, high = statistics.quantiles(self.samples, n=4)
        return (high - low) / self.median if self.median else math.inf

    @property
    def key(self) -> str:
        """The series and its conditions as one text: equal for equal points, whatever their order."""
        return f"{self.series} {json.dumps(dict(self.at), sort_keys=True)}"

    def number(self, name: str) -> float:
        """A condition that is a number.

        Raises
        ------
        InputError
            The condition is missing or no number.
        """
        value = self.at.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            message = f"a point of {self.series!r} has no number {name!r}"
            raise InputError(Problem(message, value=repr(value), expected=f"one of {sorted(self.at)}"))
        return float(value)


@dataclass(frozen=True)
class Dataset:
    """Measurements of one machine, as a file keeps them.

    Parameters
    ----------
    title : str
    machine : mapping of str to Value
        Facts of the machine, such as ``cpu``, ``cores``, ``gpu``, ``memory`` [B]; never a host's or a user's name.
    versions : mapping of str to str
        Of python, torch, the driver, the kernel and simperf.
    made : mapping of str to Value
        How: ``command``, ``date`` (ISO), ``seconds``; ``source`` where it was imported.
    measurements : tuple of Measurement
    notes : tuple of str
        What was left out and why.
    """

    title: str
    machine: Mapping[str, Value] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    made: Mapping[str, Value] = field(default_factory=dict)
    measurements: tuple[Measurement, ...] = ()
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Measurement]:
        return iter(self.measurements)

    def __len__(self) -> int:
        return len(self.measurements)

    @property
    def series(self) -> tuple[str, ...]:
        """The names of the series, each once, in the order of their first point."""
        return tuple(dict.fromkeys(point.series for point in self.measurements))

    def select(self, series: str, **conditions: Value) -> tuple[Measurement, ...]:
        """Points of a series (or, with a closing ``/``, of a family of series) that meet the conditions."""
        return tuple(
            point
            for point in self.measurements
            if (point.series == series or (series.endswith("/") and point.series.startswith(series)))
            and all(point.at.get(name) == value for name, value in conditions.items())
        )

    def with_points(self, points: Iterable[Measurement]) -> Dataset:
        """The same with more points; a point of the same key replaces the older one."""
        merged = {point.key: point for point in self.measurements}
        merged.update((point.key, point) for point in points)
        return replace(self, measurements=tuple(merged.values()))

    def to_bytes(self) -> bytes:
        """The file: JSON, a point a line."""
        head: dict[str, Any] = {"schema": SCHEMA, "title": self.title}
        head |= {"machine": dict(self.machine), "versions": dict(self.versions), "made": dict(self.made)}
        head["notes"] = list(self.notes)
        rows = []
        for point in self.measurements:
            row: dict[str, Any] = {"series": point.series, "at": dict(point.at)}
            if point.unit != "s":
                row["unit"] = point.unit
            if point.warnings:
                row["warnings"] = list(point.warnings)
            if point.stolen is not None:
                row["stolen"] = float(f"{point.stolen:.3g}")
            if point.sensors:
                row["sensors"] = {name: float(f"{value:.6g}") for name, value in point.sensors.items()}
            row["samples"] = list(point.samples)
            rows.append(json.dumps(row, ensure_ascii=False))
        text = json.dumps(head, ensure_ascii=False, indent=1)[:-2] + ',\n "measurements": [\n  '
        return (text + ",\n  ".join(rows) + "\n ]\n}\n").encode()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to `path`, gzipped if it ends in ``.gz``; whole or not at all."""
        write_packed(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Dataset:
        """Read what `save` wrote.

        Raises
        ------
        InputError
            The file is missing or not a data set; every bad point is named.
        """
        name = os.fspath(path)
        file = read_json(name, what="not a data set", expected=_WRITTEN)
        data = file.data
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            found = data.get("schema") if isinstance(data, dict) else type(data).__name__
            message = "not a data set of measurements"
            raise InputError(file.problem(("schema",), message, value=found, expected=f"{SCHEMA!r}: {_WRITTEN}"))
        problems = [
            file.problem((key,), f"unknown key{nearest(key, _KEYS)}", expected=_WRITTEN)
            for key in data
            if key not in _KEYS
        ]
        points = []
        rows = data.get("measurements", [])
        if not isinstance(rows, list):
            problems.append(
                file.problem(("measurements",), "no measurements: a list is expected", expected=f"[{_ROW}, ...]")
            )
            rows = []
        for index, row in enumerate(rows):
            try:
                points.append(_point(row))
            except ValueError as error:
                problems.append(file.problem(("measurements", index), str(error), expected=_ROW))
        tables = {key: _table(file, key, problems) for key in ("machine", "versions", "made")}
        notes = data.get("notes") or []
        if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
            problems.append(file.problem(("notes",), "a list of texts is expected"))
            notes = []
        if problems:
            more = [Problem(f"and {len(problems) - _MOST_TOLD} problems more", file=name)]
            raise InputError(problems[:_MOST_TOLD] + (more if len(problems) > _MOST_TOLD else []))
        title = str(data.get("title", ""))
        return cls(title=title, **tables, measurements=tuple(points), notes=tuple(notes))


_ROW = '{"series": "gemm", "at": {"m": 512, ...}, "samples": [0.0012, ...]}'


_KEYS = ("schema", "title", "machine", "versions", "made", "notes", "measurements")
#: of a time [s], far below a clock's tick; of another reading, with which floats can be divided
_LEAST, _LEAST_NUMBER = 1e-15, 1e-30
_POINT_KEYS = ("series", "at", "samples", "unit", "warnings", "stolen", "sensors")
#: problems that are told of one file
_MOST_TOLD = 20
#: largest number of a condition or a reading, and longest reading [s]
_HUGE, _LONG = 1e18, 1e6
#: smallest and largest number of some conditions
_RANGES = {
    **dict.fromkeys(("ranks", "hosts", "servers", "threads", "steps", "batch"), (1, 10**6)),
    "rate": (1, 1e15),
    "burst": (0, 1e12),
    "queue": (0, 1e12),
}
#: series that an imported trace gives, in which what ended at once takes no time
_MAY_BE_0 = ("host/", "launch/", "kernel/", "copy/", "stream/", "device/", "overlap/", "trace/")


def _table(file: TomlFile, key: str, problems: list[Problem]) -> dict[str, Any]:
    found = file.data.get(key) or {}
    if not isinstance(found, dict):
        problems.append(file.problem((key,), "a table is expected", value=found))
        return {}
    for name, value in found.items():
        if not isinstance(value, str | int | float):
            problems.append(file.problem((key, name), "a text, a number, true or false is expected", value=value))
        elif not isinstance(value, str | bool) and not 0 <= value <= _HUGE:
            message = f"a number from 0 to {_HUGE:g} is expected"
            problems.append(file.problem((key, name), message, value=value))
        elif key == "machine" and name in NUMBERS and isinstance(value, str | bool):
            problems.append(file.problem((key, name), "a number is expected", value=value))
    return dict(found)


def _point(row: Any) -> Measurement:
    """A point as the file has it; a ValueError says what is wrong."""
    if not isinstance(row, dict) or not isinstance(row.get("at"), dict) or not isinstance(row.get("samples"), list):
        lacks = [key for key in ("series", "at", "samples") if not isinstance(row, dict) or key not in row]
        told = f"it lacks {', '.join(lacks)}" if lacks else "at must be a table, and samples a list"
        raise ValueError(f"no measurement: {told}")
    if "series" not in row:
        raise ValueError("no measurement: it lacks series")
    for key in row:
        if key not in _POINT_KEYS:
            raise ValueError(f"unknown key {key!r}{nearest(key, _POINT_KEYS)}")
    words = row.get("warnings", [])
    texts = (row["series"], row.get("unit", "s"), *(words if isinstance(words, list) else [0]))
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("series and unit must be texts, and warnings a list of texts")
    for key, value in row["at"].items():
        _check_condition(key, value)
    samples = _samples(row)
    stolen = row.get("stolen")
    if stolen is not None and not (type(stolen) in (int, float) and 0 <= stolen <= 1):
        raise ValueError("stolen must be a share of time, from 0 to 1")
    sensors = row.get("sensors", {})
    if not isinstance(sensors, dict) or not all(type(value) in (int, float) for value in sensors.values()):
        raise ValueError("sensors must be a table of numbers")
    return Measurement(
        series=row["series"],
        at=dict(row["at"]),
        samples=samples,
        unit=row.get("unit", "s"),
        warnings=tuple(row.get("warnings", ())),
        stolen=None if stolen is None else float(stolen),
        sensors={name: float(value) for name, value in sensors.items()},
    )


def _check_condition(key: str, value: object) -> None:
    """Raise ValueError where a condition of a point has a type or size that none has."""
    if not isinstance(value, str | int | float):
        raise ValueError(f"conditions must be names, numbers, true or false: at.{key} is {type(value).__name__}")
    low, high = _RANGES.get(key, (0, _HUGE))
    if not isinstance(value, str | bool) and not low <= value <= high:
        raise ValueError(f"at.{key} is {value:g}: a number from {low:g} to {high:g} is expected")
    if key == "pass" and not (isinstance(value, str) and value.isidentifier()):  # it names a constant of a fit
        raise ValueError(f"at.pass is {value!r}: a word such as 'forward' is expected")
    if isinstance(value, str | bool) and key in _RANGES:
        raise ValueError(f"at.{key} is {value!r}: a number from {low:g} to {high:g} is expected")


def _samples(row: dict[str, Any]) -> tuple[float, ...]:
    """Readings of a point in its unit; ValueError where one is no such number."""
    numbers = [sample for sample in row["samples"] if isinstance(sample, int | float) and not isinstance(sample, bool)]
    samples = tuple(map(float, numbers))
    if not samples or len(samples) < len(row["samples"]) or not all(0 <= sample < math.inf for sample in samples):
        raise ValueError("samples must be numbers, finite, not negative, and at least one")
    if row.get("unit", "s") == "s" and min(samples) == 0 and not row["series"].startswith(_MAY_BE_0):
        raise ValueError("samples are times above 0 s")
    least = _LEAST if row.get("unit", "s") == "s" else _LEAST_NUMBER
    if any(0.0 < sample < least for sample in samples):
        raise ValueError(f"samples above 0 are at least {least:g} {row.get('unit', 's')}, not {min(samples):g}")
    most = _LONG if row.get("unit", "s") == "s" else _HUGE
    if max(samples) > most:
        raise ValueError(f"samples are at most {most:g} {row.get('unit', 's')}, not {max(samples):g}")
    return samples
