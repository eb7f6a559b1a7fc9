"""The passes of a block on one rank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.transformers import arithmetic
from simperf.workload.transformers.flops import Recomputation
from simperf.workload.transformers.parallel.attention import Attention
from simperf.workload.transformers.parallel.linear import Linear, accumulated
from simperf.workload.transformers.parallel.operations import each, norm_back, norm_forward, statistics
from simperf.workload.transformers.parallel.record import PassRecord
from simperf.workload.transformers.parallel.sizes import RankSizes
from simperf.workload.transformers.passes import Kept, LayerPasses

__all__ = ["Block", "NormStep"]


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
    def kept(self) -> tuple[str, str]:
        """What it makes that the backward pass reads: its output, and what it knows of rows."""
        return f"{self.name}.output", f"{self.name}.statistics"

    def forward(self, record: PassRecord) -> str:
        """The kernel; the name of its output."""
        sizes, norm = self.sizes, self.sizes.model.norm
        output, rows = self.kept
        made = [Kept(output, sizes.local), Kept(rows, statistics(norm, sizes.local_tokens))]
        record.op(norm_forward(norm, sizes.local_tokens, sizes.hidden, sizes.precision), self.name, makes=made)
        return output

    def backward(self, record: PassRecord, gradient: str, x: str, *, plus: str = "") -> str:
        """Gradient of its input `x`, added to that of the residual; its name."""
        sizes, found = self.sizes, f"{self.name}.input.gradient"
        op = norm_back(sizes.model.norm, sizes.local_tokens, sizes.hidden, sizes.precision)
        frees = (gradient, x, f"{self.name}.statistics")
        record.op(op, f"{self.name}.gradient", makes=[Kept(found, sizes.local)], frees=frees)
        for part in ("weight", "bias") if sizes.model.norm == "layer" and sizes.model.norm_bias else ("weight",):
            accumulated(record, f"{self.name}.{part}", sizes.hidden, self.kernels, sizes)
        if not plus:
            return found
        width, elements = sizes.width, sizes.local_tokens * sizes.hidden
        added = each("add", elements, read=2 * width, written=width, dtype=sizes.precision)
        made, total = f"{self.name}.residual.gradient", sizes.local
        record.op(added, f"{self.name}.residual.add", makes=[Kept(made, total)], frees=(found, plus))
        return made


@dataclass(frozen=True, slots=True)
class Block:
    """A block: attention and feed-forward network, each normalised before and added to what it reads.

    Parameters
    ----------
    sizes : RankSizes
    kernels : LayerKernels
    recompute : str
        One of `simperf.workload.transformers.flops.RECOMPUTATIONS`.
    """

    sizes: RankSizes
    kernels: LayerKernels
    recompute: Recomputation = "none"

    def passes(self) -> LayerPasses:
        """Passes of the block."""
        sizes = self.sizes
        forward = PassRecord(held=[Kept("input", sizes.local)])
        self._forward(forward)
        peak = forward.peak
        kept = forward.kept(self._kept)
        backward = PassRecord(held=kept)
        gradient = "output.gradient"
        backward.hold(gradient, sizes.local)
        if self.recompute == "full":
            backward.again("again.")
            self._forward(backward)
            backward.free("output")
            backward.again("")
        self._backward(backward, gradient)
        assert len(backward.tensors) == 1, backward.tensors  # the gradient of its input
        weights = tuple(sizes.model.block_weights("block"))
        held = sum(one.nbytes for one in kept)
        return LayerPasses(
            name="block",
            forward=tuple(forward.items),
            backward=tuple(backward.items),
            input_gradients=backward.inputs,
            weight_gradients=backward.weights,
            kept=kept,
            temporary_forward=peak - held,
            temporary_backward=backward.peak - held,
            weights=tuple(sizes.weight(one) for one in weights),
            replicated=tuple(one for one in weights if sizes.is_whole(one)),
            placeholders=tuple(dict.fromkeys(held for one in self._matrices for held in one.placeholders)),
        )

    @property
    def _attention(self) -> Attention:
        return Attention(self.sizes, self.kernels)

    @property
    def _norms(self) -> tuple[NormStep, NormStep]:
        return NormStep("norm1", self.sizes, self.kernels), NormStep("norm2", self.sizes, self.kernels)

    @property
    def _matrices(self) -> tuple[Linear, Linear, Linear, Linear]:
        """Of queries, keys and values; of the output; up, with the gate; down."""
        sizes, model, kernels = self.sizes, self.sizes.model, self.kernels
        whole, inner = sizes.queries + 2 * sizes.keys, sizes.ffn * (2 if model.gated else 1)
        return (
            Linear("qkv", sizes.hidden, whole, sizes, kernels, bias=model.bias or model.qkv_bias),
            Linear("projection", sizes.queries, sizes.hidden, sizes, kernels, row=True),
            Linear("up", sizes.hidden, inner, sizes, kernels),
            Linear("down", sizes.ffn, sizes.hidden, sizes, kernels, row=True),
        )

    @property
    def _kept(self) -> tuple[str, ...]:
        """Tensors that the backward pass reads, in the order in which they are made."""
        if self.recompute == "full":
            return ("input",)
        first, second = self._norms
        inside = [one for one in self._attention.kept if self.recompute == "none" or one not in self._attention.core]
        masks = ("residual1.mask", "residual2.mask") if self.sizes.model.dropout else ("", "")
        network = [*second.kept, "up.output", *self._activation_kept, masks[1]]
        return tuple(one for one in ("input", *first.kept, *inside, masks[0], "middle", *network) if one)

    @property
    def _activation_kept(self) -> tuple[str, ...]:
        gate = self.sizes.model.gated and self.kernels.activation == "unfused"
        return ("activation.gate", "activation.output") if gate else ("activation.output",)

    def _forward(self, record: PassRecord) -> None:
        """Operations from ``input`` to ``output``."""
        first, second = self._norms
        qkv, projection, up, down = self._matrices
        self._attention.forward(record, qkv.forward(record, first.forward(record)))
        self._residual(record, 1, projection.forward(record, "attention.output"), "middle")
        up.forward(record, second.forward(record))
        self._activation(record)
        self._residual(record, 2, down.forward(record, "activation.output"), "output")

    def _backward(self, record: PassRecord, gradient: str) -> None:
        """Operations from the gradient of ``output`` to that of ``input``."""
        first, second = self._norms
        qkv, projection, up, down = self._matrices
        inside = self._residual_back(record, 2, gradient, down)
        inner = down.backward(record, inside, "activation.output", last=inside != gradient)
        inner = self._activation_back(record, inner)
        found = up.backward(record, inner, second.kept[0])
        gradient = second.backward(record, found, "middle", plus=gradient)
        inside = self._residual_back(record, 1, gradient, projection)
        # attention in one kernel reads its result again
        attention_result = "" if self.kernels.attention == "flash" else "attention.output"
        attended = projection.backward(record, inside, attention_result, last=inside != gradient)
        if self.recompute == "selective":
            record.again("again.")
            self._attention.core_again(record)
            record.again("")
        whole = self._attention.backward(record, attended)
        first.backward(record, qkv.backward(record, whole, first.kept[0]), "input", plus=gradient)

    def _activation(self, record: PassRecord) -> None:
        """The activation, with the bias before it or its gate."""
        sizes, model, width, fused = self.sizes, self.sizes.model, self.sizes.width, self.kernels.activation == "fused"
        n, flops = sizes.tokens * sizes.ffn, arithmetic.ACTIVATION[model.activation][0]
        made = [Kept("activation.output", width * n)]
        if fused or not model.gated:
            if model.bias and not fused:
                added = each("add", n, read=width, written=width, dtype=sizes.precision)
                record.op(added, "up.bias")
            read = 2 * width if model.gated else width
            op = each(model.activation, n, flops=flops, read=read, written=width, dtype=sizes.precision)
            record.op(op, "activation", makes=made)
            return
        for half in ("gate", "up") if model.bias else ():
            record.op(each("add", n, read=width, written=width, dtype=sizes.precision), f"{half}.bias")
        gate = each("silu", n, flops=flops - 1, read=width, written=width, dtype=sizes.precision)
        record.op(gate, "activation.gate", makes=[Kept("activation.gate", width * n)])
        record.op(each("mul", n, read=2 * width, written=width, dtype=sizes.precision), "activation", makes=made)

    def _activation_back(self, record: PassRecord, gradient: str) -> str:
        """Gradient of what the first matrix of the network makes; its name."""
        sizes, model, width, fused = self.sizes, self.sizes.model, self.sizes.width, self.kernels.activation == "fused"
        inner = sizes.ffn * (2 if model.gated else 1)
        n, made = sizes.tokens * inner, "up.gradient"
        flops = arithmetic.ACTIVATION[model.activation][1]
        held = [Kept(made, width * n)]
        if fused or not model.gated:
            read = width * (1.5 if model.gated else 2.0)
            op = each(f"{model.activation}_backward", n, flops=flops, read=read, written=width, dtype=sizes.precision)
            record.op(op, "activation.gradient", makes=held, frees=(gradient, "up.output"))
        else:
            dtype = sizes.precision
            for half in ("gate", "up"):
                product = each("mul", n / 2, read=2 * width, written=width, dtype=dtype)
                held_half = [Kept(f"activation.{half}.gradient", width * n / 2)]
                record.op(product, f"activation.{half}.gradient", makes=held_half)
            silu = each("silu_backward", n / 2, flops=arithmetic.SILU_BACK, read=2 * width, written=width, dtype=dtype)
            record.op(silu, "activation.gradient")
            halves = ("activation.gate.gradient", "activation.up.gradient")
            join = each("cat", n, flops=0.0, read=width, written=width, dtype=sizes.precision, family="copy")
            record.op(join, "activation.join", makes=held, frees=(gradient, *halves, "up.output", "activation.gate"))
        if model.bias:
            self._matrices[2].bias_gradient(record, sizes.tokens)
        return made

    def _residual(self, record: PassRecord, number: int, x: str, makes: str) -> None:
        """Bias and dropout of a branch, and its addition to the residual."""
        sizes, width, dropout = self.sizes, self.sizes.width, self.sizes.model.dropout
        n = sizes.local_tokens * sizes.hidden
        made = [Kept(makes, sizes.local), *([Kept(f"residual{number}.mask", float(n))] if dropout else [])]
        steps = list(self._steps())
        for step, (kind, flops, read, written) in enumerate(steps):
            op = each(kind, n, flops=flops, read=read * width, written=written, dtype=sizes.precision)
            last = step == len(steps) - 1
            record.op(op, f"residual{number}.{kind}", makes=made if last else (), frees=(x,) if last else ())

    def _steps(self) -> Iterator[tuple[str, float, float, float]]:
        """Kernels of a residual: kind, FLOP, arrays read, and bytes written of an element."""
        model, width = self.sizes.model, self.sizes.width
        flops = 1.0 + model.bias + arithmetic.DROP * model.dropout
        if self.kernels.residual == "fused":
            yield "bias_dropout_add", flops, 2.0, width + model.dropout
            return
        if model.bias:
            yield "bias", 1.0, 1.0, width
        if model.dropout:
            yield "dropout", arithmetic.DROP, 1.0, width + 1
        yield "add", 1.0, 2.0, width

    def _residual_back(self, record: PassRecord, number: int, gradient: str, matrix: Linear) -> str:
        """Gradient of a branch from that of the sum; its name."""
        sizes, width, found = self.sizes, self.sizes.width, f"residual{number}.gradient"
        if sizes.model.dropout:
            n = sizes.local_tokens * sizes.hidden
            op = each("dropout_backward", n, flops=1.0, read=width + 1, written=width, dtype=sizes.precision)
            record.op(op, found, makes=[Kept(found, sizes.local)], frees=(f"residual{number}.mask",))
        else:
            found = gradient
        if sizes.model.bias:
            matrix.bias_gradient(record, sizes.local_tokens)
        return found
