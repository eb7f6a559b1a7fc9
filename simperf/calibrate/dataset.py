"""What was measured: raw samples by series and conditions, with the machine and versions that gave them."""

from __future__ import annotations

import gzip
import json
import math
import os
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from simperf.errors import InputError, Problem
from simperf.files import write_bytes

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
    """

    series: str
    at: Mapping[str, Value]
    samples: tuple[float, ...]
    unit: str = "s"
    warnings: tuple[str, ...] = ()

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
            row["samples"] = list(point.samples)
            rows.append(json.dumps(row, ensure_ascii=False))
        text = json.dumps(head, ensure_ascii=False, indent=1)[:-2] + ',\n "measurements": [\n  '
        return (text + ",\n  ".join(rows) + "\n ]\n}\n").encode()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to `path`, gzipped if it ends in ``.gz``; whole or not at all."""
        data = self.to_bytes()
        if os.fspath(path).endswith(".gz"):
            data = gzip.compress(data, 6, mtime=0)
        write_bytes(path, data)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Dataset:
        """Read what `save` wrote.

        Raises
        ------
        InputError
            The file is missing or no data set; every bad point is named.
        """
        name = os.fspath(path)
        try:
            raw = Path(name).read_bytes()
            data = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
        except OSError as error:
            raise InputError(Problem(f"cannot be read: {error.strerror}", file=name)) from None
        except json.JSONDecodeError as error:
            raise InputError(
                Problem(f"no JSON: {error.msg}", file=name, line=error.lineno, expected=_WRITTEN)
            ) from None
        except (ValueError, EOFError) as error:
            raise InputError(Problem(f"no JSON: {error}", file=name, expected=_WRITTEN)) from None
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            found = data.get("schema") if isinstance(data, dict) else type(data).__name__
            message = "no data set of measurements"
            expected = f"{SCHEMA!r}: {_WRITTEN}"
            raise InputError(Problem(message, file=name, key="schema", value=repr(found), expected=expected))
        problems: list[Problem] = []
        points = []
        for index, row in enumerate(data.get("measurements") or ()):
            try:
                points.append(_point(row))
            except (TypeError, KeyError, ValueError) as error:
                message = str(error) if isinstance(error, ValueError) else f"no measurement: {error!r}"
                problems.append(Problem(message, file=name, key=f"measurements[{index}]", expected=_ROW))
        if problems:
            raise InputError(problems)
        return cls(
            title=str(data.get("title", "")),
            machine=dict(data.get("machine") or {}),
            versions=dict(data.get("versions") or {}),
            made=dict(data.get("made") or {}),
            measurements=tuple(points),
            notes=tuple(data.get("notes") or ()),
        )


_ROW = '{"series": "gemm", "at": {"m": 512, ...}, "samples": [0.0012, ...]}'


def _point(row: Mapping[str, Any]) -> Measurement:
    samples = tuple(float(sample) for sample in row["samples"])
    if not samples or not all(math.isfinite(sample) and sample >= 0 for sample in samples):
        raise ValueError("samples must be finite, not negative, and at least one")
    return Measurement(
        series=str(row["series"]),
        at=dict(row["at"]),
        samples=samples,
        unit=str(row.get("unit", "s")),
        warnings=tuple(row.get("warnings", ())),
    )
