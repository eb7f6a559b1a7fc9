"""Optimizers' updates of the weights: kernels over all parameters together, or over one tensor after the other.

Implementations, by PyTorch's names: ``foreach`` has one kernel over all parameters for each line of the algorithm, in
the steady state, when buffers exist; ``for-loop`` launches that line for each tensor from Python; ``fused`` has one
kernel in all. `torch.optim` takes ``foreach`` on GPUs by default from PyTorch 2.0 on, ``for-loop`` before.
Sources: D. Kingma and J. Ba, "Adam", ICLR 2015; I. Loshchilov and F. Hutter, "Decoupled Weight
Decay Regularization", ICLR 2019; PyTorch's documentation of `torch.optim`; pytorch/pytorch v1.13.1, torch/optim/sgd.py
and adam.py, _single_tensor_sgd and _single_tensor_adam; of BertAdam NVIDIA/DeepLearningExamples at 729963dd,
PyTorch/LanguageModeling/BERT/optimization.py, which has huggingface's of pytorch-pretrained-bert.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from simperf.errors import UnknownNameError

__all__ = ["IMPLEMENTATIONS", "OPTIMIZERS", "OptimizerSteps", "UpdateKernel", "implemented", "optimizer_steps"]

#: implementations of an optimizer: what a name ends with
IMPLEMENTATIONS: Mapping[str, str] = MappingProxyType({"foreach": "", "for-loop": "-for-loop", "fused": "-fused"})


class UpdateKernel(NamedTuple):
    """One kernel of an update.

    Parameters
    ----------
    kind : str
    flops : float
        Arithmetic a parameter [FLOP].
    reads, writes : int
        Arrays of parameter size that it reads and writes; without any, it works on one number, such as a norm.
    matrices : bool
        Only for tensors of two or more dimensions: biases and normalizations are left out, as from weight decay.
    """

    kind: str
    flops: float
    reads: int
    writes: int
    matrices: bool = False


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
        Arrays that exist during the update only: of the size of all parameters, or of one tensor where it is looped.
    looped : bool
        The kernels run over one tensor after the other, each launched by itself.
    """

    name: str
    kernels: tuple[UpdateKernel, ...]
    states: int = 0
    temporaries: int = 0
    looped: bool = False


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
_ADAM_LOOP = (_K("mul", 1, 1, 1), _K("add", 2, 2, 1), *_ADAM[1:])  # m *= b1; m += (1 - b1) g, in place of a lerp
_CLIP = (  # clip_grad_norm_ of one tensor
    _K("norm", 2, 1, 0),
    _K("stack", 0, 0, 0),
    _K("norm", 0, 0, 0),
    _K("add", 0, 0, 0),  # + 1e-6
    _K("reciprocal", 0, 0, 0),
    _K("mul", 0, 0, 0),  # times the largest norm
    _K("clamp", 0, 0, 0),
    _K("mul", 1, 1, 1),  # g *= the coefficient
)
_BERT_ADAM = (
    *_CLIP,
    *_ADAM_LOOP[:4],  # m and v
    _K("sqrt", 4, 1, 1),
    _K("add", 1, 1, 1),  # + eps
    _K("div", 4, 2, 1),  # u = m / r
    _K("mul", 1, 1, 1, matrices=True),
    _K("add", 1, 2, 1, matrices=True),  # u += wd w
    _K("mul", 1, 1, 1),  # u lr
    _K("neg", 1, 1, 1),
    _K("add", 1, 2, 1),  # w += it
)

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
            OptimizerSteps("sgd-for-loop", (_STEP,), looped=True),
            OptimizerSteps("momentum-for-loop", (*_MOMENTUM, _STEP), states=1, looped=True),
            OptimizerSteps(
                "momentum-decay-for-loop", (_DECAY, *_MOMENTUM, _STEP), states=1, temporaries=1, looped=True
            ),
            OptimizerSteps("adam-for-loop", _ADAM_LOOP, states=2, temporaries=1, looped=True),
            OptimizerSteps("adamw-for-loop", (_SHRINK, *_ADAM_LOOP), states=2, temporaries=1, looped=True),
            OptimizerSteps("bert-adam-for-loop", _BERT_ADAM, states=2, temporaries=3, looped=True),
            OptimizerSteps("sgd-fused", (_K("sgd", 2, 2, 1),)),
            OptimizerSteps("momentum-fused", (_K("sgd", 4, 3, 2),), states=1),
            OptimizerSteps("momentum-decay-fused", (_K("sgd", 6, 3, 2),), states=1),
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


def implemented(name: str, implementation: str) -> OptimizerSteps:
    """An optimizer in another implementation.

    Parameters
    ----------
    name : str
        Of the optimizer, in any implementation.
    implementation : str
        One of `IMPLEMENTATIONS`.

    Raises
    ------
    UnknownNameError
        It is not implemented so.

    Examples
    --------
    >>> implemented("adam-fused", "for-loop").name, implemented("adam-fused", "foreach").name
    ('adam-for-loop', 'adam')
    """
    end = next((end for end in IMPLEMENTATIONS.values() if end and name.endswith(end)), "")
    return optimizer_steps(name.removesuffix(end) + IMPLEMENTATIONS[implementation])
