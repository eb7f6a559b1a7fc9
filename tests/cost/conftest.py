"""A device with round numbers, so that expectations can be worked out in the head."""

from dataclasses import dataclass, field

import pytest


@dataclass(frozen=True)
class Device:
    """1 TFLOP/s in fp32, 8 on matrix units in fp16, 100 GB/s: the ridge lies at 10 FLOP/B."""

    name: str = "round"
    peak: dict[str, float] = field(default_factory=lambda: {"fp32": 1e12, "fp16": 8e12, "fp16-vector": 2e12})
    memory_bandwidth: float = 100e9
    sms: int = 10
    kernel_floor: float = 2e-6
    efficiency: dict[str, float] = field(default_factory=dict)


@pytest.fixture
def device():
    return Device()


@pytest.fixture
def tuned():
    return Device(efficiency={"gemm": 0.8, "gemm-fp32": 0.5, "elementwise": 0.75, "normalization": 0.6})
