"""Published kernel times: which GPU of the catalogue each table is of, and what its columns mean.

A case is a table of measured operations with the GPU that ran them, as collected from public repositories (NeuSight,
ASPLOS 2025; LLMCompass, ISCA 2024; Azure's benchmarking guide).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from simperf.errors import InputError, Problem
from simperf.workload import Op
from simperf.workload.kinds import binary, bmm, layernorm, linear, matmul, softmax, unary

__all__ = [
    "GPUS",
    "HARNESS",
    "MeasuredOp",
    "added_time",
    "by_operation",
    "kernel_cases",
    "kernel_reader",
    "measured_ops",
    "positive",
]

#: an operation's label, the operation, and its time [s]
MeasuredOp = tuple[str, Op, float]

#: Time that a measuring program adds to each row [s], by the repository that the case comes from and, where
#: its programs differ, the operation: they time a launch together with its kernel. NeuSight: what the elementwise
#: tables of P100, V100 and A100 leave at size zero (18, 19 and 16 us, intercept of a line). LLMCompass: wall clock
#: around a synchronisation, so the times that its smallest sizes share (29.6, 52 and 48 us) less a kernel's floor.
HARNESS: Mapping[str, float] = {
    "sitar-lab/NeuSight": 16e-6,
    "PrincetonUniversity/LLMCompass:matmul": 28e-6,
    "PrincetonUniversity/LLMCompass:layernorm": 50e-6,
    "PrincetonUniversity/LLMCompass:gelu": 46e-6,
}

#: GPU of a case -> name in the catalog
GPUS: Mapping[str, str] = {
    "P100-PCIE": "p100-pcie-16gb",
    "V100-PCIe-32GB": "v100-pcie-32gb",
    "T4": "t4",
    "A100-PCIE-40GB": "a100-pcie-40gb",
    "A100-PCIE-80GB": "a100-pcie-80gb",
    "A100-SXM4-80GB": "a100-sxm4-80gb",
    "L4": "l4",
    "H100-SXM5-80GB": "h100-sxm5-80gb",
}


def measured_ops(case: Mapping[str, Any], gpu: str = "") -> list[MeasuredOp]:
    """Label, operation and time [s] of each row of a measured case; empty if its table is of no known form.

    Raises
    ------
    InputError
        A size, a time or a rate that is no finite number above 0.
    """
    reader = kernel_reader(case)
    found = [] if reader is None else reader(case, gpu)
    for label, _, time in found:
        positive(time, label)
    return found


def positive(value: Any, row: str) -> float:
    """A size, a time or a rate of a table.

    Parameters
    ----------
    value : object
        As it was read.
    row : str
        Its row, in words.

    Raises
    ------
    InputError
        It is no finite number above 0.

    Examples
    --------
    >>> positive(0.25, "add 16x16")
    0.25
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0.0 < value < math.inf:  # False of NaN
        expected = "a finite number above 0"
        raise InputError(Problem(f"row {row} of its table", key="measured.table", value=str(value), expected=expected))
    return float(value)


def kernel_cases(cases: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], str, list[MeasuredOp]]]:
    """Case, GPU and rows of every roofline case whose GPU is in the catalogue."""
    for case in cases:
        if case.get("kind") != "roofline":
            continue
        gpus = case["hardware"]["gpu"]
        for gpu in [gpus] if isinstance(gpus, str) else gpus:
            rows = measured_ops(case, gpu) if gpu in GPUS else []
            if rows:
                yield case, gpu, rows


def by_operation(rows: Sequence[MeasuredOp]) -> dict[str, list[MeasuredOp]]:
    """Rows by operation; matrix products together."""
    found: dict[str, list[MeasuredOp]] = {}
    for row in rows:
        found.setdefault("product" if row[1].gemm is not None else row[1].kind, []).append(row)
    return found


def added_time(case: Mapping[str, Any], op: Op) -> float:
    """Time that the measuring program adds [s]."""
    repo = str(case.get("source", {}).get("repo", ""))
    return HARNESS.get(f"{repo}:{op.kind}", HARNESS.get(repo, 0.0))


def kernel_reader(case: Mapping[str, Any]) -> Callable[[Mapping[str, Any], str], list[MeasuredOp]] | None:
    """The function that reads a case's table; None if its columns, or the operation that they time, are not known."""
    columns = tuple(case["measured"].get("columns") or ())
    reader = next((read for known, read in _READERS.items() if columns[: len(known)] == known), None)
    return None if reader is _half_rowwise and not _rowwise(case) else reader


