"""Errors of training steps on one GPU, left out by GPU, by source or by family in turn, beside simple baselines.

``python -m tests.truth.step_grades FOLDER [--left-out-by gpu|source|family] [--stack-unknown] [--ratios] [--rows]``

- ``gpu``: no efficiency comes from kernels of the GPU's architecture; other architectures' stand for them
- ``source``: the program of the publication is unknown: plain PyTorch, without the stack of the scenario
- ``family``: the model's family is left out. Nothing of a step is fitted by family, so that only baselines change

``--stack-unknown`` leaves the stack out, too. The corrected prediction and the baselines take what they take from steps
outside the group that is left out. ``--ratios`` grades throughputs of two GPUs on one model instead.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median

from simperf.accuracy.cases import read_cases
from simperf.accuracy.leave_out.kernels import elsewhere, kernel_parts
from simperf.accuracy.leave_out.measured_steps import MeasuredStep, measured_steps
from simperf.cost import Roofline
from simperf.run import run

__all__ = ["GROUPS", "GradedStep", "grade", "graded", "ratios"]

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


GROUPS: dict[str, Callable[[MeasuredStep], str]] = {
    "gpu": lambda step: step.part.architecture,
    "source": source_of,
    "family": family_of,
}


def graded(folder: str, by: str, *, stack_unknown: bool = False, patterns: Sequence[str] = ()) -> list[GradedStep]:
    """All measured steps, each predicted as if its group had not been seen."""
    cases = read_cases(folder)
    parts = {"": kernel_parts(cases)}
    found = []
    for step in measured_steps(patterns, stack=by != "source" and not stack_unknown):
        cost = step.scenario.cost
        if by == "gpu":
            name = step.part.architecture
            if name not in parts:
                parts[name] = kernel_parts(cases, without=name)
            cost = replace(cost, efficiency=elsewhere(parts[name], step.part))
        rate = run(replace(step.scenario, cost=cost), record=False).metrics[_RATE].value
        flops = sum(count * op.flops for op, count in step.operations) / step.samples * step.per_sample
        found.append(GradedStep(step, rate, flops, Roofline(step.part).peak(step.precision)))
    return found


def _baselines(steps: Sequence[GradedStep], by: str) -> dict[str, list[float]]:
    """Logarithms of estimated over measured throughput by method; what others tell comes from outside the group."""
    group = GROUPS[by]
    found: dict[str, list[float]] = {"prediction": [one.missed for one in steps], "corrected by other groups": []}
    found |= {"peak of the data sheet": [], "FLOP/s of others": [], "share of peak of others": []}
    for one in steps:
        rate = one.step.measured
        others = [other for other in steps if group(other.step) != group(one.step)]
        alike = [other for other in others if other.step.sort == one.step.sort] or others
        near = [other for other in alike if family_of(other.step) == family_of(one.step)] or alike
        found["corrected by other groups"].append(one.missed - median(other.missed for other in alike))
        reached = median(other.step.measured * other.flops for other in near)
        share = median(other.step.measured * other.flops / other.peak for other in near)
        found["peak of the data sheet"].append(math.log(one.peak / one.flops / rate))
        found["FLOP/s of others"].append(math.log(reached / one.flops / rate))
        found["share of peak of others"].append(math.log(share * one.peak / one.flops / rate))
    return found


def grade(logs: Iterable[float]) -> tuple[int, float, float, float]:
    """Points, median and 90th percentile of the absolute relative errors, and median of the signed ones [1]."""
    signed = [math.expm1(one) for one in logs]
    errors = sorted(map(abs, signed))
    return len(errors), median(errors), errors[min(len(errors) - 1, int(0.9 * len(errors)))], median(signed)


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


def _compared(step: MeasuredStep) -> tuple[str, ...]:
    precision = step.scenario.parameters["precision"]
    return source_of(step), step.model, "full" if precision in ("fp32", "tf32") else str(precision)


def _print_ratios(steps: Sequence[GradedStep], *, rows: bool) -> None:
    pairs = ratios(steps)
    if rows:
        for name, measured, predicted in pairs:
            print(f"{name}: {math.exp(measured):.2f}, predicted {math.exp(predicted):.2f}")
    count, middle, p90, bias = grade(predicted - measured for _, measured, predicted in pairs)
    clear = [(measured, predicted) for _, measured, predicted in pairs if measured > math.log1p(CLEAR)]
    right = sum(predicted > 0.0 for _, predicted in clear)
    print(f"ratios of two GPUs: {count} pairs, median {middle:.1%}, 90th percentile {p90:.1%}, bias {bias:+.1%}")
    print(f"order right: {right} of {len(clear)} pairs that differ by over {CLEAR:.0%} ({right / len(clear):.1%})")


def _print_steps(steps: Sequence[GradedStep], by: str, *, rows: bool) -> None:
    if rows:
        for one in steps:
            told = f"{one.step.measured:.4g}, predicted {one.predicted:.4g} ({math.expm1(one.missed):+.1%})"
            print(f"{one.step.part.name}, {one.step.name}: {told}")
    print(f"{'':44} {'points':>6} {'median':>8} {'90 %':>8} {'bias':>8}")
    for name, logs in _baselines(steps, by).items():
        _line(name, logs)
    for title, group in {"GPU": lambda step: step.part.name, **GROUPS, "precision": lambda step: step.sort}.items():
        for name in sorted({group(one.step) for one in steps}):
            _line(f"{title} {name}"[:44], [one.missed for one in steps if group(one.step) == name])


def _line(name: str, logs: Sequence[float]) -> None:
    count, middle, p90, bias = grade(logs)
    print(f"{name:44} {count:6d} {middle:8.1%} {p90:8.1%} {bias:+8.1%}")


def main() -> None:
    """Print the errors, by method and by group."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="measured data (cases.json)")
    parser.add_argument("patterns", nargs="*", help="beginnings of scenarios' names")
    parser.add_argument("--left-out-by", choices=tuple(GROUPS), default="gpu")
    parser.add_argument("--stack-unknown", action="store_true", help="leave the stack out, too")
    parser.add_argument("--ratios", action="store_true", help="of two GPUs on one model")
    parser.add_argument("--rows", action="store_true", help="each step or pair, too")
    given = parser.parse_args()
    steps = graded(given.folder, given.left_out_by, stack_unknown=given.stack_unknown, patterns=given.patterns)
    if given.ratios:
        _print_ratios(steps, rows=given.rows)
    else:
        _print_steps(steps, given.left_out_by, rows=given.rows)


if __name__ == "__main__":
    main()
