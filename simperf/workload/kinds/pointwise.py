"""Operations that treat each element alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from simperf.errors import UnknownNameError
from simperf.workload.op import Op
from simperf.workload.precision import element_size
from simperf.workload.registry import OP_KINDS, sizes

__all__ = ["BINARY_FLOPS", "UNARY_FLOPS", "binary", "dropout", "elementwise", "unary"]

#: FLOP an element of functions of one array, from the weights in `simperf.workload.kinds`
UNARY_FLOPS: Mapping[str, int] = MappingProxyType(
    {
        "neg": 1,
        "abs": 1,
        "relu": 1,  # one comparison
        "sqrt": 4,
        "cos": 8,
        "sin": 8,
        "exp": 8,
        "log": 8,
        "tanh": 8,
        "sigmoid": 14,  # 1 / (1 + exp(-x)): 1 + 8 + 1 + 4
        "silu": 15,  # x * sigmoid(x)
        "gelu": 12,  # x/2 * (1 + erf(x / sqrt 2)): 1 + 8 + 1 + 1 + 1
    }
)
#: FLOP an element of functions of two arrays
BINARY_FLOPS: Mapping[str, int] = MappingProxyType({"add": 1, "sub": 1, "mul": 1, "maximum": 1, "div": 4})


@OP_KINDS.register("elementwise")
def elementwise(
    elements: int, flops_per_element: float = 1.0, *, reads: int = 1, writes: int = 1, dtype: str = "fp32"
) -> Op:
    """Any elementwise kernel: `reads` arrays in, `writes` arrays out, so much work an element.

    Raising `flops_per_element` at the same bytes walks along the roofline.
    """
    sizes(elements=elements, reads=reads, writes=writes)
    size = element_size(dtype)
    return Op(
        name="elementwise",
        kind="elementwise",
        flops=float(flops_per_element) * elements,
        nbytes_read=float(size * reads * elements),
        nbytes_written=float(size * writes * elements),
        dtype=dtype,
        family="elementwise",
        elements=float(elements),
    )


def _one(kind: str, elements: int, flops: float, *, reads: int, dtype: str) -> Op:
    sizes(elements=elements)
    size = float(element_size(dtype) * elements)
    return Op(
        name=kind,
        kind=kind,
        flops=float(flops * elements),
        nbytes_read=reads * size,
        nbytes_written=size,
        dtype=dtype,
        family="elementwise",
        elements=float(elements),
    )


def unary(function: str, elements: int, *, dtype: str = "fp32") -> Op:
    """Apply a function of `UNARY_FLOPS` to every element: one array read, one written.

    Examples
    --------
    >>> unary("cos", 1000).nbytes
    8000.0
    """
    if function not in UNARY_FLOPS:
        raise UnknownNameError("elementwise function", function, UNARY_FLOPS)
    return _one(function, elements, UNARY_FLOPS[function], reads=1, dtype=dtype)


def binary(function: str, elements: int, *, scalar: bool = False, dtype: str = "fp32") -> Op:
    """Combine two arrays with a function of `BINARY_FLOPS`, or one array with a number (`scalar`).

    Examples
    --------
    >>> binary("add", 1000).nbytes, binary("add", 1000, scalar=True).nbytes
    (12000.0, 8000.0)
    """
    if function not in BINARY_FLOPS:
        raise UnknownNameError("elementwise function", function, BINARY_FLOPS)
    return _one(function, elements, BINARY_FLOPS[function], reads=1 if scalar else 2, dtype=dtype)


@OP_KINDS.register("dropout")
def dropout(elements: int, *, dtype: str = "fp32") -> Op:
    """Zero elements at random and scale the rest: one array read; one and a byte mask written.

    Counted are the comparison and the scaling; the integer work of the random numbers is not.
    """
    sizes(elements=elements)
    size = element_size(dtype)
    return Op(
        name="dropout",
        kind="dropout",
        flops=2.0 * elements,
        nbytes_read=float(size * elements),
        nbytes_written=float((size + 1) * elements),
        dtype=dtype,
        family="elementwise",
        elements=float(elements),
    )


def _unary_kind(function: str) -> Callable[..., Op]:
    def build(elements: int, *, dtype: str = "fp32") -> Op:
        return unary(function, elements, dtype=dtype)

    build.__name__, build.__doc__ = function, f"Apply {function} to every element."
    return build


def _binary_kind(function: str) -> Callable[..., Op]:
    def build(elements: int, *, scalar: bool = False, dtype: str = "fp32") -> Op:
        return binary(function, elements, scalar=scalar, dtype=dtype)

    build.__name__, build.__doc__ = function, f"Combine two arrays, or one and a number, with {function}."
    return build


for _name in UNARY_FLOPS:
    OP_KINDS.add(_name, _unary_kind(_name))
for _name in BINARY_FLOPS:
    OP_KINDS.add(_name, _binary_kind(_name))
