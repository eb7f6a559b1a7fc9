"""One operation: what it computes, moves, reads and makes. It knows no device and no time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from simperf.errors import InputError, Problem
from simperf.workload.precision import element_size

__all__ = ["ALIGNED", "FAMILIES", "MATRIX_FAMILIES", "AttentionShape", "ExpertShape", "Gemm", "Op"]

#: kernel families; a device has one efficiency for each
FAMILIES = ("gemm", "conv", "elementwise", "reduction", "normalization", "attention", "copy", "optimizer")
#: families that run on matrix units (tensor cores) where the precision has them
MATRIX_FAMILIES = frozenset({"gemm", "conv", "attention"})
#: bytes of which rows of matrices are a multiple that any kernel of matrix units loads [B]
ALIGNED = 16


@dataclass(frozen=True, slots=True)
class Gemm:
    """The matrix product inside an operation: `batch` products of (m x k) by (k x n).

    The cost model cuts it into tiles; a convolution has one too (implicit GEMM).
    """

    batch: int
    m: int
    n: int
    k: int


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """The shape of scaled dot-product attention.

    Parameters
    ----------
    batch, heads, kv_heads : int
        Sequences, their query heads, and heads of keys and values, which divide the query heads.
    queries, keys : int
        Of one sequence; the last query sees the last key.
    head_dim, value_dim : int
        Widths of a head's queries and keys, and of its values.
    causal : bool
        Whether a query sees no key behind it.
    window : int
        Keys that a query sees at most; 0 for all.
    flash : bool
        Whether the scores stay on chip.
    latent : int
        Width of a token in the cache where all heads share one vector (multi-head latent attention); 0 where each head
        has keys and values of its own.
    """

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    head_dim: int
    value_dim: int
    causal: bool = False
    window: int = 0
    flash: bool = True
    latent: int = 0


@dataclass(frozen=True, slots=True)
class ExpertShape:
    """The experts of one layer on one rank.

    Parameters
    ----------
    tokens : int
        Of the whole group that shares the experts.
    experts : int
        Of the whole layer.
    hidden, intermediate : int
        Width of a token, and of an expert on this rank.
    gated : bool
        Whether the first product has a gate beside it: three matrices an expert in place of two.
    precision : str
        One of `simperf.workload.expert_loads.EXPERT_PRECISIONS`.
    rows : tuple of (int, int)
        Rows of an expert on this rank, and how many of its experts get so many; experts without rows are left out.

    Examples
    --------
    >>> shape = ExpertShape(64, 8, 4096, 1024, True, "bf16", ((10, 1), (6, 3)))
    >>> shape.total, shape.active, shape.weights == 4 * 3 * 4096 * 1024
    (28, 4, True)
    """

    tokens: int
    experts: int
    hidden: int
    intermediate: int
    gated: bool
    precision: str
    rows: tuple[tuple[int, int], ...]

    @property
    def total(self) -> int:
        """Rows of all experts of the rank."""
        return sum(rows * count for rows, count in self.rows)

    @property
    def active(self) -> int:
        """Experts of the rank that get any row."""
        return sum(count for _, count in self.rows)

    @property
    def weights(self) -> int:
        """Elements of the active experts' matrices."""
        return self.active * (3 if self.gated else 2) * self.hidden * self.intermediate


