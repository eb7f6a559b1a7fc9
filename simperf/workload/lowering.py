"""From a traced model to operations with bytes: a batch is put in, and every tensor gets a format."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from simperf.errors import InputError, Problem
from simperf.memory import Tensor, TensorKind
from simperf.workload.mixed import WIDE_KINDS, TrainingPrecision
from simperf.workload.op import MATRIX_FAMILIES, Op
from simperf.workload.precision import PRECISIONS, element_size
from simperf.workload.traced import NEVER, Operand, TracedOp, TracedStep

__all__ = ["Lowered", "lower", "unit_window", "weights_of"]


#: channels on either side below which a library multiplies images as they are (the first layer)
_FEWEST_CHANNELS = 16


@dataclass(slots=True)
class Lowered:
    """Operations of forward and backward pass in one precision.

    Parameters
    ----------
    ops : list of Op
    forward : int
        How many of them are the forward pass.
    tensors : list of Tensor
        Memory other than weights and buffers, in indices of `ops`.
    gradients : list of (int, str, float, int)
        Parameter, tensor, bytes and operation after which it is final, in order.
    """

    ops: list[Op] = field(default_factory=list)
    forward: int = 0
    tensors: list[Tensor] = field(default_factory=list)
    gradients: list[tuple[int, str, float, int]] = field(default_factory=list)


@dataclass(slots=True)
class _Copy:
    """A tensor in another format: size [B], the operation that makes it, the last one that reads it if any does."""

    nbytes: float
    made: int
    gradient: bool = False
    used: int | None = None


def lower(model: TracedStep, batch: int, precision: TrainingPrecision) -> Lowered:
    """Put a batch and a precision into a traced model."""
    return _Lowering(model, batch, precision).run()


class _Lowering:
    def __init__(self, model: TracedStep, batch: int, precision: TrainingPrecision) -> None:
        self.model, self.batch, self.mode = model, batch, precision
        self.out = Lowered()
        self.library = model.kernels.library if model.kernels is not None else ""
        self.converts = model.kernels is not None and model.kernels.memory_format == "contiguous"
        if self.converts and precision.matrix == "fp32":
            message = "convolutions in fp32 do not run on matrix units: they read images as they are"
            raise InputError(Problem(message, key="memory_format", value="contiguous", expected="another precision"))
        # in tf32 a library has kernels in fp32, too, that read images as they lie: it takes the faster ones
        self.chooses = self.converts and precision.matrix == "tf32"
        self.weights = weights_of(model)
        self.formats: dict[int, str] = {}  # storage -> precision
        self.casts: dict[tuple[int, str], tuple[str, _Copy]] = {}  # tensor, format -> name, memory
        self.replaced: dict[int, int] = {}  # storage that only its cast is read of later -> last own use
        self.last_use: dict[int, int] = {}  # storage -> operation
        self.copies: list[_Copy] = []
        self.names: dict[int, str] = {}
        self.position: list[int] = []  # traced operation -> index of its own in ops
        self.finals: dict[int, tuple[str, float, int]] = {}  # gradient tensor -> name, bytes, after
        self.wanted = {g.tensor: model.parameters[g.parameter].storage for g in model.gradients}
        for index, storage in enumerate(model.storages):
            if storage.role != "value":
                half = not precision.autocast and storage.role != "buffer"
                self.formats[index] = precision.weights if half else "fp32"
        self.seen: set[int] = set()

    def run(self) -> Lowered:
        for index, op in enumerate(self.model.ops):
            if index == self.model.forward:
                self.out.forward = len(self.out.ops)
            self._op(op)
        if len(self.model.ops) == self.model.forward:
            self.out.forward = len(self.out.ops)
        after = 0
        for order in self.model.gradients:
            if order.tensor not in self.finals:  # the gradient is a tensor that no kernel makes
                storage = self.model.tensors[order.tensor]
                elements = self.model.storages[storage].elements.at(self.batch)
                nbytes = elements * PRECISIONS[self.formats[self.wanted[order.tensor]]]
                self.finals[order.tensor] = (self._name(order.tensor), nbytes, self.position[order.after])
            name, nbytes, made = self.finals[order.tensor]
            # autograd hands a gradient over once the kernels of its node are launched, one after the other
            after = max(after, made, self.position[order.after])
            self.out.gradients.append((order.parameter, name, nbytes, after))
        self._spans()
        return self.out

    def _name(self, tensor: int) -> str:
        name = self.names.get(tensor)
        if name is None:
            storage = self.model.storages[self.model.tensors[tensor]]
            first = storage.role != "value" and tensor not in self.seen
            name = self.names[tensor] = storage.name if first else f"t{tensor}"
        return name

    def _width(self, tensor: int) -> float:
        storage = self.model.tensors[tensor]
        return self.model.storages[storage].width or PRECISIONS[self.formats[storage]]

    def _is_value(self, operand: Operand) -> bool:
        return self.model.storages[self.model.tensors[operand.tensor]].width == 0

    def _wanted(self, op: TracedOp) -> tuple[str, bool]:
        """Format that `op` works in, and whether its operands must be in it."""
        mode = self.mode
        if not mode.autocast:
            return mode.weights, False
        if op.family in MATRIX_FAMILIES:
            return mode.matrix, True
        forward = len(self.position) < self.model.forward
        if op.kind in WIDE_KINDS or (op.kind == "sum" and forward):
            return "fp32", True
        values = [o for o in op.reads if self._is_value(o)]
        if op.family == "normalization":  # scale, shift and statistics stay fp32, the result is as the input
            values = values[:1]
        found = [self.formats.get(self.model.tensors[o.tensor], "fp32") for o in values]
        return (mode.matrix if found and "fp32" not in found else "fp32"), False

    def _op(self, op: TracedOp) -> None:
        wanted, strict = self._wanted(op)
        inputs, own, casts, read = [], [], [], 0.0
        for operand in op.reads:
            amount = operand.elements.at(self.batch) * operand.passes
            storage = self.model.tensors[operand.tensor]
            if strict and amount > 1 and self._is_value(operand) and self.formats.get(storage, wanted) != wanted:
                name, made = self._cast(operand.tensor, wanted)
                casts.append(made)
                read += amount * PRECISIONS[wanted]
            elif op.kind == "sum" and (operand.tensor, self.mode.matrix) in self.casts:
                # the gradient of a bias, beside that of its weight, adds up the same copy
                name, made = self.casts[operand.tensor, self.mode.matrix]
                casts.append(made)
                read += amount * PRECISIONS[self.mode.matrix]
                wanted = self.mode.matrix
            else:
                name = self._name(operand.tensor)
                own.append(storage)
                self.formats.setdefault(storage, wanted)
                read += amount * self._width(operand.tensor)
            inputs.append(name)
        conv = op.family == "conv"
        converts = self.converts and conv and not self.chooses
        if converts:
            sizes = [o.elements.at(self.batch) for o in op.reads]
            inputs = [self._convert(name, "nhwc", size) for name, size in zip(inputs, sizes, strict=True)]
        here = len(self.out.ops)
        self.last_use.update(dict.fromkeys(own, here))
        for made in casts:
            made.used = here
        written, holds, outputs = 0.0, 0.0, []
        for place, operand in enumerate(op.writes):
            storage = self.model.tensors[operand.tensor]
            fresh = storage not in self.formats
            if fresh:
                statistic = op.family == "normalization" and place > 0 and operand.elements != op.writes[0].elements
                self.formats[storage] = "fp32" if self.mode.autocast and statistic else wanted
            size = operand.elements.at(self.batch) * self._width(operand.tensor)
            written += size * operand.passes
            holds += size if fresh else 0.0
            self.seen.add(operand.tensor)
            outputs.append(self._name(operand.tensor))
            self.last_use[storage] = here
        dtype = self.mode.matrix if op.family in MATRIX_FAMILIES else wanted
        self.position.append(here)
        self.out.ops.append(
            Op(
                name=op.name,
                kind=op.kind,
                flops=float(op.flops.at(self.batch)),
                nbytes_read=float(read),
                nbytes_written=float(written),
                dtype=dtype,
                family=op.family,
                inputs=tuple(dict.fromkeys(inputs)),
                outputs=tuple(outputs),
                holds=holds,
                elements=float(max((o.elements.at(self.batch) for o in op.writes), default=0.0)),
                gemm=op.product(self.batch),
                alignment=op.alignment(element_size(dtype)),
                library=self.library if op.family == "attention" else "",
                window=unit_window(op, self.weights) if conv else 0,
                converted=self._converted(op) if conv and self.chooses else 0.0,
            )
        )
        if converts:
            for operand, name in zip(op.writes, outputs, strict=True):
                self._convert(name, "nchw", operand.elements.at(self.batch))
            here = len(self.out.ops) - 1
        for operand, name in zip(op.writes, outputs, strict=True):
            if operand.tensor in self.wanted:
                self._final(operand, name, here)

    def _cast(self, tensor: int, wanted: str) -> tuple[str, _Copy]:
        """A copy of a tensor in another format, made where it is first needed."""
        found = self.casts.get((tensor, wanted))
        if found is None:
            storage = self.model.tensors[tensor]
            name = self._name(tensor)
            elements = self.model.storages[storage].elements.at(self.batch)
            here = len(self.out.ops)
            self._copy(name, f"{name}.{wanted}", elements, sizes=(self._width(tensor), PRECISIONS[wanted]))
            self.last_use[storage] = here
            self.replaced.setdefault(storage, here)
            self.copies.append(_Copy(elements * PRECISIONS[wanted], here))
            found = self.casts[tensor, wanted] = (f"{name}.{wanted}", self.copies[-1])
        return found

    def _convert(self, source: str, layout: str, elements: float) -> str:
        """A tensor of a convolution in another order of its dimensions: all of it read and written."""
        nbytes, name = float(elements) * PRECISIONS[self.mode.matrix], f"{source}.{layout}"
        self.out.ops.append(
            Op(
                name=f"convert {name}",
                kind="convert",
                nbytes_read=nbytes,
                nbytes_written=nbytes,
                dtype=self.mode.matrix,
                family="copy",
                inputs=(source,),
                outputs=(name,),
                elements=float(elements),
            )
        )
        return name

    def _converted(self, op: TracedOp) -> float:
        """Traffic of all operands' conversions: each is read and written [B]."""
        elements = sum(operand.elements.at(self.batch) for operand in (*op.reads, *op.writes))
        return 2.0 * float(elements) * PRECISIONS[self.mode.matrix]

    def _copy(self, source: str, target: str, elements: float, *, sizes: tuple[float, float]) -> None:
        read, written = (elements * size for size in sizes)
        self.out.ops.append(
            Op(
                name=f"cast {target}",
                kind="cast",
                nbytes_read=float(read),
                nbytes_written=float(written),
                inputs=(source,),
                outputs=(target,),
                elements=float(elements),
            )
        )

    def _final(self, operand: Operand, name: str, here: int) -> None:
        """A gradient is made: it gets the format of its parameter."""
        storage = self.model.tensors[operand.tensor]
        elements = self.model.storages[storage].elements.at(self.batch)
        goal = self.formats[self.wanted[operand.tensor]]
        nbytes = elements * PRECISIONS[goal]
        if self.formats[storage] != goal:
            here = len(self.out.ops)
            self._copy(name, f"{name}.{goal}", elements, sizes=(self._width(operand.tensor), PRECISIONS[goal]))
            name = f"{name}.{goal}"
            self.replaced[storage] = here
            self.last_use[storage] = here
            self.copies.append(_Copy(nbytes, here, gradient=True))
        self.finals[operand.tensor] = (name, nbytes, here)

    def _spans(self) -> None:
        """Lifetimes as traced; where a copy took a tensor's place, it goes with its last use."""
        end = len(self.out.ops)
        position = [*self.position, end]
        kept = {self.model.tensors[g.tensor] for g in self.model.gradients}
        for copy in self.copies:
            self._hold(copy.nbytes, copy.made, end if copy.used is None else copy.used + 1, gradient=copy.gradient)
        for index, storage in enumerate(self.model.storages):
            if storage.role in ("parameter", "buffer") or (index not in self.formats and storage.width == 0):
                continue
            width = storage.width or PRECISIONS[self.formats[index]]
            dies = end if storage.dies == NEVER else position[min(storage.dies, len(position) - 1)]
            if index in self.replaced and storage.role == "value":
                dies = min(dies, self.last_use[index] + 1) if storage.dies != NEVER else self.last_use[index] + 1
            size = storage.elements.at(self.batch) * width
            is_gradient = index in kept and index not in self.replaced
            born = 0 if storage.role == "input" else position[min(storage.born, len(position) - 1)]
            self._hold(size, born, end if is_gradient else dies, gradient=is_gradient)

    def _hold(self, nbytes: float, born: int, dies: int, *, gradient: bool) -> None:
        """Note what holds memory, and why."""
        kept = born < self.out.forward < dies
        kind: TensorKind = "gradients" if gradient else "activations" if kept else "temporaries"
        self.out.tensors.append(Tensor(kind, nbytes, born, dies))


