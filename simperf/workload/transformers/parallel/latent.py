"""Latent attention of one rank: queries, keys and values are made of compressed vectors (DeepSeek-V2, 2024).

Matrices that compress are whole on every tensor-parallel rank, and those that make heads of what they give are divided,
as in Megatron-Core (megatron/core/transformer/multi_latent_attention.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from simperf.workload.layer_kernels import LayerKernels
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

__all__ = ["LatentAttention"]


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Compression, heads, rotation and attention, between a block's first norm and its output projection.

    Parameters
    ----------
    sizes : RankSizes
    kernels : LayerKernels
    """

    sizes: RankSizes
    kernels: LayerKernels

    @property
    def matrices(self) -> tuple[Linear, ...]:
        """Down and up of queries, down and up of keys and values; one of queries if they are not compressed."""
        sizes, model, kernels, heads = self.sizes, self.sizes.model, self.kernels, self.sizes.heads
        made = heads * (model.head_width + model.rope_dim)
        down = Linear("q_down", sizes.hidden, model.q_rank, sizes, kernels, bias=model.bias, divided=False, shared=True)
        up = Linear("q", model.q_rank or sizes.hidden, made, sizes, kernels, bias=model.bias, shared=not model.q_rank)
        latent = model.kv_rank + model.rope_dim
        kv_down = Linear("kv_down", sizes.hidden, latent, sizes, kernels, bias=model.bias, divided=False)
        kv = Linear("kv", model.kv_rank, heads * (model.head_width + self._value), sizes, kernels, bias=model.bias)
        return (*([down] if model.q_rank else []), up, kv_down, kv)

    @property
    def core(self) -> tuple[str, ...]:
        """Tensors inside of attention that its backward pass reads."""
        return self._flash.core

    @property
    def kept(self) -> tuple[str, ...]:
        """Tensors that its backward pass reads, and the output projection's, but its input."""
        queries = ("q.compressed", "q.statistics", "q.normalised") if self.sizes.model.q_rank else ()
        keys = ("kv.compressed", "kv.statistics", "kv.normalised")
        narrow = [name for one in self.matrices for name in one.narrow]
        return (*queries, *keys, "queries", "keys", "values", *self.core, "attention.output", *narrow)

    def forward(self, record: PassRecord, x: str) -> None:
        """Operations from the norm's output to ``attention.output``."""
        model, read = self.sizes.model, x
        *down, up, kv_down, kv = self.matrices
        if down:
            record.rename(down[0].forward(record, x), "q.compressed")
            read = self._norm(record, "q", model.q_rank)
        record.rename(up.forward(record, read), "q.heads")
        record.rename(kv_down.forward(record, x), "kv.compressed")
        record.rename(kv.forward(record, self._norm(record, "kv", model.kv_rank)), "kv.heads")
        self._rotate(record, back=False)
        self._flash.forward(record)

    def core_again(self, record: PassRecord) -> None:
        """The inside of attention again, whose result the output projection has kept."""
        self._flash.again(record)

    def backward(self, record: PassRecord, gradient: str, x: str) -> str:
        """Gradients down to that of the norm's output `x`, which is freed; its name."""
        sizes, model, width = self.sizes, self.sizes.model, self.sizes.width
        *down, up, kv_down, kv = self.matrices
        self._flash.backward(record, gradient)
        record.free(gradient, *self.core, *_PARTS, "attention.output")
        self._rotate(record, back=True)
        record.free("keys.gradient", "values.gradient")
        found = kv.backward(record, "kv.heads.gradient", "kv.normalised")
        found = self._norm_back(record, "kv", model.kv_rank, found)
        keys = kv_down.backward(record, found, x, frees=False)
        if down:
            found = up.backward(record, "queries.gradient", "q.normalised")
            found = self._norm_back(record, "q", model.q_rank, found)
            queries = down[0].backward(record, found, x, frees=False)
        else:
            queries = up.backward(record, "queries.gradient", x, frees=False)
        n = sizes.local_tokens * sizes.hidden
        added = each("add", n, read=2 * width, written=width, dtype=sizes.precision)
        made = [Kept("latent.gradient", sizes.local)]
        record.op(added, "latent.gradient", makes=made, frees=(keys, queries, x))
        return "latent.gradient"

    @property
    def _value(self) -> int:
        """Width of a value head."""
        return self.sizes.model.value_dim or self.sizes.model.head_width

    @property
    def _widths(self) -> tuple[int, int, int]:
        """Elements of queries, keys and values."""
        each_head = self.sizes.model.head_width + self.sizes.model.rope_dim
        heads = self.sizes.tokens * self.sizes.heads
        return heads * each_head, heads * each_head, heads * self._value

    @property
    def _flash(self) -> FlashCore:
        sizes, heads = self.sizes, self.sizes.heads
        width = sizes.model.head_width + sizes.model.rope_dim
        return FlashCore(sizes, self.kernels, _PARTS, heads, heads, width, self._value, latent=True)

    def _norm(self, record: PassRecord, name: str, columns: int) -> str:
        """Normalisation of what is compressed; the name of its output."""
        sizes, rows = self.sizes, self.sizes.local_tokens
        made = [
            Kept(f"{name}.normalised", sizes.width * rows * columns),
            Kept(f"{name}.statistics", statistics(sizes.model.norm, rows)),
        ]
        record.op(norm_forward(sizes.model.norm, rows, columns, sizes.precision), f"{name}_norm", makes=made)
        return f"{name}.normalised"

    def _norm_back(self, record: PassRecord, name: str, columns: int, gradient: str) -> str:
        """Gradient of what is compressed, with that of the keys' positions; its name."""
        sizes, rows, found = self.sizes, self.sizes.local_tokens, f"{name}.compressed.gradient"
        op = norm_back(sizes.model.norm, rows, columns, sizes.precision)
        made = [Kept(found, sizes.width * rows * columns)]
        frees = (gradient, f"{name}.compressed", f"{name}.statistics")
        record.op(op, f"{name}_norm.gradient", makes=made, frees=frees)
        accumulated(record, f"{name}_norm.weight", columns, self.kernels, sizes)
        if name == "q":
            return found
        whole = rows * (columns + sizes.model.rope_dim)
        width, dtype = sizes.width, sizes.precision
        joined = each("cat", whole, flops=0.0, read=width, written=width, dtype=dtype, family="copy")
        made = [Kept("kv.joined.gradient", sizes.width * whole)]
        record.op(joined, "kv.join", makes=made, frees=(found,))
        return "kv.joined.gradient"

    def _rotate(self, record: PassRecord, *, back: bool) -> None:
        """Rotate the heads' parts with positions, and put heads together; backward take them apart.

        One kernel for queries, in place, and one for keys and values; or kernels that rotate, and kernels that copy.
        """
        sizes, width, end = self.sizes, self.sizes.width, ".back" if back else ""
        queries, keys, values = self._widths
        turned = sizes.tokens * sizes.heads * sizes.model.rope_dim
        fused, dtype = self.kernels.rotary == "fused", sizes.precision
        rotary = each("rotary", turned, flops=arithmetic.ROTARY, read=width, written=width, dtype=dtype)
        record.op(rotary, f"q.rotary{end}")
        made, freed = ([Kept("keys", width * keys), Kept("values", width * values)], "kv.heads")
        if back:
            whole = sizes.tokens * sizes.heads * (sizes.model.head_width + self._value)
            made, freed = [Kept("kv.heads.gradient", width * whole)], ""
        shared = sizes.tokens * sizes.model.rope_dim
        if fused:
            joined = each("rotary", keys + values, flops=0.0, read=width, written=width, dtype=dtype)
            record.op(joined, f"kv.rotary{end}", makes=made, frees=(freed,) if freed else ())
        else:
            if not back:
                record.hold("q.joined", width * queries)
            join = each("cat", queries, flops=0.0, read=width, written=width, dtype=dtype, family="copy")
            record.op(join, f"q.join{end}", frees=() if back else ("q.joined",))
            turn = each("rotary", shared, flops=arithmetic.ROTARY, read=width, written=width, dtype=dtype)
            record.op(turn, f"k.rotary{end}")
            join = each("cat", keys + values, flops=0.0, read=width, written=width, dtype=dtype, family="copy")
            record.op(join, f"kv.cat{end}", makes=made, frees=(freed,) if freed else ())
        if not back:
            record.rename("q.heads", "queries")


#: what attention reads
_PARTS = ("queries", "keys", "values")
