"""Optimizers' updates of the weights: kernels over whole arrays of parameter size.

As PyTorch runs them on a GPU by default ("foreach"): each line of the algorithm is one kernel over
all parameters, in the steady state, when buffers exist. The ``-fused`` ones do it all in one.
Sources: D. Kingma and J. Ba, "Adam", ICLR 2015; I. Loshchilov and F. Hutter, "Decoupled Weight
Decay Regularization", ICLR 2019; PyTorch's documentation of `torch.optim`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from simperf.errors import UnknownNameError

__all__ = ["OPTIMIZERS", "OptimizerSteps", "UpdateKernel", "optimizer_steps"]


class UpdateKernel(NamedTuple):
    """One kernel over all parameters: FLOP a parameter, arrays of parameter size read and written."""

    kind: str
    flops: float
    reads: int
    writes: int


@dataclass(frozen=True, slots=True)
class OptimizerSteps:
    """One update.

    Parameters
    ----------
    name : str
    kernels : tuple of UpdateKernel
        In order.
    states : int
        Arrays of parameter size that it keeps (momentum, variance).
    temporaries : int
        Arrays of parameter size that exist during the update only.
    """

    name: str
    kernels: tuple[UpdateKernel, ...]
    states: int = 0
    temporaries: int = 0


_K = UpdateKernel
_DECAY = _K("add", 2, 2, 1)  # g + wd * w, out of place
_MOMENTUM = (_K("mul", 1, 1, 1), _K("add", 1, 2, 1))  # m *= mu; m += g
_STEP = _K("add", 2, 2, 1)  # w -= lr * g
_ADAM = (
    _K("lerp", 3, 2, 1),  # m += (1 - b1) (g - m)
    _K("mul", 1, 1, 1),  # v *= b2
    _K("addcmul", 3, 2, 1),  # v += (1 - b2) g g
    _K("sqrt", 4, 1, 1),  # r = sqrt(v), the temporary
    _K("div", 4, 1, 1),  # r /= its bias correction
    _K("add", 1, 1, 1),  # r += eps
    _K("addcdiv", 6, 3, 1),  # w -= lr m / r
)
_SHRINK = _K("mul", 1, 1, 1)  # w *= 1 - lr wd

#: optimizer -> what it does
OPTIMIZERS: Mapping[str, OptimizerSteps] = MappingProxyType(
    {
        steps.name: steps
        for steps in (
            OptimizerSteps("sgd", (_STEP,)),
            OptimizerSteps("momentum", (*_MOMENTUM, _STEP), states=1),
            OptimizerSteps("momentum-decay", (_DECAY, *_MOMENTUM, _STEP), states=1, temporaries=1),
            OptimizerSteps("adam", _ADAM, states=2, temporaries=1),
            OptimizerSteps("adamw", (_SHRINK, *_ADAM), states=2, temporaries=1),
            OptimizerSteps("sgd-fused", (_K("sgd", 2, 2, 1),)),
            OptimizerSteps("momentum-fused", (_K("sgd", 4, 3, 2),), states=1),
            OptimizerSteps("adam-fused", (_K("adam", 20, 4, 3),), states=2),
            OptimizerSteps("adamw-fused", (_K("adam", 21, 4, 3),), states=2),
        )
    }
)


def optimizer_steps(name: str) -> OptimizerSteps:
    """Look up an optimizer.

    Raises
    ------
    UnknownNameError
        There is none of this name.
    """
    try:
        return OPTIMIZERS[name]
    except KeyError:
        raise UnknownNameError("optimizer", name, OPTIMIZERS) from None