@dataclass(frozen=True, slots=True)
class Op:
    """One operation of a program.

    Parameters
    ----------
    name : str
        Name in the program, unique within a graph.
    kind : str
        Operation type, a name in `OP_KINDS`, or ``"fused"``.
    flops : float
        arithmetic work, a multiply-add counting 2 [FLOP]
    nbytes_read, nbytes_written : float
        compulsory traffic to device memory: each operand once [B]
    dtype : str
        Precision of the arithmetic.
    family : str
        Kernel family, one of `FAMILIES`.
    inputs, outputs : tuple of str
        Tensors read and made. They link producers to consumers; empty means independent.
    holds : float
        device memory that the outputs keep [B]; negative (the default) means `nbytes_written`
    elements : float
        Independent results, which bound the parallelism; 0 if unknown.
    gemm : Gemm or None
        The matrix product inside, if there is one.
    since : float
        What was touched since an operation of its kind ran last, where that is known of a CPU [B].
    attention : AttentionShape or None
        The shape of an attention; None for any other operation, and for one that was traced.
    reuse : float
        What is touched between two uses of the same operands [B]. Infinite in a program's run, where operands come from
        memory and the clock is what the board sustains; finite in a short loop that times one operation, whose operands
        may stay in the L2 (`simperf.workload.loops.timing_loop`).
    experts : ExpertShape or None
        The experts of a mixture inside, if there are any.
    library : str
        Library whose kernel it is, where a device has constants of several
        (`simperf.workload.layer_kernels.ATTENTION_LIBRARIES`), or what chooses one; empty for that of the device's
        architecture.
    row : float
        Elements of a row that each result depends on (softmax, normalisation); 0 if there are none or they are unknown.
    window : int
        Side of a convolution's square window that moves by one pixel; 0 for any other, and where it is unknown.
    converted : float
        traffic of images that matrix units need in another order of their dimensions, before and after a convolution;
        0 where they lie as they are read [B]
    alignment : int
        Bytes of which the rows of a product's matrices are a multiple, 16 at most: what is less is loaded by slower
        kernels [B].
    turns : int
        Products of this shape that a program launches on several streams in turn, this one among them: the tiles of the
        next one fill the last wave of this one.

    Raises
    ------
    InputError
        A negative or non-finite amount, or an unknown family.

    Examples
    --------
    >>> op = Op("y", "cos", flops=8e6, nbytes_read=4e6, nbytes_written=4e6)
    >>> op.nbytes, op.intensity, op.holds
    (8000000.0, 1.0, 4000000.0)
    """

    name: str
    kind: str = "custom"
    flops: float = 0.0
    nbytes_read: float = 0.0
    nbytes_written: float = 0.0
    dtype: str = "fp32"
    family: str = "elementwise"
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    holds: float = -1.0
    elements: float = 0.0
    gemm: Gemm | None = None
    row: float = 0.0
    since: float = 0.0
    attention: AttentionShape | None = None
    reuse: float = math.inf
    experts: ExpertShape | None = None
    library: str = ""
    window: int = 0
    converted: float = 0.0
    alignment: int = ALIGNED
    turns: int = 1

    def __post_init__(self) -> None:
        element_size(self.dtype)
        problems = []
        for key in ("flops", "nbytes_read", "nbytes_written", "elements", "row", "since", "window", "converted"):
            value = getattr(self, key)
            if not (math.isfinite(value) and value >= 0):
                problems.append(Problem("must be a finite number, zero or more", key=key, value=repr(value)))
        if not self.reuse > 0:
            problems.append(Problem("must be above 0", key="reuse", value=repr(self.reuse)))
        if not math.isfinite(self.holds):
            problems.append(Problem("must be a finite number", key="holds", value=repr(self.holds)))
        if self.alignment < 1:
            problems.append(Problem("must be 1 or more", key="alignment", value=repr(self.alignment)))
        if self.family not in FAMILIES:
            problems.append(Problem(f"no kernel family {self.family!r}", key="family", expected=", ".join(FAMILIES)))
        if problems:
            raise InputError(problems)
        if self.holds < 0:
            object.__setattr__(self, "holds", self.nbytes_written)

    @property
    def nbytes(self) -> float:
        """Traffic to and from device memory [B]."""
        return self.nbytes_read + self.nbytes_written

    @property
    def intensity(self) -> float:
        """Arithmetic intensity [FLOP/B]; infinite if nothing is moved."""
        return self.flops / self.nbytes if self.nbytes else math.inf

    def named(self, name: str, inputs: Sequence[str] = (), *, outputs: Sequence[str] = ()) -> Op:
        """Return the same work under `name`, wired to these tensors.

        Without `outputs`, the one output tensor bears the name of the operation.
        """
        return replace(self, name=name, inputs=tuple(inputs), outputs=tuple(outputs) or (name,))
