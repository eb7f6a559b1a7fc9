"""Precisions of training: in which format weights, activations, products and gradients are.

- ``fp32`` and ``tf32``: all tensors fp32; tf32 multiplies on matrix units.
- ``fp16`` and ``bf16``: automatic mixed precision, as `torch.autocast` does it. Weights, gradients and
  optimizer states stay fp32; matrix products read half-precision copies of the weights, made once
  a step; normalizations, softmax and losses run in fp32.
- ``fp16-master`` and ``bf16-master``: weights, activations and gradients in half precision, with fp32
  master weights that the optimizer updates (P. Micikevicius and others, "Mixed Precision Training", ICLR
  2018). With Adam 16 bytes a parameter (S. Rajbhandari and others, "DataExchange", SC 2020).
- ``fp16-pure`` and ``bf16-pure``: everything in half precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from simperf.errors import UnknownNameError

__all__ = ["TRAINING_PRECISIONS", "WIDE_KINDS", "TrainingPrecision", "training_precision"]


@dataclass(frozen=True, slots=True)
class TrainingPrecision:
    """Formats of one way to train.

    Parameters
    ----------
    name : str
    matrix : str
        Of matrix products.
    weights : str
        Of weights, their gradients and, unless products are autocast, activations.
    states : str
        Of the optimizer's states.
    autocast : bool
        Whether operands are converted operation by operation.
    master : bool
        Whether the optimizer keeps fp32 weights beside those that the model uses.
    scaled : bool
        Whether gradients are checked and unscaled before the update, as fp16 needs.
    """

    name: str
    matrix: str
    weights: str = "fp32"
    states: str = "fp32"
    autocast: bool = False
    master: bool = False
    scaled: bool = False


#: precision of training -> formats
TRAINING_PRECISIONS: Mapping[str, TrainingPrecision] = MappingProxyType(
    {
        mode.name: mode
        for mode in (
            TrainingPrecision("fp32", "fp32"),
            TrainingPrecision("tf32", "tf32"),
            TrainingPrecision("fp16", "fp16", autocast=True, scaled=True),
            TrainingPrecision("bf16", "bf16", autocast=True),
            TrainingPrecision("fp16-master", "fp16", "fp16", master=True, scaled=True),
            TrainingPrecision("bf16-master", "bf16", "bf16", master=True),
            TrainingPrecision("fp16-pure", "fp16", "fp16", "fp16", scaled=True),
            TrainingPrecision("bf16-pure", "bf16", "bf16", "bf16"),
        )
    }
)

#: kinds that autocast runs in fp32 (PyTorch documentation, "CUDA Ops that can autocast to float32"),
#: and what belongs to them in the backward pass
WIDE_KINDS = frozenset(
    {
        "binary_cross_entropy_with_logits",
        "exp",
        "groupnorm",
        "groupnorm_backward",
        "l1_loss",
        "layernorm",
        "layernorm_backward",
        "log",
        "log_softmax",
        "log_softmax_backward",
        "mse_loss",
        "mse_loss_backward",
        "nll_loss",
        "nll_loss_backward",
        "norm",
        "pow",
        "reciprocal",
        "rsqrt",
        "smooth_l1_loss",
        "softmax",
        "softmax_backward",
        "softplus",
    }
)


def training_precision(name: str) -> TrainingPrecision:
    """Look up a precision of training.

    Raises
    ------
    UnknownNameError
        There is none of this name.
    """
    try:
        return TRAINING_PRECISIONS[name]
    except KeyError:
        raise UnknownNameError("precision of training", name, TRAINING_PRECISIONS) from None
