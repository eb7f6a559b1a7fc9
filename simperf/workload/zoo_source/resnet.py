"""Residual networks for ImageNet.

K. He and others, "Deep Residual Learning for Image Recognition" (CVPR 2016), with the stride in
the 3 x 3 convolution of a bottleneck ("v1.5"), as PyTorch's and NVIDIA's training examples have it.
With grouped 3 x 3 convolutions they are S. Xie and others, "Aggregated Residual Transformations for
Deep Neural Networks" (CVPR 2017).
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

__all__ = ["resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50", "resnext101"]


def _conv(fan_in: int, fan_out: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Module:
    return nn.Conv2d(fan_in, fan_out, kernel, stride=stride, padding=kernel // 2, groups=groups, bias=False)


class ResidualBlock(nn.Module):
    """Convolutions with normalization between, and a shortcut around them."""

    def __init__(self, fan_in: int, width: int, *, stride: int, bottleneck: bool, groups: int = 1, each: int = 64):
        super().__init__()
        fan_out = 4 * width if bottleneck else width
        shapes = ((1, 1), (3, stride, groups), (1, 1)) if bottleneck else ((3, stride), (3, 1))
        inner = width * each // 64 * groups
        widths = (fan_in, inner, inner, fan_out) if bottleneck else (fan_in, width, width)
        self.convs = nn.ModuleList(_conv(widths[i], widths[i + 1], *shape) for i, shape in enumerate(shapes))
        self.norms = nn.ModuleList(nn.BatchNorm2d(size) for size in widths[1:])
        self.relu = nn.ReLU(inplace=True)
        changes = stride != 1 or fan_in != fan_out
        norm = nn.BatchNorm2d(fan_out)
        self.downsample = nn.Sequential(_conv(fan_in, fan_out, 1, stride), norm) if changes else None

    def forward(self, x: Tensor) -> Tensor:
        """Residual branch plus shortcut."""
        y = x
        last = len(self.convs) - 1
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            y = norm(conv(y))
            y = self.relu(y) if i < last else y
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


def _resnet(depths: Sequence[int], *, bottleneck: bool, groups: int = 1, each: int = 64) -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64)]
    layers += [nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1)]
    fan_in = 64
    for stage, depth in enumerate(depths):
        width = 64 * 2**stage
        for i in range(depth):
            stride = 2 if stage and not i else 1
            layers.append(ResidualBlock(fan_in, width, stride=stride, bottleneck=bottleneck, groups=groups, each=each))
            fan_in = 4 * width if bottleneck else width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(fan_in, 1000))


def resnet18() -> nn.Module:
    """18 layers."""
    return _resnet((2, 2, 2, 2), bottleneck=False)


def resnet34() -> nn.Module:
    """34 layers."""
    return _resnet((3, 4, 6, 3), bottleneck=False)


def resnet50() -> nn.Module:
    """50 layers."""
    return _resnet((3, 4, 6, 3), bottleneck=True)


def resnet101() -> nn.Module:
    """101 layers."""
    return _resnet((3, 4, 23, 3), bottleneck=True)


def resnet152() -> nn.Module:
    """152 layers."""
    return _resnet((3, 8, 36, 3), bottleneck=True)


def resnext50() -> nn.Module:
    """50 layers, 32 groups of 4 channels in the first stage."""
    return _resnet((3, 4, 6, 3), bottleneck=True, groups=32, each=4)


def resnext101() -> nn.Module:
    """101 layers, 32 groups of 8 channels in the first stage."""
    return _resnet((3, 4, 23, 3), bottleneck=True, groups=32, each=8)
