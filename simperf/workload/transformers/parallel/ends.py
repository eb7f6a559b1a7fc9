"""The passes of the embedding, and of the head with its loss, on one rank: the vocabulary is divided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

from simperf.workload.kinds.memory import copy, embedding, fill
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.precision import SINGLE
from simperf.workload.transformers import arithmetic
from simperf.workload.transformers.dimensions import Weight
from simperf.workload.transformers.parallel.linear import Linear, accumulated, frozen_weights
from simperf.workload.transformers.parallel.norm_step import NormStep
from simperf.workload.transformers.parallel.operations import each
from simperf.workload.transformers.parallel.record import PassRecord, layer_tensors, recorded_passes
from simperf.workload.transformers.parallel.sizes import RankSizes
from simperf.workload.transformers.parallel.softmax_loss import SoftmaxLoss, logits_kernel, logits_reduce
from simperf.workload.transformers.passes import Kept, LayerPasses

__all__ = ["TOKEN", "Embedding", "Head"]

#: bytes of a token's number
TOKEN = 8.0


@dataclass(frozen=True, slots=True)
class Embedding:
    """The embedding of tokens, and of places if those are learned.

    Parameters
    ----------
    sizes : RankSizes
    kernels : LayerKernels
    """

    sizes: RankSizes
    kernels: LayerKernels

    def passes(self) -> LayerPasses:
        """Passes of the embedding."""
        sizes = self.sizes
        forward = PassRecord(held=[Kept("tokens", TOKEN * sizes.tokens)])
        self.forward(forward)
        kept = forward.kept(() if sizes.frozen else ("tokens", "embedded", *self._norm.kept[1:], "mask"))
        backward = PassRecord(held=kept)
        backward.hold("output.gradient", sizes.local)
        if not sizes.frozen:  # else nobody asks for a gradient here
            self.backward(backward, "output.gradient")
            backward.end()
            assert backward.tensors == ("tokens",), backward.tensors
        first = [one for one in sizes.model.end_weights() if not one.name.startswith(("norm.", "head.", "mtp."))]
        return LayerPasses(
            name="embedding",
            **recorded_passes(forward, backward, kept, apart=False),
            **_owned(sizes, first),
        )

    def forward(self, record: PassRecord) -> str:
        """Operations from ``tokens``; the name of what they make."""
        sizes, model, width = self.sizes, self.sizes.model, self.sizes.width
        n, dtype = sizes.tokens * sizes.hidden, sizes.precision
        others = 1.0 - 1.0 / sizes.tp
        if sizes.tp > 1:
            mask = each("mask", sizes.tokens, flops=4, read=2 * TOKEN, written=TOKEN + 1, dtype="fp32")
            record.op(mask, "embed.mask")
        record.op(embedding(sizes.tokens, sizes.hidden, dtype=dtype), "embed", makes=[Kept("found", sizes.whole)])
        if sizes.tp > 1:
            record.op(each("masked_fill", n, flops=0.0, read=0.0, written=width * others, dtype=dtype), "embed.zero")
        scatters = sizes.sequence_parallel and model.positions != "learned"
        if sizes.microbatch > 1 and scatters:
            record.op(copy(n, dtype=dtype), "embed.transpose")
        if scatters:
            record.sync("reduce-scatter", sizes.whole, "embed.reduce")
            record.hold("scattered", sizes.local)
            record.free("found")
        elif sizes.tp > 1:
            record.sync("all-reduce", sizes.whole, "embed.reduce")
        x = "scattered" if scatters else "found"
        if model.positions == "learned":
            places = embedding(sizes.context, sizes.hidden, dtype=dtype)
            record.op(places, "position", makes=[Kept("places", sizes.whole / sizes.microbatch)])
            added = each("add", n, read=(1 + 1 / sizes.microbatch) * width, written=width, dtype=dtype)
            record.op(added, "position.add", makes=[Kept("sum", sizes.whole)], frees=(x, "places"))
            x = "sum"
        if sizes.microbatch > 1 and not scatters:
            record.op(copy(n, dtype=dtype), "embed.transpose")
        if sizes.sequence_parallel and not scatters:
            record.op(copy(n // sizes.tp, dtype=dtype), "embed.split", makes=[Kept("split", sizes.local)], frees=(x,))
            x = "split"
        if model.embed_norm:
            record.hold("embedded", sizes.local)
            record.free(x)
            x = self._norm.forward(record)
        if model.dropout:
            local = sizes.local_tokens * sizes.hidden
            drop = each("dropout", local, flops=arithmetic.DROP, read=width, written=width + 1, dtype=dtype)
            record.op(
                drop, "embed.dropout", makes=[Kept("output", sizes.local), Kept("mask", float(local))], frees=(x,)
            )
            x = "output"
        return x

    def backward(self, record: PassRecord, gradient: str) -> None:
        """Operations from the gradient of what it makes, which is freed."""
        sizes, model, width = self.sizes, self.sizes.model, self.sizes.width
        n, dtype = sizes.tokens * sizes.hidden, sizes.precision
        if model.dropout:
            local = sizes.local_tokens * sizes.hidden
            back = each("dropout_backward", local, read=width + 1, written=width, dtype=dtype)
            made = [Kept("dropped.gradient", sizes.local)]
            record.op(back, "embed.dropout.gradient", makes=made, frees=(gradient, "mask"))
            gradient = "dropped.gradient"
        if model.embed_norm:
            gradient = self._norm.backward(record, gradient, "embedded")
        if sizes.sequence_parallel:
            record.sync("all-gather", sizes.whole, "embed.gather")
            record.hold("gathered", sizes.whole)
            record.free(gradient)
            gradient = "gathered"
        if sizes.microbatch > 1:
            record.op(copy(n, dtype=dtype), "embed.transpose.back")
        if model.positions == "learned":
            places = sizes.context * sizes.hidden
            if sizes.microbatch > 1:
                total = each("sum", n, read=width, written=width / sizes.microbatch, dtype=dtype, family="reduction")
                record.op(total, "position.sum")
            self._table(record, "position", places, places)
        if sizes.tp > 1:
            zeros = each("masked_fill", n, flops=0.0, read=0.0, written=width * (1.0 - 1.0 / sizes.tp), dtype=dtype)
            record.op(zeros, "embed.zero.back")
        self._table(record, "embed", sizes.vocabulary * sizes.hidden, n)
        record.free(gradient)

    @property
    def _norm(self) -> NormStep:
        return NormStep("embed_norm", self.sizes, self.kernels)

    def _table(self, record: PassRecord, name: str, elements: int, n: int) -> None:
        """Gradient of a table: all zero but for the rows that were looked up."""
        sizes, width = self.sizes, self.sizes.width
        op = embedding(n // sizes.hidden, sizes.hidden, dtype=sizes.precision)
        op = replace(op, kind="embedding_dense_backward", nbytes_written=width * elements, holds=width * elements)
        record.op(op, f"{name}.gradient", makes=[Kept(f"{name}.gradient", width * elements)])
        accumulated(record, name, elements, self.kernels, sizes)


@dataclass(frozen=True, slots=True)
class Head:
    """The last normalisation, the logits, and their cross-entropy.

    Parameters
    ----------
    sizes : RankSizes
    kernels : LayerKernels
    ahead : bool
        Whether it predicts tokens further ahead, with a norm of its own and the matrix of the model's head.
    """

    sizes: RankSizes
    kernels: LayerKernels
    ahead: bool = False

    def passes(self) -> LayerPasses:
        """Passes of the head."""
        sizes = self.sizes
        forward = PassRecord(held=[Kept("input", sizes.local), Kept("targets", TOKEN * sizes.tokens)])
        self._forward(forward)
        norm = self._norm.kept[1:] if sizes.frozen else self._norm.kept
        kept = forward.kept(("input", *norm, "head.gathered", "targets", "target.mask", *self._probabilities))
        backward = PassRecord(held=kept)
        self._backward(backward)
        backward.end()
        assert len(backward.tensors) == 1, backward.tensors  # the gradient of its input
        own = ("mtp.0.norm.",) if self.ahead else ("norm.", "head.")
        last = [one for one in sizes.model.end_weights() if one.name.startswith(own)]
        if sizes.model.tied and not self.ahead:
            last.append(Weight("embed.weight", (sizes.model.vocabulary, sizes.hidden)))
        return LayerPasses(
            name="ahead.head" if self.ahead else "head",
            **recorded_passes(forward, backward, kept, apart=self.kernels.apart == "all"),
            **_owned(sizes, last),
            placeholders=self._matrix.placeholders,
            tensors=layer_tensors(forward, backward),
        )

    @property
    def _norm(self) -> NormStep:
        kernels = replace(self.kernels, norm="auto") if self.kernels.end_norm == "eager" else self.kernels
        return NormStep("norm", self.sizes, kernels)

    @property
    def _softmax(self) -> SoftmaxLoss | None:
        """The loss by the logarithm of the softmax, if it is that."""
        name = self.kernels.cross_entropy
        return SoftmaxLoss(self.sizes, name == "compiled") if name in ("log-softmax", "compiled") else None

    @property
    def _probabilities(self) -> tuple[str, ...]:
        """Tensors that the loss keeps of the logits: probabilities in fp32, or their gradient in their place."""
        if self._softmax is not None:
            return self._softmax.kept
        return ("head.output",) if self.kernels.cross_entropy == "in-place" else ("softmax",)

    @property
    def _matrix(self) -> Linear:
        return Linear("head", self.sizes.hidden, self.sizes.vocabulary, self.sizes, self.kernels, wide=True)

    @property
    def _logits(self) -> int:
        return self.sizes.tokens * self.sizes.vocabulary

    def _forward(self, record: PassRecord) -> None:
        """Operations from ``input`` to the loss."""
        self._matrix.forward(record, self._norm.forward(record))
        if self.kernels.cross_entropy == "in-place":
            self._in_place(record)
        elif self._softmax is not None:
            self._softmax.forward(record)
        else:
            self._written(record)
        loss = each("loss", self.sizes.tokens, flops=arithmetic.LOG + 2, read=3 * SINGLE, written=SINGLE, dtype="fp32")
        record.op(loss, "loss")

    def _in_place(self, record: PassRecord) -> None:
        """Cross-entropy by an online softmax: a largest logit, a sum and the target's logit for each row."""
        sizes, width = self.sizes, self.sizes.width
        logits_kernel(record, self.sizes, "max", 2.0 + arithmetic.EXPONENTIAL, read=width, family="normalization")
        if sizes.tp > 1:
            record.sync("all-gather", 3 * SINGLE * sizes.tokens * sizes.tp, "loss.max.gather")
        flops = 1.0 + arithmetic.EXPONENTIAL + arithmetic.DIVIDE
        logits_kernel(record, self.sizes, "exp", flops, read=width, written=width, family="normalization")

    def _written(self, record: PassRecord) -> None:
        """Cross-entropy that writes probabilities in fp32."""
        sizes, fused = self.sizes, self.kernels.cross_entropy == "fused"
        rows, width = SINGLE * sizes.tokens, sizes.width
        record.hold("softmax", SINGLE * self._logits)
        if fused:
            logits_kernel(record, self.sizes, "max", 1.0, read=width, written=SINGLE)
        else:
            if width != SINGLE:
                logits_kernel(record, self.sizes, "cast", 0.0, read=width, written=SINGLE)
            logits_kernel(record, self.sizes, "max", 1.0, read=SINGLE, family="reduction")
        record.free("head.output")
        logits_reduce(record, sizes, rows, "max")
        record.hold("target.mask", sizes.tokens * (1.0 + TOKEN))
        if fused:
            flops = 2.0 + arithmetic.EXPONENTIAL
            logits_kernel(record, self.sizes, "exp", flops, read=SINGLE, written=SINGLE, family="normalization")
            logits_reduce(record, sizes, 2 * rows, "sum")
        else:
            logits_kernel(record, self.sizes, "sub", 1.0, read=SINGLE, written=SINGLE)
            logits_kernel(record, self.sizes, "exp", arithmetic.EXPONENTIAL, read=SINGLE, written=SINGLE)
            logits_kernel(record, self.sizes, "sum", 1.0, read=SINGLE, family="reduction")
            logits_reduce(record, sizes, rows, "target")
            logits_reduce(record, sizes, rows, "sum")
        logits_kernel(record, self.sizes, "div", arithmetic.DIVIDE, read=SINGLE, written=SINGLE)

    def _backward(self, record: PassRecord) -> None:
        """Operations from the loss to the gradient of ``input``."""
        sizes, matrix = self.sizes, self._matrix
        record.op(fill(sizes.tokens, dtype="fp32"), "loss.gradient")
        width, gradient = sizes.width, "logits.gradient"
        if self.kernels.cross_entropy == "in-place":
            gradient = "head.output"
            logits_kernel(record, self.sizes, "logits.gradient", 1.0, read=width, written=width)
            record.free("targets")
        elif self._softmax is not None:
            self._softmax.backward(record, gradient)
        else:
            narrows = self.kernels.cross_entropy == "unfused" and width != SINGLE
            logits_kernel(record, self.sizes, "logits.gradient", 2.0, read=SINGLE, written=SINGLE if narrows else width)
            record.hold(gradient, matrix.output)
            if narrows:
                logits_kernel(record, self.sizes, "cast.back", 0.0, read=SINGLE, written=width)
            record.free("softmax", "target.mask", "targets")
        found = matrix.backward(record, gradient, self._norm.kept[0])
        self._norm.backward(record, found, "input")


class _Owned(TypedDict):
    """Weights of a layer, as `LayerPasses` has them."""

    weights: tuple[Weight, ...]
    replicated: tuple[Weight, ...]
    frozen: tuple[Kept, ...]


def _owned(sizes: RankSizes, weights: Sequence[Weight]) -> _Owned:
    """Weights of this rank: trained, those of them that all ranks have, and frozen ones."""
    own = tuple(sizes.weight(one) for one in weights)
    if sizes.frozen:
        return {"weights": (), "replicated": (), "frozen": frozen_weights(own, sizes)}
    return {"weights": own, "replicated": tuple(one for one in weights if sizes.is_whole(one)), "frozen": ()}
