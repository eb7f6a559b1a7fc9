"""Attention of a traced model that writes its scores to memory, in place of one kernel.

A trace has attention as `torch.nn.functional.scaled_dot_product_attention`, one kernel each way. Programs from before
PyTorch 2.0, and others that do not call it, write attention out: a batched product, a kernel that scales, one that adds
the mask, softmax, dropout, a second product, and copies where a product's operand does not lie together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from simperf.errors import InputError, Problem
from simperf.workload.model import TracedModel
from simperf.workload.traced import NEVER, Affine, Operand, Storage, TracedOp
from simperf.workload.transformers.arithmetic import DROP, SOFTMAX, SOFTMAX_BACK

__all__ = ["write_attention"]

_NONE = Affine(0, 0)


def write_attention(model: TracedModel) -> TracedModel:
    """The model with a kernel for each operation of its attention.

    Copies of queries, keys and values, and of their gradients, are made as `torch.matmul` and `torch.nn.Linear` make
    them of tensors whose heads are transposed. Scores are dropped where the model drops anything. What a trace halves
    for a causal mask is done in full.

    Parameters
    ----------
    model : TracedModel
        With operations of the family attention.

    Raises
    ------
    InputError
        Queries, keys and values of the model are one tensor, or it has no attention.
    """
    attention = [op for op in model.ops[: model.forward] if op.family == "attention"]
    if not attention or any(len(op.reads) < len("qkv") for op in attention):
        which = "are one tensor, which no trace takes apart" if attention else "do not exist: it has no attention"
        message = f"queries, keys and values of the model {model.name} {which}"
        expected = "a traced model with a matrix for each, such as bert-large, or a model by its dimensions"
        raise InputError(Problem(message, key="attention_kernels", value="'unfused'", expected=expected))
    drops = any(op.kind == "native_dropout" for op in model.ops)
    writing = _Writing(list(model.storages), list(model.tensors), drops=drops)
    starts = []
    for op in model.ops:
        starts.append(len(writing.ops))
        if op.family != "attention":
            writing.ops.append(op)
        elif op.kind.endswith("_backward"):
            writing.backward(op)
        else:
            writing.forward(op)
    starts.append(len(writing.ops))
    ends = [start - 1 for start in starts[1:]]
    return model.changed(
        ops=tuple(writing.ops),
        forward=starts[model.forward],
        storages=tuple(writing.storages_at(starts, model.storages)),
        tensors=tuple(writing.tensors),
        gradients=tuple(order._replace(after=ends[order.after]) for order in model.gradients),
    )


@dataclass(slots=True)
class _Kept:
    """Tensors of an attention that its backward pass reads."""

    q: int
    k: int
    v: int
    softmax: int
    kept: int
    mask: int


@dataclass(slots=True)
class _Writing:
    """Operations, storages and tensors as they are made; new storages have births and deaths in new operations."""

    storages: list[Storage]
    tensors: list[int]
    drops: bool
    ops: list[TracedOp] = field(default_factory=list)
    kept: dict[int, _Kept] = field(default_factory=dict)  # queries of a forward pass -> its tensors
    gone: set[int] = field(default_factory=set)  # storages of statistics, which nothing writes
    copied: set[int] = field(default_factory=set)  # storages of queries, keys, values: the backward pass has copies

    def forward(self, op: TracedOp) -> None:
        """Kernels of the forward pass."""
        q, k, v = (operand.tensor for operand in op.reads[:3])
        sizes = [operand.elements for operand in op.reads[:3]]
        heads, queries, width, keys = self._shape(op, 2)
        scores = Affine(heads.constant * queries * keys, heads.slope * queries * keys)
        copies = [self._each(f"{op.name}.copy", "copy", [x], size) for x, size in zip((q, k, v), sizes, strict=True)]
        made = self._product(op.name, copies[:2], (heads, queries, keys, width), scores, sizes[:2])
        made = self._each(f"{op.name}.mul", "mul", [made], scores, flops=1)
        made = self._each(f"{op.name}.add", "add", [made], scores, flops=1)
        softmax = self._each(f"{op.name}.softmax", "softmax", [made], scores, flops=SOFTMAX, family="normalization")
        kept, mask = softmax, -1
        if self.drops:
            kept = self._each(f"{op.name}.native_dropout", "native_dropout", [softmax], scores, flops=DROP)
            mask = self._tensor(scores, width=1)
            self.ops[-1] = self.ops[-1]._replace(writes=(*self.ops[-1].writes, Operand(mask, scores)))
        size = op.writes[0].elements
        out = self._product(op.name, [kept, copies[2]], (heads, queries, width, keys), size, [scores, sizes[2]])
        self._add(f"{op.name}.copy", "copy", [(out, size)], op.writes[0].tensor, size, family="copy")
        self.gone.update(self.tensors[operand.tensor] for operand in op.writes[1:])
        self.copied.update(self.tensors[x] for x in (q, k, v))
        self.kept[q] = _Kept(copies[0], copies[1], copies[2], softmax, kept, mask)

    def backward(self, op: TracedOp) -> None:
        """Kernels of the gradients of queries, keys and values."""
        gradient, queried = op.reads[0], op.reads[1].tensor
        kept = self.kept[queried]
        heads, queries, width, keys = self._shape(op, 5)
        scores = Affine(heads.constant * queries * keys, heads.slope * queries * keys)
        sizes = [operand.elements for operand in op.writes]
        size = gradient.elements
        g = self._each(f"{op.name}.copy", "copy", [gradient.tensor], size)
        grown = [self._product(op.name, [kept.kept, g], (heads, keys, width, queries), sizes[2], [scores, size])]
        s = self._product(op.name, [g, kept.v], (heads, queries, keys, width), scores, [size, sizes[2]])
        if kept.mask >= 0:
            name = f"{op.name}.native_dropout_backward"
            s = self._each(name, "native_dropout_backward", [s, kept.mask], scores, flops=DROP)
        name = f"{op.name}.softmax_backward"
        s = self._each(name, "softmax_backward", [s, kept.softmax], scores, flops=SOFTMAX_BACK, family="normalization")
        s = self._each(f"{op.name}.mul", "mul", [s], scores, flops=1)
        grown.insert(
            0, self._product(op.name, [kept.q, s], (heads, width, keys, queries), sizes[1], [sizes[0], scores])
        )
        grown.insert(
            0, self._product(op.name, [s, kept.k], (heads, queries, width, keys), sizes[0], [scores, sizes[1]])
        )
        for x, operand in zip(grown, op.writes, strict=True):
            name = f"{op.name}.copy"
            self._add(name, "copy", [(x, operand.elements)], operand.tensor, operand.elements, family="copy")

    def storages_at(self, starts: Sequence[int], old: Sequence[Storage]) -> list[Storage]:
        """All storages, from before their writer to behind their last reader."""
        writers: dict[int, int] = {}
        readers: dict[int, int] = {}
        for place, op in enumerate(self.ops):
            for operand in op.writes:
                writers.setdefault(self.tensors[operand.tensor], place)
            for operand in (*op.reads, *op.writes):
                readers[self.tensors[operand.tensor]] = place
        found = []
        for index, storage in enumerate(self.storages):
            one = storage._replace(elements=_NONE) if index in self.gone else storage
            if index < len(old):
                born = writers.get(index, starts[one.born]) if one.role == "value" else starts[one.born]
                dies = NEVER if one.dies == NEVER else starts[one.dies]
                if index in self.copied and dies != NEVER:
                    dies = readers[index] + 1
                found.append(one._replace(born=born, dies=dies))
            else:
                found.append(one._replace(born=writers[index], dies=readers[index] + 1))
        return found

    @staticmethod
    def _shape(op: TracedOp, products: int) -> tuple[Affine, int, int, int]:
        """Heads of all samples, queries, width of a head, keys."""
        heads, queries, width, keys = op.gemm
        return heads, round(queries.constant), round(width.constant), round(keys.constant / products)

    def _tensor(self, elements: Affine, *, width: int = 0) -> int:
        self.storages.append(Storage(elements, width))
        self.tensors.append(len(self.storages) - 1)
        return len(self.tensors) - 1

    def _product(
        self,
        name: str,
        operands: Sequence[int],
        size: tuple[Affine, int, int, int],
        made: Affine,
        amounts: Sequence[Affine],
    ) -> int:
        heads, m, n, k = size
        out = self._tensor(made)
        flops = Affine(2 * heads.constant * m * n * k, 2 * heads.slope * m * n * k)
        gemm = (heads, Affine(m, 0), Affine(n, 0), Affine(k, 0))
        reads = tuple(Operand(one, amount) for one, amount in zip(operands, amounts, strict=True))
        self.ops.append(TracedOp(f"{name}.bmm", "bmm", "gemm", flops, reads, (Operand(out, made),), gemm))
        return out

    def _each(
        self, name: str, kind: str, operands: Sequence[int], size: Affine, *, flops: int = 0, family: str = ""
    ) -> int:
        """A kernel over all elements of a tensor."""
        out = self._tensor(size)
        family = family or ("elementwise" if flops else "copy")
        self._add(name, kind, [(one, size) for one in operands], out, size, flops=flops, family=family)
        return out

    def _add(
        self,
        name: str,
        kind: str,
        reads: Sequence[tuple[int, Affine]],
        out: int,
        size: Affine,
        *,
        flops: int = 0,
        family: str,
    ) -> None:
        work = Affine(flops * size.constant, flops * size.slope)
        operands = tuple(Operand(tensor, amount) for tensor, amount in reads)
        self.ops.append(TracedOp(name, kind, family, work, operands, (Operand(out, size),)))
