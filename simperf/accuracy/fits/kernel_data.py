"""Published kernel times as points to fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from simperf.accuracy.fits.datasheet import energy_scale
from simperf.accuracy.fits.library import known_cut
from simperf.accuracy.kernel_tables import MeasuredOp
from simperf.calibrate.fit import Data
from simperf.calibrate.fit.kernels import row_columns
from simperf.calibrate.fit.products import CUTS, product_columns
from simperf.cost import Roofline
from simperf.cost.longsums import row_seconds
from simperf.cost.tiles import tile_speed
from simperf.hardware import GpuPart
from simperf.workload.op import Gemm, Op

__all__ = ["ONE", "kernel_data"]

#: rate in which scaled work is counted: FLOP over peak and bytes over bandwidth, times this
ONE = 1e12


def kernel_data(rows: Sequence[MeasuredOp], part: GpuPart, *, scaled: bool = False, added: float = 0.0) -> Data:
    """Columns of operations; `scaled` by the part's peaks, and `added` [s] taken off the times."""
    roofline = Roofline(part)
    ops = [op for _, op, _ in rows]
    memory = part.memory_bandwidth / ONE if scaled else 1.0
    columns: dict[str, Any] = {
        "flops": [op.flops / (roofline.peak(op.dtype, family=op.family) / ONE if scaled else 1.0) for op in ops],
        "nbytes": [op.nbytes / memory for op in ops],
        **row_columns(ops, part),
        "cold": np.zeros(len(ops)),
        "peak": [roofline.peak(op.dtype, family=op.family) for op in ops],
        "bandwidth": np.full(len(ops), part.memory_bandwidth),
        "power": np.full(len(ops), part.power or np.inf),
        **product_columns([op.gemm or Gemm(1, 1, 1, 1) for op in ops], part, dtype=ops[0].dtype),
    }
    columns |= _products(ops, part, columns)
    columns["scale"] = np.full(len(ops), energy_scale(part))
    times = np.array([time for _, _, time in rows]) - added
    return Data.table(np.maximum(times, 1e-7), **{key: np.array(value) for key, value in columns.items()})


def _products(ops: Sequence[Op], part: GpuPart, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns that products on any GPU need beside: what a known tile leaves of the rate that the largest reaches.

    Layers follow one another without rest (`simperf.accuracy.fits.datasheet`) and may wait for their long rows.
    """
    cut = known_cut(ops[0], part)
    found = {"known": columns[(cut or CUTS[0]).column], "late": np.zeros(len(ops))}
    if cut is not None:
        found["known"] = tile_speed(cut.height, cut.width) * np.array(found["known"])
        if ops[0].kind == "linear":
            tile = cut.height, cut.width
            found["late"] = np.array([row_seconds(op.gemm, tile, part) for op in ops if op.gemm is not None])
    return found | {"rested": np.full(len(ops), float(ops[0].kind != "linear"))}
