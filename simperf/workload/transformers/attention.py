"""Attention that writes its scores to memory: two batched matrix products, and the kernels between them.

``"unfused"`` is eager PyTorch with the batch first: queries, keys and values are copied for the products, and
scaling, masking and softmax are kernels of their own. ``"fused-softmax"`` is that of Megatron-LM, sequence first: the
products read their operands where they lie, the first one scales, and one kernel masks and normalizes.
"""

from __future__ import annotations

from dataclasses import dataclass

from simperf.workload.traced import Affine
from simperf.workload.transformers.arithmetic import DROP, SOFTMAX, SOFTMAX_BACK
from simperf.workload.transformers.dimensions import Transformer
from simperf.workload.transformers.tape import Part, Tape

__all__ = ["Attended", "WrittenAttention"]


@dataclass(frozen=True, slots=True)
class Attended:
    """Tensors of attention for the backward pass, and its result.

    Parameters
    ----------
    q, k, v : Part
        Queries, and keys and values of each of their heads, as the products read them.
    softmax : int
        Probabilities.
    kept : int
        Those that dropout leaves.
    mask : int
        Of dropout; -1 without it.
    out : int
        What the block continues with.
    """

    q: Part
    k: Part
    v: Part
    softmax: int
    kept: int
    mask: int
    out: int


class WrittenAttention:
    """Attention of a model on a tape.

    Parameters
    ----------
    model : Transformer
    tape : Tape
    fused : bool
        One kernel masks and normalizes, and the first product scales.
    """

    def __init__(self, model: Transformer, tape: Tape, *, fused: bool) -> None:
        self.model, self.tape, self.fused = model, tape, fused
        n, heads = model.sequence, model.heads
        self.scores = Affine(0, heads * n * n)
        self.queries, self.keys = Affine(0, n * model.query_width), Affine(0, n * model.key_width)
        self.grouped = model.key_width != model.query_width
        self.causal = -1 if fused else tape.value(Affine(n * n, 0), role="buffer", name="mask", width=1)

    def forward(self, name: str, q: Part, k: Part, v: Part) -> Attended:
        """Kernels from queries, keys and values to what the output projection reads."""
        n, d = self.model.sequence, self.model.head_width
        q, k = self._operand(name, q, grouped=False), self._operand(name, k, grouped=self.grouped)
        scores = self._product(f"{name}.bmm", q, k, (n, n, d), self.scores, scaled=self.fused)
        if not self.fused:
            scores = self._each(f"{name}.mul", scores)
            (scores,) = self.tape.add(
                f"{name}.masked_fill", "masked_fill", "elementwise", [scores, self.causal], [self.scores]
            )
        softmax = self._each(f"{name}.softmax", scores, SOFTMAX, family="normalization")
        kept, mask = softmax, -1
        if self.model.dropout:
            kind, flops = "native_dropout", Affine(0, DROP * self.scores.slope)
            kept, mask = self.tape.add(
                f"{name}.{kind}", kind, "elementwise", [softmax], [self.scores] * 2, flops=flops, widths=(0, 1)
            )
        v = self._operand(name, v, grouped=self.grouped)
        out = self._product(f"{name}.bmm", kept, v, (n, d, n), self.queries)
        (out,) = self.tape.add(f"{name}.copy", "copy", "copy", [out], [self.queries])
        return Attended(q, k, v, softmax, kept, mask, out)

    def backward(self, name: str, g: int, attended: Attended) -> tuple[int, int, int]:
        """Kernels of the gradients of queries, keys and values, in this order."""
        n, d = self.model.sequence, self.model.head_width
        label = f"{name}.bmm.back"
        if not self.fused:
            (g,) = self.tape.add("copy.back", "copy", "copy", [g], [self.queries])
        v = self._product(label, attended.kept, g, (n, d, n), self.queries)
        scores = self._product(label, g, attended.v, (n, n, d), self.scores)
        if attended.mask >= 0:
            scores = self._each(f"{name}.native_dropout_backward", scores, DROP, beside=(attended.mask,))
        scores = self._each(
            f"{name}.softmax_backward", scores, SOFTMAX_BACK, beside=(attended.softmax,), family="normalization"
        )
        if self.fused:
            q = self._product(label, scores, attended.k, (n, d, n), self.queries)
            q = self._scaled(name, q)
            k = self._scaled(name, self._product(label, attended.q, scores, (d, n, n), self.queries))
        else:
            reads: list[Part] = [scores, self.causal]
            (scores,) = self.tape.add(f"{name}.masked_fill.back", "masked_fill", "elementwise", reads, [self.scores])
            scores = self._each(f"{name}.mul.back", scores)
            k = self._product(label, attended.q, scores, (d, n, n), self.queries)
            q = self._product(label, scores, attended.k, (n, d, n), self.queries)
        if self.grouped:
            v, k = self._summed(v), self._summed(k)
        return q, k, v

    def _operand(self, name: str, x: Part, *, grouped: bool) -> Part:
        """The operand of a product: a copy where heads share it, or where it does not lie together."""
        if self.fused and not grouped:
            return x
        return self.tape.add(f"{name}.copy", "copy", "copy", [x], [self.queries])[0]

    def _product(
        self, name: str, one: Part, other: Part, size: tuple[int, int, int], made: Affine, *, scaled: bool = False
    ) -> int:
        """A matrix product for each head of each sample."""
        m, n, k = size
        heads = self.model.heads
        flops = Affine(0, heads * m * n * (2 * k + scaled))
        gemm = (Affine(0, heads), Affine(m, 0), Affine(n, 0), Affine(k, 0))
        return self.tape.add(name, "bmm", "gemm", [one, other], [made], flops=flops, gemm=gemm)[0]

    def _each(
        self, name: str, x: int, flops: int = 1, *, beside: tuple[int, ...] = (), family: str = "elementwise"
    ) -> int:
        """A kernel over all scores."""
        kind = name.removesuffix(".back").rpartition(".")[2]
        work = Affine(0, flops * self.scores.slope)
        return self.tape.add(name, kind, family, [x, *beside], [self.scores], flops=work)[0]

    def _scaled(self, name: str, x: int) -> int:
        return self.tape.add(f"{name}.mul.back", "mul", "elementwise", [x], [self.queries], flops=self.queries)[0]

    def _summed(self, x: int) -> int:
        """Gradients of keys or values, over the query heads that share them."""
        return self.tape.add("sum.back", "sum", "reduction", [x], [self.keys], flops=self.queries)[0]
