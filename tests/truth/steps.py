"""Training steps on one GPU, predicted from its data sheet alone: how many lie in the intervals of `--samples`.

``python -m tests.truth.steps [--left-out FOLDER] [--samples N] [PATTERN...]`` takes the shipped scenarios of measured
training, gives them one GPU, and takes away the throughput that they were told this GPU has alone; that is what is
predicted. With a folder of measured data, each as if nobody had measured a kernel or a step of its architecture;
otherwise as the catalogue and the shipped profile have it. A pattern is the beginning of scenarios' names, such as
``lambda-h100``.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from simperf import predict, run
from simperf.accuracy.cases import read_cases
from simperf.accuracy.leave_out.kernels import elsewhere, kernel_parts
from simperf.accuracy.leave_out.measured_steps import MeasuredStep, measured_steps
from simperf.accuracy.leave_out.steps import kernel_figures, step_figures, step_misses
from simperf.analysis.chance import interval
from simperf.cost import Unseen
from simperf.scenario import Scenario

__all__ = ["left_out", "predicted"]

RATE = "samples per second"
Found = tuple[float, float, float]


def predicted(step: MeasuredStep, *, samples: int = 20) -> Found:
    """Samples a second that are predicted, and the ends of their interval [1/s]."""
    found = predict(step.scenario, samples=samples, record=False)
    return (found.metrics[RATE].value, *found.intervals[RATE])


def left_out(
    folder: str, patterns: Sequence[str] = (), *, samples: int = 20, kernels_only: bool = False
) -> Iterator[tuple[MeasuredStep, Found]]:
    """The same of each step as if nobody had measured its GPU's architecture."""
    cases, steps = read_cases(folder), list(measured_steps())
    asked = {step.name for step in measured_steps(patterns)}
    for name in dict.fromkeys(step.part.architecture for step in steps if step.name in asked):
        parts, figures = kernel_parts(cases, without=name), kernel_figures(cases, without=name)
        if not kernels_only:
            figures["steps"] = step_figures(step_misses(cases, steps, without=name))
        for step in steps:
            if step.part.architecture == name and step.name in asked:
                cost = replace(step.scenario.cost, efficiency=elsewhere(parts, step.part))
                best = _rate(replace(step.scenario, cost=cost))
                draws = [replace(cost, unseen=Unseen(draw=index, **figures)) for index in range(samples)]
                yield step, (best, *interval([_rate(replace(step.scenario, cost=one)) for one in draws]))


def _rate(scenario: Scenario) -> float:
    return run(scenario, record=False).metrics[RATE].value


def main() -> None:
    """Print every step, and how many lie in their intervals by architecture and GPU, with the intervals' width."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--left-out", metavar="FOLDER", help="measured data (cases.json)")
    parser.add_argument("--kernels-only", action="store_true", help="with --left-out: without what whole steps miss")
    parser.add_argument("--samples", type=int, default=20)
    given = parser.parse_args()
    rows: dict[str, list[tuple[bool, float]]] = {}
    if given.left_out:
        more = {"samples": given.samples, "kernels_only": given.kernels_only}
        every = left_out(given.left_out, given.patterns, **more)
    else:
        every = ((step, predicted(step, samples=given.samples)) for step in measured_steps(given.patterns))
    for step, (best, low, high) in every:
        held, half = low <= step.measured <= high, math.sqrt(high / low)
        for name in (f"architecture {step.part.architecture}", step.part.name, "together"):
            rows.setdefault(name, []).append((held, half))
        where = "in" if held else "slower" if step.measured < low else "faster"
        told = f"{step.measured:.4g}, predicted {best:.4g} ({low:.4g} to {high:.4g}), {where}"
        print(f"{step.part.name}, {step.name}: {told}", flush=True)
    for name, found in sorted(rows.items(), key=lambda row: (row[0] == "together", row[0])):
        inside, width = sum(held for held, _ in found), median(half for _, half in found)
        print(f"{name}: {inside} of {len(found)}, within a factor of {width:.2f} of the middle (median)")


if __name__ == "__main__":
    main()
