"""Replicas: one rank's part of a training run, and where its step comes from."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol

import simpy

from simperf.cost.processor import step_as_run
from simperf.engine.device import Device
from simperf.engine.items import Marker
from simperf.engine.kernel import Kernel
from simperf.errors import InputError, Problem
from simperf.execution.calls import PASSES, riding, update_time
from simperf.execution.session import Session
from simperf.training.step import Ahead, Gradient, ReplicaStep, even_step
from simperf.units import Bytes, Ratio, Seconds
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.mixed import training_precision
from simperf.workload.tuning import Adapters, Documents

if TYPE_CHECKING:
    from simperf.training.data_loaders import Feed
    from simperf.workload.model import TracedModel
    from simperf.workload.transformers.dimensions import Transformer

__all__ = ["Dimensions", "Layers", "Passes", "Replica", "Traced", "Workload", "faster", "training_step"]


@dataclass(eq=False, slots=True)
class Replica:
    """Replica on one rank, or on many that do the same at the same time.

    Parameters
    ----------
    rank : int
        The first of its ranks, the one that is simulated.
    device : Device
        Of that rank.
    host : str
        CPU node whose cores run its process.
    source : str
        CPU node in whose memory its part of the batch lies.
    step : ReplicaStep
        Its part of a step.
    members : tuple of int
        All ranks that it stands for.
    beside : tuple of tuple of str
        Links of the copies from the host that other ranks of its server do at the same time.
    memory : dict of str to float
        What its device holds for the whole run [B].
    exposed : float
        Time for which its device waited for communication so far [s].
    ends : list of float
        When its steps ended [s].
    feed : Feed, optional
        Where its process gets its mini-batches from; none has them in pinned memory.
    paces : iterator of ReplicaStep, optional
        Its step as each mini-batch takes it, where times vary.
    ahead : Ahead, optional
        Copies of the next mini-batch beside the step; none copies each before its own step.
    launched_beside : float
        Time for which threads of its process beside the first one have launched kernels, one of each kind [s].
    """

    rank: int
    device: Device
    host: str
    source: str
    step: ReplicaStep
    members: tuple[int, ...]
    beside: tuple[tuple[str, ...], ...] = ()
    memory: dict[str, float] = field(default_factory=dict)
    exposed: float = 0.0
    ends: list[float] = field(default_factory=list)
    feed: Feed | None = None
    paces: Iterator[ReplicaStep] | None = None
    ahead: Ahead | None = None
    launched_beside: float = 0.0

    def copy_links(self, machine: Any) -> tuple[str, ...]:
        """Links over which its mini-batches come from the host; none if there are no bytes to copy."""
        if not self.source or not self.step.nbytes_input:
            return ()
        return tuple(machine.route(self.source, self.device.name).resources)

    def begin(self) -> None:
        """Continue to the next mini-batch: where times vary, `step` becomes as slow or fast as that one is."""
        if self.paces is not None:
            self.step = next(self.paces)

    def mark(self, marker: Marker) -> None:
        """Note the end of a step, when the device comes to `marker`."""
        assert marker.done.callbacks is not None
        marker.done.callbacks.append(lambda event: self.ends.append(self.device.env.now))

    def exchange(self, begin: Marker, end: Marker, *, work: float = 0.0) -> None:
        """Count the time between two markers of its device, less `work` [s] of its own, as communication."""
        assert end.done.callbacks is not None

        def count(event: simpy.Event) -> None:
            started, ended = (float(marker.done.value or 0.0) for marker in (begin, end))
            self.exposed += max(0.0, ended - started - work)

        end.done.callbacks.append(count)


class Workload(Protocol):
    """Workload that is trained: gives the step of a device for any share of the batch."""

    @property
    def name(self) -> str:
        """For tables."""

    def step(self, m: Session, device: Device, samples: int) -> ReplicaStep:
        """One step of `device` on `samples` samples."""

    def memory(self, samples: int) -> dict[str, float]:
        """Bytes on the device by what holds them [B]."""


@dataclass(frozen=True, slots=True)
class Layers:
    """A model in round numbers: equal layers, times in proportion to the samples.

    Parameters
    ----------
    count : int
        layers of a model in round numbers
    forward : float
        time of its forward pass for one sample [s]
    backward : float
        time of its backward pass for one sample [s]
    nbytes : float
        all weights together; so large are the gradients [B]
    update : float
        time of its optimizer [s]
    fixed : float
        time of each of the two passes beside that [s]
    sizes : tuple of float
        of the layers' weights in proportion, first layer first
    nbytes_input : float
        bytes of one sample on its way to the device
    nbytes_output : float
        bytes that the forward pass hands back for one sample
    activations : float
        bytes that a sample keeps for the backward pass
    states : float
        what the optimizer keeps, in sizes of the weights: 0 SGD, 1 momentum, 2 Adam
    launch : float or None
        time of the frontend to issue one kernel [s]; None takes the frontend's own
    name : str
        for tables
    """

    count: int
    forward: Seconds
    backward: Seconds
    nbytes: Bytes
    update: Seconds = 0.0
    fixed: Seconds = 0.0
    sizes: tuple[float, ...] = ()
    nbytes_input: Bytes = 0.0
    nbytes_output: Bytes = 0.0
    activations: Bytes = 0.0
    states: Ratio = 0.0
    launch: float | None = None
    name: str = "layers"

    def __post_init__(self) -> None:
        if isinstance(self.states, int | float) and not 0.0 <= self.states < math.inf:  # other types are told elsewhere
            expected = "0 or more, such as 2 for Adam's two moments"
            message = "states of the optimizer are so many times as large as the weights"
            raise InputError(Problem(message, key="states", value=f"{self.states:g}", expected=expected))

    def step(self, m: Session, device: Device, samples: int) -> ReplicaStep:
        """One step on `samples` samples, the same on every device."""
        even = even_step(
            self.count,
            forward=self.forward * samples + (self.fixed if self.forward else 0.0),
            backward=self.backward * samples + (self.fixed if self.backward else 0.0),
            update=self.update,
            nbytes=self.nbytes,
            samples=samples,
            nbytes_input=self.nbytes_input * samples,
            sizes=self.sizes,
            launch=self.launch,
        )
        return replace(even, nbytes_output=self.nbytes_output * samples, memory=self.memory(samples))

    def memory(self, samples: int) -> dict[str, float]:
        """Weights, gradients, optimizer, activations and input [B]."""
        return {
            "weights": self.nbytes,
            "gradients": self.nbytes,
            "optimizer": self.states * self.nbytes,
            "activations": self.activations * samples,
            "input": self.nbytes_input * samples,
        }


@dataclass(frozen=True, slots=True)
class Passes:
    """Equal layers whose times are those of a whole batch: launched at no cost, and held in memory without limit.

    Parameters
    ----------
    count : int
        layers of a model in round numbers
    forward : float
        time of its forward pass for the batch [s]
    backward : float
        time of its backward pass for the batch [s]
    nbytes : float
        all weights together; so large are the gradients [B]
    update : float
        time of the optimizer on the workers [s]; above 0 the servers only add up
    sizes : tuple of float
        of the layers' weights in proportion, first layer first
    nbytes_input : float
        bytes of one sample on its way to the device
    name : str
        for tables
    """

    count: int = 10
    forward: Seconds = 0.0
    backward: Seconds = 0.0
    nbytes: Bytes = 100e6
    update: Seconds = 0.0
    sizes: tuple[float, ...] = ()
    nbytes_input: Bytes = 0.0
    name: str = "layers"

    def step(self, m: Session, device: Device, samples: int) -> ReplicaStep:
        """One step on `samples` samples, the same on every device."""
        return even_step(
            self.count,
            forward=self.forward,
            backward=self.backward,
            update=self.update,
            nbytes=self.nbytes,
            samples=samples,
            nbytes_input=self.nbytes_input * samples,
            sizes=self.sizes,
            launch=0.0,
        )

    def memory(self, samples: int) -> dict[str, float]:
        """Nothing: it fits on every device."""
        return {}


@dataclass(frozen=True, slots=True)
class Traced:
    """A traced model at a precision, with an optimizer.

    Parameters
    ----------
    model : TracedModel
    precision, optimizer : str
        As in `simperf.workload.model.TracedModel.at`.
    """

    model: TracedModel
    precision: str = "fp32"
    optimizer: str = ""

    @property
    def name(self) -> str:
        """The model's."""
        return self.model.name

    def step(self, m: Session, device: Device, samples: int) -> ReplicaStep:
        """One step on `samples` samples, as the device's roofline has it."""
        return training_step(m, self.model, device, batch=samples, precision=self.precision, optimizer=self.optimizer)

    def memory(self, samples: int) -> dict[str, float]:
        """From the lifetimes of the step's tensors [B]."""
        return _parts(self.model.memory(samples, self.precision, optimizer=self.optimizer))


