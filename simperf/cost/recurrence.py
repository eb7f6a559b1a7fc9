"""Recurrences: products with a state, one step after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from simperf.cost.seams import OpCost, regime_of
from simperf.workload.op import Gemm, Op
from simperf.workload.precision import element_size

__all__ = ["is_recurrence", "recurrence_cost"]

#: kinds of an LSTM's products with its state: as many steps as their batch says
_KINDS = ("lstm_steps", "lstm_steps_backward")


def is_recurrence(op: Op) -> bool:
    """Whether the batch of `op`'s product are steps that wait for each other."""
    return op.kind in _KINDS and op.gemm is not None and op.gemm.batch > 1


def recurrence_cost(op: Op, cost: Callable[[Op], OpCost], overhead: float) -> OpCost:
    """Cost of a recurrence: a product and a kernel over the gates for each step, none of which can overlap.

    A step reads the weights again (J. Appleyard and others, "Optimizing Performance of Recurrent Neural Networks on
    GPUs", 2016).

    Parameters
    ----------
    op : Op
        One for which `is_recurrence`.
    cost : callable
        Cost of one product.
    overhead : float
        fixed time of the kernel over the gates [s]
    """
    assert op.gemm is not None
    steps, weights = op.gemm.batch, op.gemm.n * op.gemm.k * element_size(op.dtype)
    one = replace(
        op,
        kind="matmul",
        flops=op.flops / steps,
        nbytes_read=op.nbytes_read / steps + weights * (1.0 - 1.0 / steps),
        nbytes_written=op.nbytes_written / steps,
        gemm=Gemm(1, op.gemm.m, op.gemm.n, op.gemm.k),
    )
    found = cost(one)
    return OpCost(
        time=steps * (found.time + overhead),
        compute_time=steps * found.compute_time,
        memory_time=steps * found.memory_time,
        overhead=steps * (found.overhead + overhead),
        regime=regime_of(found.compute_time, found.memory_time, found.overhead + overhead),
        flops=op.flops,
        nbytes=steps * one.nbytes,
        demand=found.demand,
    )
