"""A tape of kernels: what a trace of a training step records, written down from dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from simperf.workload.traced import NEVER, Affine, GradientOrder, Operand, ParameterTensor, Storage, TracedOp
from simperf.workload.transformers.dimensions import Weight

__all__ = ["Part", "Tape"]

#: no arithmetic
NOTHING = Affine(0, 0)

#: a tensor by its number, or so many of its elements, or that and how often a kernel goes over them
Part: TypeAlias = int | tuple[int, Affine] | tuple[int, Affine, int]


class Tape:
    """Kernels in order, with the tensors that they read and write.

    A tensor lives from the kernel that makes it to the last one that reads it.

    Attributes
    ----------
    ops : list of TracedOp
    parameters : list of ParameterTensor
    gradients : list of GradientOrder
    """

    def __init__(self) -> None:
        self.ops: list[TracedOp] = []
        self.parameters: list[ParameterTensor] = []
        self.gradients: list[GradientOrder] = []
        self._elements: list[Affine] = []
        self._facts: list[tuple[int, str, int, str]] = []  # width, role, born, name
        self._used: dict[int, int] = {}
        self._kept: set[int] = set()
        self._names: dict[str, int] = {}
        self._weights: dict[str, int] = {}

    def weight(self, one: Weight) -> int:
        """A parameter."""
        tensor = self._tensor(Affine(one.elements, 0), role="parameter", name=one.name)
        self._weights[one.name] = len(self.parameters)
        self.parameters.append(ParameterTensor(one.name, one.shape, tensor))
        return tensor

    def value(self, elements: Affine, *, role: str, name: str, width: int = 0) -> int:
        """A tensor that no kernel makes: a buffer or an input."""
        return self._tensor(elements, role=role, name=name, width=width)

    def add(
        self,
        name: str,
        kind: str,
        family: str,
        reads: Sequence[Part],
        writes: Sequence[Affine],
        *,
        flops: Affine = NOTHING,
        gemm: tuple[Affine, ...] = (),
        widths: Sequence[int] = (),
    ) -> tuple[int, ...]:
        """A kernel; the tensors that it makes.

        Parameters
        ----------
        name : str
            Gets a number if there is one of this name.
        kind, family : str
            As in `simperf.workload.Op`.
        reads : sequence of Part
        writes : sequence of Affine
            Elements of each tensor that it makes.
        flops : Affine
            [FLOP]
        gemm : tuple of Affine
            batch, m, n and k of the matrix product inside.
        widths : sequence of int
            Bytes an element of each tensor that it makes, where the precision has no say [B]; 0 where it has.
        """
        here = len(self.ops)
        operands = []
        for part in reads:
            operand = Operand(*part) if isinstance(part, tuple) else Operand(part, self._elements[part])
            operands.append(operand)
            self._used[operand.tensor] = here
        sizes = zip(writes, widths or [0] * len(writes), strict=True)
        made = tuple(self._tensor(elements, born=here, width=width) for elements, width in sizes)
        count = self._names[name] = self._names.get(name, 0) + 1
        label = name if count == 1 else f"{name}.{count}"
        outputs = tuple(Operand(tensor, self._elements[tensor]) for tensor in made)
        self.ops.append(TracedOp(label, kind, family, flops, tuple(operands), outputs, gemm))
        return made

    def gradient(self, weight: str, tensor: int) -> None:
        """The gradient of a parameter, final with the last kernel so far."""
        self.gradients.append(GradientOrder(self._weights[weight], tensor, len(self.ops) - 1))
        self._kept.add(tensor)

    def keep(self, tensor: int) -> None:
        """Keep a tensor to the end of the step."""
        self._kept.add(tensor)

    @property
    def storages(self) -> tuple[Storage, ...]:
        """Memory of each tensor, in order."""
        found = []
        for tensor, (elements, (width, role, born, name)) in enumerate(zip(self._elements, self._facts, strict=True)):
            forever = role != "value" or tensor in self._kept
            dies = NEVER if forever else self._used.get(tensor, born) + 1
            found.append(Storage(elements, width, role, born, dies, name))
        return tuple(found)

    def _tensor(self, elements: Affine, *, role: str = "value", name: str = "", width: int = 0, born: int = -1) -> int:
        self._elements.append(elements)
        self._facts.append((width, role, max(0, born if role == "value" else len(self.ops)), name))
        return len(self._elements) - 1
