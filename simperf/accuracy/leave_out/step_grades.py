"""Measured training steps predicted with their GPU, their source or their family left out."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median

from simperf.accuracy.cases import read_cases
from simperf.accuracy.leave_out.kernels import elsewhere, kernel_parts
from simperf.accuracy.leave_out.measured_steps import MeasuredStep, measured_steps
from simperf.accuracy.summary import percentile_90
from simperf.cost import Roofline
from simperf.run import run

__all__ = [
    "CLEAR",
    "GROUPS",
    "GradedStep",
    "arithmetic_of",
    "family_of",
    "grade",
    "graded",
    "near_steps",
    "order_of",
    "ratios",
    "share_of_peak",
    "source_of",
]

_RATE = "samples per second"
_FAMILIES = {
    "transformer": ("bert", "gpt", "llama"),
    "recurrent": ("gnmt", "tacotron"),
    "flow": ("waveglow",),
}
#: two GPUs whose measured throughputs differ by less are of no clear order
CLEAR = 0.10


@dataclass(frozen=True, slots=True)
class GradedStep:
    """A measured step, what is predicted of it, and what it computes.

    Parameters
    ----------
    step : MeasuredStep
    predicted : float
        Samples a second [1/s].
    flops : float
        Arithmetic of a sample [FLOP].
    peak : float
        Peak rate of its GPU in the precision of its matrix products [FLOP/s].
    """

    step: MeasuredStep
    predicted: float
    flops: float
    peak: float

    @property
    def missed(self) -> float:
        """Logarithm of predicted over measured throughput [1]; above 0 where the prediction is too fast."""
        return math.log(self.predicted / self.step.measured)


def family_of(step: MeasuredStep) -> str:
    """Family of its model."""
    starts = ((name, one) for name, known in _FAMILIES.items() for one in known)
    return next((name for name, start in starts if step.model.startswith(start)), "convolutional")


def source_of(step: MeasuredStep) -> str:
    """The publication, without version and file."""
    return (step.scenario.source or "").split(",")[0].split(" at ")[0]


#: what is left out, by name: the group of a step
GROUPS: Mapping[str, Callable[[MeasuredStep], str]] = {
    "gpu": lambda step: step.part.architecture,
    "source": source_of,
    "family": family_of,
}


def _part(step: MeasuredStep) -> str:
    return step.part.name


def arithmetic_of(step: MeasuredStep, predicted: float) -> GradedStep:
    """A step with what is predicted of it [1/s], its arithmetic and its GPU's peak."""
    flops = sum(count * op.flops for op, count in step.operations) / step.samples * step.per_sample
    return GradedStep(step, predicted, flops, Roofline(step.part).peak(step.precision))


def graded(
    folder: str | os.PathLike[str], by: str, *, stack_unknown: bool = False, patterns: Sequence[str] = ()
) -> list[GradedStep]:
    """All measured steps, each predicted as if its group had not been seen.

    Parameters
    ----------
    folder : path
        Measured data (``cases.json``).
    by : {"gpu", "source", "family"}
    stack_unknown : bool
        Without the stack of the scenario.
    patterns : sequence of str
        Beginnings of scenarios' names; all if there are none.
    """
    cases = read_cases(folder)
    parts = {"": kernel_parts(cases)}
    found = []
    for step in measured_steps(patterns, stack=by != "source" and not stack_unknown, quoted=True):
        cost = step.scenario.cost
        if by == "gpu":
            name = step.part.architecture
            if name not in parts:
                parts[name] = kernel_parts(cases, without=name)
            cost = replace(cost, efficiency=elsewhere(parts[name], step.part))
        rate = run(replace(step.scenario, cost=cost), record=False).metrics[_RATE].value
        found.append(arithmetic_of(step, rate))
    return found


def share_of_peak(steps: Sequence[GradedStep], one: GradedStep, by: str = "gpu") -> float:
    """Throughput of a step by the median share of the peak that other groups' steps of its family reach [1/s].

    Groups are those of `GROUPS`, or each GPU by itself (``"part"``): what stands beside a prediction that has constants
    of the GPU's architecture may have other GPUs of it. Of the other groups' steps those of its precision are taken
    where there are any, of them those of its family; NaN where no other group has a step.
    """
    near = near_steps(steps, one, by)[1]
    if not near:
        return math.nan
    return median(other.step.measured * other.flops / other.peak for other in near) * one.peak / one.flops


def near_steps(steps: Sequence[GradedStep], one: GradedStep, by: str) -> tuple[list[GradedStep], list[GradedStep]]:
    """Steps of other groups in the precision of one, and those of its family; all others where there are none."""
    group = _part if by == "part" else GROUPS[by]
    others = [other for other in steps if group(other.step) != group(one.step)]
    alike = [other for other in others if other.step.sort == one.step.sort] or others
    return alike, [other for other in alike if family_of(other.step) == family_of(one.step)] or alike


def grade(logs: Iterable[float]) -> tuple[int, float, float, float]:
    """Points, median and 90th percentile of the absolute relative errors, and median of the signed ones [1]."""
    signed = [math.expm1(one) for one in logs]
    errors = sorted(map(abs, signed))
    return len(errors), median(errors), percentile_90(errors), median(signed)


def ratios(steps: Sequence[GradedStep]) -> list[tuple[str, float, float]]:
    """Name, logarithm of the measured ratio of two GPUs' throughputs and of the predicted one; the faster first.

    Of one publication, model and optimizer; both in fp32 or tf32, whichever the GPU has, or both in one half precision.
    """
    found = []
    for one, other in combinations(steps, 2):
        if _compared(one.step) != _compared(other.step) or one.step.part.name == other.step.part.name:
            continue
        fast, slow = (one, other) if one.step.measured >= other.step.measured else (other, one)
        name = f"{fast.step.part.name} / {slow.step.part.name}, {fast.step.model} {fast.step.precision}"
        measured = math.log(fast.step.measured / slow.step.measured)
        found.append((name, measured, math.log(fast.predicted / slow.predicted)))
    return found


def order_of(pairs: Iterable[tuple[str, float, float]]) -> tuple[int, int]:
    """Pairs of `ratios` that differ by over `CLEAR` as measured: in the right order, and all."""
    clear = [predicted for _, measured, predicted in pairs if measured > math.log1p(CLEAR)]
    return sum(predicted > 0.0 for predicted in clear), len(clear)


def _compared(step: MeasuredStep) -> tuple[str, ...]:
    precision = step.scenario.parameters["precision"]
    model = step.model.removesuffix("-padded")  # of its vocabulary, in some precisions
    return source_of(step), model, "full" if precision in ("fp32", "tf32") else str(precision)
