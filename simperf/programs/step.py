"""One training step of a model on one device, or a part of it."""

from __future__ import annotations

from typing import Literal

from simperf.engine.kernel import Kernel
from simperf.errors import InputError, Problem
from simperf.execution import Program, launch, synchronize
from simperf.execution.session import Session
from simperf.programs.parameters import Count
from simperf.programs.registry import program
from simperf.training.replica import training_step as step_of

__all__ = ["training_step"]

_PARTS = ("forward", "backward", "update")


@program("training-step")
def training_step(
    m: Session,
    *,
    model: str = "lenet",
    batch: Count = 32,
    precision: str = "fp32",
    optimizer: str = "",
    part: Literal["step", "forward", "backward", "update"] = "step",
    attention: Literal["flash", "unfused"] = "flash",
) -> Program:
    """Run one training step of a model, or a part of it, from an idle device until it is idle again.

    Parameters
    ----------
    model : str
        a model of the zoo
    batch : int
        samples, which lie on the device
    precision : str
        of the model
    optimizer : str
        of the model
    part : str
        the whole step, or one of its passes, or the optimizer's update
    attention : str
        of a model by its dimensions: in one kernel, or an operation at a time, as Hugging Face's eager one is
    """
    from simperf.workload.layer_kernels import LayerKernels
    from simperf.workload.zoo import load

    if attention != "flash" and isinstance(model, str):
        message, expected = "a traced model brings its own kernels", "flash, or a model by its dimensions in [model]"
        raise InputError(Problem(message, key="program.attention", value=repr(attention), expected=expected))
    gpu = m.gpu()
    step = step_of(
        m, load(model, LayerKernels(attention=attention)), gpu, batch=batch, precision=precision, optimizer=optimizer
    )
    kernels: list[Kernel] = []
    for each in _PARTS if part == "step" else (part,):
        kernels += getattr(step, each)
    for kernel in kernels:
        yield launch(kernel, gpu)
    yield synchronize(gpu)
    m.work(f"samples of {model if isinstance(model, str) else 'the model'}: {part}", batch)
