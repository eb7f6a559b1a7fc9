"""Measured matrix products by shape: rows of the tables as kernels, and the half of them that may be fitted.

TensorRT-LLM's tables (ai-dynamo/aiconfigurator, collector/trtllm/collect_gemm.py) time a captured graph of a few calls
of a linear layer, each with weights of its own and all with the same activations: as many calls as make the weights
fill the L2, at most five.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from simperf.accuracy.shape_tables import ShapeTable, read_shape_tables
from simperf.hardware import Catalog, GpuPart
from simperf.workload.kinds import matmul, scaled_product
from simperf.workload.loops import timing_loop
from simperf.workload.op import Op

__all__ = ["LARGE", "LAYERS", "ProductTable", "layer_kernels", "product_tables", "weight_copies"]

#: type of a table's layer -> precision of its product, and how its operands are scaled
LAYERS: Mapping[str, tuple[str, str]] = {
    "bfloat16": ("bf16", ""),
    "fp8": ("fp8", "tensor"),
    "fp8_block": ("fp8", "block"),
}
#: rows of activations from which a product is called large
LARGE = 1024
#: calls that the measuring program goes round at most
_COPIES = 5

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ProductTable:
    """Products of one layer type on one GPU.

    Parameters
    ----------
    part : GpuPart
        Of the catalogue.
    layer : str
        One of `LAYERS`.
    m, n, k : ndarray
        Shapes.
    measured : ndarray
        [s]
    fitted : ndarray
        Rows that constants may be fitted to: half of the shapes, by a checksum; the others are for grading.
    source : str
    """

    part: GpuPart
    layer: str
    m: Array
    n: Array
    k: Array
    measured: Array
    fitted: NDArray[np.bool_]
    source: str

    @property
    def shapes(self) -> list[tuple[int, int, int]]:
        """m, n, k of each row."""
        return [(int(m), int(n), int(k)) for m, n, k in zip(self.m, self.n, self.k, strict=True)]


def product_tables(folder: str | os.PathLike[str]) -> list[ProductTable]:
    """Every table of products on a GPU of the catalogue whose layer type is known."""
    catalog, found = Catalog.load(), []
    for table in read_shape_tables(folder, "gemm"):
        if table.gpu:
            found += [
                _rows(table.where(table["gemm_dtype"] == layer), catalog.gpu(table.gpu), layer)
                for layer in LAYERS
                if layer in set(table["gemm_dtype"])
            ]
    return found


def _rows(table: ShapeTable, part: GpuPart, layer: str) -> ProductTable:
    m, n, k = (table[name] for name in ("m", "n", "k"))
    names = [f"{a:.0f}x{b:.0f}x{c:.0f}" for a, b, c in zip(m, n, k, strict=True)]
    fitted = np.array([zlib.crc32(name.encode()) % 2 == 0 for name in names])
    return ProductTable(part, layer, m, n, k, table["latency"], fitted, table.source)


def weight_copies(part: GpuPart, weights: float) -> int:
    """Calls that the measuring program goes round for `weights` of so many bytes."""
    return max(1, min(_COPIES, int(np.ceil(part.l2 / max(1.0, weights)))))


@lru_cache(maxsize=1 << 17)
def layer_kernels(layer: str, m: int, n: int, k: int, *, part: GpuPart) -> tuple[Op, ...]:
    """Kernels of one call of a linear layer, as the measuring program times it."""
    dtype, scaling = LAYERS[layer]
    ops = scaled_product(m, n, k=k, dtype=dtype, scaling=scaling) if scaling else [matmul(m, n, k=k, dtype=dtype)]
    weights = float(n) * k * (1 if scaling else 2)
    return (*ops[:-1], timing_loop(ops[-1], weight_copies(part, weights)))
