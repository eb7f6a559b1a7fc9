"""The activation of a feed-forward network on one rank, with the bias before it or its gate."""

from __future__ import annotations

from dataclasses import dataclass

from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.precision import SINGLE, element_size
from simperf.workload.transformers import arithmetic
from simperf.workload.transformers.parallel.linear import Linear
from simperf.workload.transformers.parallel.operations import each
from simperf.workload.transformers.parallel.record import PassRecord
from simperf.workload.transformers.parallel.sizes import RankSizes
from simperf.workload.transformers.passes import Kept

__all__ = ["Activation"]


@dataclass(frozen=True, slots=True)
class Activation:
    """An activation of rows.

    Parameters
    ----------
    sizes : RankSizes
    kernels : LayerKernels
    rows, width : int
        Of what it makes, on this rank.
    at : str
        Beginning of all names.
    weighted : bool
        Whether each row is multiplied by a number of its own, the score of an expert.
    """

    sizes: RankSizes
    kernels: LayerKernels
    rows: int
    width: int
    at: str = ""
    weighted: bool = False

    @property
    def kept(self) -> tuple[str, ...]:
        """Tensors that it makes and a backward pass reads."""
        gate = (f"{self.at}activation.gate",) if self._written_gate else ()
        return *gate, f"{self.at}activation.output"

    def forward(self, record: PassRecord) -> None:
        """From ``up.output`` to ``activation.output``."""
        self._make(record)
        if self._narrow:
            self._cast(record, self.sizes.width, element_size("fp8"))

    def _cast(self, record: PassRecord, read: float, written: float) -> None:
        """A copy of ``up.output`` in another precision takes its place; widths in bytes."""
        n = self.rows * self.width * (2 if self.sizes.model.gated else 1)
        op = each("copy", n, flops=0.0, read=read, written=written, dtype=self.sizes.precision, family="copy")
        record.op(op, f"{self.at}up.cast")
        record.resize(f"{self.at}up.output", written * n)

    def _make(self, record: PassRecord) -> None:
        sizes, model, width, at = self.sizes, self.sizes.model, self.sizes.width, self.at
        n, flops = self.rows * self.width, arithmetic.ACTIVATION[model.activation][0] + self.weighted
        made = [Kept(f"{at}activation.output", width * n)]
        if not self._written_gate:
            if model.bias and self.kernels.activation != "fused":
                added = each("add", n, read=width, written=width, dtype=sizes.precision)
                record.op(added, f"{at}up.bias")
            read = (2 * width if model.gated else width) + self._score
            op = each(model.activation, n, flops=flops, read=read, written=width, dtype=sizes.precision)
            record.op(op, f"{at}activation", makes=made)
            return
        for half in ("gate", "up") if model.bias else ():
            record.op(each("add", n, read=width, written=width, dtype=sizes.precision), f"{at}{half}.bias")
        gate = each("silu", n, flops=flops - 1, read=width, written=width, dtype=sizes.precision)
        record.op(gate, f"{at}activation.gate", makes=[Kept(f"{at}activation.gate", width * n)])
        product = each("mul", n, read=2 * width + self._score, written=width, dtype=sizes.precision)
        record.op(product, f"{at}activation", makes=made)

    def backward(self, record: PassRecord, gradient: str, up: Linear | None = None) -> str:
        """Gradient of what the first matrix `up` makes, and of its bias; the name of the former."""
        if self._narrow:
            self._cast(record, element_size("fp8"), self.sizes.width)
        sizes, model, width, at = self.sizes, self.sizes.model, self.sizes.width, self.at
        inner = self.width * (2 if model.gated else 1)
        n, made = self.rows * inner, f"{at}up.gradient"
        flops = arithmetic.ACTIVATION[model.activation][1] + self.weighted
        held = [Kept(made, width * n)]
        if not self._written_gate:
            read = width * (1.5 if model.gated else 2.0) + self._score
            op = each(f"{model.activation}_backward", n, flops=flops, read=read, written=width, dtype=sizes.precision)
            record.op(op, f"{at}activation.gradient", makes=held, frees=(gradient, f"{at}up.output"))
        else:
            dtype, parts = sizes.precision, (f"{at}activation.gate.gradient", f"{at}activation.up.gradient")
            for half in parts:
                product = each("mul", n / 2, read=2 * width + self._score, written=width, dtype=dtype)
                record.op(product, half, makes=[Kept(half, width * n / 2)])
            silu = each("silu_backward", n / 2, flops=arithmetic.SILU_BACK, read=2 * width, written=width, dtype=dtype)
            record.op(silu, f"{at}activation.gradient")
            join = each("cat", n, flops=0.0, read=width, written=width, dtype=sizes.precision, family="copy")
            frees = (gradient, *parts, f"{at}up.output", f"{at}activation.gate")
            record.op(join, f"{at}activation.join", makes=held, frees=frees)
        if model.bias and up is not None:
            up.bias_gradient(record, sizes.tokens, made)
        return made

    @property
    def _narrow(self) -> bool:
        """Whether its input is kept in fp8."""
        return self.kernels.activation_inputs == "fp8"

    @property
    def _written_gate(self) -> bool:
        """Whether the activation of the gate is a kernel of its own, whose result is kept."""
        return self.sizes.model.gated and self.kernels.activation == "unfused"

    @property
    def _score(self) -> float:
        """Bytes of a row's score, for each element of the row."""
        return SINGLE / self.width if self.weighted else 0.0
