"""Kernels of a transformer layer that a library chooses: against traces of the same layer in operations of torch."""

import math

import pytest

from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.transformers import Transformer
from simperf.workload.transformers.step import training_model

torch = pytest.importorskip("torch", reason="tracing needs torch: pip install torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from simperf.workload.trace import trace_model  # noqa: E402
from simperf.workload.zoo_source.decoders import RmsNorm, _rotate  # noqa: E402
from tests.workload.test_transformer_step import kernel  # noqa: E402

N, WIDTH, HEADS, WORDS = 24, 64, 4, 100
FEW = {"layers": 2, "hidden": WIDTH, "heads": HEADS, "vocabulary": WORDS, "sequence": N}
GPT = {**FEW, "norm": "layer", "positions": "learned", "activation": "gelu", "bias": True, "tied": True}


class WrittenNorm(nn.Module):
    """Layer normalization, an operation after the other."""

    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        root = torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-5)
        return self.weight * (centred * root) + self.bias


class GptBlock(nn.Module):
    """A block of the GPT family: the batch first and all written out, or the sequence first with one softmax."""

    def __init__(self, norm, dropout, *, fused):
        super().__init__()
        self.fused, self.rate = fused, dropout
        self.norm1, self.norm2 = norm(WIDTH), norm(WIDTH)
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.drop = nn.Dropout(dropout)

    def probabilities(self, scores):
        kept = torch.softmax(scores, -1)
        return functional.dropout(kept, self.rate) if self.rate else kept

    def written(self, x, mask):
        batch, d = x.shape[0], WIDTH // HEADS
        split = x.split(WIDTH, dim=2)
        q, k, v = (part.view(batch, N, HEADS, d).transpose(1, 2) for part in split)
        scores = torch.matmul(q, k.transpose(2, 3)) * (1 / math.sqrt(d))
        a = torch.matmul(self.probabilities(scores.masked_fill(mask, -math.inf)), v)
        return a.transpose(1, 2).reshape(batch, N, WIDTH)

    def sequence_first(self, x):
        batch, d = x.shape[1], WIDTH // HEADS
        parts = x.view(N, batch, HEADS, 3 * d).split(d, dim=3)
        q, k, v = (part.view(N, batch * HEADS, d).transpose(0, 1) for part in parts)
        empty = torch.empty(batch * HEADS, N, N, device=x.device)
        scores = torch.baddbmm(empty, q, k.transpose(1, 2), beta=0.0, alpha=1 / math.sqrt(d))
        kept = self.probabilities(scores.view(batch, HEADS, N, N)).view(batch * HEADS, N, N)
        a = torch.bmm(kept, v).view(batch, HEADS, N, d)
        return a.permute(2, 0, 1, 3).contiguous().view(N, batch, WIDTH)

    def forward(self, x, mask):
        qkv = self.qkv(self.norm1(x))
        x = x + self.drop(self.o(self.sequence_first(qkv) if self.fused else self.written(qkv, mask)))
        return x + self.drop(self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh")))


class Gpt(nn.Module):
    """Two blocks, the head tied to the embedding."""

    def __init__(self, norm=nn.LayerNorm, dropout=0.1, *, fused=False):
        super().__init__()
        self.embed, self.position = nn.Embedding(WORDS, WIDTH), nn.Embedding(N, WIDTH)
        self.drop, self.fused = nn.Dropout(dropout), fused
        self.blocks = nn.ModuleList(GptBlock(norm, dropout, fused=fused) for _ in range(2))
        self.norm = norm(WIDTH)
        if not fused:
            self.register_buffer("mask", torch.ones(N, N, dtype=torch.bool).triu(1))

    def forward(self, tokens):
        places = torch.arange(N, device=tokens.device)
        x = self.embed(tokens.t() if self.fused else tokens)
        x = self.drop(x + (self.position(places)[:, None] if self.fused else self.position(places)))
        for block in self.blocks:
            x = block(x, None if self.fused else self.mask)
        return functional.linear(self.norm(x), self.embed.weight)


class LlamaBlock(nn.Module):
    """A block of the Llama family, its attention written out."""

    def __init__(self, kv_heads):
        super().__init__()
        self.kv_heads, width = kv_heads, kv_heads * WIDTH // HEADS
        self.norm1, self.norm2 = RmsNorm(WIDTH), RmsNorm(WIDTH)
        self.q, self.o = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.k, self.v = nn.Linear(WIDTH, width, bias=False), nn.Linear(WIDTH, width, bias=False)
        self.gate, self.up = nn.Linear(WIDTH, 96, bias=False), nn.Linear(WIDTH, 96, bias=False)
        self.down = nn.Linear(96, WIDTH, bias=False)

    def heads(self, x):
        batch, kv, n, d = x.shape
        shared = x[:, :, None].expand(batch, kv, HEADS // kv, n, d)
        return shared.reshape(batch, HEADS, n, d) if kv < HEADS else x

    def forward(self, x, cos, sin, mask):
        batch, d = x.shape[0], WIDTH // HEADS
        h = self.norm1(x)
        q, k, v = (part(h).view(batch, N, -1, d).transpose(1, 2) for part in (self.q, self.k, self.v))
        q, k = _rotate(q, cos, sin), _rotate(k, cos, sin)
        k, v = self.heads(k), self.heads(v)
        scores = torch.matmul(q, k.transpose(2, 3)) * (1 / math.sqrt(d))
        a = torch.matmul(torch.softmax(scores.masked_fill(mask, -math.inf), -1), v)
        x = x + self.o(a.transpose(1, 2).reshape(batch, N, WIDTH))
        h = self.norm2(x)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    """Two blocks."""

    def __init__(self, kv_heads):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(LlamaBlock(kv_heads) for _ in range(2))
        self.norm, self.head = RmsNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.register_buffer("cos", torch.empty(N, WIDTH // HEADS))
        self.register_buffer("sin", torch.empty(N, WIDTH // HEADS))
        self.register_buffer("mask", torch.ones(N, N, dtype=torch.bool).triu(1))

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin, self.mask)
        return self.head(self.norm(x))


def traced(net):
    return trace_model(net, f"2x{N}:int64", loss="cross-entropy", optimizer="adamw")


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_attention_of_the_gpt_family_written_out(dropout):
    made = training_model(Transformer(**GPT, dropout=dropout > 0), LayerKernels(attention="unfused"))
    found = traced(lambda: Gpt(dropout=dropout))
    assert made.forward == found.forward
    assert [kernel(op) for op in made.ops] == [kernel(op) for op in found.ops]
    for precision in ("fp32", "fp16"):
        expected = {key: pytest.approx(value, rel=1e-9, abs=8) for key, value in found.memory(2, precision).items()}
        assert made.memory(2, precision) == expected


def test_attention_of_megatron_with_one_softmax():
    """But for the product of scores: with beta = 0 the library does not read what it writes to, as the trace has it."""
    made = training_model(Transformer(**GPT, dropout=True), LayerKernels(attention="fused-softmax"))
    found = traced(lambda: Gpt(fused=True))
    assert made.forward == found.forward

    def simple(op):
        kind, _family, flops, reads, writes, gemm = kernel(op)
        return kind, flops, writes, gemm, sum(elements.at(1) for elements, _ in reads)

    scores = 0
    for one, other in zip(map(simple, made.ops), map(simple, found.ops), strict=True):
        assert one[:4] == other[:4]
        scores += one[4] != other[4]
    assert scores == 2


def test_layer_normalization_written_out():
    made = training_model(Transformer(**GPT), LayerKernels(attention="unfused", norm="unfused"))
    found = traced(lambda: Gpt(WrittenNorm, dropout=0.0))
    assert [kernel(op) for op in made.ops] == [kernel(op) for op in found.ops]
    assert made.memory(2, "fp16")["activations"] == pytest.approx(found.memory(2, "fp16")["activations"], rel=1e-9)


@pytest.mark.parametrize("kv_heads", [4, 2])
def test_attention_of_the_llama_family_written_out(kv_heads):
    """The same kernels; where query heads share keys, torch copies those first."""
    made = training_model(Transformer(**FEW, ffn=96, kv_heads=kv_heads), LayerKernels(attention="unfused"))
    found = traced(lambda: Llama(kv_heads))
    ours, theirs = ([repr(kernel(op)) for op in model.ops] for model in (made, found))
    assert sorted(ours) == sorted(theirs)
    if kv_heads == HEADS:
        assert ours == theirs
