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
from collections.abc import Sequence
from statistics import median

from simperf.accuracy.leave_out.step_grades import (
    CLEAR,
    GROUPS,
    GradedStep,
    grade,
    graded,
    near_steps,
    order_of,
    ratios,
    share_of_peak,
)


def _estimates(steps: Sequence[GradedStep], by: str) -> dict[str, list[float]]:
    """Logarithms of estimated over measured throughput by method; what others tell comes from outside the group."""
    found: dict[str, list[float]] = {"prediction": [one.missed for one in steps], "corrected by other groups": []}
    found |= {"peak of the data sheet": [], "FLOP/s of others": [], "share of peak of others": []}
    for one in steps:
        rate = one.step.measured
        alike, near = near_steps(steps, one, by)
        found["corrected by other groups"].append(one.missed - median(other.missed for other in alike))
        reached = median(other.step.measured * other.flops for other in near)
        found["peak of the data sheet"].append(math.log(one.peak / one.flops / rate))
        found["FLOP/s of others"].append(math.log(reached / one.flops / rate))
        found["share of peak of others"].append(math.log(share_of_peak(steps, one, by) / rate))
    return found


def _print_ratios(steps: Sequence[GradedStep], *, rows: bool) -> None:
    pairs = ratios(steps)
    if rows:
        for name, measured, predicted in pairs:
            print(f"{name}: {math.exp(measured):.2f}, predicted {math.exp(predicted):.2f}")
    count, middle, p90, bias = grade(predicted - measured for _, measured, predicted in pairs)
    right, clear = order_of(pairs)
    print(f"ratios of two GPUs: {count} pairs, median {middle:.1%}, 90th percentile {p90:.1%}, bias {bias:+.1%}")
    print(f"order right: {right} of {clear} pairs that differ by over {CLEAR:.0%} ({right / clear:.1%})")


def _print_steps(steps: Sequence[GradedStep], by: str, *, rows: bool) -> None:
    if rows:
        for one in steps:
            told = f"{one.step.measured:.4g}, predicted {one.predicted:.4g} ({math.expm1(one.missed):+.1%})"
            print(f"{one.step.part.name}, {one.step.name}: {told}")
    print(f"{'':44} {'points':>6} {'median':>8} {'90 %':>8} {'bias':>8}")
    for name, logs in _estimates(steps, by).items():
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
