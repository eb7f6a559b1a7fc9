"""Measured training steps, and what their kernels take on a GPU without measurements.

The shipped scenarios of measured training of several GPUs say what one does alone. Here that is taken away, to be
predicted. Scenarios of one GPU quote its speed as what was measured.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from simperf.calibrate.fit.model import Array
from simperf.cost import Roofline, Unseen, UnseenRoofline, sort_of
from simperf.cost.roofline_draws import step_sort
from simperf.files import read_toml
from simperf.hardware import GpuPart
from simperf.run import run
from simperf.scenario import Scenario, load_scenario, shipped_scenarios
from simperf.units import parse
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.mixed import training_precision
from simperf.workload.op import Op
from simperf.workload.zoo import load

__all__ = ["DRAWS", "MeasuredStep", "measured_steps"]

#: draws of a step's kernels: as many lie evenly (`simperf.cost.roofline_draws`)
DRAWS = 20
#: figure of a scenario of one GPU that is such a step
_MEASURED = "metrics.samples per second"


@dataclass(frozen=True)
class MeasuredStep:
    """A training step on one GPU, and what was measured.

    Parameters
    ----------
    name : str
    part : GpuPart
    scenario : Scenario
        Of that GPU alone, without what was measured.
    measured : float
        Samples a second [1/s].
    """

    name: str
    part: GpuPart
    scenario: Scenario
    measured: float

    @property
    def model(self) -> str:
        """A model of the zoo."""
        return str(self.scenario.parameters["model"])

    @property
    def precision(self) -> str:
        """Of its matrix products."""
        return training_precision(str(self.scenario.parameters["precision"])).matrix

    @property
    def sort(self) -> str:
        """One of `simperf.cost.roofline_draws.STEPS`."""
        return step_sort(self.precision)

    @property
    def samples(self) -> int:
        """Of a micro-batch."""
        given = self.scenario.parameters
        return int(given["batch_per_gpu"] or given["batch"]) // int(given["accumulate"])

    @property
    def per_sample(self) -> float:
        """Samples of the model in one that is counted, such as the sentence of a token [1]."""
        return 1.0 / float(self.scenario.parameters["counted"])

    @cached_property
    def missed(self) -> float:
        """Logarithm of measured over predicted time, as the catalogue has this GPU [1]."""
        found = run(self.scenario, record=False)
        return math.log(found.metrics["samples per second"].value / self.measured)

    @cached_property
    def operations(self) -> tuple[tuple[Op, float], ...]:
        """Operations of a micro-batch, each with how often; the update is shared by all of a step."""
        given = self.scenario.parameters
        turns = int(given["accumulate"])
        kernels = LayerKernels(
            attention=given["attention_kernels"],
            attention_library=given["attention_library"],
            memory_format=given["memory_format"],
            batch_norm=given["batch_norm"],
        )
        step = load(self.model, kernels).at(self.samples, str(given["precision"]), optimizer=str(given["optimizer"]))
        counts: Counter[Op] = Counter()
        for op in (*step.forward, *step.backward):
            counts[_nameless(op)] += turns
        counts.update(map(_nameless, step.update))
        return tuple((op, count / turns) for op, count in counts.items())

    def kernels(self, efficiency: Mapping[str, float], unseen: Unseen | None = None) -> float:
        """Time of its kernels, one after another [s].

        Parameters
        ----------
        efficiency : mapping of str to float
            Goes before the catalogue's [1].
        unseen : Unseen, optional
            A draw.
        """
        roofline = Roofline(self.part, efficiency={**self.part.efficiency, **efficiency})
        cost = (roofline if unseen is None else UnseenRoofline(roofline, unseen)).cost
        return math.fsum(count * cost(op).time for op, count in self.operations)

    def drawn(self, efficiency: Mapping[str, float], draws: Sequence[Unseen]) -> Array:
        """Logarithms of what draws of its kernels take over what they are predicted to take [1].

        What each shape has of its own averages out in a step, and is left out.
        """
        roofline = Roofline(self.part, efficiency={**self.part.efficiency, **efficiency})
        costs = [(sort_of(op), count, roofline.cost(op), roofline.floor(op)) for op, count in self.operations]
        sorts = {sort: next(op for op, _ in self.operations if sort_of(op) == sort) for sort, *_ in costs}
        place = {sort: index for index, sort in enumerate(sorts)}
        which = np.array([place[sort] for sort, *_ in costs])
        times = np.array([count * cost.time for _, count, cost, _ in costs])
        least = np.array([min(1.0, (floor + cost.overhead) / cost.time) for *_, cost, floor in costs])
        found = []
        for one in draws:
            shared = replace(one, misses={sort: replace(miss, own=0.0) for sort, miss in one.misses.items()})
            longer = np.array([shared.longer(op, self.part.name) for op in sorts.values()])[which]
            found.append(float((times * np.maximum(longer, least)).sum() / times.sum()))
        return np.log(found)


def _nameless(op: Op) -> Op:
    return replace(op, name="", inputs=(), outputs=())


def measured_steps(patterns: Sequence[str] = (), *, stack: bool = True, quoted: bool = False) -> Iterator[MeasuredStep]:
    """Each model, precision and batch on each GPU once for each number that was measured.

    Parameters
    ----------
    patterns : sequence of str
        Beginnings of scenarios' names, such as ``lambda-h100``; without any, all.
    stack : bool
        With the scenario's stack; else as if the program behind the number were unknown.
    quoted : bool
        With steps that scenarios of one GPU quote as what was measured. The profile of GPUs without measurements is
        not made of these.
    """
    seen = set()
    for name, path in shipped_scenarios().items():
        short = name.rpartition("/")[2]
        if not name.startswith("measured/") or not any(short.startswith(start) for start in patterns or [""]):
            continue
        data = read_toml(path, bounded=False).data
        program = data["program"]
        if program.get("use") != "train" or not program.get("model"):
            continue
        for variant in [{}, *data.get("compare", [])]:
            figure = (variant or data).get("measured", {}).get(_MEASURED, "") if quoted else ""
            if "alone" not in program and not (isinstance(figure, str) and figure):
                continue
            changed = {key: value for key, value in variant.get("set", {}).items() if key.startswith("program.")}
            if not changed.get("program.model", "there"):
                continue
            texts = [
                f"{key}={value if isinstance(value, str) else json.dumps(value)}"
                for key, value in {**changed, "program.gpus": 1}.items()
            ]
            if not stack:
                texts = [*(text for text in texts if not text.startswith("program.stack=")), 'program.stack=""']
            told = load_scenario(path, texts)
            if turns := int(told.parameters["alone_accumulate"]):  # one GPU had more micro-batches for an update
                given = told.parameters
                batch = int(given["batch_per_gpu"]) // int(given["accumulate"]) * turns
                own = {"batch_per_gpu": batch, "accumulate": turns, "alone_accumulate": 0}
                texts += [f"program.{key}={value}" for key, value in own.items()]
                told = load_scenario(path, texts)
            if "alone" not in program and (told.machine is None or len(told.machine.gpus) != 1):
                continue
            measured = float(told.parameters["alone"]) or parse(figure, "1/s")
            part = told.machine.nodes[told.machine.gpus[0]].part if told.machine is not None else None
            assert isinstance(part, GpuPart)
            about = (
                part.name,
                *(told.parameters[key] for key in ("model", "precision", "batch_per_gpu", "accumulate")),
            )
            if (about, round(measured, 6)) not in seen:
                seen.add((about, round(measured, 6)))
                label = " ".join(str(each) for each in about[1:4])
                # one GPU does not answer what the scenario asks of several
                alone = replace(load_scenario(path, [*texts, "program.alone=0"]), answer=None)
                yield MeasuredStep(f"{short}: {label}", part, alone, measured)
