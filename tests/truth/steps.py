"""Training steps on one GPU, predicted from its data sheet alone: how many lie in the intervals of `--samples`.

``python -m tests.truth.steps [--samples N] [PATTERN...]`` takes the shipped scenarios of measured training, gives them
one GPU, and takes away the throughput that they were told this GPU has alone; that throughput is what is predicted.
A pattern is the beginning of scenarios' names, such as ``lambda-h100``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from simperf import load_scenario, predict
from simperf.files import read_toml
from simperf.scenario import Scenario, shipped_scenarios

__all__ = ["Step", "measured_steps", "predicted"]


@dataclass(frozen=True)
class Step:
    """A step with what was measured: samples a second of one GPU [1/s]."""

    name: str
    gpu: str
    scenario: Scenario
    measured: float


def measured_steps(patterns: Sequence[str] = ()) -> Iterator[Step]:
    """Each model, precision and batch on each GPU once for each number that was measured."""
    seen = set()
    for name, path in shipped_scenarios().items():
        short = name.rpartition("/")[2]
        if not name.startswith("measured/") or not any(short.startswith(start) for start in patterns or [""]):
            continue
        data = read_toml(path, bounded=False).data
        program = data["program"]
        if program.get("use") != "train" or not program.get("model") or "alone" not in program:
            continue
        for variant in [{}, *data.get("compare", [])]:
            changed = {key: value for key, value in variant.get("set", {}).items() if key.startswith("program.")}
            if not changed.get("program.model", "there"):
                continue
            texts = [
                f"{key}={value if isinstance(value, str) else json.dumps(value)}"
                for key, value in {**changed, "program.gpus": 1}.items()
            ]
            told = load_scenario(path, texts)
            measured = float(told.parameters["alone"])
            part = told.machine.nodes[told.machine.gpus[0]].part.name if told.machine is not None else ""
            about = (part, *(told.parameters[key] for key in ("model", "precision", "batch_per_gpu", "accumulate")))
            if (about, round(measured, 6)) not in seen:
                seen.add((about, round(measured, 6)))
                label = " ".join(str(each) for each in about[1:4])
                yield Step(f"{short}: {label}", part, load_scenario(path, [*texts, "program.alone=0"]), measured)


def predicted(step: Step, *, samples: int = 20) -> tuple[float, float, float]:
    """Samples a second that are predicted, and the ends of their interval [1/s]."""
    found = predict(step.scenario, samples=samples, record=False)
    return (found.metrics["samples per second"].value, *found.intervals["samples per second"])


def main() -> None:
    """Print every step, and how many lie in their intervals by GPU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--samples", type=int, default=20)
    given = parser.parse_args()
    held: dict[str, list[bool]] = {}
    for step in measured_steps(given.patterns):
        best, low, high = predicted(step, samples=given.samples)
        held.setdefault(step.gpu, []).append(low <= step.measured <= high)
        inside = "in" if held[step.gpu][-1] else "out"
        print(f"{step.gpu}, {step.name}: {step.measured:.4g}, predicted {best:.4g} ({low:.4g} to {high:.4g}), {inside}")
    for gpu, every in sorted(held.items()):
        print(f"{gpu}: {sum(every)} of {len(every)}")
    print(f"together: {sum(map(sum, held.values()))} of {sum(map(len, held.values()))}")


if __name__ == "__main__":
    main()
