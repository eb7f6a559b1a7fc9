"""The training step of the Llama family, kernel by kernel as eager PyTorch runs it.

RMS normalisation and rotary embedding are written out, attention is one kernel, and every gradient of a weight comes
before that of its input.
"""

from __future__ import annotations

from dataclasses import dataclass

from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.traced import Affine
from simperf.workload.transformers.arithmetic import ATTENTION_BACK, DIVIDE, RMS_NORM, RMS_NORM_BACK, SILU, SILU_BACK
from simperf.workload.transformers.attention import Attended
from simperf.workload.transformers.dimensions import Transformer
from simperf.workload.transformers.training_pass import TrainingPass

__all__ = ["LlamaStep"]

#: FLOP an element
ROOT = 8


@dataclass(frozen=True, slots=True)
class _Norm:
    """Tensors of an RMS normalisation for the backward pass: its input, 1 / root and the scaled input."""

    name: str
    x: int
    root: int
    scaled: int


@dataclass(frozen=True, slots=True)
class _Block:
    """Tensors of a block for the backward pass."""

    first: _Norm
    h: int
    attended: tuple[int, int, int, int, int]  # queries, keys, values, output, log-sum-exp
    written: Attended | None
    second: _Norm
    h2: int
    gate: int
    active: int
    up: int
    inner: int


