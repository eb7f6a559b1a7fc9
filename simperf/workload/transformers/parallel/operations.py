"""Operations of a rank's passes: kernels of a transformer, by their sizes."""

from __future__ import annotations

from dataclasses import replace

from simperf.workload.kinds.attention import attention
from simperf.workload.kinds.dense import matmul
from simperf.workload.op import Op
from simperf.workload.precision import SINGLE, element_size
from simperf.workload.transformers import arithmetic
from simperf.workload.transformers.dimensions import Norm

__all__ = [
    "attention_back",
    "attention_forward",
    "each",
    "norm_back",
    "norm_forward",
    "statistics",
    "weight_product",
    "with_sums",
]


def each(
    kind: str,
    elements: float,
    *,
    flops: float = 1.0,
    read: float,
    written: float,
    dtype: str,
    family: str = "elementwise",
    row: float = 0.0,
) -> Op:
    """A kernel that goes over elements once.

    Parameters
    ----------
    kind : str
    elements : float
    flops : float
        For each element [FLOP].
    read, written : float
        For each element [B].
    dtype, family, row
        As of `Op`.
    """
    return Op(
        name=kind,
        kind=kind,
        flops=flops * elements,
        nbytes_read=read * elements,
        nbytes_written=written * elements,
        dtype=dtype,
        family=family,
        elements=float(elements),
        row=row,
    )


def norm_forward(norm: Norm, rows: int, columns: int, dtype: str) -> Op:
    """Normalisation of rows in one kernel, which writes 1 / deviation of each, and the mean."""
    width, layer = element_size(dtype), norm == "layer"
    n = float(rows) * columns
    return Op(
        name="norm",
        kind="layernorm" if layer else "rms_norm",
        flops=(arithmetic.LAYER_NORM if layer else arithmetic.RMS_NORM) * n,
        nbytes_read=width * (n + (2 if layer else 1) * columns),
        nbytes_written=width * n + statistics(norm, rows),
        dtype=dtype,
        family="normalization",
        elements=n,
        row=float(columns),
    )


def norm_back(norm: Norm, rows: int, columns: int, dtype: str) -> Op:
    """Gradients of a normalisation's input and weights."""
    width, layer = element_size(dtype), norm == "layer"
    n, weights = float(rows) * columns, (2 if layer else 1) * columns
    return Op(
        name="norm",
        kind="layernorm_backward" if layer else "rms_norm_backward",
        flops=(arithmetic.LAYER_NORM_BACK if layer else arithmetic.RMS_NORM_BACK) * n,
        nbytes_read=width * (2 * n + columns) + statistics(norm, rows),
        nbytes_written=width * (n + weights),
        dtype=dtype,
        family="normalization",
        elements=n,
        row=float(columns),
    )


def statistics(norm: Norm, rows: int) -> float:
    """Bytes that a normalisation keeps of its rows [B]."""
    return (2 if norm == "layer" else 1) * SINGLE * rows


def weight_product(m: int, n: int, *, k: int, dtype: str, into: float, adds: bool) -> Op:
    """The matrix product that is a weight's gradient.

    Parameters
    ----------
    m, n, k : int
        Outputs and inputs of the matrix, and tokens.
    dtype : str
    into : float
        Bytes of an element of the result.
    adds : bool
        Whether it is added to what is there.
    """
    op, result = matmul(m, n, k=k, dtype=dtype), into * m * n
    return replace(
        op, nbytes_read=op.nbytes_read + (result if adds else 0.0), nbytes_written=result, holds=0.0 if adds else result
    )


def attention_forward(
    batch: int,
    heads: int,
    kv_heads: int,
    *,
    tokens: int,
    keys: int,
    width: int,
    dtype: str,
    library: str,
    causal: bool = True,
    window: int = 0,
) -> Op:
    """Attention in one kernel, which writes the logarithm of each query's sum."""
    op = attention(
        batch,
        heads,
        queries=tokens,
        keys=keys,
        head_dim=width,
        kv_heads=kv_heads,
        causal=causal,
        window=window,
        library=library,
        dtype=dtype,
    )
    return with_sums(op)


def with_sums(op: Op) -> Op:
    """An attention that writes the logarithm of each query's sum, too."""
    shape = op.attention
    assert shape is not None
    sums = SINGLE * shape.batch * shape.heads * shape.queries
    return replace(op, nbytes_written=op.nbytes_written + sums, holds=op.nbytes_written + sums)


def attention_back(forward: Op) -> Op:
    """Gradients of attention in one kernel: five matrix products for two, of which one is computed again."""
    shape, gemm = forward.attention, forward.gemm
    assert shape is not None
    assert gemm is not None
    size = element_size(forward.dtype)
    queries = size * shape.batch * shape.heads * shape.queries * shape.head_dim
    keys = size * shape.batch * shape.kv_heads * shape.keys * (shape.head_dim + shape.value_dim)
    made = size * shape.batch * shape.heads * shape.queries * shape.value_dim
    sums = SINGLE * shape.batch * shape.heads * shape.queries
    return replace(
        forward,
        kind="attention_backward",
        flops=arithmetic.ATTENTION_BACK * forward.flops,
        nbytes_read=queries + keys + 2 * made + sums,
        nbytes_written=queries + keys,
        holds=queries + keys,
        gemm=replace(gemm, k=5 * shape.keys),
    )
