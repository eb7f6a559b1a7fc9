"""Windows of traced convolutions: which kernels of a library may serve them."""

from __future__ import annotations

import math
from collections.abc import Mapping

from simperf.workload.traced import TracedOp, TracedStep

__all__ = ["unit_window", "weights_of"]

#: channels on either side below which a library multiplies images as they are (the first layer)
_FEWEST_CHANNELS = 16


def weights_of(model: TracedStep) -> Mapping[int, tuple[int, ...]]:
    """Shape of the weight behind each tensor that is a weight or its gradient."""
    storages = {one.storage: one.shape for one in model.parameters}
    found = {tensor: storages[storage] for tensor, storage in enumerate(model.tensors) if storage in storages}
    return found | {one.tensor: model.parameters[one.parameter].shape for one in model.gradients}


def unit_window(op: TracedOp, weights: Mapping[int, tuple[int, ...]]) -> int:
    """Side of a convolution's square window that moves by one pixel; 0 for any other, and for few channels.

    A window that moves by one makes as many pixels as it reads, but for the border.

    Parameters
    ----------
    op : TracedOp
        A convolution, or the gradient of its input or weight.
    weights : mapping of int to tuple
        Of `weights_of`.
    """
    operands = [*op.reads, *op.writes]
    shape = next((weights[one.tensor] for one in operands if one.tensor in weights), ())
    if len(shape) != 4 or shape[2] != shape[3] or not op.gemm or op.gemm[0].at(1) != 1:
        return 0
    made, read, side = shape[0], shape[1], shape[2]
    images = [one.elements.at(1) for one in operands if one.tensor not in weights]
    if len(images) != 2 or min(made, read) < _FEWEST_CHANNELS:
        return 0
    # forward reads the image and makes the result; the gradients' kernels have that of the result first
    before, behind = images if op.kind == "conv2d" else reversed(images)
    return side if abs(math.sqrt(before / read) - math.sqrt(behind / made)) < side else 0