class LlamaStep(TrainingPass):
    """A training step of a dense model with RMS normalisation, rotary positions and a gated feed-forward network."""

    def __init__(self, model: Transformer, kernels: LayerKernels) -> None:
        super().__init__(model, model.weights(), kernels)
        angles = Affine(model.sequence * model.head_width, 0)
        self.cos = self.tape.value(angles, role="buffer", name="cos")
        self.sin = self.tape.value(angles, role="buffer", name="sin")
        self._blocks: dict[str, _Block] = {}
        #: gradients that do not lie as their matrix products read them: heads are apart, unless the sequence is first
        self._apart = {"flash": ("k", "q"), "unfused": ("v", "k", "q"), "fused-softmax": ()}[kernels.attention]

    def embed(self) -> int:
        """Look the tokens up."""
        table = self.weights["embed.weight"][0]
        return self.tape.add("embed.embedding", "embedding", "copy", [(table, self.wide), self.tokens], [self.wide])[0]

    def head(self, x: int) -> int:
        """Normalise and give each token a chance."""
        h, norm = self._norm("norm", x)
        self._last = h, norm
        return self._linear("head", h, self.logits)

    def head_back(self, g: int) -> int:
        """Gradient of what the head reads."""
        h, norm = self._last
        return self._norm_back(norm, self._linear_back("head", g, h, self.wide))

    def embed_back(self, g: int) -> None:
        """Gradient of the embedding."""
        size, label = Affine(self.model.vocabulary * self.model.hidden, 0), "embed.embedding_dense_backward"
        (found,) = self.tape.add(label, "embedding_dense_backward", "copy", [g, self.tokens], [size])
        self.tape.gradient("embed.weight", found)

    def block(self, name: str, x: int) -> int:
        """Attention and feed-forward network, each added to what it reads."""
        model = self.model
        h, first = self._norm(f"{name}.norm1", x)
        q = self._linear(f"{name}.q", h, self.queries)
        k = self._linear(f"{name}.k", h, self.keys)
        v = self._linear(f"{name}.v", h, self.keys)
        q, k = self._rotary(name, q, self.queries), self._rotary(name, k, self.keys)
        written, lse = None, -1
        if self.written is not None:
            written = self.written.forward(name, q, k, v)
            a = written.out
        else:
            sizes = [self.queries, Affine(0, model.heads * model.sequence)]
            products, flops = self.attention(2)
            label, kind = f"{name}.attention", "attention"
            a, lse = self.tape.add(label, kind, kind, [q, k, v], sizes, flops=flops, gemm=products)
        x = self.pointwise(f"{name}.add", [x, self._linear(f"{name}.o", a, self.wide)], self.wide)
        h2, second = self._norm(f"{name}.norm2", x)
        gate = self._linear(f"{name}.gate", h2, self.inner)
        active = self.pointwise(f"{name}.silu", [gate], self.inner, SILU)
        up = self._linear(f"{name}.up", h2, self.inner)
        inner = self.pointwise(f"{name}.mul", [active, up], self.inner)
        x = self.pointwise(f"{name}.add", [x, self._linear(f"{name}.down", inner, self.wide)], self.wide)
        self._blocks[name] = _Block(first, h, (q, k, v, a, lse), written, second, h2, gate, active, up, inner)
        return x

    def block_back(self, name: str, g: int) -> int:
        """Gradient of what a block reads."""
        block = self._blocks[name]
        inner = self._linear_back(f"{name}.down", g, block.inner, self.inner)
        up = self.pointwise(f"{name}.mul.back", [inner, block.active], self.inner)
        active = self.pointwise(f"{name}.mul.back", [inner, block.up], self.inner)
        one = self._linear_back(f"{name}.up", up, block.h2, self.wide)
        gate = self.pointwise(f"{name}.silu_backward", [active, block.gate], self.inner, SILU_BACK)
        h = self._linear_back(f"{name}.gate", gate, block.h2, self.wide, plus=one)
        g = self._norm_back(block.second, h, plus=g)
        attended = self._linear_back(f"{name}.o", g, block.attended[3], self.queries)
        q, k, v = self._attention_back(name, attended, block)
        k, q = self._rotary_back(name, k, self.keys), self._rotary_back(name, q, self.queries)
        read: int | None = None
        for part, turned, size in (("v", v, self.keys), ("k", k, self.keys), ("q", q, self.queries)):
            apart = part in self._apart
            straight = self.tape.add("copy.back", "copy", "copy", [turned], [size])[0] if apart else turned
            read = self._linear_back(f"{name}.{part}", straight, block.h, self.wide, plus=read)
        assert read is not None
        return self._norm_back(block.first, read, plus=g)

    def _attention_back(self, name: str, g: int, block: _Block) -> tuple[int, ...]:
        """Gradients of queries, keys and values."""
        if self.written is not None and block.written is not None:
            return self.written.backward(name, g, block.written)
        products, flops = self.attention(2 * ATTENTION_BACK)
        return self.tape.add(
            f"{name}.attention_backward",
            "attention_backward",
            "attention",
            [g, *block.attended],
            [self.queries, self.keys, self.keys],
            flops=flops,
            gemm=products,
        )

    def _norm(self, name: str, x: int) -> tuple[int, _Norm]:
        """Root mean square normalisation: six kernels, or one."""
        weight, _ = self.weights[f"{name}.weight"]
        if self.kernels.fuses_norm("rms"):
            flops = Affine(0, RMS_NORM * self.wide.slope)
            h, root = self.tape.add(
                f"{name}.rms_norm", "rms_norm", "normalization", [x, weight], [self.wide, self.rows], flops=flops
            )
            return h, _Norm(name, x, root, -1)
        square = self.pointwise(f"{name}.pow", [x], self.wide)
        (mean,) = self.tape.add(f"{name}.mean", "mean", "reduction", [square], [self.rows], flops=self.wide)
        shifted = self.pointwise(f"{name}.add", [mean], self.rows)
        root = self.pointwise(f"{name}.rsqrt", [shifted], self.rows, ROOT)
        scaled = self.pointwise(f"{name}.mul", [x, root], self.wide)
        return self.pointwise(f"{name}.mul", [weight, scaled], self.wide), _Norm(name, x, root, scaled)

    def _norm_back(self, norm: _Norm, g: int, *, plus: int | None = None) -> int:
        """Gradient of a normalisation's input, added to `plus`."""
        if self.kernels.fuses_norm("rms"):
            return self._norm_fused_back(norm, g, plus=plus)
        name, (weight, shape) = norm.name, self.weights[f"{norm.name}.weight"]
        scaled = self.pointwise(f"{name}.mul.back", [g, weight], self.wide)
        product = self.pointwise(f"{name}.mul.back", [g, norm.scaled], self.wide)
        size = Affine(shape[0], 0)
        (found,) = self.tape.add(f"{name}.sum.back", "sum", "reduction", [product], [size], flops=self.wide)
        self.tape.gradient(f"{name}.weight", found)
        product = self.pointwise(f"{name}.mul.back", [scaled, norm.x], self.wide)
        x = self.pointwise(f"{name}.mul.back", [scaled, norm.root], self.wide)
        (root,) = self.tape.add(f"{name}.sum.back", "sum", "reduction", [product], [self.rows], flops=self.wide)
        if plus is not None:
            x = self.pointwise(f"{name}.add.back", [plus, x], self.wide)
        cube = self.pointwise(f"{name}.pow.back", [norm.root], self.rows)
        root = self.pointwise(f"{name}.mul.back", [root], self.rows)
        root = self.pointwise(f"{name}.mul.back", [root, cube], self.rows)
        spread = self.pointwise(f"{name}.div.back", [root], self.wide, DIVIDE)
        slope = self.pointwise(f"{name}.pow.back", [norm.x], self.wide)
        slope = self.pointwise(f"{name}.mul.back", [slope], self.wide)
        slope = self.pointwise(f"{name}.mul.back", [spread, slope], self.wide)
        return self.pointwise(f"{name}.add.back", [x, slope], self.wide)

    def _norm_fused_back(self, norm: _Norm, g: int, *, plus: int | None) -> int:
        name, (weight, shape) = norm.name, self.weights[f"{norm.name}.weight"]
        x, found = self.tape.add(
            f"{name}.rms_norm_backward",
            "rms_norm_backward",
            "normalization",
            [(g, self.wide, 2), (norm.x, self.wide, 2), norm.root, weight],
            [self.wide, Affine(shape[0], 0)],
            flops=Affine(0, RMS_NORM_BACK * self.wide.slope),
        )
        if plus is not None:
            x = self.pointwise(f"{name}.add.back", [plus, x], self.wide)
        self.tape.gradient(f"{name}.weight", found)
        return x

    def _linear(self, name: str, x: int, size: Affine) -> int:
        weight, (fan_out, fan_in) = self.weights[f"{name}.weight"]
        gemm = (Affine(1, 0), self.rows, Affine(fan_out, 0), Affine(fan_in, 0))
        flops = Affine(0, 2 * self.model.sequence * fan_in * fan_out)
        return self.tape.add(f"{name}.matmul", "matmul", "gemm", [x, weight], [size], flops=flops, gemm=gemm)[0]

    def _linear_back(self, name: str, g: int, x: int, size: Affine, *, plus: int | None = None) -> int:
        """Gradient of a matrix, then of its input, added to `plus`."""
        found, back = self.weight_back(name, g, x), self.input_back(name, g, size)
        if plus is not None:
            back = self.pointwise("add.back", [plus, back], size)
        self.tape.gradient(f"{name}.weight", found)
        return back

    def _rotary(self, name: str, x: int, size: Affine) -> int:
        """Rotation by position: x cos + (-x2, x1) sin."""
        half = Affine(0, size.slope // 2)
        straight = self.pointwise(f"{name}.mul", [x, self.cos], size)
        (negated,) = self.tape.add(f"{name}.neg", "neg", "elementwise", [(x, half)], [half], flops=half)
        (turned,) = self.tape.add(f"{name}.cat", "cat", "copy", [negated, (x, half)], [size])
        turned = self.pointwise(f"{name}.mul", [turned, self.sin], size)
        return self.pointwise(f"{name}.add", [straight, turned], size)

    def _rotary_back(self, name: str, g: int, size: Affine) -> int:
        half = Affine(0, size.slope // 2)
        turned = self.pointwise(f"{name}.mul.back", [g, self.sin], size)
        (one,) = self.tape.add("slice_backward", "slice_backward", "copy", [(turned, half)], [size])
        (negated,) = self.tape.add(f"{name}.neg.back", "neg", "elementwise", [(turned, half)], [half], flops=half)
        (two,) = self.tape.add("slice_backward", "slice_backward", "copy", [negated], [size])
        both = self.pointwise("add.back", [one, two], size)
        straight = self.pointwise(f"{name}.mul.back", [g, self.cos], size)
        return self.pointwise(f"{name}.add.back", [both, straight], size)
