"""Published scaling: the share of linear throughput that several GPUs reach, measured, predicted and by baselines.

A point is one figure of several GPUs whose speed alone was given. Its efficiency is the throughput over that of linear
scaling, whatever the figure is of (a rate, a time of a step or of an epoch, an efficiency). Points are distinguished
from each other by what a user knows beforehand: who measured, which model, which server, how its GPUs are joined.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median

from simperf.accuracy.baselines import ScalingBaselines, scaling_baselines
from simperf.accuracy.questions import SCALING
from simperf.accuracy.validation import ValidationRow, validation_rows
from simperf.hardware import Machine
from simperf.run import Attempt, run_variants
from simperf.scenario import Scenario, load_scenario, shipped_scenarios

__all__ = [
    "LossSummary",
    "ScalingPoint",
    "ServerPair",
    "interconnect_of",
    "scaling_points",
    "server_pairs",
    "summarize_losses",
]

#: lost throughput above which its share that is explained is asked for, and below which the bias is [1]
_LOST_MUCH, _LOST_LITTLE = 0.10, 0.05
#: difference of two measured efficiencies above which it is asked which server scales better [1]
_TOLD_APART = 0.05

#: publishers, by the beginning of a scenario's name
_SOURCES = {
    "byteps": "BytePS",
    "d2l": "Dive into Deep Learning",
    "ddp": "PyTorch DDP",
    "dle": "NVIDIA DeepLearningExamples",
    "horovod": "Horovod",
    "lambda": "Lambda",
    "tf": "TensorFlow",
}


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """A published figure of several GPUs.

    Parameters
    ----------
    row : ValidationRow
        The figure, its prediction and its baselines.
    speed : ScalingBaselines
        Sizes of a step, and the speed of one GPU.
    source, model, precision, server, interconnect, stack : str
        Who measured, what was trained, on which GPUs of which machine, how they are joined, and the software.
    """

    row: ValidationRow
    speed: ScalingBaselines
    source: str
    model: str
    precision: str
    server: str
    interconnect: str
    stack: str

    @property
    def workers(self) -> int:
        """GPUs that share the work."""
        return self.speed.workers

    @property
    def measured(self) -> float:
        """Measured efficiency [1]; the middle of a range."""
        return self._efficiency((self.row.low + self.row.high) / 2)

    @property
    def predicted(self) -> float:
        """Predicted efficiency [1]."""
        return self._efficiency(self.row.predicted)

    @property
    def ring(self) -> float:
        """Efficiency with a ring's all-reduce behind each step [1]; NaN where it is not defined."""
        return self._efficiency(self.row.ring)

    @property
    def step(self) -> float:
        """Time of a step of one GPU [s]."""
        return self.speed.samples / (self.workers * self.speed.alone)

    def _efficiency(self, value: float) -> float:
        return self.row.linear / value if self.row.is_time else value / self.row.linear


@dataclass(frozen=True, slots=True)
class LossSummary:
    """Lost throughput, explained and not.

    Parameters
    ----------
    much, little : int
        Points that lose more than 10 %, and less than 5 %.
    explained : float
        Predicted over measured loss of those that lose much, added up [1].
    bias : float
        Median of predicted less measured efficiency of those that lose little [1].
    """

    much: int
    explained: float
    little: int
    bias: float


@dataclass(frozen=True, slots=True)
class ServerPair:
    """Two points of one publisher, model and number of GPUs on different servers; `first` scales better as measured."""

    first: ScalingPoint
    second: ScalingPoint

    def right(self, method: str = "predicted") -> bool:
        """Whether a method, ``"predicted"`` or ``"ring"``, says so too."""
        first, second = (getattr(one, method) for one in (self.first, self.second))
        return bool(first > second)


def scaling_points(names: Iterable[str] = ()) -> Iterator[ScalingPoint]:
    """Every figure of several GPUs that the measured scenarios quote, fitted ones left out.

    Parameters
    ----------
    names : iterable of str
        Scenarios; all shipped ones that were measured if there are none.
    """
    every = list(names) or [name for name in shipped_scenarios() if name.startswith("measured/")]
    for name in every:
        scenario = load_scenario(name)
        if any(variant.parameters.get("alone") for variant in (scenario, *scenario.variants)):
            for attempt in run_variants(scenario, record=False):
                yield from _points(Path(name).stem, scenario, attempt)


