"""Kernels of scaled precisions: what a library does around a product of 8-bit or 4-bit numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from simperf.errors import InputError, Problem, nearest
from simperf.workload.kinds.dense import matmul
from simperf.workload.kinds.memory import fill
from simperf.workload.kinds.pointwise import elementwise
from simperf.workload.op import Op
from simperf.workload.precision import element_size
from simperf.workload.registry import OP_KINDS, sizes

__all__ = ["SCALINGS", "Scaling", "amax", "block_scaled_matmul", "quantize", "scaled_product"]


@dataclass(frozen=True, slots=True)
class Scaling:
    """A way to scale operands.

    Parameters
    ----------
    dtypes : tuple of str
        Precisions that are scaled so.
    block, weights : int
        Elements of activations, and of weights, that share a factor; 0: all of them.
    factor : float
        Of one block [B].
    tensor : bool
        Whether the whole tensor has a factor, too, for which its largest value is found first.
    """

    dtypes: tuple[str, ...]
    block: int
    weights: int
    factor: float
    tensor: bool

    def factors(self, elements: float, block: int) -> float:
        """Bytes of the factors of so many elements."""
        return (_FACTOR if self.tensor else 0.0) + (self.factor * elements / block if block else 0.0)


#: bytes of a tensor's factor
_FACTOR = 4.0
#: ways to scale operands: one factor a tensor; one a row, not counted; one of 32 bits for 128 elements of a row and for
#: 128 x 128 weights (DeepSeek-AI, "DeepSeek-V3", 2024, section 3.3); a power of two for 32 elements (OCP Microscaling
#: Formats v1.0); one of 8 bits for 16 elements beside the tensor's ("Pretraining Large Language Models with NVFP4",
#: arXiv 2509.25149)
SCALINGS: Mapping[str, Scaling] = {
    "tensor": Scaling(("fp8", "int8"), 0, 0, 0.0, tensor=True),
    "row": Scaling(("fp8",), 0, 0, 0.0, tensor=False),
    "block": Scaling(("fp8",), 128, 128**2, 4.0, tensor=False),
    "mx": Scaling(("fp8", "fp4"), 32, 32, 1.0, tensor=False),
    "nvfp4": Scaling(("fp4",), 16, 16, 1.0, tensor=True),
}


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

    A factor of the tensor is known before (`amax`); those of blocks the kernel finds itself.

    Parameters
    ----------
    elements : int
    dtype, to : str
        Precision before and after.
    scaling : str
        One of `SCALINGS`.

    Examples
    --------
    >>> quantize(1024, scaling="block").nbytes, quantize(1024, to="fp4", scaling="mx").nbytes
    (3104.0, 2592.0)
    """
    sizes(elements=elements)
    way = _known(scaling, to)
    return Op(
        name="quantize",
        kind="quantize",
        flops=2.0 * elements,
        nbytes_read=float(element_size(dtype) * elements),
        nbytes_written=float(element_size(to) * elements) + way.factors(elements, way.block),
        dtype=dtype,
        family="elementwise",
        elements=float(elements),
    )


@OP_KINDS.register("block_scaled_matmul")
def block_scaled_matmul(m: int, n: int, *, k: int, dtype: str = "fp8", scaling: str = "block") -> Op:
    """Multiply (m x k) by (k x n) of 8-bit or 4-bit numbers with factors of blocks along k; the result has 16 bits.

    Parameters
    ----------
    m, n, k : int
    dtype : str
        Of both operands.
    scaling : str
        One of `SCALINGS` with blocks.
    """
    way = _known(scaling, dtype)
    if not way.block:
        expected = ", ".join(name for name, one in SCALINGS.items() if one.block)
        raise InputError(Problem("has no blocks", key="scaling", value=repr(scaling), expected=expected))
    op = matmul(m, n, k=k, dtype=dtype)
    factors = way.factors(float(m) * k, way.block) + way.factors(float(n) * k, way.weights)
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
    of 32 bits, the product. With factors of blocks one kernel finds and applies them, after the largest value where
    the tensor has a factor, too. Weights are quantised before.

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
    >>> [op.kind for op in scaled_product(4096, 4096, k=4096, dtype="fp4", scaling="nvfp4")]
    ['fill', 'amax', 'quantize', 'block_scaled_matmul']
    """
    way = _known(scaling, dtype)
    around = [fill(1), amax(m * k)] if way.tensor else []
    around.append(quantize(m * k, to=dtype, scaling=scaling))
    if way.block:
        return [*around, block_scaled_matmul(m, n, k=k, dtype=dtype, scaling=scaling)]
    product = matmul(m, n, k=k, dtype=dtype)
    return [*around, elementwise(1), replace(product, nbytes_written=2.0 * m * n, holds=2.0 * m * n)]


def _known(scaling: str, dtype: str) -> Scaling:
    """A way to scale numbers of a precision."""
    if scaling not in SCALINGS:
        message = f"no way to scale{nearest(scaling, SCALINGS)}"
        raise InputError(Problem(message, key="scaling", value=repr(scaling), expected=", ".join(SCALINGS)))
    way = SCALINGS[scaling]
    if dtype not in way.dtypes:
        message = f"{dtype} is not scaled so"
        known = ", ".join(name for name, one in SCALINGS.items() if dtype in one.dtypes)
        expected = f"{known} for {dtype}" if known else f"{' or '.join(way.dtypes)} for {scaling}"
        raise InputError(Problem(message, key="scaling", value=repr(scaling), expected=expected))
    return way
