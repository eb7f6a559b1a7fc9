"""Measured NCCL tables beside what the catalogue and the tuner's constants predict: nothing is fitted.

Which machine a case ran on is data (``data/nccl_cases.toml``). A second comparison fits two constants
to a table, one latency and one bandwidth, to show how far those alone go.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from simperf.collectives import Wiring, execute, make_plan
from simperf.collectives.nccl import Tuner
from simperf.files import read_toml
from simperf.hardware import Catalog, Machine, build_cluster
from simperf.study.accuracy import LedgerRow

__all__ = ["Fit", "Point", "cases_known", "ends", "fit", "fitted_ledger", "nccl_ledger", "points", "tables"]

_DATA = Path(__file__).parent / "data"
_KINDS = {"allreduce": "all-reduce", "allgather": "all-gather", "reducescatter": "reduce-scatter"}
#: columns that hold a time, with their factor to seconds
_TIMES = {"time_us_out_of_place": 1e-6, "median_ms": 1e-3, "time_us": 1e-6}
_NOTHING = "nothing: the catalogue's links, and the constants of NCCL's own tuner"


@dataclass(frozen=True, slots=True)
class Point:
    """One measured time and its prediction [s], for a size [B]."""

    case: str
    nbytes: float
    measured: float
    predicted: float
    choice: str

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted / self.measured - 1.0


@lru_cache(maxsize=1)
def cases_known() -> Mapping[str, Mapping[str, Any]]:
    """The set-up of each case that can be predicted."""
    return read_toml(_DATA / "nccl_cases.toml").data


def _machine(setup: Mapping[str, Any]) -> Machine:
    catalog = Catalog.load([_DATA / "machines"])
    if "machine" in setup:
        return catalog.machine(setup["machine"])
    more = {key: setup[key] for key in ("fabric", "link", "count") if key in setup}
    return build_cluster(setup["server"], setup["servers"], catalog=catalog, **more)


def _ranks(machine: Machine, each: int) -> list[str]:
    """All GPUs, or the first `each` of every server."""
    seen: dict[str, int] = {}
    kept = []
    for node in machine.gpus:
        server = machine.nodes[node].server
        seen[server] = seen.get(server, 0) + 1
        if not each or seen[server] <= each:
            kept.append(node)
    return kept


def points(case: Mapping[str, Any], *, most: int = 0) -> Iterator[Point]:
    """Points of a case; `most` of them, spread over the sizes, if that is not 0."""
    setup = cases_known()[case["id"]]
    machine = _machine(setup)
    tuner = Tuner(
        machine,
        _ranks(machine, setup.get("each", 0)),
        collective=_KINDS[case["kind"]],
        in_network=setup.get("in_network", False),
        launches=setup.get("launches", 1),
    )
    columns = case["measured"]["columns"]
    column = next(index for index, name in enumerate(columns) if name in _TIMES)
    rows = [row for row in case["measured"]["table"] if row[0] and row[column]]
    if most and len(rows) > most:
        rows = [rows[round(index * (len(rows) - 1) / (most - 1))] for index in range(most)]
    for row in rows:
        best = tuner.best(float(row[0]))
        yield Point(case["id"], row[0], row[column] * _TIMES[columns[column]], best.time, best.name)


def ends(found: list[Point]) -> tuple[float | None, float | None]:
    """Median error at 64 MiB and above, and median ratio at 8 KiB and below."""
    large = [point.error for point in found if point.nbytes >= 1 << 26]
    small = [point.predicted / point.measured for point in found if point.nbytes <= 1 << 13]
    return (median(large) if large else None), (median(small) if small else None)


@dataclass(frozen=True, slots=True)
class Fit:
    """Two constants of a ring's links, latency [s] and bandwidth [B/s], and the errors that are left."""

    latency: float
    bandwidth: float
    errors: list[float]


def fit(n: int, rows: list[tuple[float, float]]) -> Fit:
    """Fit latency and bandwidth of a link so that the built-in ring meets times by size, in relative terms.

    A ring's time is linear in both constants, so that this is linear least squares; the
    errors are those of the plan run on a wiring with the constants.
    """
    steps = 2 * (n - 1)
    size, time = np.array(rows).T
    design = np.stack((np.full_like(size, steps), steps * size / n), axis=1) / time[:, None]
    latency, inverse = np.linalg.lstsq(design, np.ones_like(size), rcond=None)[0]
    latency = max(float(latency), 0.0)
    wiring = Wiring("ring", n, bandwidth=1.0 / float(inverse), latency=latency)
    plan = make_plan("all-reduce", "ring", nranks=n)
    errors = [execute(plan, wiring, nbytes=nbytes).time / measured - 1.0 for nbytes, measured in rows]
    return Fit(latency, 1.0 / float(inverse), errors)


def tables(folder: Path) -> Iterator[tuple[str, int, list[tuple[float, float]]]]:
    """Measured all-reduce times by size: name, ranks, rows of size [B] and time [s]; none if there are no files."""
    for n in range(2, 7):
        lines = _lines(folder / "nccl" / f"a100_all_reduce_n{n}.csv")
        if lines:
            yield f"A100 with NVSwitch, {n} ranks", n, [(float(row[0]), float(row[3]) * 1e-9) for row in lines]
    lines = _lines(folder / "nccl" / "h100_dgx_all_reduce.csv")
    for n in (2, 4):
        rows = [(float(row[1]), float(row[3]) * 1e-3) for row in lines if int(row[0]) == n]
        if rows:
            yield f"DGX H100, {n} ranks, through torch", n, rows


def _lines(path: Path) -> list[list[str]]:
    if not path.is_file():
        return []
    with open(path, encoding="utf-8") as stream:
        return list(csv.reader(stream))[1:]


def nccl_ledger(cases: list[dict[str, Any]]) -> list[LedgerRow]:
    """Every point of every case that is known."""
    from simperf.study.truth import source_of

    return [
        LedgerRow(
            f"Collectives: {case['id']}",
            f"{point.nbytes:.0f} B",
            "time",
            "s",
            point.measured,
            point.measured,
            point.predicted,
            case=case["id"],
            source=source_of(case),
            fitted=_NOTHING,
        )
        for case in cases
        if case["id"] in cases_known()
        for point in points(case)
    ]


def fitted_ledger(folder: Path) -> list[LedgerRow]:
    """Every point of the large all-reduce tables, with two constants fitted to each table."""
    rows = []
    for title, n, table in tables(folder):
        made = fit(n, table)
        fitted = (
            f"two constants to these points: {made.latency * 1e6:.2f} us a step, {made.bandwidth / 1e9:.1f} GB/s a link"
        )
        rows += [
            LedgerRow(
                f"All-reduce: {title}",
                f"{nbytes:.0f} B",
                "time",
                "s",
                measured,
                measured,
                measured * (1 + error),
                case=title,
                source="VIA-Research/vTrain, trace/"
                if title.startswith("A100")
                else "microsoft/vidur, data/profiling/network",
                fitted=fitted,
            )
            for (nbytes, measured), error in zip(table, made.errors, strict=True)
        ]
    return rows
