"""Large tables of all-reduce times beside a ring with two fitted constants: how far those alone go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simperf.accuracy.nccl_tables import large_tables
from simperf.accuracy.questions import COLLECTIVES
from simperf.accuracy.validation import ValidationRow
from simperf.collectives import execute, make_plan
from simperf.hardware import build_topology

__all__ = ["RingFit", "fit_ring", "ring_table"]


@dataclass(frozen=True, slots=True)
class RingFit:
    """Two constants of a ring's links, latency [s] and bandwidth [B/s], and the errors that are left."""

    latency: float
    bandwidth: float
    errors: list[float]


def fit_ring(n: int, rows: list[tuple[float, float]]) -> RingFit:
    """Fit latency and bandwidth of a link so that the built-in ring meets times by size, in relative terms.

    A ring's time is linear in both constants, so that this is linear least squares; the
    errors are those of the plan run on a topology with the constants.
    """
    steps = 2 * (n - 1)
    size, time = np.array(rows).T
    design = np.stack((np.full_like(size, steps), steps * size / n), axis=1) / time[:, None]
    latency, inverse = np.linalg.lstsq(design, np.ones_like(size), rcond=None)[0]
    latency = max(float(latency), 0.0)
    topology = build_topology("ring", n, bandwidth=1.0 / float(inverse), latency=latency)
    plan = make_plan("all-reduce", "ring", nranks=n)
    errors = [execute(plan, topology, nbytes=nbytes).time / measured - 1.0 for nbytes, measured in rows]
    return RingFit(latency, 1.0 / float(inverse), errors)


def ring_table(folder: Path) -> list[ValidationRow]:
    """Every point of the large all-reduce tables, with two constants fitted to each table."""
    rows = []
    for title, source, _, n, table in large_tables(folder):
        made = fit_ring(n, table)
        fitted = f"two constants: {made.latency * 1e6:.2f} us a step, {made.bandwidth / 1e9:.1f} GB/s per link"
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
                source=source,
                fitted=fitted,
                kind="fitted",
                question=COLLECTIVES,
                nbytes=nbytes,
            )
            for (nbytes, measured), error in zip(table, made.errors, strict=True)
        ]
    return rows
