"""Timing loops: what a short loop over one operation leaves in the L2 between two uses of its operands."""

from __future__ import annotations

from dataclasses import replace

from simperf.errors import InputError, Problem
from simperf.workload.op import Op
from simperf.workload.precision import element_size

__all__ = ["timing_loop"]


def timing_loop(op: Op, copies: int) -> Op:
    """The operation as a short loop times it, which goes round `copies` of what each call has of its own.

    A product has weights of its own for each copy and reads the same activations; any other operation has all of its
    operands in each copy. Between two uses of the same weights the loop touches those of all copies.

    Parameters
    ----------
    op : Op
    copies : int
        1 for a loop over one call.

    Raises
    ------
    InputError
        Fewer than one copy.

    Examples
    --------
    >>> from simperf.workload.kinds import matmul
    >>> timing_loop(matmul(16, 1000, k=1000, dtype="bf16"), 5).reuse
    10064000.0
    """
    if isinstance(copies, bool) or not isinstance(copies, int) or copies < 1:
        raise InputError(Problem("must be a whole number, 1 or more", key="copies", value=repr(copies)))
    own = op.nbytes
    if op.gemm is not None and op.gemm.batch == 1 and op.family == "gemm":
        own = float(element_size(op.dtype) * op.gemm.k * op.gemm.n)
    return replace(op, reuse=max(1.0, op.nbytes + (copies - 1) * own))
