"""Large tables of all-reduce times beside a ring with two fitted constants: how far those alone go."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simperf.accuracy.validation import ValidationRow
from simperf.collectives import Wiring, execute, make_plan

__all__ = ["RingFit", "fit_ring", "ring_table", "tables"]


@dataclass(frozen=True, slots=True)
class RingFit:
    """Two constants of a ring's links, latency [s] and bandwidth [B/s], and the errors that are left."""

    latency: float
    bandwidth: float
    errors: list[float]


def fit_ring(n: int, rows: list[tuple[float, float]]) -> RingFit:
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
    return RingFit(latency, 1.0 / float(inverse), errors)


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


def ring_table(folder: Path) -> list[ValidationRow]:
    """Every point of the large all-reduce tables, with two constants fitted to each table."""
    rows = []
    for title, n, table in tables(folder):
        made = fit_ring(n, table)
        fitted = (
            f"two constants to these points: {made.latency * 1e6:.2f} us a step, {made.bandwidth / 1e9:.1f} GB/s a link"
        )
        rows += [
            ValidationRow(
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
