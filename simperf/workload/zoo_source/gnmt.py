"""GNMT v2: translation with LSTM layers and attention, as NVIDIA's training example has it.

Y. Wu and others, "Google's Neural Machine Translation System" (2016), with D. Bahdanau's attention behind the first
layer of the decoder (NVIDIA/DeepLearningExamples, PyTorch/Translation/GNMT). The embedding serves both languages.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["gnmt", "gnmt_padded"]

_WIDTH = 1024
_SMOOTHING = 0.1


def _lstm(inputs: int, *, both: bool = False) -> nn.LSTM:
    return nn.LSTM(inputs, _WIDTH, bidirectional=both)


class AdditiveAttention(nn.Module):
    """Additive attention with a normalized vector of scores."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = (nn.Linear(_WIDTH, _WIDTH, bias=False) for _ in range(2))
        self.vector, self.bias = (nn.Parameter(torch.empty(_WIDTH)) for _ in range(2))
        self.scale = nn.Parameter(torch.empty(1))

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """For each query, the keys in proportion to their scores; (batch, length, width) all."""
        sums = self.query(queries).unsqueeze(2) + self.key(keys).unsqueeze(1) + self.bias
        vector = self.vector / self.vector.norm() * self.scale
        scores = torch.tanh(sums).matmul(vector)
        return torch.bmm(functional.softmax(scores, -1), keys)


class Gnmt(nn.Module):
    """Encoder of four layers, the first of them both ways, decoder of four; residual connections from the third on."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, _WIDTH)
        self.encoder = nn.ModuleList([_lstm(_WIDTH, both=True), _lstm(2 * _WIDTH), _lstm(_WIDTH), _lstm(_WIDTH)])
        self.first, self.attention = _lstm(_WIDTH), AdditiveAttention()
        self.decoder = nn.ModuleList(_lstm(2 * _WIDTH) for _ in range(3))
        self.classifier = nn.Linear(_WIDTH, words)
        self.drop = nn.Dropout(0.2)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Loss with smoothed labels, summed over the words of a sentence."""
        x = self.embed(source.t())
        for i, layer in enumerate(self.encoder):
            y, _ = layer(self.drop(x))
            x = y + x if i >= 2 else y
        keys = x.transpose(0, 1)
        x, _ = self.first(self.drop(self.embed(target.t()[:-1])))
        found = self.attention(x.transpose(0, 1), keys).transpose(0, 1)
        for i, layer in enumerate(self.decoder):
            y, _ = layer(self.drop(torch.cat((x, found), dim=2)))
            x = y + x if i >= 1 else y
        logs = functional.log_softmax(self.classifier(x).flatten(0, 1), -1)
        right = logs.gather(1, target.t()[1:].reshape(-1, 1)).squeeze(1)
        loss = -(1 - _SMOOTHING) * right - _SMOOTHING * logs.mean(-1)
        return loss.sum() / source.shape[0]


def gnmt() -> nn.Module:
    """With the vocabulary of 31,794 word pieces with which Lambda's logs count 159,593,523 parameters."""
    return Gnmt(31_794)


def gnmt_padded() -> nn.Module:
    """With a vocabulary padded to a multiple of 8, as the program has it in TF32 and mixed precision."""
    return Gnmt(31_800)
