"""What a stream runs: kernels, copies, events, captured graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import simpy

from simperf.engine.recorder import Category

if TYPE_CHECKING:
    from simperf.engine.copy import CopyEngine
    from simperf.engine.stream import Stream

__all__ = ["Copy", "GraphLaunch", "Item", "Kernel", "Marker", "WaitFor"]


class Item(Protocol):
    """What a `Stream` can hold besides kernels; calls ``stream.finish(event)`` once when it is over."""

    @property
    def name(self) -> str:
        """Shown on the timeline."""

    @property
    def holds(self) -> float:
        """Device memory [B] held from launch to end."""

    @property
    def category(self) -> Category:
        """What its time counts as."""

    def start(self, stream: Stream) -> None:
        """Begin; the stream's clock is at the moment when all before it is done."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """One operation on a device, as its cost model sees it.

    Parameters
    ----------
    name : str
    time : float
        Duration when it has the device to itself [s]: the book's t2.
    demand : float
        Share of the device that it can fill, in (0, 1].
    category : str
        ``"compute"`` or ``"memory"``, by what bounds it.
    holds : float
        Device memory held from its launch to its end [B].
    launch : float or None
        Time of the frontend to issue it [s], the book's t1; None takes the frontend's own.
    result : float or None
        Time to hand its result back when the frontend asks for it [s], the book's t3.
    """

    name: str
    time: float
    demand: float = 1.0
    category: Category = "compute"
    holds: float = 0.0
    launch: float | None = None
    result: float | None = None

    def start(self, stream: Stream) -> None:
        """Run on the stream's share of the device."""
        stream.path += self.time
        stream.task.begin(self.time, self.demand)


class Marker:
    """A point in a stream that others may wait for (a CUDA event)."""

    __slots__ = ("done", "name", "path")

    holds = 0.0
    category: Category = "wait"

    def __init__(self, env: simpy.Environment, name: str = "event") -> None:
        self.name = name
        self.done = simpy.Event(env)
        self.path = 0.0

    def start(self, stream: Stream) -> None:
        """Say that all before it is done; takes no time."""
        self.path = stream.path
        self.done.succeed(stream.device.env.now)
        stream.finish(self.done)


@dataclass(frozen=True, slots=True)
class WaitFor:
    """Holds a stream until a marker of another stream (or any event) has come."""

    event: Marker | simpy.Event
    name: str = "wait for event"
    holds: float = 0.0
    category: Category = "wait"

    def start(self, stream: Stream) -> None:
        """Go on at once if it has come already, or else when it comes."""
        event = self.event.done if isinstance(self.event, Marker) else self.event

        def proceed(event: simpy.Event) -> None:
            if isinstance(self.event, Marker):
                stream.path = max(stream.path, self.event.path)
            stream.finish(event)

        if event.callbacks is None:
            proceed(event)
        else:
            event.callbacks.append(proceed)


@dataclass(frozen=True, slots=True)
class Copy:
    """A transfer between memories by a copy engine.

    Parameters
    ----------
    name : str
    engine : CopyEngine
        The engine that carries it; its copies run one at a time.
    resources : sequence of str
        Links on the way.
    nbytes : float
        Payload [B].
    latency : float
        Set-up and route latency [s].
    cap : float
        Rate limit of its own [B/s], such as a pageable copy's staging.
    alone : float
        Time when nothing else runs [s].
    """

    name: str
    engine: CopyEngine
    resources: Sequence[str]
    nbytes: float
    latency: float
    cap: float
    alone: float
    holds: float = 0.0
    category: Category = "copy"
    launch: float | None = None
    result: float | None = None

    def start(self, stream: Stream) -> None:
        """Queue at the copy engine."""
        stream.path += self.alone
        self.engine.carry(self, stream.finish)


@dataclass(frozen=True, slots=True)
class GraphLaunch:
    """A captured graph: one launch by the frontend, then its kernels in order.

    Not modelled: branches of a graph that run at the same time.

    Parameters
    ----------
    kernels : sequence of Kernel
    gap : float
        Time of the device between two nodes [s]; below zero, nodes follow one another faster than launched kernels.
    """

    name: str
    kernels: Sequence[Kernel]
    gap: float = 0.0
    category: Category = "compute"
    launch: float | None = None
    result: float | None = None
    holds: float = field(default=0.0)

    def start(self, stream: Stream) -> None:
        """Run the kernels one after another."""
        nodes = iter(self.kernels)
        done, recorder = stream.task.done, stream.device.recorder
        running: list[tuple[Kernel, float]] = []

        def step(event: simpy.Event) -> None:
            now = stream.device.env.now
            if running and recorder is not None:
                kernel, started = running[0]
                recorder.span(stream.track, kernel.name, started, now, kernel.category)
            kernel = next(nodes, None)  # type: ignore[assignment]
            if kernel is None:
                stream.task.done = done
                stream.finish(event)
                return
            running[:] = [(kernel, now)]
            stream.task.kind = kernel.category
            time = max(0.0, kernel.time + self.gap)
            stream.path += time
            stream.task.begin(time, kernel.demand)

        stream.task.done = step
        step(stream.task.alarm)
