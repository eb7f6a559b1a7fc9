"""Classes of recorded kernels: what a kernel computes or moves, by its name and by the operation that launched it.

A matrix product whose shapes the trace has (``record_shapes=True``) is an `Op` of these shapes. Any other kernel is
known by its class alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from simperf.errors import InputError
from simperf.workload.op import Op
from simperf.workload.recorded.trace_file import GpuActivity, Operator
from simperf.workload.registry import make_op

__all__ = ["Collective", "KernelClass", "classify"]

_COLLECTIVE = re.compile(r"nccl|rccl|oneccl", re.IGNORECASE)
_ATTENTION = re.compile(r"flash|fmha|attention|mha_", re.IGNORECASE)
_CONVOLUTION = re.compile(r"conv(?!ert)|wgrad|dgrad|fprop|winograd|implicit", re.IGNORECASE)
_PRODUCT = re.compile(r"gemm|gemv|cutlass|cublas|nvjet|matmul|cijk_|xmma|splitk", re.IGNORECASE)
#: precision of a matrix kernel by what its name has, the first that is found
_PRECISIONS = (
    ("fp8", re.compile(r"e4m3|e5m2|fp8")),
    ("bf16", re.compile(r"bf16|bfloat16")),
    ("tf32", re.compile(r"tf32|s1688gemm(?!_f16)|tensorop_s1688|tensorop_s16816tf32")),
    ("fp16", re.compile(r"f16|fp16|half|hgemm|h884|h1688|s884|s1688|s16816|h16816")),
)
#: collectives by a part of the kernel's or the operation's name, letters alone
_COLLECTIVES = {
    "allreduce": "all-reduce",
    "reducescatter": "reduce-scatter",
    "allgather": "all-gather",
    "alltoall": "all-to-all",
    "broadcast": "broadcast",
}
#: types as torch names them -> precision, and bytes of an element
_TYPES = {
    "float": ("fp32", 4),
    "c10::half": ("fp16", 2),
    "half": ("fp16", 2),
    "c10::bfloat16": ("bf16", 2),
    "bfloat16": ("bf16", 2),
    "double": ("fp64", 8),
    "int": ("fp32", 4),
    "long": ("fp64", 8),
    "long int": ("fp64", 8),
    "byte": ("fp8", 1),
    "char": ("fp8", 1),
}
#: largest extent of a tensor, and number of elements of a message, that are taken for such
_LARGEST = 1 << 40


class Collective(NamedTuple):
    """A collective: its name, payload [B] and ranks; 0 where the trace does not say."""

    name: str
    nbytes: float
    ranks: int


class KernelClass(NamedTuple):
    """Class of a kernel.

    `kind` is ``"product"``, ``"convolution"``, ``"attention"``, ``"memory"``, ``"collective"`` or ``"copy"`` (between
    host and device); `dtype` the precision of its arithmetic; `op` the operation of known shapes; `collective` what it
    communicates.
    """

    kind: str
    dtype: str = "fp32"
    op: Op | None = None
    collective: Collective | None = None


def classify(activity: GpuActivity, operators: Sequence[Operator]) -> KernelClass:
    """Class of an activity.

    Parameters
    ----------
    activity : GpuActivity
    operators : sequence of Operator
        Those that enclose its launch, the innermost first.

    Examples
    --------
    >>> classify(GpuActivity("kernel", "volta_sgemm_128x64_nn", 7, 0.0, 1e-5, 1, 0.0, {}), ()).kind
    'product'
    >>> classify(GpuActivity("memcpy", "Memcpy HtoD (Pinned -> Device)", 7, 0.0, 1e-5, 1, 4e3, {}), ()).kind
    'copy'
    """
    name = activity.name
    if activity.kind != "kernel":
        crosses = activity.kind == "memcpy" and re.search(r"HtoD|DtoH", name)
        return KernelClass("copy" if crosses else "memory")
    if _COLLECTIVE.search(name):
        return KernelClass("collective", collective=_collective(activity, operators))
    if _ATTENTION.search(name):
        return KernelClass("attention", _precision(name))
    if _CONVOLUTION.search(name) and not _PRODUCT.search(name):
        return KernelClass("convolution", _precision(name))
    if _PRODUCT.search(name):
        dtype = _precision(name)
        if any("conv" in one.name for one in operators):
            return KernelClass("convolution", dtype)
        return KernelClass("product", dtype, _product(dtype, operators))
    return KernelClass("memory")


def _precision(name: str) -> str:
    plain = name.lower()
    return next((dtype for dtype, pattern in _PRECISIONS if pattern.search(plain)), "fp32")


def _shapes(operator: Operator) -> list[tuple[int, ...]]:
    """Shapes of an operation's inputs; an empty one for an input that is not a tensor."""
    given = operator.arguments.get("Input Dims", operator.arguments.get("Input dims"))
    found: list[tuple[int, ...]] = []
    for one in given if isinstance(given, list) else ():
        whole = isinstance(one, list) and all(type(size) is int and 0 < size < _LARGEST for size in one)
        found.append(tuple(one) if whole else ())
    return found


