"""Candidates of a plan: every combination that is asked for, and those that bounds rule out before anything is run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simperf.cost import Roofline
from simperf.errors import InputError
from simperf.hardware import Catalog
from simperf.hardware.processors import GpuPart
from simperf.hardware.server_fabric import fabric_of
from simperf.study.planning.precision import precision_of
from simperf.study.planning.request import Request
from simperf.study.planning.rounding import dollars, hours
from simperf.study.preflight import MOST_POINTS
from simperf.training.strategies import ONE_PROCESS, STRATEGIES, has_option
from simperf.units import format_quantity
from simperf.workload.model import TracedModel

__all__ = [
    "CandidateBound",
    "Configuration",
    "bound_of",
    "choices",
    "cluster_table",
    "gpu_of",
    "scenario_data",
]


@dataclass(frozen=True, slots=True)
class Configuration:
    """One way to train: an instance, how many, how, and with which batch.

    `batch` holds the samples a GPU, or of the whole step where the request is for a fixed one; `precision` is the
    plan's, or what is assumed on its GPU.
    """

    instance: str
    nodes: int
    strategy: str
    batch: int
    gpus: int
    precision: str

    @property
    def name(self) -> str:
        """For tables, such as ``"4 x p3-16xlarge, ddp, batch 64"``."""
        return f"{self.nodes} x {self.instance}, {self.strategy}, batch {self.batch}"


@dataclass(frozen=True, slots=True)
class CandidateBound:
    """Bounds on the time and memory of a choice.

    Parameters
    ----------
    time : float
        That no execution beats: the textbook roofline's on all GPUs, without any communication [s].
    memory : float
        On each GPU [B].
    reason : str
        Why it is ruled out; empty if it is not.
    exceeds : bool
        Nothing but the deadline or the budget rules it out.
    """

    time: float
    memory: float
    reason: str = ""
    exceeds: bool = False


def choices(request: Request) -> list[Configuration]:
    """Every combination, in the order of the file.

    Raises
    ------
    InputError
        Too many, without ``plan.force``.
    """
    count = math.prod(map(len, (request.instances, request.nodes, request.strategies, request.batches)))
    if count > MOST_POINTS and not request.force:
        message = f"{count:,} candidates are more than {MOST_POINTS:,}: instances, nodes, strategies and batches"
        expected = "fewer of them; or --force (plan.force = true), which looks at all"
        raise InputError(request.toml.problem(("candidates",), message, expected=expected))
    found = []
    for instance, nodes, strategy, batch in itertools.product(
        request.instances, request.nodes, request.strategies, request.batches
    ):
        gpus = nodes * len(request.catalog.machine(instance).gpus)
        precision = precision_of(request.precision, gpu_of(request.catalog, instance))
        found.append(Configuration(instance, nodes, strategy, batch, gpus, precision))
    return found


def bound_of(request: Request, choice: Configuration) -> CandidateBound:
    """Memory, limits, and the least that the job can take: what needs no run."""
    limits = request.limits
    whole = choice.batch if request.strong else choice.batch * choice.gpus
    share, left = divmod(choice.batch, choice.gpus) if request.strong else (choice.batch, 0)
    price = request.prices.of(choice.instance) * choice.nodes
    if left or not share:
        return CandidateBound(math.inf, 0.0, f"a batch of {choice.batch} does not divide among {choice.gpus} GPUs")
    if issubclass(STRATEGIES[choice.strategy], ONE_PROCESS) and choice.nodes > 1:
        return CandidateBound(math.inf, 0.0, f"{choice.strategy} is one process: it drives one server")
    for key, value, text in (
        ("nodes", choice.nodes, f"{choice.nodes} nodes"),
        ("gpus", choice.gpus, f"{choice.gpus} GPUs"),
        ("batch", whole, f"a batch of {whole} in all"),
        ("price", price, f"{price:.2f} USD/h"),
    ):
        if value > limits[key]:
            return CandidateBound(math.inf, 0.0, f"{text}, more than the limit of {limits[key]:g}")
    part = gpu_of(request.catalog, choice.instance)
    parts = request.model.memory(share, choice.precision, optimizer=request.optimizer)
    memory = parts["total"] + (parts["gradients"] if choice.gpus > 1 else 0.0)
    capacity = min(part.memory_capacity, limits["memory"])
    try:
        step = _step_bound(request.model, part, share, choice.precision, request.optimizer)
    except InputError as error:  # arithmetic that the GPU does not have
        return CandidateBound(math.inf, memory, error.problems[0].message.partition(";")[0])
    time = math.ceil(request.samples / whole) * step
    if parts["total"] > capacity:
        have = format_quantity(capacity, "B")
        return CandidateBound(
            time, memory, f"a batch of {share} a GPU needs {format_quantity(parts['total'], 'B')} of {have}"
        )
    if time > request.deadline:
        least = f"at least {hours(time)}, more than the deadline of {hours(request.deadline)}"
        return CandidateBound(time, memory, f"{least}, if every GPU ran at its peak", exceeds=True)
    cost = price * time / 3600
    if cost > request.budget:
        least = f"at least {dollars(cost)}, more than the budget of {dollars(request.budget)}"
        return CandidateBound(time, memory, f"{least}, if every GPU ran at its peak", exceeds=True)
    return CandidateBound(time, memory)


def gpu_of(catalog: Catalog, instance: str) -> GpuPart:
    """The GPU of an instance; of several kinds the one with least memory."""
    machine = catalog.machine(instance)
    parts = [machine.nodes[gpu].part for gpu in machine.gpus]
    return min((part for part in parts if isinstance(part, GpuPart)), key=lambda part: part.memory_capacity)


def _step_bound(model: TracedModel, part: GpuPart, batch: int, precision: str, optimizer: str) -> float:
    key = (id(model), part.name, batch, precision, optimizer)
    if key not in _BOUNDS or _BOUNDS[key][0] is not model:
        step = model.at(batch, precision, optimizer=optimizer)
        floor = Roofline(part).floor
        _BOUNDS[key] = model, math.fsum(map(floor, (*step.forward, *step.backward, *step.update)))
    return _BOUNDS[key][1]


#: bounds that are known, each with its model: the number of one that has gone may be another's
_BOUNDS: dict[tuple[Any, ...], tuple[TracedModel, float]] = {}


def cluster_table(request: Request, choice: Configuration) -> dict[str, Any]:
    """The scenario's ``[machine]`` of a choice."""
    table: dict[str, Any] = {"folder": request.toml.data["candidates"]["folder"]} if _own(request) else {}
    if choice.nodes == 1:
        return table | {"use": choice.instance}
    fabric = dict(request.fabric) or fabric_of(request.catalog, choice.instance)
    return table | {"server": choice.instance, "count": choice.nodes, "fabric": fabric}


def _own(request: Request) -> bool:
    return bool(request.toml.data.get("candidates", {}).get("folder"))


def scenario_data(request: Request, choice: Configuration) -> Mapping[str, Any]:
    """The scenario that simulates a choice."""
    program: dict[str, Any] = {
        "use": "train",
        "model": request.use,
        "precision": choice.precision,
        "strategy": choice.strategy,
        "steps": 3,
    }
    if request.optimizer:
        program["optimizer"] = request.optimizer
    if has_option(choice.strategy, "algorithm"):
        program["algorithm"] = request.algorithm
    program["batch" if request.strong else "batch_per_gpu"] = choice.batch
    data: dict[str, Any] = {
        "scenario": {"title": choice.name},
        "machine": cluster_table(request, choice),
        "frontend": {"use": request.frontend},
        "program": program,
    }
    if request.force:
        data["run"] = {"force": True}
    if request.calibration:
        data["calibration"] = {"use": request.calibration}
    return data
