"""Language models: GPT-2 and Llama 2."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["gpt2", "gpt2_large", "gpt2_medium", "gpt2_xl", "llama2_7b"]


class GptBlock(nn.Module):
    """Attention and feed-forward network, each after a normalization of its own."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        """One block."""
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.qkv(self.norm1(x)).split(width, dim=2))
        a = functional.scaled_dot_product_attention(q, k, v, dropout_p=0.1, is_causal=True)
        x = x + self.drop(self.out(a.transpose(1, 2).reshape(batch, length, width)))
        return x + self.drop(self.down(functional.gelu(self.up(self.norm2(x)), approximate="tanh")))


class Gpt2(nn.Module):
    """A. Radford and others, "Language Models are Unsupervised Multitask Learners" (2019); head tied to embedding."""

    def __init__(self, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.word, self.position = nn.Embedding(50257, width), nn.Embedding(1024, width)
        self.drop, self.norm = nn.Dropout(0.1), nn.LayerNorm(width)
        self.blocks = nn.ModuleList(GptBlock(width, heads) for _ in range(layers))

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the next token at every place."""
        place = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.drop(self.word(tokens) + self.position(place))
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.word.weight)


def gpt2() -> nn.Module:
    """12 layers of width 768."""
    return Gpt2(12, 768, 12)


def gpt2_medium() -> nn.Module:
    """24 layers of width 1024."""
    return Gpt2(24, 1024, 16)


def gpt2_large() -> nn.Module:
    """36 layers of width 1280."""
    return Gpt2(36, 1280, 20)


def gpt2_xl() -> nn.Module:
    """48 layers of width 1600."""
    return Gpt2(48, 1600, 25)


class RmsNorm(nn.Module):
    """Root mean square normalization, kernel by kernel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Divide each row by its root mean square."""
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding by halves."""
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), dim=-1) * sin


class LlamaBlock(nn.Module):
    """Attention with rotary embedding, and a gated feed-forward network."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """One block."""
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        h = self.norm1(x)
        q, k, v = (project(h).view(shape).transpose(1, 2) for project in (self.q, self.k, self.v))
        q, k = _rotate(q, cos, sin), _rotate(k, cos, sin)
        a = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(batch, length, width))
        h = self.norm2(x)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    """H. Touvron and others, "Llama 2" (2023)."""

    def __init__(self, layers: int, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(32000, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, hidden) for _ in range(layers))
        self.norm, self.head = RmsNorm(width), nn.Linear(width, 32000, bias=False)
        self.register_buffer("cos", torch.empty(4096, width // heads))
        self.register_buffer("sin", torch.empty(4096, width // heads))

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of the next token at every place."""
        length = tokens.shape[1]
        cos, sin = self.get_buffer("cos")[:length], self.get_buffer("sin")[:length]
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x))


def llama2_7b() -> nn.Module:
    """32 layers of width 4096."""
    return Llama(32, 4096, 32, 11008)
