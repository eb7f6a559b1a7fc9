"""Items of a stream besides kernels and copies: markers, waits for them, captured graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import simpy

from simperf.engine.device import Stream
from simperf.engine.kernel import Kernel
from simperf.engine.recorder import Category

__all__ = ["GraphLaunch", "Marker", "WaitFor"]


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
        """Continue at once if it has come already, or else when it comes."""
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
