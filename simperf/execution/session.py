"""Session of a program on a machine: its GPUs, its host, and where to report numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import simpy

from simperf.engine.device import Device
from simperf.engine.kernel import Kernel
from simperf.engine.recorder import Category
from simperf.engine.simulation import Simulation
from simperf.errors import DeadlockError, ProgramError, refuse_removed
from simperf.execution.frontend import Frontend, Program
from simperf.execution.modes import MODES, Mode
from simperf.execution.profile import FREE, FrontendPart
from simperf.time_use import RankClass
from simperf.units import DIMENSIONS

if TYPE_CHECKING:
    from simperf.collectives.nccl import Tuner
    from simperf.collectives.settings import NcclSettings
    from simperf.cost import CostSettings, OpCost, OpModel
    from simperf.execution.module import Module
    from simperf.workload import Op, OpGraph

__all__ = ["Operation", "Session"]


#: by keyword that a session had once, the field of `CostSettings`
_IN_COST = {
    "sharp": "sharp",
    "efficiency": "efficiency",
    "kernels": "kernels",
    "measured": "gpu",
    "unseen": "unseen",
    "protocols": "protocols",
    "calls": "calls",
    "collectives": "collectives",
}

#: lines that tell what waits for ever
MOST_TOLD = 8


class Communicating(Protocol):
    """A process group, as far as the end of a program needs it."""

    def waiting(self) -> list[str]:
        """Communication that has begun and waits for ranks that have not come, one line each."""

    def settle(self) -> None:
        """Count the bytes of what was computed as a whole."""


@dataclass(slots=True)
class Operation:
    """Operation that was costed on one device: how often, and what it costs there."""

    name: str
    device: str
    cost: OpCost
    dtype: str
    count: int = 0


class Session:
    """A machine with a program on it; the `m` of a program.

    Parameters
    ----------
    simulation : Simulation
    mode : Mode
    profile : FrontendPart
    cost : CostSettings, optional
        How operations and collectives are costed; by the catalogue if left out.

    Examples
    --------
    >>> from simperf.execution import launch, synchronize
    >>> m = Session(Simulation())
    >>> def program(m):
    ...     gpu, add = m.gpu(), Kernel("add", time=2e-6, launch=1e-6)
    ...     for _ in range(1000):
    ...         yield launch(add, gpu)
    ...     yield synchronize(gpu)
    >>> round(m.play(program(m)) * 1e6)
    2001
    """

    def __init__(
        self,
        simulation: Simulation,
        *,
        mode: Mode = MODES["eager"],
        profile: FrontendPart = FREE,
        cost: CostSettings | None = None,
        **removed: Any,
    ) -> None:
        from simperf.cost import CostSettings

        refuse_removed("Session", removed, {old: f"cost=CostSettings({new}=...)" for old, new in _IN_COST.items()})
        self.simulation, self.mode, self.profile = simulation, mode, profile
        self.cost = cost or CostSettings()
        self.used: set[str] = set()  # names of the fitted models that costs were taken from
        self.metrics: dict[str, tuple[float, str]] = {}
        self.done: dict[str, tuple[float, str]] = {}
        self.notes: list[str] = []
        self.assumed: dict[str, str] = {}  # values that the program took from a software stack, with their sources
        self.sources: dict[str, str] = {}  # of constants that the program named
        self.contains: list[str] = []  # what the program models beside what every run does, in words
        self.leaves_out: list[str] = []
        self.ranks: dict[str, RankClass] = {}  # by the device that is simulated for them
        self.operations: dict[tuple[str, Op, str], Operation] = {}
        self._models: dict[str, OpModel] = {}
        self.groups: dict[tuple[Any, ...], Communicating] = {}
        self._kernels: dict[tuple[str, Op, str], Kernel] = {}

    def another(self) -> Session:
        """A session of its own with all that was set for this one, such as for one device without the others."""
        simulation = self.simulation
        return Session(
            Simulation(simulation.machine, seed=simulation.seed, depth=simulation.depth),
            mode=self.mode,
            profile=self.profile,
            cost=self.cost,
        )

    @property
    def machine(self) -> Any:
        """The wired machine.

        Raises
        ------
        ProgramError
            The session has none.
        """
        if self.simulation.machine is None:
            raise ProgramError("this program needs a machine: give the scenario a [machine] table")
        return self.simulation.machine

    @cached_property
    def gpus(self) -> tuple[Device, ...]:
        """All GPUs of the machine, in order; one abstract device if there is no machine."""
        machine = self.simulation.machine
        names = machine.gpus if machine is not None else ("gpu0",)
        return tuple(self.simulation.device(name) for name in names)

    def gpu(self, index: int = 0) -> Device:
        """GPU `index`.

        Raises
        ------
        ProgramError
            The machine has fewer.
        """
        if isinstance(index, bool) or not isinstance(index, int):
            raise ProgramError(f"{index!r} is no number of a GPU: 0 to {len(self.gpus) - 1} is expected")
        if not 0 <= index < len(self.gpus):
            raise ProgramError(f"the program uses gpu{index}, but the machine has {len(self.gpus)} GPUs (from gpu0)")
        return self.gpus[index]

    @cached_property
    def host(self) -> str:
        """The CPU node whose thread runs the program: that of the first GPU."""
        machine: Any = self.simulation.machine
        if machine is None:
            return "cpu0"
        gpus = machine.gpus
        return str(machine.host_of(gpus[0]) if gpus else machine.hosts[0])

    @property
    def launched(self) -> bool:
        """Whether any stream has been given work."""
        return any(stream.submitted for device in self.simulation.devices.values() for stream in device.streams)

    @property
    def now(self) -> float:
        """Simulated time [s]."""
        return self.simulation.now

    def rng(self, name: str) -> np.random.Generator:
        """The run's random stream of that name."""
        return self.simulation.random(name)

    def metric(self, name: str, value: float, unit: str = "1") -> None:
        """Report a number of the run, in the SI unit `unit` (a key of `simperf.units.DIMENSIONS`)."""
        if unit not in DIMENSIONS:
            raise ProgramError(f"metric {name!r} has the unit {unit!r}; one of {', '.join(DIMENSIONS)} is expected")
        self.metrics[name] = (float(value), unit)

    def rate(self, name: str, amount: float, unit: str = "1/s", *, time: float | None = None) -> None:
        """Report how much was done in a `time` [s], or since the start; nothing where no time passed."""
        passed = self.now if time is None else time
        if passed > 0.0:
            self.metric(name, amount / passed, unit)

    def work(self, name: str, amount: float, unit: str = "1") -> None:
        """Report how much work the run did, such as ``m.work("samples", 4096)``; called again, it adds.

        Times are compared between runs that did the same amount.

        Parameters
        ----------
        name : str
            What is counted.
        amount : float
            In the SI unit `unit`.
        unit : str
            A key of `simperf.units.DIMENSIONS`.
        """
        if unit not in DIMENSIONS:
            raise ProgramError(f"work {name!r} has the unit {unit!r}; one of {', '.join(DIMENSIONS)} is expected")
        before, _ = self.done.get(name, (0.0, unit))
        self.done[name] = (before + float(amount), unit)

    def model(self, device: Device) -> OpModel:
        """Model of the costs of operations on `device`."""
        if device.name not in self._models:
            from simperf.cost import FittedRoofline, Roofline, UnseenRoofline

            part = device.part
            if part is None or not hasattr(part, "peak"):
                raise ProgramError(
                    f"operations cannot be costed on {device.name}, which is no GPU of the catalogue: "
                    "train on GPUs, or give the times of layers or kernels instead of a model or operations"
                )
            if self.cost.sharp:
                self._models[device.name] = Roofline.sharp(part)  # type: ignore[arg-type]
            else:
                efficiency = {**part.efficiency, **self.cost.efficiency}  # type: ignore[attr-defined]
                roofline = Roofline(part, efficiency=efficiency)  # type: ignore[arg-type]
                model: OpModel = roofline
                if self.cost.kernels and self.cost.gpu in ("", part.name):  # type: ignore[attr-defined]
                    model = FittedRoofline(part, self.cost.kernels, other=roofline)  # type: ignore[arg-type]
                    if self.cost.unseen is not None and model.corrects:  # of what it does not correct nothing is fitted
                        drawn = UnseenRoofline(roofline, self.cost.unseen)
                        model = FittedRoofline(part, self.cost.kernels, other=roofline, unseen=drawn)  # type: ignore[arg-type]
                elif self.cost.unseen is not None:
                    model = UnseenRoofline(roofline, self.cost.unseen)
                self._models[device.name] = model
                self._tell_origin(part.name, model)  # type: ignore[attr-defined]
        return self._models[device.name]

    def _tell_origin(self, part: str, model: OpModel) -> None:
        """Note where a profile was fitted to another kind of device than the one that works."""
        from simperf.cost import FittedRoofline

        told = ""
        if isinstance(model, FittedRoofline) and model.processor:
            told = f"operations on {part} cost what was measured on a CPU: the profile's constants hold for one"
        elif self.cost.kernels and not isinstance(model, FittedRoofline):
            told = f"operations on {part} cost what the catalogue says: the profile was fitted to {self.cost.gpu}"
        if told and told not in self.notes:
            self.notes.append(told)

    def _tell_library(self, op: Op, device: Device, model: OpModel) -> None:
        """Note whose kernels an attention is costed by, and that it is the default where none is named."""
        library, part = model.attention_library(op), device.part  # type: ignore[attr-defined]
        if library:
            where = part.source(f"attention.{library}.matrix")  # type: ignore[union-attr]
            on = part.name  # type: ignore[union-attr]
            if op.library:
                self.sources[f"{library} on {on}"] = where
            else:
                self.assumed[f"library of attention on {on}"] = f"{library}, unless another is named; {where}"
            self._tell_few_queries(op, on)

    def _tell_few_queries(self, op: Op, on: str) -> None:
        """Note an attention of fewer queries than any table has."""
        from simperf.cost.attention import LEAST_QUERIES, attention_shape, few_queries

        shape = attention_shape(op)
        if shape is not None and few_queries(shape):
            told = f"no table has so few; kernels for many queries, and the time of one query at least, on {on}"
            self.assumed[f"attention of 2 to {LEAST_QUERIES - 1} queries"] = told

    def tuner(self, ranks: Sequence[str], collective: str, settings: NcclSettings) -> Tuner:
        """NCCL's tuner for a collective of `ranks`; the session notes which measured times it takes.

        Parameters
        ----------
        ranks : sequence of str
            Nodes, server by server.
        collective : str
        settings : NcclSettings
        """
        from simperf.collectives.tuners import tuner_of

        cost = self.cost
        measured = cost.collectives.among(collective, self.machine, ranks)
        if measured is not None:
            self.used.add(measured.name)
        base = cost.collectives.machine
        return tuner_of(self.machine, ranks, collective, settings, speed=cost.protocols, measured=measured, base=base)

    @property
    def fitted(self) -> bool:
        """Whether operations of any device were costed by constants that were fitted to measurements."""
        if not self._models:
            return False
        from simperf.cost import FittedRoofline

        return any(isinstance(model, FittedRoofline) for model in self._models.values())

    @property
    def corrected(self) -> bool:
        """Whether operations of any device were costed by the catalogue times fitted factors of their shapes."""
        from simperf.cost import FittedRoofline

        return any(isinstance(model, FittedRoofline) and model.corrects for model in self._models.values())

    @property
    def accounted(self) -> frozenset[str]:
        """Effects that costs by the catalogue accounted for beside peaks and bandwidth, as `Roofline.accounts`."""
        if not self.operations:
            return frozenset()
        models = self._models
        return frozenset().union(*(models[device].accounts(op) for device, op, _ in self.operations))  # type: ignore[attr-defined]

    def on_processor(self, device: Device) -> bool:
        """Whether `device` stands for a CPU: operations on it cost what was measured on one."""
        from simperf.cost import FittedRoofline

        model = self.model(device)
        return isinstance(model, FittedRoofline) and model.processor

    def step_longer(self, device: Device, model: str, precision: str) -> float:
        """Ratio of the time of a training step on `device` to that of its kernels [1]; 1 where its GPU was measured.

        Parameters
        ----------
        device : Device
        model : str
            Its name.
        precision : str
            Of its matrix products.
        """
        from simperf.cost import FittedRoofline, UnseenRoofline

        found = self.model(device)
        return found.step(model, precision) if isinstance(found, FittedRoofline | UnseenRoofline) else 1.0

    def kernel(self, op: Op, device: Device | None = None, *, holds: float = 0.0, within: str = "") -> Kernel:
        """`op` as a kernel of `device` (default: the first GPU), launched `within` a pass that autograd takes part in.

        The time of its launch is that of its type of call, where a profile measured it (`simperf.execution.calls`).
        """
        device = device or self.gpu()
        launch = self._launch_time(op, within) if self.profile.calls else None
        if launch is None:
            within = ""  # it makes no difference
        key = (device.name, op, within)
        if key not in self._kernels:
            from simperf.cost import FittedRoofline

            model = self.model(device)
            cost = model.cost(op)
            if isinstance(model, FittedRoofline) and model.key(op) is not None:
                self.used.add(f"kernel.{model.key(op)}")
            elif op.family == "attention":
                self._tell_library(op, device, model)
            category: Category = "memory" if cost.memory_time > cost.compute_time else "compute"
            self._kernels[key] = Kernel(op.name, cost.time, cost.demand, category, holds, launch)
            self.operations[key] = Operation(op.name, device.name, cost, op.dtype)
            if self.simulation.recorder is not None:
                self.simulation.recorder.families[op.name] = op.family
        self.operations[key].count += 1
        return self._kernels[key]

    def _launch_time(self, op: Op, within: str) -> float | None:
        """Time of the call's launch [s], where a profile measured its type."""
        from simperf.execution.calls import call_time

        return call_time(self.profile, op.kind, within)

    def module(self, graph: OpGraph, device: Device | None = None, *, name: str = "net") -> Module:
        """A network ready to run on `device`."""
        from simperf.execution.module import Module

        source = self.profile.source("layer_call") if graph.layers and not self.mode.scripted else ""
        if self.profile.layer_call and source:
            self.sources[f"{self.profile.name}: layer_call"] = source
        return Module(graph, lambda op: self.kernel(op, device), name)

    def spawn(
        self, program: Program, name: str = "python", *, host: str = "", mode: Mode | None = None, rank: Any = None
    ) -> Frontend:
        """Start another thread with a program of its own; its `done` event can be waited for."""
        return Frontend(
            self.simulation,
            program,
            host=self.simulation.host(host or self.host),
            mode=mode or self.mode,
            profile=self.profile,
            name=name,
            rank=rank,
        )

    def send(
        self, source: str, target: str, nbytes: float, *, name: str = "send", category: Category = "communication"
    ) -> simpy.Event:
        """Move bytes between two nodes; the event comes when they have arrived."""
        route, simulation, started = self.machine.route(source, target), self.simulation, self.now
        if simulation.stacks is not None and self.machine.host_of(source) != self.machine.host_of(target):
            event = simulation.stacks.carry(source, target, nbytes)
        else:
            event = simulation.network.transfer(route.resources, nbytes, latency=route.latency, name=name)
        if simulation.recorder is not None and event.callbacks is not None:
            event.callbacks.append(lambda _: self.show(f"{source}/to {target}", name, started, category))
        return event

    def show(self, track: str, name: str, started: float, category: Category) -> None:
        """Put a span from `started` [s] to now on the timeline, if there is one."""
        if self.simulation.recorder is not None:
            self.simulation.recorder.span(track, name, started, self.now, category)

    def play(self, program: Program, *, name: str = "python") -> float:
        """Run `program` on the main thread to its end; returns the time it took [s].

        Raises
        ------
        DeadlockError
            It waits for something that never comes, such as a send that no rank receives.
        """
        frontend = self.spawn(program, name)
        try:
            time = self.simulation.run(frontend.done)
        except DeadlockError:
            told = [line for group in self.groups.values() for line in group.waiting()]
            if not told:
                raise
            raise DeadlockError("the program waits for ever: " + "; ".join(told[:MOST_TOLD])) from None
        for group in self.groups.values():
            group.settle()
        return time
