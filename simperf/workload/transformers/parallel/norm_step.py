"""Normalisation of one rank's tokens, in one kernel or several."""

from __future__ import annotations

from dataclasses import dataclass

from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.precision import SINGLE
from simperf.workload.transformers.parallel.linear import accumulated
from simperf.workload.transformers.parallel.operations import each, norm_back, norm_forward, statistics
from simperf.workload.transformers.parallel.record import PassRecord
from simperf.workload.transformers.parallel.sizes import RankSizes
from simperf.workload.transformers.passes import Kept

__all__ = ["NormStep"]


@dataclass(frozen=True, slots=True)
class NormStep:
    """A normalisation of this rank's tokens.

    Parameters
    ----------
    name : str
    sizes : RankSizes
    kernels : LayerKernels
    """

    name: str
    sizes: RankSizes
    kernels: LayerKernels

    @property
    def _fused(self) -> bool:
        return self.kernels.fuses_norm(self.sizes.model.norm)

    @property
    def kept(self) -> tuple[str, ...]:
        """Tensors that the backward pass reads: its output, statistics of rows, and what it has written."""
        written = () if self._fused else (f"{self.name}.wide", f"{self.name}.scaled")
        return f"{self.name}.output", f"{self.name}.statistics", *written

    def forward(self, record: PassRecord) -> str:
        """The kernel; the name of its output."""
        sizes, norm = self.sizes, self.sizes.model.norm
        output, rows, *_ = self.kept
        made = [Kept(output, sizes.local), Kept(rows, statistics(norm, sizes.local_tokens))]
        if not self._fused:
            self._written(record)
            for one in made:
                record.hold(*one)
            return output
        record.op(norm_forward(norm, sizes.local_tokens, sizes.hidden, sizes.precision), self.name, makes=made)
        return output

    def backward(self, record: PassRecord, gradient: str, x: str, *, plus: str = "") -> str:
        """Gradient of its input `x`, added to that of the residual; its name."""
        sizes, found = self.sizes, f"{self.name}.input.gradient"
        frees = (gradient, x, *self.kept[1:])
        if self._fused:
            op = norm_back(sizes.model.norm, sizes.local_tokens, sizes.hidden, sizes.precision)
            record.op(op, f"{self.name}.gradient", makes=[Kept(found, sizes.local)], frees=frees)
        else:
            self._written_back(record)
            record.hold(found, sizes.local)
            record.free(*frees)
        for part in ("weight", "bias") if sizes.model.norm == "layer" and sizes.model.norm_bias else ("weight",):
            accumulated(record, f"{self.name}.{part}", sizes.hidden, self.kernels, sizes)
        if not plus:
            return found
        width, elements = sizes.width, sizes.local_tokens * sizes.hidden
        added = each("add", elements, read=2 * width, written=width, dtype=sizes.precision)
        made, total = f"{self.name}.residual.gradient", sizes.local
        record.op(added, f"{self.name}.residual.add", makes=[Kept(made, total)], frees=(found, plus))
        return made

    def _written(self, record: PassRecord) -> None:
        """RMS normalization in fp32, a kernel for each operation (pytorch/pytorch 2.6, layer_norm.cpp, rms_norm)."""
        name, width = self.name, self.sizes.width
        record.hold(f"{name}.wide", SINGLE * self._elements)
        self._each(record, "wide", width, SINGLE, family="copy")
        record.hold(f"{name}.squares", SINGLE * self._elements)
        self._each(record, "square", SINGLE, SINGLE)
        self._each(record, "mean", SINGLE, 0.0, family="reduction")
        self._each(record, "scale", SINGLE, SINGLE)
        record.hold(f"{name}.scaled", width * self._elements)
        self._each(record, "narrow", SINGLE, width, family="copy")
        record.free(f"{name}.squares")
        self._each(record, "multiply", width, width)

    def _written_back(self, record: PassRecord) -> None:
        """Its gradient, a kernel for each operation."""
        name, width = self.name, self.sizes.width
        record.hold(f"{name}.products", width * self._elements)
        self._each(record, "weight.product", 2 * width, width)
        self._each(record, "weight.sum", width, 0.0, family="reduction")
        record.free(f"{name}.products")
        record.hold(f"{name}.wide.gradient", 2 * SINGLE * self._elements)
        self._each(record, "multiply.back", width, width)
        self._each(record, "narrow.back", width, SINGLE, family="copy")
        self._each(record, "scale.back", SINGLE, SINGLE)
        self._each(record, "scale.product", 2 * SINGLE, SINGLE)
        self._each(record, "scale.sum", SINGLE, 0.0, family="reduction")
        self._each(record, "square.back", SINGLE, SINGLE)
        self._each(record, "square.add", 2 * SINGLE, SINGLE)
        self._each(record, "wide.back", SINGLE, width, family="copy")
        record.free(f"{name}.wide.gradient")

    @property
    def _elements(self) -> int:
        return self.sizes.local_tokens * self.sizes.hidden

    def _each(self, record: PassRecord, name: str, read: float, written: float, *, family: str = "elementwise") -> None:
        """A kernel over all elements."""
        kind = {"copy": "copy", "reduction": "sum"}.get(family, "mul")
        op = each(kind, self._elements, read=read, written=written, dtype="fp32", family=family)
        record.op(op, f"{self.name}.{name}")
