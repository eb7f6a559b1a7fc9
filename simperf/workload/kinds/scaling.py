"""Kernels of scaled precisions: what a library does around a product of 8-bit numbers."""

from __future__ import annotations

from dataclasses import replace

from simperf.errors import InputError, Problem
from simperf.workload.kinds.dense import matmul
from simperf.workload.kinds.memory import fill
from simperf.workload.kinds.pointwise import elementwise
from simperf.workload.op import Op
from simperf.workload.precision import element_size
from simperf.workload.registry import OP_KINDS, sizes

__all__ = ["SCALINGS", "amax", "block_scaled_matmul", "quantize", "scaled_product"]

#: ways to scale operands: one factor a tensor, or one for 128 elements of a row and for 128 x 128 weights
SCALINGS = ("tensor", "block")
#: elements of a row that share a factor
_BLOCK = 128
#: bytes of a factor
_FACTOR = 4.0


@OP_KINDS.register("amax")
def amax(elements: int, *, dtype: str = "bf16") -> Op:
    """Largest absolute value of a tensor: all of it read, one number written."""
    sizes(elements=elements)
    return Op(
        name="amax",
        kind="amax",
        flops=float(elements),
        nbytes_read=float(element_size(dtype) * elements),
        nbytes_written=_FACTOR,
        dtype=dtype,
        family="reduction",
        elements=float(elements),
    )


@OP_KINDS.register("quantize")
def quantize(elements: int, *, dtype: str = "bf16", to: str = "fp8", scaling: str = "tensor") -> Op:
    """Scale and round a tensor to fewer bits: one read, one write, and its factors.

    With factors of a tensor they are known before (`amax`); with factors of blocks the kernel finds them itself.

    Examples
    --------
    >>> quantize(1024, scaling="block").nbytes
    3104.0
    """
    sizes(elements=elements)
    _known(scaling)
    factors = 1.0 if scaling == "tensor" else elements / _BLOCK
    return Op(
        name="quantize",
        kind="quantize",
        flops=2.0 * elements,
        nbytes_read=float(element_size(dtype) * elements),
        nbytes_written=float(element_size(to) * elements) + _FACTOR * factors,
        dtype=dtype,
        family="elementwise",
        elements=float(elements),
    )


@OP_KINDS.register("block_scaled_matmul")
def block_scaled_matmul(m: int, n: int, *, k: int, dtype: str = "fp8") -> Op:
    """Multiply (m x k) by (k x n) of 8-bit numbers with factors of blocks along k; the result has 16 bits."""
    op = matmul(m, n, k=k, dtype=dtype)
    factors = _FACTOR * (m * k / _BLOCK + n * k / _BLOCK**2)
    return replace(
        op,
        name="block_scaled_matmul",
        kind="block_scaled_matmul",
        nbytes_read=op.nbytes_read + factors,
        nbytes_written=2.0 * m * n,
        holds=2.0 * m * n,
    )


def scaled_product(m: int, n: int, *, k: int, dtype: str = "fp8", scaling: str = "tensor") -> list[Op]:
    """Kernels of a product whose activations are quantised as it runs: those around the product, then the product.

    With a factor for the tensor: a zero for the largest value, the largest value, the rounding, the factor as a number
    of 32 bits, the product. With factors of blocks one kernel finds and applies them. Weights are quantised before.

    Parameters
    ----------
    m, n, k : int
        Activations are m x k, weights k x n.
    dtype : str
        Of the product.
    scaling : str
        One of `SCALINGS`.

    Examples
    --------
    >>> [op.kind for op in scaled_product(4096, 4096, k=4096)]
    ['fill', 'amax', 'quantize', 'elementwise', 'matmul']
    >>> [op.kind for op in scaled_product(4096, 4096, k=4096, scaling="block")]
    ['quantize', 'block_scaled_matmul']
    """
    _known(scaling)
    if scaling == "block":
        return [quantize(m * k, to=dtype, scaling=scaling), block_scaled_matmul(m, n, k=k, dtype=dtype)]
    product = matmul(m, n, k=k, dtype=dtype)
    product = replace(product, nbytes_written=2.0 * m * n, holds=2.0 * m * n)
    return [fill(1), amax(m * k), quantize(m * k, to=dtype), elementwise(1), product]


def _known(scaling: str) -> None:
    if scaling not in SCALINGS:
        raise InputError(Problem("no way to scale", key="scaling", value=repr(scaling), expected=", ".join(SCALINGS)))
