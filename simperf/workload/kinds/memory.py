"""Operations that only move data, and the one whose numbers are given."""

from __future__ import annotations

from simperf.workload.op import Op
from simperf.workload.precision import element_size
from simperf.workload.registry import OP_KINDS, sizes

__all__ = ["copy", "custom", "embedding", "fill"]


@OP_KINDS.register("copy")
def copy(elements: int, *, dtype: str = "fp32") -> Op:
    """Copy an array within device memory: read once, written once."""
    sizes(elements=elements)
    array = float(element_size(dtype) * elements)
    return Op("copy", "copy", 0.0, array, array, dtype=dtype, family="copy", elements=float(elements))


@OP_KINDS.register("embedding")
def embedding(tokens: int, width: int, *, dtype: str = "fp32") -> Op:
    """Look up a row of `width` elements for each token (index of 8 B)."""
    sizes(tokens=tokens, width=width)
    rows = float(element_size(dtype) * tokens * width)
    return Op(
        name="embedding",
        kind="embedding",
        nbytes_read=rows + 8.0 * tokens,
        nbytes_written=rows,
        dtype=dtype,
        family="copy",
        elements=float(tokens * width),
    )


@OP_KINDS.register("custom")
def custom(
    flops: float,
    nbytes: float,
    *,
    written: float = 0.0,
    family: str = "elementwise",
    elements: float = 0.0,
    dtype: str = "fp32",
) -> Op:
    """Build an operation whose work [FLOP] and traffic [B] are known; `written` of `nbytes` is output."""
    return Op(
        name="custom",
        kind="custom",
        flops=float(flops),
        nbytes_read=float(nbytes - written),
        nbytes_written=float(written),
        dtype=dtype,
        family=family,
        elements=float(elements),
    )


@OP_KINDS.register("fill")
def fill(elements: int, *, dtype: str = "fp32") -> Op:
    """Write one value (or random numbers, whose arithmetic is not counted) to every element: nothing read."""
    sizes(elements=elements)
    return Op(
        name="fill",
        kind="fill",
        flops=0.0,
        nbytes_read=0.0,
        nbytes_written=float(element_size(dtype) * elements),
        dtype=dtype,
        family="elementwise",
        elements=float(elements),
    )
