"""Measured experts of a mixture by shape: rows of the tables as operations, and the half of them that may be fitted.

The tables (ai-dynamo/aiconfigurator, collector/trtllm/collect_moe.py) time the first rank of the group: all tokens of
the group go in, and the rank has its own experts alone. One layer is called again and again, six times in a captured
graph where experts are balanced, so that small layers stay in the L2; by a power law five draws follow one another.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from simperf.accuracy.shape_tables import ShapeTable, read_shape_tables
from simperf.hardware import Catalog, GpuPart
from simperf.workload.kinds import moe
from simperf.workload.op import Op

__all__ = ["PRECISIONS", "ExpertTable", "expert_ops", "expert_tables", "precision_tables", "rows_fitted"]

Array = NDArray[np.float64]
#: type of a table's layer -> precision
PRECISIONS: Mapping[str, str] = {
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8-block",
    "w4a16_mxfp4": "mxfp4-bf16",
    "w4a8_mxfp4_mxfp8": "mxfp4-mxfp8",
}


@dataclass(frozen=True, slots=True, eq=False)
class ExpertTable:
    """Balanced experts in one precision on one GPU.

    Parameters
    ----------
    part : GpuPart
        Of the catalogue.
    precision : str
        One of `simperf.workload.expert_loads.EXPERT_PRECISIONS`.
    ops : list of Op
        In a loop over one layer.
    measured : ndarray
        [s]
    fitted : ndarray
        Rows that constants may be fitted to: half of the shapes, by a checksum; the others are for grading.
    source : str
    """

    part: GpuPart
    precision: str
    ops: list[Op]
    measured: Array
    fitted: NDArray[np.bool_]
    source: str


def expert_ops(table: ShapeTable, draw: int = 0) -> list[Op]:
    """Operations of a table's rows, as a loop over one layer finds them; of a power law those of one draw."""
    names = ("num_tokens", "hidden_size", "inter_size", "num_experts", "topk", "moe_tp_size", "moe_ep_size")
    columns = [table[name].astype(int).tolist() for name in names]
    labels = zip(table["distribution"], table["moe_dtype"], table["kernel_source"], strict=True)
    found = []
    for (load, precision, source), *sizes in zip(labels, *columns, strict=True):
        tokens, hidden, wide, experts, top_k, tp, ep = (int(size) for size in sizes)
        op = moe(
            tokens,
            hidden,
            intermediate=wide,
            experts=experts,
            top_k=top_k,
            tensor_parallel=tp,
            expert_parallel=ep,
            load="balanced" if load == "balanced" else f"{str(load).replace('_', '-')}/{draw}",
            gated=not str(source).endswith("nongated"),
            dtype=PRECISIONS[str(precision)],
        )
        found.append(replace(op, reuse=op.nbytes))
    return found


def rows_fitted(table: ShapeTable) -> NDArray[np.bool_]:
    """Rows that constants may be fitted to: half of the shapes, on whatever GPU."""
    names = ("num_tokens", "hidden_size", "inter_size", "topk", "num_experts", "moe_tp_size", "moe_ep_size")
    rows = zip(*(table[name].astype(int).tolist() for name in names), strict=True)
    return np.array([zlib.crc32("/".join(map(str, row)).encode()) % 2 == 0 for row in rows])


def precision_tables(folder: str | os.PathLike[str], *, even: bool) -> Iterator[tuple[ShapeTable, str]]:
    """Tables of GPUs of the catalogue by precision, with balanced experts or without."""
    for table in read_shape_tables(folder, "moe"):
        if not table.gpu:
            continue
        alike = (table["distribution"] == "balanced") == even
        for kind, precision in PRECISIONS.items():
            rows = table.where(alike & (table["moe_dtype"] == kind))
            if len(rows):
                yield rows, precision


def expert_tables(folder: str | os.PathLike[str]) -> Iterator[ExpertTable]:
    """Every table of balanced experts on a GPU of the catalogue, by precision."""
    catalog = Catalog.load()
    for table, precision in precision_tables(folder, even=True):
        measured = np.asarray(table["latency"], dtype=float)
        yield ExpertTable(
            catalog.gpu(table.gpu), precision, expert_ops(table), measured, rows_fitted(table), table.source
        )
