"""One training step of a model at a batch and a precision, as operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from simperf.workload.graph import OpGraph
from simperf.workload.lowering import Lowered, lower
from simperf.workload.mixed import TrainingPrecision, training_precision
from simperf.workload.op import Op
from simperf.workload.optimizers import OptimizerSteps
from simperf.workload.precision import PRECISIONS
from simperf.workload.traced import TracedStep

__all__ = ["GradientReady", "TrainingStep", "training_step"]


@dataclass(frozen=True, slots=True)
class GradientReady:
    """A gradient as the backward pass makes it.

    Parameters
    ----------
    name : str
        Parameter.
    elements : int
        Its weights.
    nbytes : float
        size of the gradient [B]
    after : int
        Index into `TrainingStep.backward` of the operation after which it is final.
    tensor : str
        Tensor that holds it.
    """

    name: str
    elements: int
    nbytes: float
    after: int
    tensor: str


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """Operations of one step, in the order in which eager execution launches them.

    Parameters
    ----------
    model, precision, optimizer : str
        Which.
    batch : int
        Samples.
    forward, backward, update : tuple of Op
        Forward pass with the loss, backward pass, optimizer.
    gradients : tuple of GradientReady
        In the order in which they become ready.
    inputs : tuple of str
        Tensors that are there before: data, weights, buffers.
    input_nbytes : float
        what must come to the device for one step [B]
    parameter_nbytes : float
        weights as the forward pass holds them, what a broadcast of the model moves [B]
    """

    model: str
    precision: str
    optimizer: str
    batch: int
    forward: tuple[Op, ...]
    backward: tuple[Op, ...]
    update: tuple[Op, ...]
    gradients: tuple[GradientReady, ...]
    inputs: tuple[str, ...]
    input_nbytes: float
    parameter_nbytes: float

    @property
    def ops(self) -> tuple[Op, ...]:
        """All operations, in program order."""
        return self.forward + self.backward + self.update

    @property
    def flops(self) -> float:
        """Arithmetic of the whole step [FLOP]."""
        return sum(op.flops for op in self.ops)

    @property
    def gradient_nbytes(self) -> float:
        """All gradients together, what data parallelism must add up [B]."""
        return sum(gradient.nbytes for gradient in self.gradients)

    def graph(self) -> OpGraph:
        """All operations as a graph of dependencies."""
        return OpGraph(self.ops, self.inputs)


def training_step(model: TracedStep, batch: int, *, precision: str = "fp32", optimizer: str = "") -> TrainingStep:
    """Operations of one step of `model`; `TracedModel.at` keeps them."""
    mode = training_precision(precision)
    steps = model.update(optimizer)
    lowered = lower(model, batch, mode)
    split = lowered.forward
    gradients = tuple(
        GradientReady(
            name=model.parameters[index].name,
            elements=model.parameters[index].elements,
            nbytes=nbytes,
            after=max(0, after - split),
            tensor=tensor,
        )
        for index, tensor, nbytes, after in lowered.gradients
    )
    made = {tensor for op in lowered.ops for tensor in op.outputs}
    read = dict.fromkeys(tensor for op in lowered.ops for tensor in op.inputs if tensor not in made)
    data = [storage for storage in model.storages if storage.role == "input"]
    half = "fp32" if mode.autocast else mode.weights
    return TrainingStep(
        model=model.name,
        precision=precision,
        optimizer=steps.name,
        batch=batch,
        forward=tuple(lowered.ops[:split]),
        backward=tuple(lowered.ops[split:]),
        update=tuple(_update(model, lowered, steps, mode)),
        gradients=gradients,
        inputs=tuple(read),
        input_nbytes=float(sum(s.elements.at(batch) * (s.width or PRECISIONS[half]) for s in data)),
        parameter_nbytes=float(model.parameter_count * PRECISIONS[mode.weights]),
    )


def _update(model: TracedStep, lowered: Lowered, steps: OptimizerSteps, mode: TrainingPrecision) -> Iterator[Op]:
    """Kernels over all parameters that have a gradient, and for each of them where the optimizer is looped."""
    count = float(sum(model.parameters[index].elements for index, *_ in lowered.gradients))
    if not count:
        return
    work, narrow = PRECISIONS[mode.states], PRECISIONS[mode.weights]
    before: list[_Kernel] = []
    if mode.scaled:  # check for infinities and divide by the loss scale, in place
        before.append(_Kernel("unscale", 2.0, narrow, narrow))
    if mode.master:
        before.append(_Kernel("cast", 0.0, narrow, work))
    after = [_Kernel("cast", 0.0, work, narrow)] if mode.master else []
    own = [_Kernel(k.kind, k.flops, k.reads * work, k.writes * work) for k in steps.kernels]
    together = before if steps.looped else [*before, *own, *after]
    gradients = tuple(dict.fromkeys(tensor for _, tensor, _, _ in lowered.gradients))
    ops = _chained("update", together, count, mode.states, waits=gradients)
    yield from ops
    if not steps.looped:
        return
    made = []
    for index, tensor, *_ in lowered.gradients:
        parameter = model.parameters[index]
        kernels = [one for one, k in zip(own, steps.kernels, strict=True) if len(parameter.shape) > 1 or not k.matrices]
        waits = (ops[-1].name,) if ops else (tensor,)
        looped = _chained(
            f"update.{parameter.name}", kernels, float(parameter.elements), mode.states, waits=waits, first=len(before)
        )
        yield from looped
        made += [one.name for one in looped[-1:]]
    yield from _chained("update", after, count, mode.states, waits=tuple(made), first=len(before) + len(own))


class _Kernel(NamedTuple):
    """A kernel of an update: FLOP and bytes [B] for each parameter; without bytes, it works on one number."""

    kind: str
    flops: float
    read: float
    written: float


def _chained(
    name: str, kernels: Sequence[_Kernel], count: float, dtype: str, *, waits: tuple[str, ...], first: int = 0
) -> list[Op]:
    """Kernels over so many parameters as operations, each of which reads what the one before it made."""
    ops: list[Op] = []
    for index, one in enumerate(kernels, first):
        arrays = one.read > 0.0 or one.written > 0.0
        size, number = (count if arrays else 1.0), float(PRECISIONS[dtype])
        read, written = (one.read, one.written) if arrays else (number, number)
        made = f"{name}.{index}.{one.kind}"
        ops.append(
            Op(
                name=made,
                kind=one.kind,
                flops=one.flops * size,
                nbytes_read=read * size,
                nbytes_written=written * size,
                dtype=dtype,
                family="optimizer",
                inputs=waits,
                outputs=(made,),
                holds=0.0,
                elements=size,
            )
        )
        waits = (made,)
    return ops