def _rowwise(case: Mapping[str, Any]) -> str:
    """Which operation on rows a case names; empty if none or several."""
    named = [name for name in _ROWWISE if name in str(case["workload"].get("op", "")).split()]
    return named[0] if len(named) == 1 else ""


def _rows(case: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
    rows: Sequence[Sequence[Any]] = case["measured"]["table"]
    for number, row in enumerate(rows, 1):
        for value in row:
            if not isinstance(value, str):
                positive(value, str(number))
    return rows


def _elementwise(case: Mapping[str, Any], gpu: str) -> list[MeasuredOp]:
    """Rows op, B, H, latency [ms] in fp32: add, unary functions, softmax, layernorm."""
    found: list[MeasuredOp] = []
    for name, rows, columns, latency, *_ in _rows(case):
        if name in _ROWWISE:
            op = _ROWWISE[name](rows, columns)
        elif name == "add":
            op = binary("add", rows * columns)
        else:
            op = unary(name, rows * columns)
        found.append((f"{name} {rows}x{columns}", op, latency * 1e-3))
    return found


def _products(case: Mapping[str, Any], gpu: str) -> list[MeasuredOp]:
    """Rows B, M, N, K, then latency [ms], or one column of latencies a GPU; fp32.

    NeuSight multiplies (B, M, N) by (B, N, K) (`profile_kernel` in its neusight/Dataset/collect.py): its N is what the
    sum runs over, its K the width of the result, as the grids say that its tables record beside the times.
    """
    columns = list(case["measured"]["columns"])
    at = columns.index(gpu) if gpu in columns else 4
    batched = "bmm" in str(case["workload"].get("op", ""))
    found: list[MeasuredOp] = []
    for row in _rows(case):
        b, m, k, n = row[:4]
        op = bmm(b, m, n=n, k=k) if batched else linear(b * m, k, fan_out=n)
        found.append((f"{op.kind} {b}x{m}x{n}, k={k}", op, row[at] * 1e-3))
    return found


def _half_products(case: Mapping[str, Any], gpu: str) -> list[MeasuredOp]:
    """Rows M, K, N, latency [ms] in fp16."""
    return [
        (f"matmul {m}x{n}x{k}", matmul(m, n, k=k, dtype="fp16"), latency * 1e-3) for m, k, n, latency, *_ in _rows(case)
    ]


def _half_rowwise(case: Mapping[str, Any], gpu: str) -> list[MeasuredOp]:
    """Rows M, N, throughput [1e9 elements/s] in fp16, of the operation that the case names."""
    name = _rowwise(case)
    return [
        (f"{name} {int(m)}x{int(n)}", _ROWWISE[name](int(m), int(n), dtype="fp16"), m * n / rate * 1e-9)
        for m, n, rate in _rows(case)
    ]


def _half_gelu(case: Mapping[str, Any], gpu: str) -> list[MeasuredOp]:
    """Rows M, throughput [1e9 elements/s] in fp16."""
    return [(f"gelu {int(m)}", unary("gelu", int(m), dtype="fp16"), m / rate * 1e-9) for m, rate in _rows(case)]


def _rates(case: Mapping[str, Any], gpu: str) -> list[MeasuredOp]:
    """Rows m, n, k, rate [TFLOP/s] in the precision that the case names."""
    dtype = str(case["workload"].get("gemm_dtype", "FP16")).lower()
    return [
        (f"matmul {m}x{n}x{k} {dtype}", matmul(m, n, k=k, dtype=dtype), 2.0 * m * n * k / rate * 1e-12)
        for m, n, k, rate in _rows(case)
    ]


#: operations that read each row of a matrix more than once, by the names that tables give them
_ROWWISE: Mapping[str, Callable[..., Op]] = {"softmax": softmax, "layernorm": layernorm}

_READERS: Mapping[tuple[str, ...], Callable[[Mapping[str, Any], str], list[MeasuredOp]]] = {
    ("op", "B", "H", "latency_ms"): _elementwise,
    ("B", "M", "N", "K"): _products,
    ("M", "K", "N", "latency_ms"): _half_products,
    ("M", "N", "Gelem_s"): _half_rowwise,
    ("M", "Gelem_s"): _half_gelu,
    ("m", "n", "k", "tflops"): _rates,
}
