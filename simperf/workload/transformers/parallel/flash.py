"""Attention in one kernel on one rank, whose sequences context-parallel ranks may share.

Ranks share each sequence in chunks, two for each rank, one from its beginning and one from its end, so that a causal
mask leaves all of them the same arithmetic. They exchange keys and values in one of three ways:

- ``"ring"``: keys and values go around from rank to rank, while each multiplies its queries with those that it has (Liu
  et al., "Ring Attention with Blockwise Transformers for Near-Infinite Context", ICLR 2024).
- ``"all-gather"``: each rank gathers all keys and values for its queries (Llama 3, 2024, section 3.3).
- ``"all-to-all"``: ranks exchange tokens for heads, and each has all tokens of some heads (Jacobs et al., "DeepSpeed
  Ulysses", 2023).

Packed documents are shared so one by one: each rank has two chunks of each, or all of it for some heads.

Copies and the order of kernels are those of Transformer Engine (transformer_engine/pytorch/attention/
dot_product_attention/context_parallel.py). Around the ring, a step behind the first has half of the queries or half of
the keys, which takes all ranks the time of the latter here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from simperf.workload.kinds.attention import latent_attention
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.op import Op
from simperf.workload.precision import SINGLE
from simperf.workload.transformers.parallel.operations import (
    attention_back,
    attention_forward,
    each,
    with_sums,
)
from simperf.workload.transformers.parallel.record import PassRecord
from simperf.workload.transformers.parallel.sizes import RankSizes
from simperf.workload.transformers.passes import Kept

__all__ = ["FlashCore"]

#: name, and elements on this rank
_Part: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class FlashCore:
    """Attention between queries, keys and values and the result of this rank.

    Parameters
    ----------
    sizes : RankSizes
    kernels : LayerKernels
    names : (str, str, str)
        Of queries, keys and values.
    heads, kv_heads : int
        On this rank, without those of context-parallel ranks.
    head_dim, value_dim : int
        Widths of a head's queries and keys, and of its values.
    latent : bool
        Whether keys are wider than values, of latent attention.
    window : int
        Tokens that attention looks back at; 0 for all.
    """

    sizes: RankSizes
    kernels: LayerKernels
    names: tuple[str, str, str]
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    latent: bool = False
    window: int = 0

    @property
    def core(self) -> tuple[str, ...]:
        """Tensors inside of it that its backward pass reads."""
        return ("attention.statistics", *(["attention.whole"] if self._exchanges else []))

    def forward(self, record: PassRecord) -> None:
        """Operations from queries, keys and values to ``attention.output``."""
        sizes = self.sizes
        record.hold("attention.statistics", SINGLE * sizes.tokens * self.heads)
        made = [Kept("attention.output", sizes.width * self._made)]
        if sizes.cp == 1:
            record.op(self._op(sizes.context, sizes.context), "attention", makes=made)
        elif self._exchanges:
            self._exchange(record, self._parts)
            whole = [Kept("attention.whole", sizes.width * self._made)]
            record.op(self._op(sizes.model.sequence, sizes.model.sequence, over=sizes.cp), "attention", makes=whole)
            record.hold(*made[0])
            self._exchange(record, [("attention.output", self._made)])
        elif sizes.context_exchange == "ring":
            self._ring(record, made[0])
        else:
            self._gather(record, "")
            record.hold(*made[0])
            for number, op in enumerate(self._halves()):
                record.op(op, f"attention.{number}")
            record.free("keys.whole")

    def again(self, record: PassRecord) -> None:
        """The inside of attention again, whose result the output projection has kept."""
        sizes, kept = self.sizes, "attention.output.kept"
        if sizes.cp == 1:
            record.hold("attention.statistics", SINGLE * sizes.tokens * self.heads)
            record.op(self._op(sizes.context, sizes.context), "attention")
            return
        record.rename("attention.output", kept)
        self.forward(record)
        record.free("attention.output")
        record.rename(kept, "attention.output")

    def backward(self, record: PassRecord, gradient: str) -> None:
        """From the gradient of the result to those of queries, keys and values."""
        sizes = self.sizes
        made = [Kept(f"{name}.gradient", sizes.width * size) for name, size in self._parts]
        if sizes.cp == 1:
            op = attention_back(self._op(sizes.context, sizes.context))
            record.op(op, "attention.gradient", makes=made)
        elif self._exchanges:
            self._exchange(record, [(gradient, self._made)])
            op = attention_back(self._op(sizes.model.sequence, sizes.model.sequence, over=sizes.cp))
            record.op(op, "attention.gradient", makes=made)
            self._exchange(record, [(one.name, size) for one, (_, size) in zip(made, self._parts, strict=True)])
        elif sizes.context_exchange == "ring":
            self._ring_back(record, made)
        else:
            self._gather(record, ".back")
            record.hold("keys.whole.gradient", sizes.width * sizes.cp * self._keys_and_values)
            for one in made:
                record.hold(*one)
            for number, op in enumerate(self._halves()):
                record.op(attention_back(op), f"attention.gradient.{number}")
            for name, size in self._parts[1:]:
                record.sync("reduce-scatter", sizes.width * sizes.cp * size, f"{name}.reduce", dimension="cp")
            record.free("keys.whole", "keys.whole.gradient")

    @property
    def _exchanges(self) -> bool:
        """Whether tokens are exchanged for heads."""
        return self.sizes.cp > 1 and self.sizes.context_exchange == "all-to-all"

    @property
    def _parts(self) -> tuple[_Part, _Part, _Part]:
        """Queries, keys and values of this rank's tokens."""
        tokens = self.sizes.tokens
        counts = self.heads * self.head_dim, self.kv_heads * self.head_dim, self.kv_heads * self.value_dim
        first, second, third = zip(self.names, counts, strict=True)
        return (first[0], tokens * first[1]), (second[0], tokens * second[1]), (third[0], tokens * third[1])

    @property
    def _keys_and_values(self) -> int:
        return self._parts[1][1] + self._parts[2][1]

    @property
    def _made(self) -> int:
        """Elements of the result."""
        return self.sizes.tokens * self.heads * self.value_dim

    def _op(self, queries: int, keys: int, *, causal: bool = True, over: int = 1) -> Op:
        """Attention of so many queries and keys of each sequence, with the heads of this rank among `over` ranks."""
        sizes, library = self.sizes, self.kernels.library
        heads, kv_heads = self.heads // over, self.kv_heads // over
        batch, documents = sizes.microbatch, sizes.trained.documents
        if documents:  # a kernel for sequences of any lengths, as for as many even ones, of which it has the same parts
            count, length = documents.even(sizes.model.sequence)
            batch *= count
            queries, keys = (max(1, round(length * part / sizes.model.sequence)) for part in (queries, keys))
        if self.latent:
            op = latent_attention(
                batch,
                heads,
                queries=queries,
                keys=keys,
                head_dim=self.head_dim,
                value_dim=self.value_dim,
                causal=causal,
                library=library,
                dtype=sizes.precision,
            )
            return with_sums(op)
        return attention_forward(
            batch,
            heads,
            kv_heads,
            tokens=queries,
            keys=keys,
            width=self.head_dim,
            causal=causal,
            window=self.window,
            dtype=sizes.precision,
            library=library,
        )

    def _copy(self, elements: float) -> Op:
        width, dtype = self.sizes.width, self.sizes.precision
        return each("copy", elements, flops=0.0, read=width, written=width, dtype=dtype, family="copy")

    # Tokens for heads ------------------------------------------------------------------

    def _exchange(self, record: PassRecord, parts: list[_Part] | tuple[_Part, ...]) -> None:
        """Each tensor is put in the order of the ranks, exchanged, and put in the order of the tokens."""
        for name, size in parts:
            nbytes = self.sizes.width * size
            record.op(self._copy(size), f"{name}.pack", makes=[Kept(f"{name}.packed", nbytes)])
            record.sync("all-to-all", nbytes, f"{name}.exchange", dimension="cp", waits=False)
        for name, size in parts:
            record.wait(f"{name}.exchange")
            record.op(self._copy(size), f"{name}.unpack", frees=(f"{name}.packed",))

    # All keys and values ---------------------------------------------------------------

    def _gather(self, record: PassRecord, end: str) -> None:
        """All ranks' keys and values, in the order of the tokens."""
        sizes = self.sizes
        record.hold("keys.whole", sizes.width * sizes.cp * self._keys_and_values)
        for name, size in self._parts[1:]:
            record.sync("all-gather", sizes.width * sizes.cp * size, f"{name}.gather{end}", dimension="cp")
            record.op(self._copy(sizes.cp * size), f"{name}.order{end}")

    def _halves(self) -> Iterator[Op]:
        """Attention of each of the rank's two chunks: of all ranks the mean."""
        sizes = self.sizes
        chunk = sizes.context // 2
        whole = self._op(sizes.context, sizes.context).flops * sizes.cp
        op = self._op(chunk, -(-chunk * (2 * sizes.cp + 1) // 2))
        yield from [replace(op, flops=whole / 2)] * 2

    # Around the ring -------------------------------------------------------------------

    def _step(self, number: int) -> Op:
        """Attention of a step of the ring: its own keys, or half of another rank's."""
        context = self.sizes.context
        return self._op(context, context // 2, causal=False) if number else self._op(context, context)

    def _ring(self, record: PassRecord, made: Kept) -> None:
        sizes = self.sizes
        nbytes = sizes.width * self._keys_and_values
        buffers = [Kept("ring.sent", nbytes), Kept("ring.received", nbytes)]
        record.op(self._copy(self._keys_and_values), "ring.join", makes=buffers)
        steps = []
        for number in range(sizes.cp):
            if number < sizes.cp - 1:
                record.sync("send-recv", nbytes, f"ring.{number}", dimension="cp", waits=False)
            part = 1.0 if number == 0 else 0.75  # of half of the ranks the queries are half, of the others all
            steps.append(Kept(f"attention.step{number}", part * sizes.width * self._made))
            record.op(self._step(number), f"attention.{number}", makes=steps[-1:])
            record.wait(f"ring.{number}")
        record.free("ring.sent", "ring.received")
        record.hold(*made)
        width, dtype = sizes.width, sizes.precision
        for one in steps:
            elements = one.nbytes / width
            op = each("correction", elements, flops=2.0, read=2 * width, written=width, dtype=dtype)
            record.op(op, f"{one.name}.add")
        record.free(*(one.name for one in steps))

    def _ring_back(self, record: PassRecord, made: list[Kept]) -> None:
        """The ring again: keys and values, and behind them their gradients, which come back to their rank at last."""
        sizes, width = self.sizes, self.sizes.width
        nbytes, last = width * self._keys_and_values, sizes.cp - 1
        buffers = [Kept(f"ring.{one}", 2 * nbytes) for one in ("sent", "received")]
        record.op(self._copy(self._keys_and_values), "ring.join.back", makes=[*buffers, *made])
        step = [Kept(f"{one.name}.step", one.nbytes) for one in made]
        for number in range(sizes.cp):
            sent = nbytes * (2 if 0 < number < last else 1)
            record.sync("send-recv", sent, f"ring.back.{number}", dimension="cp", waits=False)
            record.op(attention_back(self._step(number)), f"attention.gradient.{number}", makes=step)
            record.wait(f"ring.back.{number}")
            elements = sum(one.nbytes for one in step) / width * (0.75 if number else 1.0)
            added = each("add", elements, read=2 * width, written=width, dtype=sizes.precision)
            record.op(added, f"attention.gradient.{number}.add", frees=[one.name for one in step])
        record.free("ring.sent", "ring.received")
