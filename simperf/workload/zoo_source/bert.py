"""BERT, encoder and pooler: J. Devlin and others, NAACL 2019."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["bert_base", "bert_large"]


class Layer(nn.Module):
    """Self-attention and a feed-forward network, each with a residual and normalization after it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        """One layer."""
        batch, length, width = x.shape
        shape = (batch, length, self.heads, width // self.heads)
        q, k, v = (project(x).view(shape).transpose(1, 2) for project in (self.query, self.key, self.value))
        a = (
            functional.scaled_dot_product_attention(q, k, v, dropout_p=0.1)
            .transpose(1, 2)
            .reshape(batch, length, width)
        )
        x = self.norm1(x + self.drop(self.out(a)))
        return self.norm2(x + self.drop(self.down(functional.gelu(self.up(x)))))


class Bert(nn.Module):
    """Embeddings, layers, and the pooler on the first token."""

    def __init__(self, layers: int, width: int, heads: int) -> None:
        super().__init__()
        self.word, self.position, self.segment = (
            nn.Embedding(30522, width),
            nn.Embedding(512, width),
            nn.Embedding(2, width),
        )
        self.norm, self.drop = nn.LayerNorm(width, eps=1e-12), nn.Dropout(0.1)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.pooler = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        """Pooled vector of each sequence."""
        place = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.word(tokens) + self.segment(torch.zeros_like(tokens)) + self.position(place)
        x = self.drop(self.norm(x))
        for layer in self.layers:
            x = layer(x)
        return torch.tanh(self.pooler(x[:, 0]))


def bert_base() -> nn.Module:
    """12 layers of width 768."""
    return Bert(12, 768, 12)


def bert_large() -> nn.Module:
    """24 layers of width 1024."""
    return Bert(24, 1024, 16)