def _product(dtype: str, operators: Sequence[Operator]) -> Op | None:
    """The product of known shapes that one of the operations is."""
    for operator in operators:
        shapes = _shapes(operator)
        if operator.name in ("aten::addmm", "aten::baddbmm"):
            shapes = shapes[1:]
        if operator.name in ("aten::mm", "aten::addmm") and [len(one) for one in shapes[:2]] == [2, 2]:
            (rows, inner), (_, columns) = shapes[0], shapes[1]
            return _made("matmul", dtype, m=rows, n=columns, k=inner)
        if operator.name in ("aten::bmm", "aten::baddbmm") and [len(one) for one in shapes[:2]] == [3, 3]:
            (batch, rows, inner), (_, _, columns) = shapes[0], shapes[1]
            return _made("bmm", dtype, batch=batch, m=rows, n=columns, k=inner)
    return None


def _made(kind: str, dtype: str, **sizes: int) -> Op | None:
    try:
        return make_op({"op": kind, "dtype": dtype, **sizes})
    except InputError:
        return None


def _collective(activity: GpuActivity, operators: Sequence[Operator]) -> Collective:
    """The collective that a kernel belongs to, as far as the trace says it."""
    known: dict[str, Any] = {}
    for given in (activity.arguments, *(one.arguments for one in operators)):
        for key in ("Collective name", "In msg nelems", "Out msg nelems", "dtype", "Group size"):
            if key in given:
                known.setdefault(key, given[key])
    plain = re.sub(r"[^a-z]", "", f"{known.get('Collective name', '')} {activity.name}".lower())
    name = next((found for part, found in _COLLECTIVES.items() if part in plain), "")
    ranks = known.get("Group size", 0)
    ranks = ranks if type(ranks) is int and 0 < ranks <= 1 << 24 else 0
    size = _TYPES.get(str(known.get("dtype", "")).lower(), ("", 0))[1]
    counts = [known.get(key, 0) for key in ("In msg nelems", "Out msg nelems")]
    elements = max((one for one in counts if type(one) is int and 0 < one < _LARGEST), default=0)
    nbytes = float(elements * size) or _payload(operators)
    return Collective(name, nbytes, ranks)


def _payload(operators: Sequence[Operator]) -> float:
    """Payload of a collective by the shapes of the operation that called it [B]; 0 if they are unknown."""
    for operator in operators:
        if not operator.name.startswith(("c10d::", "nccl:")):
            continue
        shapes = [one for one in _shapes(operator) if one]
        kinds = operator.arguments.get("Input type")
        sizes = [
            _TYPES[str(one).lower()][1]
            for one in (kinds if isinstance(kinds, list) else ())
            if str(one).lower() in _TYPES
        ]
        if shapes and sizes:
            return float(math.prod(shapes[0]) * sizes[0])
    return 0.0
