"""Convolutional networks and the perceptron, layer by layer as their sources give them."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["alexnet", "d2l_resnet18", "lenet", "mlp", "vgg16"]


def mlp() -> nn.Module:
    """Two layers, 784-256-10, of "Dive into Deep Learning", "Multilayer Perceptrons"."""
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))


def lenet() -> nn.Module:
    """LeNet as section 12.5 of "Dive into Deep Learning" (Training on Multiple GPUs) modifies it."""
    return nn.Sequential(
        nn.Conv2d(1, 20, 3),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Conv2d(20, 50, 5),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(800, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


class Residual(nn.Module):
    """Residual block of the same book, section 8.6: convolutions with bias, shortcut without normalization."""

    def __init__(self, fan_in: int, fan_out: int, stride: int = 1, *, shortcut: bool = False) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(fan_in, fan_out, 3, padding=1, stride=stride)
        self.bn1 = nn.BatchNorm2d(fan_out)
        self.conv2 = nn.Conv2d(fan_out, fan_out, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(fan_out)
        self.conv3 = nn.Conv2d(fan_in, fan_out, 1, stride=stride) if shortcut else None
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """Two convolutions, and the shortcut added."""
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + (x if self.conv3 is None else self.conv3(x)))


def d2l_resnet18() -> nn.Module:
    """ResNet-18 as section 12.6 of the book (Concise Implementation for Multiple GPUs) modifies it.

    Smaller convolution, stride and padding at the start, and no pooling there.
    """
    layers: list[nn.Module] = [nn.Conv2d(1, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU()]
    layers += [Residual(64, 64), Residual(64, 64)]
    for fan_in in (64, 128, 256):
        layers += [Residual(fan_in, 2 * fan_in, 2, shortcut=True), Residual(2 * fan_in, 2 * fan_in)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


def alexnet() -> nn.Module:
    """AlexNet of A. Krizhevsky, "One weird trick for parallelizing convolutional neural networks" (2014)."""
    widths = ((3, 64, 11, 4, 2), (64, 192, 5, 1, 2), (192, 384, 3, 1, 1), (384, 256, 3, 1, 1), (256, 256, 3, 1, 1))
    layers: list[nn.Module] = []
    for i, (fan_in, fan_out, kernel, stride, padding) in enumerate(widths):
        layers += [nn.Conv2d(fan_in, fan_out, kernel, stride=stride, padding=padding), nn.ReLU(inplace=True)]
        if i in (0, 1, 4):
            layers.append(nn.MaxPool2d(3, 2))
    layers += [nn.Flatten(), nn.Dropout(), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(inplace=True)]
    layers += [nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Linear(4096, 1000)]
    return nn.Sequential(*layers)


def vgg16() -> nn.Module:
    """VGG-16, configuration D of K. Simonyan and A. Zisserman (ICLR 2015)."""
    layers: list[nn.Module] = []
    fan_in = 3
    for fan_out, repeats in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(repeats):
            layers += [nn.Conv2d(fan_in, fan_out, 3, padding=1), nn.ReLU(inplace=True)]
            fan_in = fan_out
        layers.append(nn.MaxPool2d(2))
    layers += [nn.Flatten(), nn.Linear(512 * 7 * 7, 4096), nn.ReLU(inplace=True), nn.Dropout()]
    layers += [nn.Linear(4096, 4096), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 1000)]
    return nn.Sequential(*layers)
