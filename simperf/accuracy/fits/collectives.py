"""Fits to published tables of NCCL: large ones with the ring model, every other by regimes of message size."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from simperf.accuracy.fits.rows import FitRow, row_of, two_constants
from simperf.calibrate.fit import Data, Fit, Model, fit
from simperf.calibrate.fit.few import told_together
from simperf.calibrate.fit.messages import alpha_beta, piecewise, piecewise_model
from simperf.calibrate.fit.ring import ring_model

__all__ = ["case_table", "nccl_rows", "table_rows"]

#: columns that hold a time, with their factor to seconds
_TIMES = {"time_us_out_of_place": 1e-6, "time_us": 1e-6, "median_ms": 1e-3}
#: bus bandwidth is size over time, times this function of the ranks (nccl-tests, doc/PERFORMANCE.md)
_BUS: dict[str, Callable[[float], float]] = {
    "allreduce": lambda n: 2.0 * (n - 1) / n,
    "allgather": lambda n: (n - 1) / n,
    "reducescatter": lambda n: (n - 1) / n,
    "alltoall": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,
    "reduce": lambda n: 1.0,
}
_TABLES = "All-reduce tables of NCCL, with the ring model"
_CASES = "Collectives by message size, half of the sizes predicted"
_MIB = float(2**20)


def table_rows(folder: Path) -> Iterator[FitRow]:
    """The large all-reduce tables of a folder of measured data: A100 with NVSwitch, DGX H100."""
    a100 = {n: rows for n in range(2, 7) if (rows := _lines(folder / "nccl" / f"a100_all_reduce_n{n}.csv", 0, 3, 1e-9))}
    if len(a100) == 5:
        yield from _a100(a100)
    path = folder / "nccl" / "h100_dgx_all_reduce.csv"
    h100 = {n: rows for n in (2, 4) if (rows := _lines(path, 1, 3, 1e-3, ranks=n))}
    if len(h100) == 2:
        yield from _h100(h100)


def _a100(tables: Mapping[int, Sequence[tuple[float, float]]]) -> Iterator[FitRow]:
    source = "VIA-Research/vTrain, trace/"
    model = ring_model("all-reduce.nccl", "A100 with NVSwitch")
    known = fit(model, _data(tables, (2, 3, 4)))
    for n in tables:
        here = _data(tables, (n,))
        alone = float(np.abs(two_constants(here, here)).mean())
        if n <= 4:
            note = "ring of 24 channels; fitted to 2, 3 and 4 ranks together"
            yield row_of(
                _TABLES,
                f"A100, {n} ranks",
                "fitted",
                [(_told(known, here), None)],
                plain=alone,
                goal=0.013,
                note=note,
                source=source,
            )
        else:
            plain = _plain_ring(tables, (2, 3, 4), n)
            yield row_of(
                _TABLES,
                f"A100, {n} ranks",
                "predicted from 2, 3 and 4 ranks",
                [(known, here)],
                plain=plain,
                goal=0.025,
                note="as above; the plain model is a ring of two constants fitted to 2, 3 and 4 ranks",
                source=source,
            )


def _h100(tables: Mapping[int, Sequence[tuple[float, float]]]) -> Iterator[FitRow]:
    source = "microsoft/vidur, data/profiling/network"
    model = ring_model("all-reduce.nccl", "DGX H100, through torch", spill=False, dispatch=True)
    known = fit(model, _data(tables, (2, 4), low=2 * _MIB))
    dispatch = known.values["dispatch"]
    for n in tables:
        here = _data(tables, (n,), low=2 * _MIB)
        alone = float(np.abs(two_constants(here, here)).mean())
        note = f"ring, or a call's dispatch of {dispatch * 1e6:.1f} us; fitted to 2 and 4 ranks together"
        yield row_of(
            _TABLES,
            f"DGX H100, {n} ranks, from 2 MiB",
            "fitted",
            [(_told(known, here), None)],
            plain=alone,
            goal=0.03,
            note=note,
            source=source,
        )
    for n in tables:
        small = _data(tables, (n,), high=2 * _MIB)
        bound = (small.measured > 0.8 * dispatch).mean()
        note = (
            f"bimodal: {bound:.0%} of the medians lie at the dispatch of a call (less 20 %) or above, the others are "
            "of calls that were queued before; told, not fitted"
        )
        what = "predicted from 2 MiB and above"
        yield row_of(_TABLES, f"DGX H100, {n} ranks, below 2 MiB", what, [(known, small)], note=note, source=source)


def _told(found: Fit, data: Data) -> Fit:
    """The same fit, held against some of its points."""
    return replace(found, data=data)


def _plain_ring(tables: Mapping[int, Sequence[tuple[float, float]]], ranks: tuple[int, ...], n: int) -> float:
    """Mean error for n ranks of a ring with a latency a step and a bandwidth, both fitted to `ranks`."""

    def matrix(data: Data) -> tuple[Any, Any]:
        steps = 2.0 * (data.columns["ranks"] - 1.0)
        return steps, steps * data.columns["nbytes"] / data.columns["ranks"]

    known, here = _data(tables, ranks), _data(tables, (n,))
    design = np.stack(matrix(known), axis=1) / known.measured[:, None]
    constants = np.linalg.lstsq(design, np.ones(len(known)), rcond=None)[0]
    predicted = np.stack(matrix(here), axis=1) @ constants
    return float(np.abs(predicted / here.measured - 1.0).mean())


def _data(
    tables: Mapping[int, Sequence[tuple[float, float]]],
    ranks: Sequence[int],
    *,
    low: float = 0.0,
    high: float = float("inf"),
) -> Data:
    rows = [(size, float(n), time) for n in ranks for size, time in tables[n] if low <= size < high]
    size, n, time = np.array(rows).T
    return Data.table(time, nbytes=size, ranks=n)


def _lines(path: Path, size: int, time: int, factor: float, *, ranks: int = 0) -> list[tuple[float, float]]:
    if not path.is_file():
        return []
    with open(path, encoding="utf-8") as stream:
        lines = list(csv.reader(stream))[1:]
    return [(float(row[size]), float(row[time]) * factor) for row in lines if not ranks or int(row[0]) == ranks]


# Cases ---------------------------------------------------------------------------------


def case_table(case: Mapping[str, Any]) -> dict[str, list[tuple[float, float]]]:
    """Sizes [B] and times [s] of a case, by what was measured; empty if it has no table of sizes."""
    measured = case["measured"]
    columns, table = list(measured.get("columns") or ()), measured.get("table") or []
    if not columns or columns[0] != "size_B":
        return {}
    for index, column in enumerate(columns):
        if column in _TIMES:
            rows = [(float(row[0]), float(row[index]) * _TIMES[column]) for row in table if row[0] and row[index]]
            return {"": rows}
    found = {}
    ranks = case["workload"].get("n_ranks", 0)
    every = ranks if isinstance(ranks, list) else [ranks]
    busy = [index for index, column in enumerate(columns) if column.startswith("busbw")]
    for index, n in zip(busy, every, strict=False):
        share = _BUS[case["kind"]](float(n))
        rows = [(float(row[0]), share * row[0] / (row[index] * 1e9)) for row in table if row[0] and row[index]]
        found[f"{n} ranks" if len(every) > 1 else ""] = rows
    return found


def nccl_rows(cases: Sequence[Mapping[str, Any]]) -> Iterator[FitRow]:
    """Every case whose name begins with nccl: fitted on every second size, predicted on the others.

    How readings scatter about regimes is drawn towards what is usual among all tables (`simperf.calibrate.fit.few`).
    """
    rows: list[FitRow | _Half] = []
    for case in cases:
        if not str(case["id"]).startswith("nccl"):
            continue
        tables = {name: table for name, table in case_table(case).items() if table}
        if not tables:
            rows.append(_without(case, "it has no table of sizes and times"))
        for name, table in tables.items():
            label = f"{case['id']}{', ' if name else ''}{name}"
            rows.append(_half(case, label, table))
    told = iter(told_together([row.found for row in rows if isinstance(row, _Half)]))
    for row in rows:
        yield row.row(next(told)) if isinstance(row, _Half) else row


@dataclass(frozen=True, slots=True)
class _Half:
    """A table of which every second size was fitted."""

    case: Mapping[str, Any]
    label: str
    found: Fit
    away: Data
    note: str

    def row(self, told: Fit) -> FitRow:
        """The row of the table of fits, with the scatter that the fit is `told`."""
        plain = float(np.abs(two_constants(told.data, self.away)).mean())
        source = str(self.case.get("source", {}).get("repo") or self.case.get("source", {}).get("url", ""))
        what = "every second size"
        return row_of(_CASES, self.label, what, [(told, self.away)], plain=plain, note=self.note, source=source)


def _half(case: Mapping[str, Any], label: str, rows: Sequence[tuple[float, float]]) -> FitRow | _Half:
    size, time = np.array(sorted(rows)).T
    every = Data.table(time, nbytes=size)
    known, away = every.take(np.arange(len(size)) % 2 == 0), every.take(np.arange(len(size)) % 2 == 1)
    if len(known) < 3:
        return _without(case, f"{len(size)} sizes are too few to hold half of them out", label)
    limits = piecewise(known)
    model: Model = piecewise_model("regimes", "alpha-beta by regime", limits, known)
    if len(known) <= len(model.constants):
        model = alpha_beta("regimes", "alpha-beta")
    return _Half(case, label, fit(model, known), away, f"{len(limits) + 1} regime{'s' if limits else ''}")


def _without(case: Mapping[str, Any], reason: str, label: str = "") -> FitRow:
    none = float("nan")
    return FitRow(_CASES, label or str(case["id"]), "not fitted", 0, 0, none, none, none, none, note=reason)
