"""Questions of a planner that published figures answer, and the one that a run answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from simperf.answer import PUBLISHED, PublishedRuns, unpublished

__all__ = [
    "COLLECTIVES",
    "IDEALISED",
    "KERNELS",
    "KERNEL_GROUPS",
    "LARGE",
    "ONE_GPU",
    "ONE_GPU_GROUPS",
    "PLANS",
    "SCALING",
    "SIZE_CLASSES",
    "STEP_METRICS",
    "RunQuestion",
    "asked_by",
    "runs_of",
    "size_class",
]

ONE_GPU = "One GPU, from its data sheet"
SCALING = "Scaling from a measured GPU"
PLANS = "Several GPUs, from their data sheets"
COLLECTIVES = "Collectives by size"
KERNELS = "Kernels"
LARGE = "Large models"

#: why figures say nothing of collectives by idealised algorithms
IDEALISED = "published collectives are NCCL's, not those of idealised algorithms"

#: payloads up to which latency, and from which bandwidth makes the time of a collective [B]
_SMALL, _BIG = 1 << 13, 1 << 26
SIZE_CLASSES = ("8 KiB and below", "8 KiB to 64 MiB", "64 MiB and above")

#: steps of training, and passes that begin and end with an idle device
ONE_GPU_GROUPS = ("steps", "passes")
#: kernels that multiply matrices, and all others
KERNEL_GROUPS = ("products", "other kernels")
_PRODUCTS = frozenset(
    ("matmul", "bmm", "linear", "conv2d", "attention", "latent_attention", "moe", "block_scaled_matmul")
)

#: metrics of a run of training that a figure was published of; all are as far off as the time of a step
STEP_METRICS = ("samples per second", "time per step", "time per epoch")
_OF_STEPS = ("time", *STEP_METRICS)
_OF_LARGE_STEPS = (
    *("tokens per second", "tokens per second per GPU", "model FLOP per second per GPU"),
    *("model FLOP utilisation", "hardware FLOP utilisation"),
)


@dataclass(frozen=True, slots=True)
class RunQuestion:
    """A question that a run answers.

    Parameters
    ----------
    question : str
        One of this module's; empty if published figures say nothing of runs like it.
    group : str
        Which of the question's figures are like it; empty if the question has one group.
    metrics : tuple of str
        Numbers of the run that the figures are of: ``"time"``, or names of metrics.
    why_not : str
        Why figures say nothing of it; empty if they do.
    gpus : int
        That take part.
    """

    question: str = ""
    group: str = ""
    metrics: tuple[str, ...] = ()
    why_not: str = ""
    gpus: int = 1


def size_class(nbytes: float) -> str:
    """The class of a collective's payload [B], one of `SIZE_CLASSES`.

    Examples
    --------
    >>> size_class(4096), size_class(1e6), size_class(1e9)
    ('8 KiB and below', '8 KiB to 64 MiB', '64 MiB and above')
    """
    return SIZE_CLASSES[0 if nbytes <= _SMALL else 1 if nbytes < _BIG else 2]


def runs_of(program: str, parameters: Mapping[str, Any]) -> PublishedRuns | Literal[""]:
    """Kind of the published figures of runs like it; empty where there are none.

    A parameter server trains if it was given a model or the speed of one GPU, and else exchanges bytes alone.

    Parameters
    ----------
    program : str
    parameters : mapping
        Of the program.

    Examples
    --------
    >>> runs_of("parameter-server", {"alone": 40.0}), runs_of("parameter-server", {}), runs_of("streams", {})
    ('training', 'exchange', '')
    """
    if program == "parameter-server" and not (parameters.get("alone") or parameters.get("model")):
        return "exchange"
    return PUBLISHED.get(program, "")


def asked_by(
    program: str, parameters: Mapping[str, Any], *, gpus: int, changed: str = "", estimated: str = ""
) -> RunQuestion:
    """The question that a run answers, by its program and what it was given.

    Parameters
    ----------
    program : str
    parameters : mapping
        Of the program, in SI units.
    gpus : int
        GPUs of the machine.
    changed : str
        What stands for the catalogue's constants, in words; empty if nothing does.
    estimated : str
        An architecture of its GPUs of which no kernel was measured; empty if there is none. Errors of steps are of
        GPUs whose architectures' kernels were measured, and say nothing of it.

    Examples
    --------
    >>> asked_by("train", {"model": "resnet50", "alone": 400.0}, gpus=8).question
    'Scaling from a measured GPU'
    >>> asked_by("async-chain", {}, gpus=1).why_not
    'no figures are published of runs like those of async-chain'
    """
    runs = runs_of(program, parameters)
    if not runs:
        return RunQuestion(why_not=unpublished(program))
    if changed:
        return RunQuestion(why_not=f"published figures were predicted by the catalogue, not with {changed}")
    if runs == "exchange":
        return _collective(program, parameters, int(parameters.get("gpus") or 0) or gpus)
    if runs == "kernels":
        products = {one.get("op") in _PRODUCTS for one in parameters.get("ops", ())}
        if len(products) > 1:
            return RunQuestion(why_not="published kernels are products or others, not both one after the other")
        return RunQuestion(KERNELS, KERNEL_GROUPS[0 if products == {True} else 1], ("time",))
    if runs == "pass":
        return _of_kernels(RunQuestion(ONE_GPU, ONE_GPU_GROUPS[1], ("time",)), estimated)
    if parameters.get("failures"):
        return RunQuestion(why_not="published steps are of runs without failures")
    number = int(parameters.get("gpus") or 0) or gpus
    if parameters.get("strategy") == "model-parallel" or parameters.get("layout"):
        ranks = int(getattr(parameters.get("layout"), "ranks", number))
        return RunQuestion(LARGE, metrics=(*_OF_STEPS, *_OF_LARGE_STEPS), gpus=ranks)
    if parameters.get("alone"):
        if number == 1 and program == "train":
            return RunQuestion(why_not="the speed of one GPU is what was given")
        return RunQuestion(SCALING, metrics=(*_OF_STEPS, "scaling efficiency"), gpus=number)
    if not parameters.get("model"):
        return RunQuestion(why_not="layers in round numbers are no model that was measured")
    if number == 1:
        return _of_kernels(RunQuestion(ONE_GPU, ONE_GPU_GROUPS[0], _OF_STEPS), estimated)
    return _of_kernels(RunQuestion(PLANS, metrics=_OF_STEPS, gpus=number), estimated)


def _of_kernels(asked: RunQuestion, estimated: str) -> RunQuestion:
    """A question whose figures are of architectures with measured kernels, of a run on such a one."""
    if not estimated:
        return asked
    why_not = f"no kernel of the architecture {estimated} was measured: its efficiencies are estimates"
    return RunQuestion(why_not=why_not)


def _collective(program: str, given: Mapping[str, Any], gpus: int) -> RunQuestion:
    """The question of an exchange of bytes by so many GPUs: of an all-reduce by NCCL, alone on its links."""
    if program != "all-reduce":
        return RunQuestion(why_not="published collectives are NCCL's, not exchanges with parameter servers")
    if gpus < 2:
        return RunQuestion(why_not="published collectives are of two GPUs or more")
    algorithm = str(given.get("algorithm") or "nccl")
    if not algorithm.startswith("nccl"):
        return RunQuestion(why_not=IDEALISED)
    if given.get("background") or int(given.get("together") or 1) > 1:
        return RunQuestion(why_not="published collectives have their links to themselves")
    return RunQuestion(COLLECTIVES, size_class(float(given["nbytes"])), ("time", "algbw", "busbw"), gpus=gpus)
