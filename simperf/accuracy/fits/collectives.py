"""Profiles of half of the sizes of published collective times, simulated at the other half.

A profile is made of every second size as `simperf calibrate fit` makes it, and the other sizes are what
`simperf.collective` gives with it. It refuses a time that the links of the machine do not allow: that is a row, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from simperf.accuracy.cases import source_of
from simperf.accuracy.fits.rows import FitRow, two_constants
from simperf.accuracy.nccl_cases import KINDS, cases_known, cases_left_out, series_of
from simperf.accuracy.nccl_tables import large_tables
from simperf.calibrate.fit import Data, fit
from simperf.calibrate.fit.choose import BY_NCCL
from simperf.calibrate.fit.model import Array
from simperf.calibrate.fit.sizes import size_model
from simperf.cost import MeasuredCollective, MeasuredCollectives
from simperf.errors import InputError
from simperf.hardware import Catalog, Machine
from simperf.layout import server_count
from simperf.study.collective import collective

__all__ = ["collective_rows"]

_SECTION = "Collectives by message size, half of the sizes predicted"
_WHAT = "every second size"
#: fewer fitted sizes are no curve
_FEWEST = 3


def collective_rows(folder: Path, cases: Sequence[Mapping[str, Any]]) -> Iterator[FitRow]:
    """The large tables of a folder of measured data, and every case whose name begins with nccl.

    Parameters
    ----------
    folder : Path
        With ``nccl/*.csv``.
    cases : sequence of mapping
        Of its ``cases.json``.
    """
    catalog = Catalog.load()
    for table in large_tables(folder):
        machine = catalog.machine(table.server)
        rows = _medians(table.rows)
        yield _row(_Curve(table.title, "all-reduce", machine, machine.gpus[: table.ranks], rows, source=table.source))
    for case in cases:
        if str(case["id"]).startswith("nccl"):
            yield from _case_rows(case)


def _case_rows(case: Mapping[str, Any]) -> Iterator[FitRow]:
    """A row of every series of a case, or the reason why there is none."""
    name, kind = str(case["id"]), KINDS[case["kind"]]
    if name not in cases_known():
        yield _without(name, cases_left_out()[name])
        return
    if f"{kind}/nccl" not in BY_NCCL:
        yield _without(name, f"a run takes no measured times of {kind}")
        return
    curves = []
    for series, tuner in series_of(case):
        rows = {point.nbytes: point.low for point in series.points if point.low == point.high}
        label = f"{name}, {len(tuner.ranks)} ranks" if series.name else name
        launches, source = series.setup.get("launches", 0), source_of(case)
        curves.append(_Curve(label, kind, tuner.machine, tuple(tuner.ranks), rows, launches, source))
    if all(len(curve.rows) < 2 for curve in curves):
        yield _without(name, "it has no table of sizes and times")
        return
    for curve in curves:
        yield _row(curve)


@dataclass(frozen=True, slots=True)
class _Curve:
    """Times [s] by payload [B] of a collective among ranks of a machine.

    Parameters
    ----------
    name, collective : str
    machine : Machine
    ranks : tuple of str
    rows : mapping of float to float
    launches : int
        GPUs that one process drove; 0 if it is not known.
    source : str
    """

    name: str
    collective: str
    machine: Machine
    ranks: tuple[str, ...]
    rows: Mapping[float, float]
    launches: int = 0
    source: str = ""

    def profile(self, known: Data) -> MeasuredCollectives:
        """Contents of a profile that is fitted to some of the points."""
        model = size_model(f"{self.collective}.nccl", self.name, known)
        values = fit(model, known, draws=0).values
        count = len(values)
        sizes = tuple(model.fixed[f"size_{index}"] for index in range(1, count + 1))
        times = tuple(values[f"time_{index}"] for index in range(1, count + 1))
        servers = server_count(self.machine, self.ranks)
        curve = MeasuredCollective(
            self.collective, len(self.ranks), servers, sizes, times, name=self.name, launches=self.launches
        )
        return MeasuredCollectives((curve,))

    def errors(self, data: Data, profile: MeasuredCollectives) -> Array:
        """Predicted over measured, less 1 [1].

        Raises
        ------
        InputError
            A time that the links of the machine do not allow.
        """
        options: dict[str, Any] = {"launches": self.launches} if self.launches else {}
        table = collective(
            self.collective,
            on=self.machine,
            sizes=[round(size) for size in data.columns["nbytes"]],
            algorithm="nccl",
            ranks=self.ranks,
            measured=profile,
            **options,
        )
        return np.array([row.time for row in table]) / data.measured - 1.0


def _row(curve: _Curve) -> FitRow:
    if len(curve.rows) < 2 * _FEWEST - 1:
        return _without(curve.name, f"{len(curve.rows)} sizes are too few to hold half of them out")
    size, time = np.array(sorted(curve.rows.items())).T
    every, odd = Data.table(time, nbytes=size), np.arange(len(size)) % 2 == 1
    known, away = every.take(~odd), every.take(odd)
    profile = curve.profile(known)
    try:
        inside, outside = curve.errors(known, profile), curve.errors(away, profile)
    except InputError as error:
        return _without(curve.name, f"refused: {error.problems[0].message}", curve.source)
    none = float("nan")
    return FitRow(
        _SECTION,
        curve.name,
        _WHAT,
        len(known),
        len(away),
        float(np.abs(inside).mean()),
        float(np.abs(outside).mean()),
        float(outside[np.abs(outside).argmax()]),
        none,
        float(np.abs(two_constants(known, away)).mean()),
        note=f"{len(profile.curves[0].sizes)} sizes in the profile",
        source=curve.source,
    )


def _medians(rows: Sequence[tuple[float, float]]) -> dict[float, float]:
    """One time a size."""
    readings: dict[float, list[float]] = {}
    for size, time in rows:
        readings.setdefault(size, []).append(time)
    return {size: median(times) for size, times in readings.items()}


def _without(name: str, reason: str, source: str = "") -> FitRow:
    none = float("nan")
    return FitRow(_SECTION, name, "not fitted", 0, 0, none, none, none, none, note=reason, source=source)
