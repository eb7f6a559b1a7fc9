"""Measured attention by shape: rows of the tables as operations, and the half of them that may be fitted.

TensorRT-LLM's tables (ai-dynamo/aiconfigurator, collector/trtllm/collect_attn.py) time the same call again and again.
A cache in fp8 makes Hopper and Blackwell multiply in fp8, whatever the queries are in; rows whose cache is in another
precision than the products on other GPUs are no operation, and left out. So are those of one query, which decode.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simperf.accuracy.shape_tables import ShapeTable, read_shape_tables
from simperf.hardware import Catalog, GpuPart
from simperf.workload.kinds import attention
from simperf.workload.loops import timing_loop
from simperf.workload.op import Op

__all__ = ["FP8_BY_CACHE", "AttentionTable", "attention_tables", "shape_fitted", "table_columns"]

#: architectures on which the inference library multiplies in fp8 if the cache is in fp8
FP8_BY_CACHE = ("hopper", "blackwell")
#: what all rows have where a table has no such column
_MISSING = {"head_dim": 128.0, "window_size": 0.0}

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class AttentionTable:
    """Attention with many queries in one precision on one GPU.

    Parameters
    ----------
    part : GpuPart
        Of the catalogue.
    dtype, library : str
        Precision of its products, and whose kernels.
    ops : list of Op
        In a loop that times one call.
    measured : ndarray
        [s]
    fitted : ndarray
        Rows that constants may be fitted to: half of the shapes, by a hash; the others are for grading.
    source : str
    """

    part: GpuPart
    dtype: str
    library: str
    ops: list[Op]
    measured: Array
    fitted: NDArray[np.bool_]
    source: str


def shape_fitted(*shape: Any) -> bool:
    """Whether a shape is of the half that constants may be chosen with."""
    return hashlib.sha256(repr(shape).encode()).digest()[0] % 2 == 0


def table_columns(table: ShapeTable, *names: str) -> list[Array]:
    """Columns as numbers, with what all rows have where there is none."""
    return [
        np.asarray(table[name] if name in table.columns else np.full(len(table), _MISSING[name]), dtype=float)
        for name in names
    ]


def attention_tables(folder: str | os.PathLike[str]) -> Iterator[AttentionTable]:
    """Every table of attention with many queries on a GPU of the catalogue, by precision."""
    catalog = Catalog.load()
    for table in read_shape_tables(folder, "attention_prefill"):
        if table.gpu:
            yield from _precisions(table, catalog.gpu(table.gpu))


def _precisions(table: ShapeTable, part: GpuPart) -> Iterator[AttentionTable]:
    names = ("batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim", "window_size")
    batch, queries, heads, kv, width, window = table_columns(table, *names)
    kv = np.where(kv > 0, kv, heads)
    cache = np.where(table["kv_cache_dtype"] == "fp8", 1.0, 2.0)
    asked = np.asarray(table["attn_dtype"] == "fp8")
    fp8 = asked | ((cache == 1.0) & (part.architecture in FP8_BY_CACHE))
    size = np.where(fp8, 1.0, 2.0)
    keys = zip(batch, queries, heads, kv, width, window, size, cache, strict=True)
    fitted = np.array([shape_fitted(*map(float, row)) for row in keys])
    for dtype, wide in (("bf16", 2.0), ("fp8", 1.0)):
        rows = np.flatnonzero((size == wide) & (cache == wide) & (queries > 1))
        if not len(rows):
            continue
        ops = [
            attention(
                int(batch[row]),
                int(heads[row]),
                queries=int(queries[row]),
                head_dim=int(width[row]),
                kv_heads=int(kv[row]),
                causal=True,
                window=int(window[row]),
                library="tensorrt-llm",
                dtype=dtype,
            )
            for row in rows
        ]
        looped = [timing_loop(op, 1) for op in ops]
        measured = np.asarray(table["latency"], dtype=float)[rows]
        yield AttentionTable(part, dtype, "tensorrt-llm", looped, measured, fitted[rows], table.source)
