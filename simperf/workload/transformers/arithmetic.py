"""Arithmetic of the kernels of a transformer that are no matrix products [FLOP an element that they make].

Counted as operations of a trace are (`simperf.workload.trace.kinds`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = [
    "ACTIVATION",
    "ATTENTION_BACK",
    "DIVIDE",
    "DROP",
    "EXPONENTIAL",
    "GELU",
    "GELU_BACK",
    "LAYER_NORM",
    "LAYER_NORM_BACK",
    "LOG",
    "RMS_NORM",
    "RMS_NORM_BACK",
    "ROTARY",
    "SILU",
    "SILU_BACK",
    "SOFTMAX",
    "SOFTMAX_BACK",
]

SILU, SILU_BACK = 15, 19
GELU, GELU_BACK = 12, 25
#: activation -> forward for each element that the second matrix reads, and backward for each that the first one makes
ACTIVATION: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "swiglu": (SILU + 1, (SILU_BACK + 2) // 2 + 1),
        "geglu": (GELU + 1, (GELU_BACK + 2) // 2 + 1),
        "gelu": (GELU, GELU_BACK),
        "relu": (1, 1),
        "relu2": (2, 3),
    }
)
#: RMS normalisation in one kernel: a square, its sum, two products; and back two products and a sum, two products and a
#: difference, two products and a sum for the weights
RMS_NORM, RMS_NORM_BACK = 4, 9
LAYER_NORM, LAYER_NORM_BACK = 7, 14
SOFTMAX, SOFTMAX_BACK = 15, 4
DROP, DIVIDE, EXPONENTIAL, LOG = 2, 4, 8, 8
#: rotation of a pair: two products and a sum for each element
ROTARY = 3
#: gradients of attention in one kernel over its forward pass: five matrix products for two
ATTENTION_BACK = 2.5
