"""SSD300 with a ResNet-50, as NVIDIA's training example has it.

W. Liu and others, "SSD: Single Shot MultiBox Detector" (ECCV 2016); the backbone is a ResNet-50 up to its third stage,
which keeps 38 x 38 pixels (NVIDIA/DeepLearningExamples, PyTorch/Detection/SSD). Boxes of 81 classes at six sizes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from simperf.workload.zoo_source.resnet import ResidualBlock, resnet50

__all__ = ["ssd300"]

_CLASSES = 81
_BOXES = 8732
_CHANNELS = (1024, 512, 512, 256, 256, 256)
_EACH = (4, 6, 6, 6, 4, 4)


def _backbone() -> nn.Module:
    """Stem and three stages; the third one's first block does not halve the picture."""
    whole = resnet50()
    assert isinstance(whole, nn.Sequential)
    layers = list(whole)[: 4 + 3 + 4 + 6]
    layers[11] = ResidualBlock(512, 256, stride=1, bottleneck=True)
    return nn.Sequential(*layers)


def _smaller(fan_in: int, width: int, fan_out: int, *, halve: bool) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(fan_in, width, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
        nn.Conv2d(width, fan_out, 3, padding=int(halve), stride=1 + halve, bias=False),
        nn.BatchNorm2d(fan_out),
        nn.ReLU(inplace=True),
    )


class Ssd(nn.Module):
    """Features at six sizes, and for each box its place and class."""

    def __init__(self) -> None:
        super().__init__()
        self.features = _backbone()
        widths = (256, 256, 128, 128, 128)
        ends = zip(_CHANNELS[:-1], widths, _CHANNELS[1:], strict=True)
        self.smaller = nn.ModuleList(_smaller(a, w, b, halve=i < 3) for i, (a, w, b) in enumerate(ends))
        heads = tuple(zip(_CHANNELS, _EACH, strict=True))
        self.places = nn.ModuleList(nn.Conv2d(c, 4 * n, 3, padding=1) for c, n in heads)
        self.classes = nn.ModuleList(nn.Conv2d(c, _CLASSES * n, 3, padding=1) for c, n in heads)
        self.register_buffer("boxes", torch.empty(1, 4, _BOXES))

    def forward(self, image: Tensor, place: Tensor, label: Tensor) -> Tensor:
        """Loss of places, and of classes with three negatives for each positive, the hardest ones."""
        found = [self.features(image)]
        for layer in self.smaller:
            found.append(layer(found[-1]))
        batch = image.shape[0]
        places = torch.cat([h(x).reshape(batch, 4, -1) for h, x in zip(self.places, found, strict=True)], 2)
        classes = torch.cat([h(x).reshape(batch, _CLASSES, -1) for h, x in zip(self.classes, found, strict=True)], 2)
        return self.loss(places, classes, place, label=label)

    def loss(self, places: Tensor, classes: Tensor, place: Tensor, *, label: Tensor) -> Tensor:
        """As in section 2.2 of the paper."""
        boxes = self.get_buffer("boxes")
        positive = label > 0
        count = positive.sum(1)
        middle = 10 * (place[:, :2] - boxes[:, :2]) / boxes[:, 2:]
        size = 5 * (place[:, 2:] / boxes[:, 2:]).log()
        off = functional.smooth_l1_loss(places, torch.cat((middle, size), 1), reduction="none").sum(1)
        wrong = functional.cross_entropy(classes, label, reduction="none")
        order = torch.where(positive, 0.0, wrong).sort(1, descending=True)[1].sort(1)[1]
        kept = positive | (order < (3 * count).clamp(max=_BOXES).unsqueeze(1))
        each = ((positive * off).sum(1) + (kept * wrong).sum(1)) / count.clamp(min=1)
        return each.mean()


def ssd300() -> nn.Module:
    """For pictures of 300 x 300."""
    return Ssd()
