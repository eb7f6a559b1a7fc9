"""WaveGlow: speech from a spectrogram by a flow, as NVIDIA's training example has it.

R. Prenger and others, "WaveGlow: A Flow-based Generative Network for Speech Synthesis" (ICASSP 2019). The paper's
networks have 256 channels; those of NVIDIA/DeepLearningExamples (PyTorch/SpeechSynthesis/Tacotron2,
``--wn-channels``) have 512.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils import weight_norm

__all__ = ["waveglow"]

_MELS = 80
_GROUP = 8
_FLOWS = 12
_LAYERS = 8


class Wavenet(nn.Module):
    """Dilated convolutions with gates, conditioned on the spectrogram."""

    def __init__(self, half: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.start = weight_norm(nn.Conv1d(half, width, 1))
        self.end = nn.Conv1d(width, 2 * half, 1)
        self.dilated = nn.ModuleList(
            weight_norm(nn.Conv1d(width, 2 * width, 3, dilation=2**i, padding=2**i)) for i in range(_LAYERS)
        )
        self.conditions = nn.ModuleList(weight_norm(nn.Conv1d(_MELS * _GROUP, 2 * width, 1)) for _ in range(_LAYERS))
        self.skips = nn.ModuleList(
            weight_norm(nn.Conv1d(width, width * (2 if i < _LAYERS - 1 else 1), 1)) for i in range(_LAYERS)
        )

    def forward(self, audio: Tensor, mels: Tensor) -> Tensor:
        """Scale and shift of the other half."""
        x, total = self.start(audio), None
        for i in range(_LAYERS):
            y = self.dilated[i](x) + self.conditions[i](mels)
            y = self.skips[i](torch.tanh(y[:, : self.width]) * torch.sigmoid(y[:, self.width :]))
            if i < _LAYERS - 1:
                x, y = x + y[:, : self.width], y[:, self.width :]
            total = y if total is None else total + y
        return self.end(total)


class WaveGlow(nn.Module):
    """Twelve steps of flow over groups of eight samples; two channels leave early after every fourth."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.upsample = nn.ConvTranspose1d(_MELS, _MELS, 1024, stride=256)
        left = [_GROUP - 2 * (k // 4) for k in range(_FLOWS)]
        self.mix = nn.ModuleList(nn.Conv1d(c, c, 1, bias=False) for c in left)
        self.nets = nn.ModuleList(Wavenet(c // 2, width) for c in left)

    def forward(self, mels: Tensor, audio: Tensor) -> Tensor:
        """Negative log-likelihood of the audio, a sample of it."""
        batch, length = audio.shape
        mels = self.upsample(mels)[:, :, :length].unfold(2, _GROUP, _GROUP).permute(0, 2, 1, 3)
        mels = mels.reshape(batch, length // _GROUP, -1).permute(0, 2, 1)
        x = audio.unfold(1, _GROUP, _GROUP).permute(0, 2, 1)
        early, gain = [], torch.zeros((), device=audio.device)
        for k in range(_FLOWS):
            if k and k % 4 == 0:
                early.append(x[:, :2])
                x = x[:, 2:]
            mix = self.mix[k]
            x, gain = mix(x), gain + batch * (length // _GROUP) * torch.logdet(mix.weight.squeeze())
            half = x.shape[1] // 2
            found = self.nets[k](x[:, :half], mels)
            scale = found[:, half:]
            x = torch.cat((x[:, :half], torch.exp(scale) * x[:, half:] + found[:, :half]), 1)
            gain = gain + scale.sum()
        z = torch.cat((*early, x), 1)
        return ((z * z).sum() / 2 - gain) / z.numel()


def waveglow() -> nn.Module:
    """With 512 channels."""
    return WaveGlow(512)
