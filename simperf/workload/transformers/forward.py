"""A decoder-only transformer of the Llama family, forward, kernel by kernel as eager PyTorch runs it.

Source: H. Touvron and others, "LLaMA" (2023), and the operations of the reference modelling code
(RMS normalisation in fp32 with casts, rotary embedding by halves, grouped key and value heads
repeated before attention).
"""

from __future__ import annotations

from simperf.errors import InputError, Problem
from simperf.workload.graph import OpGraph
from simperf.workload.kinds.attention import attention
from simperf.workload.kinds.dense import linear
from simperf.workload.kinds.memory import copy, embedding
from simperf.workload.kinds.pointwise import binary, elementwise, unary
from simperf.workload.kinds.rows import reduction
from simperf.workload.op import Op

__all__ = ["decoder"]

#: layers of a block, itself included: two norms, attention, its four projections, the MLP, its three, its activation
_BLOCK_LAYERS = 13
#: layers outside the blocks: the model, its decoder, the embedding, the rotary embedding, the last norm and the head
_OUTER_LAYERS = 6


class _Builder:
    """Adds operations, each reading the tensors it is given and making one of its own."""

    def __init__(self, dtype: str) -> None:
        self.ops: list[Op] = []
        self.weights: list[str] = []
        self.dtype = dtype

    def add(self, op: Op, name: str, *inputs: str) -> str:
        self.ops.append(op.named(name, inputs))
        return name

    def weight(self, name: str) -> str:
        self.weights.append(name)
        return name

    def project(self, name: str, x: str, rows: int, fan_in: int, fan_out: int) -> str:
        op = linear(rows, fan_in, fan_out=fan_out, bias=False, dtype=self.dtype)
        return self.add(op, name, x, self.weight(f"{name}.weight"))

    def cast(self, name: str, x: str, elements: int) -> str:
        """A copy that changes the precision: reads one, writes the other, taken as fp32 both ways."""
        return self.add(elementwise(elements, 0.0, dtype="fp32"), name, x)

    def rms_norm(self, name: str, x: str, rows: int, width: int) -> str:
        """Five kernels in fp32 between two casts, and the product with the weights."""
        n = rows * width
        wide = self.cast(f"{name}.float", x, n)
        square = self.add(unary("abs", n), f"{name}.pow", wide)
        mean = self.add(reduction(rows, width), f"{name}.mean", square)
        shifted = self.add(binary("add", rows, scalar=True), f"{name}.eps", mean)
        root = self.add(unary("sqrt", rows), f"{name}.rsqrt", shifted)
        scaled = self.add(binary("mul", n), f"{name}.scale", wide, root)
        narrow = self.cast(f"{name}.cast", scaled, n)
        return self.add(binary("mul", n, dtype=self.dtype), f"{name}.weight_mul", narrow, self.weight(f"{name}.weight"))

    def rotary(self, name: str, x: str, elements: int) -> str:
        """Rotate by position, x cos + rotate_half(x) sin: five kernels."""
        dtype = self.dtype
        cos = self.add(binary("mul", elements, dtype=dtype), f"{name}.cos", x)
        negated = self.add(unary("neg", elements // 2, dtype=dtype), f"{name}.neg", x)
        turned = self.add(copy(elements, dtype=dtype), f"{name}.cat", x, negated)
        sin = self.add(binary("mul", elements, dtype=dtype), f"{name}.sin", turned)
        return self.add(binary("add", elements, dtype=dtype), f"{name}.rotated", cos, sin)


def decoder(
    layers: int,
    width: int,
    *,
    heads: int,
    kv_heads: int,
    hidden: int,
    vocabulary: int,
    batch: int = 1,
    sequence: int = 512,
    dtype: str = "bf16",
) -> OpGraph:
    """Forward pass of a decoder with grouped-query attention and a gated MLP.

    Parameters
    ----------
    layers, width : int
        Blocks, and width of the residual stream.
    heads, kv_heads : int
        Query heads, and key and value heads, which divide them.
    hidden : int
        Width of the gated MLP.
    vocabulary : int
        Tokens of the embedding and the head.
    batch, sequence : int
        Sequences, and their length.
    dtype : str
        Precision of weights and activations.

    Raises
    ------
    InputError
        Heads that do not divide.

    Examples
    --------
    >>> graph = decoder(2, 64, heads=4, kv_heads=2, hidden=256, vocabulary=1000, sequence=16)
    >>> len(graph.ops)
    92
    """
    if width % heads or heads % kv_heads:
        raise InputError(Problem("width must be a multiple of heads, and heads of kv_heads", key="heads"))
    rows, head = batch * sequence, width // heads
    build = _Builder(dtype)
    x = build.add(embedding(rows, width, dtype=dtype), "embed", "tokens", build.weight("embed.weight"))
    for layer in range(layers):
        p = f"l{layer}"
        h = build.rms_norm(f"{p}.norm1", x, rows, width)
        q = build.rotary(f"{p}.q", build.project(f"{p}.q", h, rows, width, width), rows * width)
        kv_width = kv_heads * head
        k = build.rotary(f"{p}.k", build.project(f"{p}.k", h, rows, width, kv_width), rows * kv_width)
        v = build.project(f"{p}.v", h, rows, width, kv_width)
        if kv_heads != heads:
            k = build.add(copy(rows * width, dtype=dtype), f"{p}.repeat_k", k)
            v = build.add(copy(rows * width, dtype=dtype), f"{p}.repeat_v", v)
        scores = attention(batch, heads, queries=sequence, head_dim=head, causal=True, dtype=dtype)
        a = build.add(scores, f"{p}.attention", q, k, v)
        a = build.add(copy(rows * width, dtype=dtype), f"{p}.contiguous", a)
        o = build.project(f"{p}.o", a, rows, width, width)
        x = build.add(binary("add", rows * width, dtype=dtype), f"{p}.residual1", x, o)
        h = build.rms_norm(f"{p}.norm2", x, rows, width)
        gate = build.project(f"{p}.gate", h, rows, width, hidden)
        up = build.project(f"{p}.up", h, rows, width, hidden)
        gate = build.add(unary("silu", rows * hidden, dtype=dtype), f"{p}.silu", gate)
        h = build.add(binary("mul", rows * hidden, dtype=dtype), f"{p}.gated", gate, up)
        down = build.project(f"{p}.down", h, rows, hidden, width)
        x = build.add(binary("add", rows * width, dtype=dtype), f"{p}.residual2", x, down)
    x = build.rms_norm("norm", x, rows, width)
    build.project("head", x, rows, width, vocabulary)
    return OpGraph(build.ops, ("tokens", *build.weights), layers=_BLOCK_LAYERS * layers + _OUTER_LAYERS)