def _points(name: str, scenario: Scenario, attempt: Attempt) -> Iterator[ScalingPoint]:
    if attempt.result is None:
        return
    speed = scaling_baselines(attempt.scenario, attempt.result)
    if speed is None or speed.workers < 2:
        return
    given, machine = attempt.scenario.parameters, attempt.scenario.machine
    for row in validation_rows(scenario, [attempt]):
        if row.question == SCALING and row.kind != "fitted" and not math.isnan(row.linear):
            yield ScalingPoint(
                row,
                speed,
                _SOURCES.get(name.split("-", maxsplit=1)[0], name),
                _model(name, attempt),
                str(given.get("precision", "")),
                _server(attempt.scenario),
                interconnect_of(machine, machine.gpus[: speed.workers]) if machine is not None else "",
                str(given.get("stack") or attempt.scenario.program.name),
            )


def _model(name: str, attempt: Attempt) -> str:
    """The model by its name, or by that of its scenario."""
    model = attempt.scenario.parameters.get("model")
    words = (name.split("-")[1:2] or [name])[0]
    return str(model) if model else next((one for one in ("inception3", "transformer") if one in name), words)


def _server(scenario: Scenario) -> str:
    """GPUs and machine in words, such as ``"dgx-1p"``."""
    given = scenario.data.get("machine", {})
    name = str(given.get("use") or given.get("server") or "")
    if name or scenario.machine is None:
        return name
    part = scenario.machine.nodes[scenario.machine.gpus[0]].part
    return part.name if part is not None else ""


def interconnect_of(machine: Machine, gpus: Sequence[str]) -> str:
    """Interconnect over which GPUs of a machine reach each other.

    Parameters
    ----------
    machine : Machine
    gpus : sequence of str
        Ids of their nodes.

    Returns
    -------
    str
        ``"network"`` if they are in several servers, else ``"host memory"``, ``"NVLink"`` or ``"PCIe"``.

    Examples
    --------
    >>> from simperf.hardware import Catalog
    >>> machine = Catalog.load().machine("dgx-1v")
    >>> interconnect_of(machine, machine.gpus)
    'NVLink'
    """
    if len({machine.nodes[gpu].server for gpu in gpus}) > 1:
        return "network"
    if not all(slot.blueprint.peer_access for slot in machine.servers):
        return "host memory"
    return "NVLink" if any(edge.technology == "nvlink" for edge in machine.leaving(gpus[0])) else "PCIe"


def summarize_losses(points: Iterable[ScalingPoint], method: str = "predicted") -> LossSummary:
    """Summary of the lost throughput that a method, ``"predicted"`` or ``"ring"``, explains.

    Parameters
    ----------
    points : iterable of ScalingPoint
    method : str
    """
    every = [one for one in points if not math.isnan(getattr(one, method))]
    much = [one for one in every if 1 - one.measured > _LOST_MUCH]
    little = [one for one in every if 1 - one.measured < _LOST_LITTLE]
    lost = math.fsum(1 - one.measured for one in much)
    told = math.fsum(1 - getattr(one, method) for one in much)
    biases = [getattr(one, method) - one.measured for one in little]
    return LossSummary(
        len(much), told / lost if much else math.nan, len(little), median(biases) if little else math.nan
    )


def server_pairs(points: Iterable[ScalingPoint]) -> list[ServerPair]:
    """Pairs of servers whose measured efficiencies differ by over 5 %, by what one publisher has of both.

    Parameters
    ----------
    points : iterable of ScalingPoint
    """
    found = []
    for one, other in combinations(list(points), 2):
        alike = (one.source, one.model, one.workers) == (other.source, other.model, other.workers)
        if alike and one.server != other.server and abs(one.measured - other.measured) > _TOLD_APART:
            found.append(ServerPair(*sorted((one, other), key=lambda point: -point.measured)))
    return found