def weights_of(model: TracedStep) -> Mapping[int, tuple[int, ...]]:
    """Shape of the weight behind each tensor that is a weight or its gradient."""
    storages = {one.storage: one.shape for one in model.parameters}
    found = {tensor: storages[storage] for tensor, storage in enumerate(model.tensors) if storage in storages}
    return found | {one.tensor: model.parameters[one.parameter].shape for one in model.gradients}


def unit_window(op: TracedOp, weights: Mapping[int, tuple[int, ...]]) -> int:
    """Side of a convolution's square window that moves by one pixel; 0 for any other, and for few channels.

    A window that moves by one makes as many pixels as it reads, but for the border.

    Parameters
    ----------
    op : TracedOp
        A convolution, or the gradient of its input or weight.
    weights : mapping of int to tuple
        Of `weights_of`.
    """
    operands = [*op.reads, *op.writes]
    shape = next((weights[one.tensor] for one in operands if one.tensor in weights), ())
    if len(shape) != 4 or shape[2] != shape[3] or not op.gemm or op.gemm[0].at(1) != 1:
        return 0
    made, read, side = shape[0], shape[1], shape[2]
    images = [one.elements.at(1) for one in operands if one.tensor not in weights]
    if len(images) != 2 or min(made, read) < _FEWEST_CHANNELS:
        return 0
    # forward reads the image and makes the result; the gradients' kernels have that of the result first
    before, behind = images if op.kind == "conv2d" else reversed(images)
    return side if abs(math.sqrt(before / read) - math.sqrt(behind / made)) < side else 0
