"""The training step of the GPT family, kernel by kernel as eager PyTorch runs it.

Queries, keys and values are one matrix, biases are added by the matrix products, and every gradient of an input comes
before that of its weight and bias.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.traced import Affine
from simperf.workload.transformers.arithmetic import (
    ATTENTION_BACK,
    DIVIDE,
    DROP,
    GELU,
    GELU_BACK,
    LAYER_NORM,
    LAYER_NORM_BACK,
)
from simperf.workload.transformers.attention import Attended
from simperf.workload.transformers.dimensions import Transformer, Weight
from simperf.workload.transformers.tape import Part
from simperf.workload.transformers.training_pass import TrainingPass

__all__ = ["GptStep"]

#: FLOP an element
ROOT = 8


@dataclass(frozen=True, slots=True)
class _Norm:
    """Tensors of a normalisation for the backward pass: its input, mean and 1 / deviation of each row.

    Of one that is written out, the centred input stands for the input, and the scaled one for the mean.
    """

    name: str
    x: int
    mean: int
    root: int


@dataclass(frozen=True, slots=True)
class _Block:
    """Tensors of a block for the backward pass; a mask is -1 without dropout."""

    first: _Norm
    h: int
    qkv: int
    attended: int
    sums: int
    written: Attended | None
    mask: int
    second: _Norm
    h2: int
    up: int
    active: int
    mask2: int


class GptStep(TrainingPass):
    """A training step of a dense model with layer normalisation, learned positions, GELU and biases."""

    def __init__(self, model: Transformer, kernels: LayerKernels) -> None:
        super().__init__(model, _fused(model), kernels)
        self._blocks: dict[str, _Block] = {}

    def embed(self) -> int:
        """Look tokens and places up."""
        tape, model = self.tape, self.model
        places = Affine(model.sequence, 0)
        (self._places,) = tape.add("fill", "fill", "elementwise", [], [places], widths=(8,))
        table, position = self.weights["embed.weight"][0], self.weights["position.weight"][0]
        (x,) = tape.add("embed.embedding", "embedding", "copy", [(table, self.wide), self.tokens], [self.wide])
        size = Affine(model.sequence * model.hidden, 0)
        (at,) = tape.add("position.embedding", "embedding", "copy", [position, self._places], [size])
        x, self._mask = self._drop("drop", self.pointwise("add", [x, at], self.wide))
        return x

    def block(self, name: str, x: int) -> int:
        """Attention and feed-forward network, each added to what it reads."""
        model = self.model
        h, first = self._norm(f"{name}.norm1", x)
        whole = Affine(0, self.queries.slope + 2 * self.keys.slope)
        qkv = self._linear(f"{name}.qkv", h, whole)
        written, sums = None, -1
        if self.written is not None:
            written = self.written.forward(name, (qkv, self.queries), (qkv, self.keys), (qkv, self.keys))
            a = written.out
        else:
            products, flops = self.attention(2)
            sizes = [self.queries, Affine(0, model.heads * model.sequence)]
            label, kind = f"{name}.attention", "attention"
            a, sums = self.tape.add(label, kind, kind, [qkv], sizes, flops=flops, gemm=products)
        o, mask = self._drop(f"{name}.drop", self._linear(f"{name}.o", a, self.wide))
        x = self.pointwise(f"{name}.add", [x, o], self.wide)
        h2, second = self._norm(f"{name}.norm2", x)
        up = self._linear(f"{name}.up", h2, self.inner)
        active = self.pointwise(f"{name}.gelu", [up], self.inner, GELU)
        down, mask2 = self._drop(f"{name}.drop", self._linear(f"{name}.down", active, self.wide))
        self._blocks[name] = _Block(first, h, qkv, a, sums, written, mask, second, h2, up, active, mask2)
        return self.pointwise(f"{name}.add", [x, down], self.wide)

    def head(self, x: int) -> int:
        """Normalise and give each token a chance."""
        h, norm = self._norm("norm", x)
        self._last = h, norm
        weight, gemm, flops = self._head()
        return self.tape.add("head.matmul", "matmul", "gemm", [h, weight], [self.logits], flops=flops, gemm=gemm)[0]

    def head_back(self, g: int) -> int:
        """Gradient of what the head reads."""
        h, norm = self._last
        weight, (one, rows, vocabulary, hidden), flops = self._head()
        size = Affine(self.model.vocabulary * self.model.hidden, 0)
        gemm = (one, vocabulary, hidden, rows)
        (self._found,) = self.tape.add("head.matmul.back", "matmul", "gemm", [g, h], [size], flops=flops, gemm=gemm)
        gemm = (one, rows, hidden, vocabulary)
        (back,) = self.tape.add("head.matmul.back", "matmul", "gemm", [g, weight], [self.wide], flops=flops, gemm=gemm)
        if not self.model.tied:
            self.tape.gradient("head.weight", self._found)
        return self._norm_back(norm, back)

    def block_back(self, name: str, g: int) -> int:
        """Gradient of what a block reads."""
        block = self._blocks[name]
        inner = self._linear_back(f"{name}.down", self._drop_back(name, g, block.mask2), block.active, self.inner)
        inner = self.pointwise(f"{name}.gelu_backward", [inner, block.up], self.inner, GELU_BACK)
        h = self._linear_back(f"{name}.up", inner, block.h2, self.wide)
        g = self._norm_back(block.second, h, plus=g)
        a = self._linear_back(f"{name}.o", self._drop_back(name, g, block.mask), block.attended, self.queries)
        parts = self._attention_back(name, a, block)
        whole = Affine(0, self.queries.slope + 2 * self.keys.slope)
        (qkv,) = self.tape.add("cat.back", "cat", "copy", parts, [whole])
        h = self._linear_back(f"{name}.qkv", qkv, block.h, self.wide)
        return self._norm_back(block.first, h, plus=g)

    def _attention_back(self, name: str, g: int, block: _Block) -> tuple[int, ...]:
        """Gradients of queries, keys and values."""
        if self.written is not None and block.written is not None:
            q, k, v = self.written.backward(name, g, block.written)
            if self.written.fused:
                return q, k, v
            (v,) = self.tape.add("copy.back", "copy", "copy", [v], [self.keys])
            (q,) = self.tape.add("copy.back", "copy", "copy", [q], [self.queries])
            return q, k, v
        products, flops = self.attention(2 * ATTENTION_BACK)
        return self.tape.add(
            f"{name}.attention_backward",
            "attention_backward",
            "attention",
            [g, block.qkv, block.attended, block.sums],
            [self.queries, self.keys, self.keys],
            flops=flops,
            gemm=products,
        )

    def embed_back(self, g: int) -> None:
        """Gradients of the embeddings."""
        tape, model = self.tape, self.model
        g = self._drop_back("", g, self._mask)
        size, kind = Affine(model.sequence * model.hidden, 0), "embedding_dense_backward"
        (places,) = tape.add("sum.back", "sum", "reduction", [g], [size], flops=self.wide)
        (found,) = tape.add(f"position.{kind}", kind, "copy", [places, self._places], [size])
        tape.gradient("position.weight", found)
        table = Affine(model.vocabulary * model.hidden, 0)
        (found,) = tape.add(f"embed.{kind}", kind, "copy", [g, self.tokens], [table])
        if model.tied:
            found = self.pointwise("embed.add.back", [self._found, found], table)
        tape.gradient("embed.weight", found)

    def _head(self) -> tuple[int, tuple[Affine, Affine, Affine, Affine], Affine]:
        """The head's weights, its matrix product and its arithmetic [FLOP]."""
        model = self.model
        weight = self.weights["embed.weight" if model.tied else "head.weight"][0]
        gemm = (Affine(1, 0), self.rows, Affine(model.vocabulary, 0), Affine(model.hidden, 0))
        return weight, gemm, Affine(0, 2 * model.sequence * model.vocabulary * model.hidden)

    def _norm(self, name: str, x: int) -> tuple[int, _Norm]:
        if not self.kernels.fuses_norm("layer"):
            return self._norm_written(name, x)
        weights = [self.weights[f"{name}.{part}"][0] for part in ("weight", "bias")]
        flops = Affine(0, LAYER_NORM * self.wide.slope)
        sizes = [self.wide, self.rows, self.rows]
        h, mean, root = self.tape.add(
            f"{name}.layernorm", "layernorm", "normalization", [x, *weights], sizes, flops=flops
        )
        return h, _Norm(name, x, mean, root)

    def _norm_back(self, norm: _Norm, g: int, *, plus: int | None = None) -> int:
        """Gradient of a normalisation's input, added to `plus`."""
        if not self.kernels.fuses_norm("layer"):
            return self._norm_written_back(norm, g, plus=plus)
        name = norm.name
        weights = [self.weights[f"{name}.{part}"][0] for part in ("weight", "bias")]
        size = Affine(self.model.hidden, 0)
        parts: list[Part] = [(g, self.wide, 2), (norm.x, self.wide, 2), norm.mean, norm.root, *weights]
        x, weight, bias = self.tape.add(
            f"{name}.layernorm_backward",
            "layernorm_backward",
            "normalization",
            parts,
            [self.wide, size, size],
            flops=Affine(0, LAYER_NORM_BACK * self.wide.slope),
        )
        if plus is not None:
            x = self.pointwise(f"{name}.add.back", [plus, x], self.wide)
        self.tape.gradient(f"{name}.weight", weight)
        self.tape.gradient(f"{name}.bias", bias)
        return x

    def _norm_written(self, name: str, x: int) -> tuple[int, _Norm]:
        """Layer normalisation, a kernel for each operation."""
        weight, bias = (self.weights[f"{name}.{part}"][0] for part in ("weight", "bias"))
        (mean,) = self.tape.add(f"{name}.mean", "mean", "reduction", [x], [self.rows], flops=self.wide)
        centred = self.pointwise(f"{name}.sub", [x, mean], self.wide)
        square = self.pointwise(f"{name}.pow", [centred], self.wide)
        (spread,) = self.tape.add(f"{name}.mean", "mean", "reduction", [square], [self.rows], flops=self.wide)
        root = self.pointwise(f"{name}.rsqrt", [self.pointwise(f"{name}.add", [spread], self.rows)], self.rows, ROOT)
        scaled = self.pointwise(f"{name}.mul", [centred, root], self.wide)
        product = self.pointwise(f"{name}.mul", [weight, scaled], self.wide)
        return self.pointwise(f"{name}.add", [product, bias], self.wide), _Norm(name, centred, scaled, root)

    def _norm_written_back(self, norm: _Norm, g: int, *, plus: int | None) -> int:
        name, tape, size = norm.name, self.tape, Affine(self.model.hidden, 0)
        weight = self.weights[f"{name}.weight"][0]

        def total(x: int, made: Affine) -> int:
            return tape.add(f"{name}.sum.back", "sum", "reduction", [x], [made], flops=self.wide)[0]

        def each(kind: str, reads: list[Part], made: Affine, flops: int = 1) -> int:
            return self.pointwise(f"{name}.{kind}.back", reads, made, flops)

        tape.gradient(f"{name}.bias", total(g, size))
        scaled = each("mul", [g, weight], self.wide)
        tape.gradient(f"{name}.weight", total(each("mul", [g, norm.mean], self.wide), size))
        product = each("mul", [scaled, norm.x], self.wide)
        x = each("mul", [scaled, norm.root], self.wide)
        root = total(product, self.rows)
        cube = each("pow", [norm.root], self.rows)
        root = each("mul", [each("mul", [root], self.rows), cube], self.rows)
        spread = each("div", [root], self.wide, DIVIDE)
        slope = each("mul", [each("pow", [norm.x], self.wide)], self.wide)
        x = each("add", [x, each("mul", [spread, slope], self.wide)], self.wide)
        mean = total(each("neg", [x], self.wide), self.rows)
        if plus is not None:
            x = each("add", [plus, x], self.wide)
        return each("add", [x, each("div", [mean], self.wide, DIVIDE)], self.wide)

    def _linear(self, name: str, x: int, size: Affine) -> int:
        weight, (fan_out, fan_in) = self.weights[f"{name}.weight"]
        gemm = (Affine(1, 0), self.rows, Affine(fan_out, 0), Affine(fan_in, 0))
        flops = Affine(0, self.model.sequence * fan_out * (2 * fan_in + 1))
        parts = [x, weight, self.weights[f"{name}.bias"][0]]
        return self.tape.add(f"{name}.linear", "linear", "gemm", parts, [size], flops=flops, gemm=gemm)[0]

    def _linear_back(self, name: str, g: int, x: int, size: Affine) -> int:
        back, found = self.input_back(name, g, size), self.weight_back(name, g, x)
        fan_out = self.weights[f"{name}.weight"][1][0]
        work = Affine(0, self.model.sequence * fan_out)
        (bias,) = self.tape.add(f"{name}.sum.back", "sum", "reduction", [g], [Affine(fan_out, 0)], flops=work)
        self.tape.gradient(f"{name}.bias", bias)
        self.tape.gradient(f"{name}.weight", found)
        return back

    def _drop(self, name: str, x: int) -> tuple[int, int]:
        """The output of dropout, and its mask of a byte an element."""
        if not self.model.dropout:
            return x, -1
        kind, flops = "native_dropout", Affine(0, DROP * self.wide.slope)
        made = self.tape.add(
            f"{name}.{kind}", kind, "elementwise", [x], [self.wide, self.wide], flops=flops, widths=(0, 1)
        )
        return made[0], made[1]

    def _drop_back(self, name: str, g: int, mask: int) -> int:
        if mask < 0:
            return g
        label = f"{name}.drop" if name else "drop"
        return self.pointwise(f"{label}.native_dropout_backward", [g, mask], self.wide, DROP)


def _fused(model: Transformer) -> Iterator[Weight]:
    """Weights with queries, keys and values in one matrix."""
    for one in model.weights():
        name, _, part = one.name.rpartition(".")
        where, _, layer = name.rpartition(".")
        if layer == "q":
            rows = model.query_width + 2 * model.key_width
            yield Weight(f"{where}.qkv.{part}", (rows, *one.shape[1:]))
        elif layer not in ("k", "v"):
            yield one