@dataclass(frozen=True, slots=True)
class Dimensions:
    """A transformer by its dimensions, which a layout may divide; on each device as a whole, it is as if traced.

    Parameters
    ----------
    model : Transformer
    kernels : LayerKernels
        Of the software stack.
    precision : str
        A key of `simperf.workload.mixed.TRAINING_PRECISIONS`.
    optimizer : str
        As in `simperf.workload.model.TracedModel.at`.
    adapters : Adapters
        That are trained beside frozen weights, where a layout divides it.
    documents : Documents
        In a sequence, where a layout divides it.
    """

    model: Transformer
    kernels: LayerKernels = field(default_factory=LayerKernels)
    precision: str = "bf16-master"
    optimizer: str = ""
    adapters: Adapters = field(default_factory=Adapters)
    documents: Documents = field(default_factory=Documents)

    @property
    def name(self) -> str:
        """For tables."""
        return f"transformer of {self.model.layers} layers"

    def step(self, m: Session, device: Device, samples: int) -> ReplicaStep:
        """One step on `samples` samples, as the device's roofline has it."""
        return self._whole().step(m, device, samples)

    def memory(self, samples: int) -> dict[str, float]:
        """From the lifetimes of the step's tensors [B]."""
        return self._whole().memory(samples)

    def _whole(self) -> Traced:
        from simperf.workload.transformers.step import training_model

        return Traced(training_model(self.model, self.kernels), self.precision, self.optimizer)


