"""The frame of a transformer's training step: embedding, blocks, head and loss, and all of it backward."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.model import TracedModel
from simperf.workload.optimizers import optimizer_steps
from simperf.workload.traced import Affine, InputShape
from simperf.workload.transformers.attention import WrittenAttention
from simperf.workload.transformers.dimensions import Transformer, Weight
from simperf.workload.transformers.tape import Part, Tape

__all__ = ["TrainingPass"]

#: FLOP an element of the logits' log-softmax, as operations of a trace count (`simperf.workload.trace.kinds`)
LOG_SOFTMAX, LOG_SOFTMAX_BACK = 12, 11


class TrainingPass(ABC):
    """A training step, written on a tape block by block.

    Parameters
    ----------
    model : Transformer
    weights : iterable of Weight
        As the kernels read them.
    kernels : LayerKernels
        Which kernels a layer runs.
    """

    def __init__(self, model: Transformer, weights: Iterable[Weight], kernels: LayerKernels) -> None:
        self.model, self.tape, self.kernels = model, Tape(), kernels
        rows = model.sequence
        self.rows = Affine(0, rows)
        self.wide = Affine(0, rows * model.hidden)
        self.queries = Affine(0, rows * model.query_width)
        self.keys = Affine(0, rows * model.key_width)
        self.inner = Affine(0, rows * model.inner_width)
        self.logits = Affine(0, rows * model.vocabulary)
        self.tokens = self.tape.value(self.rows, role="input", name="tokens", width=8)
        #: attention that writes its scores to memory; None where it is one kernel
        self.written: WrittenAttention | None = None
        if kernels.attention != "flash":
            self.written = WrittenAttention(model, self.tape, fused=kernels.attention == "fused-softmax")
        self.weights = {one.name: (self.tape.weight(one), one.shape) for one in weights}

    @abstractmethod
    def embed(self) -> int:
        """Kernels before the blocks; the tensor that the first block reads."""

    @abstractmethod
    def block(self, name: str, x: int) -> int:
        """Kernels of a block; the tensor that it makes."""

    @abstractmethod
    def head(self, x: int) -> int:
        """Kernels behind the blocks; the logits."""

    @abstractmethod
    def head_back(self, g: int) -> int:
        """Backward kernels of the head; the gradient of what it reads."""

    @abstractmethod
    def block_back(self, name: str, g: int) -> int:
        """Backward kernels of a block; the gradient of what it reads."""

    @abstractmethod
    def embed_back(self, g: int) -> None:
        """Backward kernels of the embedding."""

    def made(self) -> TracedModel:
        """The whole step, with the cross-entropy of every token."""
        model, tape = self.model, self.tape
        blocks = [f"blocks.{layer}" for layer in range(model.layers)]
        x = self.embed()
        for name in blocks:
            x = self.block(name, x)
        forward, g = self._loss(self.head(x))
        g = self.head_back(g)
        for name in reversed(blocks):
            g = self.block_back(name, g)
        self.embed_back(g)
        storages = tape.storages
        return TracedModel(
            name=model.name,
            title=f"{model.name}: {model.layers} layers of width {model.hidden}",
            source="its dimensions; kernels as eager PyTorch runs such a model",
            sample=f"sequence of {model.sequence}",
            inputs=(InputShape((model.sequence,), "int64"),),
            parameters=tuple(tape.parameters),
            storages=storages,
            tensors=tuple(range(len(storages))),
            ops=tuple(tape.ops),
            forward=forward,
            gradients=tuple(tape.gradients),
            optimizer=optimizer_steps("adamw"),
            kernels=self.kernels,
        )

    def _loss(self, logits: int) -> tuple[int, int]:
        """Kernels of the loss; how many kernels the forward pass has, and the gradient of the logits."""
        tape, one = self.tape, Affine(1, 0)
        tape.keep(logits)
        target = tape.value(self.rows, role="input", name="target", width=8)
        soft = self.pointwise("log_softmax", [logits], self.logits, LOG_SOFTMAX, family="normalization")
        parts: list[Part] = [(soft, self.rows), target]
        loss, _ = tape.add("nll_loss", "nll_loss", "reduction", parts, [one, one], flops=self.rows)
        tape.keep(loss)
        forward = len(tape.ops)
        (seed,) = tape.add("fill", "fill", "elementwise", [], [one])
        label = "nll_loss_backward"
        (g,) = tape.add(label, label, "elementwise", [seed, target], [self.logits], flops=self.rows)
        return forward, self.pointwise(
            "log_softmax_backward", [g, soft], self.logits, LOG_SOFTMAX_BACK, family="normalization"
        )

    def attention(self, products: float) -> tuple[tuple[Affine, ...], Affine]:
        """Matrix products of attention over half of all pairs of tokens, and their arithmetic [FLOP]."""
        model = self.model
        n, d = model.sequence, model.head_width
        flops = Affine(0, round(products * n * n * d * model.heads))
        return (Affine(0, model.heads), Affine(n, 0), Affine(d, 0), Affine(round(products * n), 0)), flops

    def weight_back(self, name: str, g: int, x: int) -> int:
        """The product for the gradient of a matrix that read `x`."""
        fan_out, fan_in = self.weights[f"{name}.weight"][1]
        gemm = (Affine(1, 0), Affine(fan_out, 0), Affine(fan_in, 0), self.rows)
        flops, made = Affine(0, 2 * self.model.sequence * fan_in * fan_out), Affine(fan_in * fan_out, 0)
        return self.tape.add(f"{name}.matmul.back", "matmul", "gemm", [g, x], [made], flops=flops, gemm=gemm)[0]

    def input_back(self, name: str, g: int, size: Affine) -> int:
        """The product for the gradient of what a matrix read."""
        weight, (fan_out, fan_in) = self.weights[f"{name}.weight"]
        gemm = (Affine(1, 0), self.rows, Affine(fan_in, 0), Affine(fan_out, 0))
        flops = Affine(0, 2 * self.model.sequence * fan_in * fan_out)
        return self.tape.add(f"{name}.matmul.back", "matmul", "gemm", [g, weight], [size], flops=flops, gemm=gemm)[0]

    def pointwise(
        self, name: str, reads: Sequence[Part], size: Affine, flops: int = 1, *, family: str = "elementwise"
    ) -> int:
        """A kernel of so many FLOP an element that it makes; its kind is the last part of its name."""
        kind = name.removesuffix(".back").rpartition(".")[2]
        work = Affine(flops * size.constant, flops * size.slope)
        return self.tape.add(name, kind, family, reads, [size], flops=work)[0]
