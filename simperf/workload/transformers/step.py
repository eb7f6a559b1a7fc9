"""The training step of a transformer by its dimensions, kernel by kernel as eager PyTorch runs it.

The kernels are those that tracing a model of the Llama family gives: RMS normalisation and rotary embedding written
out, attention as one kernel, every gradient of a weight before that of its input.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from simperf.errors import InputError, Problem
from simperf.workload.model import TracedModel
from simperf.workload.optimizers import optimizer_steps
from simperf.workload.traced import Affine, InputShape
from simperf.workload.transformers.dimensions import Transformer
from simperf.workload.transformers.tape import Part, Tape

__all__ = ["training_model", "unknown_kernels"]

#: FLOP an element
SILU, SILU_BACK, SOFTMAX, SOFTMAX_BACK, DIVIDE, ROOT = 15, 19, 12, 11, 4, 8
#: gradients of attention over its forward pass [FLOP]: five matrix products for two
BACK = 2.5

#: what a model has beside its dimensions for its kernels to be known
_KNOWN = {
    "norm": "rms",
    "positions": "rotary",
    "activation": "swiglu",
    "tied": False,
    "bias": False,
    "qkv_bias": False,
    "qk_norm": False,
    "experts": 0,
}


def training_model(model: Transformer) -> TracedModel:
    """The training step of a transformer, for any batch and precision.

    Raises
    ------
    InputError
        A model whose kernels are not known: only the Llama family's are, dense and without biases.

    Examples
    --------
    >>> small = Transformer(layers=2, hidden=64, heads=4, vocabulary=1000, sequence=16)
    >>> training_model(small).parameter_count == small.parameters
    True
    """
    problems = list(unknown_kernels(model))
    if problems:
        raise InputError(problems)
    return _Step(model).made()


def unknown_kernels(model: Transformer) -> Iterator[Problem]:
    """What of a model has a training step whose kernels are not known."""
    for key, known in _KNOWN.items():
        value = getattr(model, key)
        if value != known:
            message = "the kernels of such a model's training step are not known"
            yield Problem(message, key=key, value=str(value).lower(), expected=f"{key} = {str(known).lower()}")


@dataclass(frozen=True, slots=True)
class _Norm:
    """What the backward pass needs of an RMS normalisation: its input, 1 / root and the scaled input."""

    name: str
    x: int
    root: int
    scaled: int


@dataclass(frozen=True, slots=True)
class _Block:
    """What the backward pass needs of a block."""

    name: str
    first: _Norm
    h: int
    attended: tuple[int, int, int, int, int]  # queries, keys, values, output, log-sum-exp
    second: _Norm
    h2: int
    gate: int
    active: int
    up: int
    inner: int


class _Step:
    def __init__(self, model: Transformer) -> None:
        self.model, self.tape = model, Tape()
        rows = model.sequence
        self.rows = Affine(0, rows)
        self.wide = Affine(0, rows * model.hidden)
        self.queries = Affine(0, rows * model.query_width)
        self.keys = Affine(0, rows * model.key_width)
        self.inner = Affine(0, rows * model.inner_width)
        self.logits = Affine(0, rows * model.vocabulary)
        self.tokens = self.tape.value(self.rows, role="input", name="tokens", width=8)
        self.weights = {one.name: (self.tape.weight(one), one.shape) for one in model.weights()}
        angles = Affine(rows * model.head_width, 0)
        self.cos = self.tape.value(angles, role="buffer", name="cos")
        self.sin = self.tape.value(angles, role="buffer", name="sin")

    def made(self) -> TracedModel:
        model, tape = self.model, self.tape
        table, _ = self.weights["embed.weight"]
        (x,) = tape.add("embed.embedding", "embedding", "copy", [(table, self.wide), self.tokens], [self.wide])
        blocks = []
        for layer in range(model.layers):
            x, block = self._block(f"blocks.{layer}", x)
            blocks.append(block)
        h, norm = self._norm("norm", x)
        logits = self._linear("head", h, self.logits)
        tape.keep(logits)
        target = tape.value(self.rows, role="input", name="target", width=8)
        soft = self._pointwise("log_softmax", [logits], self.logits, SOFTMAX, family="normalization")
        one = Affine(1, 0)
        parts: list[Part] = [(soft, self.rows), target]
        loss, _ = tape.add("nll_loss", "nll_loss", "reduction", parts, [one, one], flops=self.rows)
        tape.keep(loss)
        forward = len(tape.ops)
        (seed,) = tape.add("fill", "fill", "elementwise", [], [one])
        made = tape.add(
            "nll_loss_backward", "nll_loss_backward", "elementwise", [seed, target], [self.logits], flops=self.rows
        )
        g = self._pointwise("log_softmax_backward", [made[0], soft], self.logits, SOFTMAX_BACK, family="normalization")
        g = self._norm_back(norm, self._linear_back("head", g, h, self.wide))
        for block in reversed(blocks):
            g = self._block_back(block, g)
        parts = [g, self.tokens]
        size = Affine(model.vocabulary * model.hidden, 0)
        (found,) = tape.add("embed.embedding_dense_backward", "embedding_dense_backward", "copy", parts, [size])
        tape.gradient("embed.weight", found)
        storages = tape.storages
        return TracedModel(
            name=model.name,
            title=f"{model.name}: {model.layers} layers of width {model.hidden}",
            source="its dimensions; kernels as eager PyTorch runs the Llama family",
            sample=f"sequence of {model.sequence}",
            inputs=(InputShape((model.sequence,), "int64"),),
            parameters=tuple(tape.parameters),
            storages=storages,
            tensors=tuple(range(len(storages))),
            ops=tuple(tape.ops),
            forward=forward,
            gradients=tuple(tape.gradients),
            optimizer=optimizer_steps("adamw"),
        )

    # -- blocks ---------------------------------------------------------------------------------

    def _block(self, name: str, x: int) -> tuple[int, _Block]:
        model = self.model
        h, first = self._norm(f"{name}.norm1", x)
        q = self._linear(f"{name}.q", h, self.queries)
        k = self._linear(f"{name}.k", h, self.keys)
        v = self._linear(f"{name}.v", h, self.keys)
        q, k = self._rotary(name, q, self.queries), self._rotary(name, k, self.keys)
        size = Affine(0, model.heads * model.sequence)
        products, flops = self._attention(2)
        a, lse = self.tape.add(
            f"{name}.attention", "attention", "attention", [q, k, v], [self.queries, size], flops=flops, gemm=products
        )
        x = self._pointwise(f"{name}.add", [x, self._linear(f"{name}.o", a, self.wide)], self.wide)
        h2, second = self._norm(f"{name}.norm2", x)
        gate = self._linear(f"{name}.gate", h2, self.inner)
        active = self._pointwise(f"{name}.silu", [gate], self.inner, SILU)
        up = self._linear(f"{name}.up", h2, self.inner)
        inner = self._pointwise(f"{name}.mul", [active, up], self.inner)
        x = self._pointwise(f"{name}.add", [x, self._linear(f"{name}.down", inner, self.wide)], self.wide)
        return x, _Block(name, first, h, (q, k, v, a, lse), second, h2, gate, active, up, inner)

    def _block_back(self, block: _Block, g: int) -> int:
        name = block.name
        inner = self._linear_back(f"{name}.down", g, block.inner, self.inner)
        up = self._pointwise(f"{name}.mul.back", [inner, block.active], self.inner)
        active = self._pointwise(f"{name}.mul.back", [inner, block.up], self.inner)
        one = self._linear_back(f"{name}.up", up, block.h2, self.wide)
        gate = self._pointwise(f"{name}.silu_backward", [active, block.gate], self.inner, SILU_BACK)
        h = self._linear_back(f"{name}.gate", gate, block.h2, self.wide, beside=one)
        g = self._norm_back(block.second, h, beside=g)
        attended = self._linear_back(f"{name}.o", g, block.attended[3], self.queries)
        products, flops = self._attention(2 * BACK)
        q, k, v = self.tape.add(
            f"{name}.attention_backward",
            "attention_backward",
            "attention",
            [attended, *block.attended],
            [self.queries, self.keys, self.keys],
            flops=flops,
            gemm=products,
        )
        k, q = self._rotary_back(name, k, self.keys), self._rotary_back(name, q, self.queries)
        h = self._linear_back(f"{name}.v", v, block.h, self.wide)
        for part, turned, size in (("k", k, self.keys), ("q", q, self.queries)):
            (straight,) = self.tape.add("copy.back", "copy", "copy", [turned], [size])
            h = self._linear_back(f"{name}.{part}", straight, block.h, self.wide, beside=h)
        return self._norm_back(block.first, h, beside=g)

    def _attention(self, products: float) -> tuple[tuple[Affine, ...], Affine]:
        """Matrix products of attention over half of all pairs of tokens, and their arithmetic [FLOP]."""
        model = self.model
        n, d = model.sequence, model.head_width
        flops = Affine(0, round(products * n * n * d * model.heads))
        return (Affine(0, model.heads), Affine(n, 0), Affine(d, 0), Affine(round(products * n), 0)), flops

    # -- layers ---------------------------------------------------------------------------------

    def _norm(self, name: str, x: int) -> tuple[int, _Norm]:
        """Root mean square normalisation: six kernels."""
        weight, _ = self.weights[f"{name}.weight"]
        square = self._pointwise(f"{name}.pow", [x], self.wide)
        (mean,) = self.tape.add(f"{name}.mean", "mean", "reduction", [square], [self.rows], flops=self.wide)
        shifted = self._pointwise(f"{name}.add", [mean], self.rows)
        root = self._pointwise(f"{name}.rsqrt", [shifted], self.rows, ROOT)
        scaled = self._pointwise(f"{name}.mul", [x, root], self.wide)
        return self._pointwise(f"{name}.mul", [weight, scaled], self.wide), _Norm(name, x, root, scaled)

    def _norm_back(self, norm: _Norm, g: int, *, beside: int | None = None) -> int:
        """Gradient of a normalisation's input, added to the one that comes `beside` it."""
        name, (weight, shape) = norm.name, self.weights[f"{norm.name}.weight"]
        scaled = self._pointwise(f"{name}.mul.back", [g, weight], self.wide)
        product = self._pointwise(f"{name}.mul.back", [g, norm.scaled], self.wide)
        size = Affine(shape[0], 0)
        (found,) = self.tape.add(f"{name}.sum.back", "sum", "reduction", [product], [size], flops=self.wide)
        self.tape.gradient(f"{name}.weight", found)
        product = self._pointwise(f"{name}.mul.back", [scaled, norm.x], self.wide)
        x = self._pointwise(f"{name}.mul.back", [scaled, norm.root], self.wide)
        (root,) = self.tape.add(f"{name}.sum.back", "sum", "reduction", [product], [self.rows], flops=self.wide)
        if beside is not None:
            x = self._pointwise(f"{name}.add.back", [beside, x], self.wide)
        cube = self._pointwise(f"{name}.pow.back", [norm.root], self.rows)
        root = self._pointwise(f"{name}.mul.back", [root], self.rows)
        root = self._pointwise(f"{name}.mul.back", [root, cube], self.rows)
        spread = self._pointwise(f"{name}.div.back", [root], self.wide, DIVIDE)
        slope = self._pointwise(f"{name}.pow.back", [norm.x], self.wide)
        slope = self._pointwise(f"{name}.mul.back", [slope], self.wide)
        slope = self._pointwise(f"{name}.mul.back", [spread, slope], self.wide)
        return self._pointwise(f"{name}.add.back", [x, slope], self.wide)

    def _linear(self, name: str, x: int, size: Affine) -> int:
        weight, (fan_out, fan_in) = self.weights[f"{name}.weight"]
        gemm = (Affine(1, 0), self.rows, Affine(fan_out, 0), Affine(fan_in, 0))
        flops = Affine(0, 2 * self.model.sequence * fan_in * fan_out)
        return self.tape.add(f"{name}.matmul", "matmul", "gemm", [x, weight], [size], flops=flops, gemm=gemm)[0]

    def _linear_back(self, name: str, g: int, x: int, size: Affine, *, beside: int | None = None) -> int:
        """Gradient of a matrix, then of its input, added to the one that comes `beside` it."""
        weight, (fan_out, fan_in) = self.weights[f"{name}.weight"]
        one, rows, m, k = Affine(1, 0), self.rows, Affine(fan_out, 0), Affine(fan_in, 0)
        flops, made = Affine(0, 2 * self.model.sequence * fan_in * fan_out), Affine(fan_in * fan_out, 0)
        label = f"{name}.matmul.back"
        (found,) = self.tape.add(label, "matmul", "gemm", [g, x], [made], flops=flops, gemm=(one, m, k, rows))
        (back,) = self.tape.add(label, "matmul", "gemm", [g, weight], [size], flops=flops, gemm=(one, rows, k, m))
        if beside is not None:
            back = self._pointwise("add.back", [beside, back], size)
        self.tape.gradient(f"{name}.weight", found)
        return back

    def _rotary(self, name: str, x: int, size: Affine) -> int:
        """Rotation by position: x cos + (-x2, x1) sin."""
        half = Affine(0, size.slope // 2)
        straight = self._pointwise(f"{name}.mul", [x, self.cos], size)
        (negated,) = self.tape.add(f"{name}.neg", "neg", "elementwise", [(x, half)], [half], flops=half)
        (turned,) = self.tape.add(f"{name}.cat", "cat", "copy", [negated, (x, half)], [size])
        turned = self._pointwise(f"{name}.mul", [turned, self.sin], size)
        return self._pointwise(f"{name}.add", [straight, turned], size)

    def _rotary_back(self, name: str, g: int, size: Affine) -> int:
        half = Affine(0, size.slope // 2)
        turned = self._pointwise(f"{name}.mul.back", [g, self.sin], size)
        (one,) = self.tape.add("slice_backward", "slice_backward", "copy", [(turned, half)], [size])
        (negated,) = self.tape.add(f"{name}.neg.back", "neg", "elementwise", [(turned, half)], [half], flops=half)
        (two,) = self.tape.add("slice_backward", "slice_backward", "copy", [negated], [size])
        both = self._pointwise("add.back", [one, two], size)
        straight = self._pointwise(f"{name}.mul.back", [g, self.cos], size)
        return self._pointwise(f"{name}.add.back", [both, straight], size)

    def _pointwise(
        self, name: str, reads: list[int], size: Affine, flops: int = 1, *, family: str = "elementwise"
    ) -> int:
        """A kernel of so many FLOP an element; its kind is the last part of its name."""
        kind = name.removesuffix(".back").rpartition(".")[2]
        work = Affine(flops * size.constant, flops * size.slope)
        return self.tape.add(name, kind, family, reads, [size], flops=work)[0]