def _parts(memory: dict[str, float]) -> dict[str, float]:
    return {name: nbytes for name, nbytes in memory.items() if name not in ("total", "peak") and nbytes}


def training_step(
    m: Session, model: TracedModel, device: Device, *, batch: int, precision: str = "fp32", optimizer: str = ""
) -> ReplicaStep:
    """Kernels and gradients of one step of a traced model on one device.

    Parameters
    ----------
    m : Session
        Costs the operations, and has all of them longer where a draw of a GPU without measurements does.
    model : TracedModel
    device : Device
    batch : int
        Samples on this device.
    precision, optimizer : str
        As in `simperf.workload.model.TracedModel.at`.
    """
    traced = model.at(batch, precision, optimizer=optimizer)
    parts = {"forward": traced.forward, "backward": traced.backward, "update": traced.update}
    if model.update(optimizer).looped:  # the same over tensors of one size is told and timed once
        same = (replace(op, name=f"update.{op.kind}", inputs=(), outputs=()) for op in traced.update)
        parts["update"] = tuple(same)
    places = list(range(len(traced.backward)))
    processor = m.on_processor(device)
    if processor:
        parts = step_as_run(traced, cache=m.cost.calls.cache)
        # the update's Python is late once, as a whole
        parts["update"] = tuple(replace(op, since=0.0) for op in parts["update"])
        kept = {op.name for op in parts["backward"]}
        places = [max(0, count - 1) for count in accumulate(op.name in kept for op in traced.backward)]

    def kernels(within: str) -> tuple[Kernel, ...]:
        found = [m.kernel(op, device, within=within) for op in parts[within]]
        if m.profile.calls:
            together = riding(parts[within])
            found = [replace(one, launch=0.0) if rides else one for one, rides in zip(found, together, strict=True)]
        if within in PASSES and m.profile.in_step != 1.0:
            plain, factor = m.profile.launch, m.profile.in_step
            found = [replace(one, launch=factor * (plain if one.launch is None else one.launch)) for one in found]
            if source := m.profile.source("in_step"):
                m.sources[f"{m.profile.name}: in_step"] = source
        added = m.cost.calls.added(within) if processor else 0.0
        return tuple(replace(one, time=one.time + added) for one in found) if added else tuple(found)

    forward, backward = kernels("forward"), kernels("backward")
    update = _update(m, model, kernels("update"), optimizer)
    if processor and update:
        touched = sum(op.nbytes for each in parts.values() for op in each)
        named = model.update(optimizer).name
        python = m.cost.calls.python(named, tensors=len(model.gradients), touched=touched)
        update = (replace(update[0], time=update[0].time + python), *update[1:])
    gradients = [Gradient(one.name, one.nbytes, places[one.after]) for one in traced.gradients]
    made = ReplicaStep(
        model.name,
        float(batch),
        forward,
        backward,
        update,
        tuple(sorted(gradients, key=lambda gradient: gradient.ready)),
        nbytes_input=0.0 if processor else traced.input_nbytes,  # a CPU has them where it computes
        nbytes_output=next((op.nbytes_written for op in traced.forward if op.kind == "log_softmax"), 0.0),
        memory=_parts(model.memory(batch, precision, optimizer=optimizer)),
    )
    return faster(made, 1.0 / m.step_longer(device, model.name, training_precision(precision).matrix))


def _update(m: Session, model: TracedModel, kernels: tuple[Kernel, ...], optimizer: str) -> tuple[Kernel, ...]:
    """Kernels of the update, launched at the pace of the optimizer's Python, where a profile measured that."""
    named = model.update(optimizer).name
    each = update_time(m.profile, named, tensors=len(model.gradients), kernels=len(kernels))
    return kernels if each is None else tuple(replace(kernel, launch=each) for kernel in kernels)


def faster(step: ReplicaStep, speed: float) -> ReplicaStep:
    """The step on a device that is `speed` times as fast; below 1 it is a straggler.

    Raises
    ------
    InputError
        A speed that is not above 0.
    """
    if not 0 < speed < float("inf"):
        raise InputError(Problem("a device's speed is a factor above 0", key="speeds", value=f"{speed}"))
    if speed == 1.0:
        return step

    def scaled(kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
        return tuple(replace(kernel, time=kernel.time / speed) for kernel in kernels)

    return replace(step, forward=scaled(step.forward), backward=scaled(step.backward), update=scaled(step.update))
