"""Tacotron 2: a spectrogram from text, frame by frame, as NVIDIA's training example has it.

J. Shen and others, "Natural TTS Synthesis by Conditioning WaveNet on Mel Spectrogram Predictions" (ICASSP 2018);
NVIDIA/DeepLearningExamples, PyTorch/SpeechSynthesis/Tacotron2. The decoder goes through the frames one by one, with
some thirty kernels forward and sixty back for each, so that a whole clip is 80,000 kernels. What is traced is a
segment of one: `FRAMES` of its frames and their share of its text, with the attention over as many letters as the
whole text has. `SEGMENTS` of them make the longest clip of LJSpeech, to which a batch is padded.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["FRAMES", "SEGMENTS", "tacotron2"]

#: frames of a segment, and segments of the longest clip: 870 frames, 10.1 s at 22,050 samples a second and 256 a frame
FRAMES, SEGMENTS = 29, 30

_SYMBOLS, _MELS = 148, 80
_WIDTH, _STATE, _PRENET = 512, 1024, 256
_KEYS, _FILTERS, _REACH = 128, 32, 31


def _convolution(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv1d(inputs, outputs, 5, padding=2), nn.BatchNorm1d(outputs))


class LocationAttention(nn.Module):
    """Additive attention that also sees where it looked before, last and in total."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(_STATE, _KEYS, bias=False)
        self.key = nn.Linear(_WIDTH, _KEYS, bias=False)
        self.score = nn.Linear(_KEYS, 1, bias=False)
        self.near = nn.Conv1d(2, _FILTERS, _REACH, padding=_REACH // 2, bias=False)
        self.place = nn.Linear(_FILTERS, _KEYS, bias=False)

    def forward(
        self, state: Tensor, text: Tensor, keys: Tensor, before: Tensor, empty: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Context of the text, (batch, width), and the weight of each of its letters, (batch, letters)."""
        places = self.place(self.near(before).transpose(1, 2))
        scores = self.score(torch.tanh(self.query(state.unsqueeze(1)) + places + keys)).squeeze(-1)
        scores.detach().masked_fill_(empty, float("-inf"))
        weights = functional.softmax(scores, dim=1)
        return torch.bmm(weights.unsqueeze(1), text).squeeze(1), weights


class Decoder(nn.Module):
    """Two cells, attention between them; each frame is predicted from the one before."""

    def __init__(self) -> None:
        super().__init__()
        self.prenet = nn.ModuleList(nn.Linear(n, _PRENET, bias=False) for n in (_MELS, _PRENET))
        self.listen = nn.LSTMCell(_PRENET + _WIDTH, _STATE)
        self.attention = LocationAttention()
        self.speak = nn.LSTMCell(_STATE + _WIDTH, _STATE)
        self.project, self.gate = nn.Linear(_STATE + _WIDTH, _MELS), nn.Linear(_STATE + _WIDTH, 1)

    def forward(self, text: Tensor, mels: Tensor, empty: Tensor) -> tuple[Tensor, Tensor]:
        """Frames, (batch, mels, frames), and whether each is the last, (batch, frames)."""
        batch, letters = empty.shape
        frames = mels.permute(2, 0, 1)
        frames = torch.cat((frames.new_zeros(1, batch, _MELS), frames), 0)
        for layer in self.prenet:
            frames = functional.dropout(functional.relu(layer(frames)), 0.5)
        keys = self.attention.key(text)
        ear, ear_cell, mouth, mouth_cell = (text.new_zeros(batch, _STATE) for _ in range(4))
        last, total = (text.new_zeros(batch, letters) for _ in range(2))
        seen = text.new_zeros(batch, _WIDTH)
        found, ends = [], []
        for frame in frames[:-1]:
            ear, ear_cell = self.listen(torch.cat((frame, seen), -1), (ear, ear_cell))
            ear = functional.dropout(ear, 0.1)
            before = torch.cat((last.unsqueeze(1), total.unsqueeze(1)), 1)
            seen, last = self.attention(ear, text, keys, before, empty)
            total = total + last
            mouth, mouth_cell = self.speak(torch.cat((ear, seen), -1), (mouth, mouth_cell))
            mouth = functional.dropout(mouth, 0.1)
            both = torch.cat((mouth, seen), 1)
            found.append(self.project(both))
            ends.append(self.gate(both).squeeze(1))
        return torch.stack(found).permute(1, 2, 0).contiguous(), torch.stack(ends).t().contiguous()


class Tacotron2(nn.Module):
    """Letters to frames: convolutions and an LSTM both ways, the decoder, and convolutions that mend its frames."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(_SYMBOLS, _WIDTH)
        self.encoder = nn.ModuleList(_convolution(_WIDTH, _WIDTH) for _ in range(3))
        self.read = nn.LSTM(_WIDTH, _WIDTH // 2, batch_first=True, bidirectional=True)
        self.decoder = Decoder()
        sizes = (_MELS, *(_WIDTH,) * 4, _MELS)
        self.postnet = nn.ModuleList(_convolution(a, b) for a, b in pairwise(sizes))

    def forward(self, text: Tensor, mels: Tensor) -> Tensor:
        """Squared error of the frames before and after mending, and the cross-entropy of where they end."""
        x = self.embed(text).transpose(1, 2)
        for layer in self.encoder:
            x = functional.dropout(functional.relu(layer(x)), 0.5)
        x, _ = self.read(x.transpose(1, 2))
        empty = text.eq(0).repeat(1, SEGMENTS)
        found, ends = self.decoder(x.repeat(1, SEGMENTS, 1), mels, empty)
        y = found
        for i, layer in enumerate(self.postnet):
            y = layer(y)
            y = functional.dropout(torch.tanh(y) if i < len(self.postnet) - 1 else y, 0.5)
        spoken = functional.mse_loss(found, mels) + functional.mse_loss(found + y, mels)
        return spoken + functional.binary_cross_entropy_with_logits(ends, torch.empty_like(ends))


def tacotron2() -> nn.Module:
    """With 148 symbols and 80 mels."""
    return Tacotron2()
