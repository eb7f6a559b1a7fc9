"""A training step as traced: what it computes, as a function of the batch.

Every amount that a trace records (elements of a tensor, arithmetic of an operation, a dimension
of a matrix product) is affine in the batch: a part that is always there (weights) and a part a
sample (activations). `simperf.workload.model.TracedModel.at` puts in a batch and a precision and gives operations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from simperf.errors import InputError, Problem
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.op import ALIGNED, Gemm
from simperf.workload.optimizers import IMPLEMENTATIONS, OptimizerSteps, implemented, optimizer_steps

__all__ = ["Affine", "GradientOrder", "InputShape", "Operand", "ParameterTensor", "Storage", "TracedOp", "TracedStep"]

#: role of a storage
ROLES = ("value", "parameter", "buffer", "input")
NEVER = -1


class Affine(NamedTuple):
    """An amount that grows with the batch: ``constant + slope * batch``.

    Examples
    --------
    >>> Affine(10, 3).at(4)
    22
    """

    constant: float
    slope: float

    def at(self, batch: float) -> float:
        """Amount at a batch."""
        return self.constant + self.slope * batch


class Operand(NamedTuple):
    """A tensor as one operation reads or writes it.

    Parameters
    ----------
    tensor : int
        Index into `TracedModel.tensors`.
    elements : Affine
        How many different elements are touched; fewer than the tensor has if it is a slice.
    passes : int
        How often the kernel goes over them: two where a statistic is needed before the result.
    """

    tensor: int
    elements: Affine
    passes: int = 1


class Storage(NamedTuple):
    """A piece of device memory.

    Parameters
    ----------
    elements : Affine
        Its length.
    width : int
        bytes an element where the precision has no say, as for an index [B]; 0 where it has
    role : str
        ``"value"`` (made by an operation), ``"parameter"``, ``"buffer"`` or ``"input"``.
    born, dies : int
        It is there while the operations ``born`` to ``dies - 1`` run; `dies` -1 means to the end.
    name : str
        Name of a parameter, buffer or input; else empty.
    """

    elements: Affine
    width: int = 0
    role: str = "value"
    born: int = 0
    dies: int = NEVER
    name: str = ""


@dataclass(frozen=True, slots=True)
class ParameterTensor:
    """A weight: its name in the module, its shape and its storage."""

    name: str
    shape: tuple[int, ...]
    storage: int

    @property
    def elements(self) -> int:
        """Number of weights."""
        count = 1
        for size in self.shape:
            count *= size
        return count


class InputShape(NamedTuple):
    """One input of the model: shape of one sample (the batch is in front of it) and its type in torch."""

    shape: tuple[int, ...]
    dtype: str


class GradientOrder(NamedTuple):
    """A gradient that is final: which parameter's, in which tensor, and the last operation launched until then."""

    parameter: int
    tensor: int
    after: int


class TracedOp(NamedTuple):
    """One kernel of a traced step.

    Parameters
    ----------
    name, kind, family : str
        As in `simperf.workload.Op`.
    flops : Affine
        arithmetic work [FLOP]
    reads, writes : tuple of Operand
        What it touches.
    gemm : tuple of Affine
        batch, m, n and k of the matrix product inside; empty if there is none.
    """

    name: str
    kind: str
    family: str
    flops: Affine
    reads: tuple[Operand, ...]
    writes: tuple[Operand, ...]
    gemm: tuple[Affine, ...] = ()

    def product(self, batch: int) -> Gemm | None:
        """The matrix product at a batch."""
        if not self.gemm:
            return None
        b, m, n, k = (max(1, round(size.at(batch))) for size in self.gemm)
        return Gemm(b, m, n, k)

    def alignment(self, size: float) -> int:
        """Bytes of which the rows of its matrices are a multiple, 16 at most [B].

        A row is as long as m, n or k, where that does not grow with the batch and is not 1 (vectors have kernels of
        their own). Convolutions are taken as aligned.

        Parameters
        ----------
        size : float
            Of an element [B].

        Examples
        --------
        >>> head = [Affine(value, slope) for value, slope in ((1, 0), (0, 1024), (50257, 0), (768, 0))]
        >>> op = TracedOp("head", "linear", "gemm", Affine(0, 0), (), (), tuple(head))
        >>> op.alignment(2), op.alignment(4)
        (2, 4)
        """
        rows = [int(each.constant) for each in self.gemm[1:] if not each.slope and each.constant > 1]
        return math.gcd(ALIGNED, *(int(row * size) for row in rows)) if self.family == "gemm" else ALIGNED

    def macs(self, batch: int) -> float:
        """Multiply-adds of its matrix product."""
        if self.family == "attention":
            return self.flops.at(batch) / 2
        gemm = self.product(batch)
        return float(gemm.batch * gemm.m * gemm.n * gemm.k) if gemm else 0.0


@dataclass(frozen=True, slots=True)
class TracedStep:
    """One training step of a model, for any batch and precision.

    Parameters
    ----------
    name, title, source : str
        What it is called and where its definition comes from.
    sample : str
        What one sample is, such as ``"image"``.
    inputs : tuple of InputShape
        What a step reads, targets of the loss included.
    parameters : tuple of ParameterTensor
        In the order of the module.
    storages, tensors : tuple
        Memory, and for every version of a tensor the storage it lies in.
    ops : tuple of TracedOp
        In the order in which eager execution runs them: the first `forward` are the forward pass
        and the loss, the others the backward pass.
    gradients : tuple of GradientOrder
        In the order in which the backward pass makes them ready.
    optimizer : OptimizerSteps
        The update that was traced.
    traced : mapping of str to str
        Versions and batches of the trace.
    notes : tuple of str
        What the trace could not know, in words.
    kernels : LayerKernels or None
        What a model by its dimensions was made with; None for a trace.
    """

    name: str
    title: str
    source: str
    sample: str
    inputs: tuple[InputShape, ...]
    parameters: tuple[ParameterTensor, ...]
    storages: tuple[Storage, ...]
    tensors: tuple[int, ...]
    ops: tuple[TracedOp, ...]
    forward: int
    gradients: tuple[GradientOrder, ...]
    optimizer: OptimizerSteps
    traced: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    kernels: LayerKernels | None = None

    @property
    def parameter_count(self) -> int:
        """Number of weights, shared ones counted once."""
        return sum(parameter.elements for parameter in self.parameters)

    def macs(self, batch: int = 1) -> float:
        """Multiply-adds of matrix products and convolutions, forward."""
        check_batch(batch)
        return sum(op.macs(batch) for op in self.ops[: self.forward])

    def flops(self, batch: int = 1) -> float:
        """Arithmetic of forward and backward pass [FLOP]."""
        check_batch(batch)
        return sum(op.flops.at(batch) for op in self.ops)

    def update(self, optimizer: str = "") -> OptimizerSteps:
        """The kernels of the update: the traced optimizer's, those of another by name, or an implementation of it."""
        if optimizer in IMPLEMENTATIONS:
            return implemented(self.optimizer.name, optimizer)
        if not optimizer or optimizer == self.optimizer.name:
            return self.optimizer
        return optimizer_steps(optimizer)


def check_batch(batch: int) -> None:
    """Refuse a batch that is not a whole number of samples, 1 or more."""
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
        raise InputError(Problem("must be a whole number, 1 or more", key="batch", value=repr(batch)))
