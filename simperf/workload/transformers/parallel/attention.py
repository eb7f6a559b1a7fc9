"""Attention of one rank, between the matrix of queries, keys and values and the output projection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from simperf.workload.kinds.dense import bmm
from simperf.workload.kinds.memory import copy
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.op import Op
from simperf.workload.transformers import arithmetic
from simperf.workload.transformers.parallel.flash import FlashCore
from simperf.workload.transformers.parallel.linear import Linear, accumulated
from simperf.workload.transformers.parallel.operations import (
    each,
    norm_back,
    norm_forward,
    statistics,
)
from simperf.workload.transformers.parallel.record import PassRecord
from simperf.workload.transformers.parallel.sizes import RankSizes
from simperf.workload.transformers.passes import Kept

__all__ = ["Attention"]


class _Part(NamedTuple):
    """Queries or keys: what they are called, their heads and width on this rank."""

    name: str
    heads: int
    width: int


@dataclass(frozen=True, slots=True)
class Attention:
    """Rotation, norms of queries and keys, and causal attention over this rank's heads.

    Parameters
    ----------
    sizes : RankSizes
    kernels : LayerKernels
    window : int
        Tokens that it looks back at; 0 for all.
    """

    sizes: RankSizes
    kernels: LayerKernels
    window: int = 0

    @property
    def core(self) -> tuple[str, ...]:
        """Tensors inside of attention that its backward pass reads."""
        if self.kernels.attention == "flash":
            return self._flash.core
        dropped = ("attention.mask", "attention.dropped") if self.sizes.model.dropout else ()
        return ("attention.softmax", *dropped)

    @property
    def kept(self) -> tuple[str, ...]:
        """Tensors that its backward pass reads, and the output projection's."""
        norms = [f"{one.name}.{what}" for one in self._normed for what in ("unnormalised", "statistics")]
        return (*norms, "q", *self._keys_and_values, *self.core, "attention.output")

    @property
    def _repeated(self) -> bool:
        """Whether products over all query heads need keys and values for each of them."""
        return self.kernels.attention != "flash" and self.sizes.kv_heads != self.sizes.heads

    @property
    def _keys_and_values(self) -> tuple[str, str]:
        return ("k.repeated", "v.repeated") if self._repeated else ("k", "v")

    @property
    def _turned(self) -> bool:
        return self.sizes.model.positions == "rotary"

    @property
    def _queries_and_keys(self) -> tuple[_Part, _Part]:
        sizes = self.sizes
        return _Part("q", sizes.heads, sizes.queries), _Part("k", sizes.kv_heads, sizes.keys)

    @property
    def _normed(self) -> tuple[_Part, ...]:
        return self._queries_and_keys if self.sizes.model.qk_norm else ()

    @property
    def matrices(self) -> tuple[Linear]:
        """Of queries, keys and values together."""
        sizes, model = self.sizes, self.sizes.model
        whole = sizes.queries + 2 * sizes.keys
        bias, parts = model.bias or model.qkv_bias, (sizes.queries, sizes.keys, sizes.keys)
        return (Linear("qkv", sizes.hidden, whole, sizes, self.kernels, bias=bias, parts=parts),)

    def forward(self, record: PassRecord, x: str) -> None:
        """Operations from the norm's output to ``attention.output``."""
        self.attend(record, self.matrices[0].forward(record, x))

    def attend(self, record: PassRecord, qkv: str) -> None:
        """Operations from queries, keys and values to ``attention.output``."""
        sizes, width = self.sizes, self.sizes.width
        parts = (*self._queries_and_keys, _Part("v", sizes.kv_heads, sizes.keys))
        # queries and keys are made anew if they are rotated or normalised, values if the kernel wants them in one piece
        for part in parts:
            if part in self._normed:
                rows, columns = sizes.tokens * part.heads, sizes.model.head_width
                record.hold(f"{part.name}.unnormalised", width * sizes.tokens * part.width)
                record.hold(f"{part.name}.statistics", statistics(sizes.model.norm, rows))
                record.op(norm_forward(sizes.model.norm, rows, columns, sizes.precision), f"{part.name}.norm")
            record.hold(part.name, width * sizes.tokens * part.width)
            if part.name != "v" and self._turned:
                self._turn(record, part, back=False)
            elif part.name == "v" and (self._turned or self._normed):
                record.op(copy(sizes.tokens * part.width, dtype=sizes.precision), "v.copy")
        record.free(qkv)
        if self._repeated:
            for name in self._keys_and_values:
                made = Kept(name, width * sizes.tokens * sizes.queries)
                record.op(
                    copy(sizes.tokens * sizes.queries, dtype=sizes.precision), name, makes=[made], frees=[name[0]]
                )
        if self.kernels.attention == "flash":
            self._flash.forward(record)
            return
        self._core(record)
        record.hold("attention.output", width * sizes.tokens * sizes.queries)
        record.op(copy(sizes.tokens * sizes.queries, dtype=sizes.precision), "attention.copy")
        record.free("attention.heads")

    def _core(self, record: PassRecord) -> None:
        """Operations between queries, keys and values and the result of each head, where scores are in memory."""
        sizes, width, scores = self.sizes, self.sizes.width, self._scores
        fused = self.kernels.attention == "fused-softmax"
        record.op(self._product(self._tokens, self._tokens, sizes.model.head_width), "attention.scores")
        record.hold("attention.scores", width * scores)
        for kind in () if fused else ("mul", "masked_fill"):
            record.op(self._each(kind), f"attention.{kind}")
        record.hold("attention.softmax", width * scores)
        # Megatron's kernel has a row in registers, and reads what the mask leaves
        row, unread = (0.0, 0.5 * width) if fused else (float(self._tokens), 0.0)
        softmax = self._each("softmax", arithmetic.SOFTMAX, read=-unread, family="normalization", row=row)
        record.op(softmax, "attention.softmax", frees=("attention.scores",))
        if sizes.model.dropout:
            drop = each("dropout", scores, flops=arithmetic.DROP, read=width, written=width + 1, dtype=sizes.precision)
            masks = [Kept("attention.mask", float(scores)), Kept("attention.dropped", width * scores)]
            record.op(drop, "attention.dropout", makes=masks)
        made = [Kept("attention.heads", width * sizes.tokens * sizes.queries)]
        record.op(self._product(self._tokens, sizes.model.head_width, self._tokens), "attention.values", makes=made)

    def core_again(self, record: PassRecord) -> None:
        """The inside of attention again, whose result the output projection has kept."""
        if self.kernels.attention == "flash":
            self._flash.again(record)
            return
        self._core(record)
        record.free("attention.heads")

    def backward(self, record: PassRecord, gradient: str, x: str) -> str:
        """Gradients down to that of the norm's output `x`, which is freed; its name."""
        return self.matrices[0].backward(record, self.attend_back(record, gradient), x)

    def attend_back(self, record: PassRecord, gradient: str) -> str:
        """Gradients down to that of queries, keys and values; its name."""
        sizes, width = self.sizes, self.sizes.width
        made = [
            Kept(f"{name}.gradient", width * sizes.tokens * size)
            for name, size in (("q", sizes.queries), ("k", sizes.keys), ("v", sizes.keys))
        ]
        if self.kernels.attention == "flash":
            self._flash.backward(record, gradient)
        else:
            self._written_back(record, made)
        record.free(gradient, *self.core, "q", *self._keys_and_values)
        if "attention.output" in record.tensors:
            record.free("attention.output")
        for part in self._queries_and_keys:
            if self._turned:
                self._turn(record, part, back=True)
            if part in self._normed:
                rows, columns = sizes.tokens * part.heads, sizes.model.head_width
                record.op(norm_back(sizes.model.norm, rows, columns, sizes.precision), f"{part.name}.norm.gradient")
                accumulated(record, f"{part.name}.norm", columns, self.kernels, sizes)
                record.free(f"{part.name}.unnormalised", f"{part.name}.statistics")
        whole = sizes.queries + 2 * sizes.keys
        record.op(
            copy(sizes.tokens * whole, dtype=sizes.precision),
            "qkv.join",
            makes=[Kept("qkv.gradient", width * sizes.tokens * whole)],
            frees=[one.name for one in made],
        )
        return "qkv.gradient"

    @property
    def _tokens(self) -> int:
        return self.sizes.context

    @property
    def _scores(self) -> int:
        return self.sizes.microbatch * self.sizes.heads * self._tokens**2

    @property
    def _flash(self) -> FlashCore:
        sizes, width = self.sizes, self.sizes.model.head_width
        parts = ("q", "k", "v")
        return FlashCore(sizes, self.kernels, parts, sizes.heads, sizes.kv_heads, width, width, window=self.window)

    def _product(self, m: int, n: int, k: int) -> Op:
        """A matrix product for each head of each sequence."""
        return bmm(self.sizes.microbatch * self.sizes.heads, m, n=n, k=k, dtype=self.sizes.precision)

    def _each(
        self, kind: str, flops: float = 1.0, *, read: float = 0.0, family: str = "elementwise", row: float = 0.0
    ) -> Op:
        """A kernel over all scores, that reads them and so many bytes more of each."""
        width, dtype = self.sizes.width, self.sizes.precision
        return each(
            kind, self._scores, flops=flops, read=width + read, written=width, dtype=dtype, family=family, row=row
        )

    def _written_back(self, record: PassRecord, made: list[Kept]) -> None:
        """Gradients where the scores are in memory: a product for each factor."""
        sizes, width, scores = self.sizes, self.sizes.width, self._scores
        n, d = self._tokens, sizes.model.head_width
        fused = self.kernels.attention == "fused-softmax"
        if not fused:
            record.op(copy(sizes.tokens * sizes.queries, dtype=sizes.precision), "attention.copy.back")
        record.op(self._product(n, d, n), "attention.values.gradient", makes=made[2:])
        record.op(self._product(n, n, d), "attention.softmax.gradient", makes=[Kept("attention.back", width * scores)])
        if sizes.model.dropout:
            record.op(self._each("dropout_backward", arithmetic.DROP, read=1.0), "attention.dropout.back")
        softmax = self._each(
            "softmax_backward", arithmetic.SOFTMAX_BACK, read=0.0 if fused else width, family="normalization"
        )
        if fused:  # in place, from what the mask leaves of both
            record.op(softmax, "attention.softmax.back")
        else:
            back = [Kept("attention.scores.back", width * scores)]
            record.op(softmax, "attention.softmax.back", makes=back, frees=("attention.back",))
        for kind in () if fused else ("masked_fill", "mul"):
            record.op(self._each(kind), f"attention.{kind}.back")
        record.op(self._product(n, d, n), "q.gradient", makes=made[:1])
        record.op(self._product(n, d, n), "k.gradient", makes=made[1:2])
        for name in ("q", "k") if fused else ():
            scaled = each("mul", sizes.tokens * sizes.queries, read=width, written=width, dtype=sizes.precision)
            record.op(scaled, f"{name}.scale.back")
        if self._repeated:
            for name in ("k", "v"):
                whole, part = sizes.tokens * sizes.queries, sizes.keys / sizes.queries
                total = each("sum", whole, read=width, written=width * part, dtype=sizes.precision, family="reduction")
                record.op(total, f"{name}.repeat.back")
        record.free("attention.back" if fused else "attention.scores.back")

    def _turn(self, record: PassRecord, part: _Part, *, back: bool) -> None:
        """Rotate by position: x cos + (-x2, x1) sin, in one kernel or five, backward in seven."""
        sizes, width, end = self.sizes, self.sizes.width, ".back" if back else ""
        n, dtype = sizes.tokens * part.width, sizes.precision
        if self.kernels.rotary == "fused":
            op = each("rotary", n, flops=arithmetic.ROTARY, read=width, written=width, dtype=dtype)
            record.op(op, f"{part.name}.rotary{end}")
            return
        half = 0.5 * width
        steps = [("mul", 1.0, width, width), ("neg", 0.5, half, half), ("cat", 0.0, width, width)]
        steps += [("mul", 1.0, width, width), ("add", 1.0, 2 * width, width)]
        steps += [("slice", 0.0, half, width), ("add", 1.0, 2 * width, width)] if back else []
        for number, (kind, flops, read, written) in enumerate(steps):
            op = each(kind, n, flops=flops, read=read, written=written, dtype=dtype)
            record.op(op, f"{part.name}.rotary{end}.{number}")
