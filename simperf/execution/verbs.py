"""The verbs of a program: what a torch program does to time.

A program yields them::

    def program(m):
        gpu = m.gpus[0]
        for batch in range(100):
            yield copy("cpu0", gpu, nbytes=1e6)   # x = x.to("cuda")
            yield launch(kernel, gpu)             # y = f(x)
        yield synchronize(gpu)                    # torch.cuda.synchronize()

Where they block: ``launch`` only when the launch queue is full; ``copy`` of pageable
memory, ``item`` and ``synchronize`` until the stream is drained; ``copy`` of pinned
memory, ``record``, and ``wait`` and ``wait_stream`` of a stream never block the frontend.

A device has streams by name or number. A verb that takes a device takes the name of one of its streams as ``stream=``;
without one it is the default stream, whose name is ``"compute"``.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import simpy

from simperf.engine.device import Copy, Device, Item, Stream
from simperf.engine.items import Marker, WaitFor
from simperf.engine.kernel import Kernel
from simperf.errors import InputError, Problem, ProgramError
from simperf.execution.module import Module
from simperf.execution.thread import Launch, Spend, Thread, Verb

__all__ = [
    "Launch",
    "Spend",
    "Verb",
    "compute",
    "copy",
    "item",
    "launch",
    "record",
    "run",
    "synchronize",
    "wait",
    "wait_stream",
]


def _stream(place: Device | Stream, name: int | str | None = None) -> Stream:
    if isinstance(place, Device):
        return place.stream(0 if name is None else name)
    if not isinstance(place, Stream):
        raise ProgramError(f"{place!r} is no place for work: a device, such as m.gpu(), or a stream is expected")
    if name is not None:
        raise ProgramError(f"stream {name!r} is asked for beside {place.track}; a device and the name are expected")
    return place


def launch(kernel: Kernel | Item, place: Device | Stream, *, stream: int | str | None = None) -> Launch:
    """Issue `kernel` on a stream (a device means its default stream, or the one that is named)."""
    if not isinstance(kernel, Kernel) and not hasattr(kernel, "start"):
        raise ProgramError(f"{kernel!r} is nothing to launch: a Kernel is expected")
    return Launch(kernel, place.stream(0) if stream is None and isinstance(place, Device) else _stream(place, stream))


def compute(seconds: float, what: str = "host work") -> Spend:
    """Let the frontend thread itself work for `seconds` [s] on one core."""
    return Spend(seconds, what)


@dataclass(frozen=True, slots=True)
class _Run(Verb):
    module: Module
    stream: Stream

    def perform(self, frontend: Thread) -> Generator[Any, Any, Any]:
        return frontend.call(self.module, self.stream)


def run(module: Module, place: Device | Stream, *, stream: int | str | None = None) -> Verb:
    """Call a network once, as the execution mode does it: ``y = net(x)``."""
    return _Run(module, _stream(place, stream))


@dataclass(frozen=True, slots=True)
class _Synchronize(Verb):
    streams: tuple[Stream, ...] | None
    why: str
    value: bool = False

    def perform(self, frontend: Thread) -> Generator[Any, Any, Any]:
        streams = self.streams
        if streams is None:
            streams = tuple(s for device in frontend.simulation.devices.values() for s in device.streams)
        yield from frontend.fetch(*streams, why=self.why, value=self.value)


def synchronize(*places: Device | Stream) -> Verb:
    """Wait until all that was issued is done: on some devices or streams, or on all."""
    streams: list[Stream] = []
    for place in places:
        streams.extend(place.streams if isinstance(place, Device) else (_stream(place),))
    return _Synchronize(tuple(streams) if places else None, "wait: synchronize")


def item(place: Device | Stream, *, stream: int | str | None = None) -> Verb:
    """Read a result: ``loss.item()``, ``print(z)``, ``z.numpy()``; waits for its stream."""
    return _Synchronize((_stream(place, stream),), "wait: item", value=True)


def record(place: Device | Stream, name: str = "event", *, stream: int | str | None = None) -> _Record:
    """Put a marker into a stream; the yield returns it for `wait`."""
    return _Record(_stream(place, stream), name)


@dataclass(frozen=True, slots=True)
class _Record(Verb):
    stream: Stream
    name: str

    def perform(self, frontend: Thread) -> Generator[Any, Any, Any]:
        marker = Marker(frontend.env, self.name)
        self.stream.submit(marker, frontend.path)
        return marker
        yield  # a generator, like every verb


@dataclass(frozen=True, slots=True)
class _Wait(Verb):
    event: Marker | simpy.Event
    stream: Stream | None
    why: str

    def perform(self, frontend: Thread) -> Generator[Any, Any, Any]:
        if self.stream is not None:
            self.stream.submit(WaitFor(self.event), frontend.path)
            return None
        marker = self.event if isinstance(self.event, Marker) else None
        value = yield from frontend.block(marker.done if marker else self.event, self.why)  # type: ignore[arg-type]
        if marker is not None:
            frontend.path = max(frontend.path, marker.path)
        return value


def wait(
    event: Marker | simpy.Event,
    place: Device | Stream | None = None,
    *,
    stream: int | str | None = None,
    why: str = "wait: event",
) -> Verb:
    """Make a stream wait for `event` (the frontend continues); without a stream, the frontend itself waits.

    Parameters
    ----------
    event : Marker or simpy.Event
        What `record` or a communication returned, or any event.
    place : Device or Stream, optional
        Who waits; a device means its default stream, or the one that is named.
    stream : int or str, optional
        Which stream of the device.
    why : str
        What the timeline calls the wait.
    """
    if place is None and stream is not None:
        raise ProgramError(f"stream {stream!r} is to wait, but its device is not given: give place = m.gpu()")
    return _Wait(event, None if place is None else _stream(place, stream), why)


def wait_stream(waiting: Stream, other: Stream) -> Verb:
    """Make a stream wait for all that another one has been given by now: ``waiting.wait_stream(other)``."""
    return _WaitStream(waiting, other)


@dataclass(frozen=True, slots=True)
class _WaitStream(Verb):
    waiting: Stream
    other: Stream

    def perform(self, frontend: Thread) -> Generator[Any, Any, Any]:
        follow(frontend, self.waiting, self.other)
        return None
        yield  # a generator, like every verb


def follow(frontend: Thread, waiting: Stream, other: Stream) -> None:
    """Put a marker into a stream, and a wait for it into another one."""
    if waiting is not other:
        marker = Marker(frontend.env, "stream")
        other.submit(marker, frontend.path)
        waiting.submit(WaitFor(marker), frontend.path)


@dataclass(frozen=True, slots=True)
class _Copy(Verb):
    source: Device | str
    target: Device | str
    nbytes: float
    pinned: bool
    allocate: bool
    stream: Stream | str | None
    name: str

    def perform(self, frontend: Thread) -> Generator[Any, Any, Any]:
        profile, simulation = frontend.profile, frontend.simulation
        device, direction = self._engine()
        ends = [end.name if isinstance(end, Device) else end for end in (self.source, self.target)]
        machine = simulation.machine
        if machine is None:
            raise ProgramError(f"{self.name!r} needs a machine with links between {ends[0]!r} and {ends[1]!r}")
        route = machine.route(*ends)
        staged = not self.pinned and direction != "peer"
        if staged and profile.pageable == math.inf:
            message = f"{self.name!r} is not pinned, but the frontend {profile.name!r} has no rate of pageable copies"
            expected = 'pinned memory, or frontend.pageable = "6 GB/s", such as pytorch has'
            raise InputError(Problem(message, key="pinned", value="false", expected=expected))
        if self.allocate and direction == "d2h":
            rate, what = (profile.pin, "pin") if self.pinned else (profile.allocate, "allocate")
            yield Spend(self.nbytes / rate, f"{what} host memory", "host")
        cap = profile.pageable if staged else math.inf
        latency = profile.copy_setup + route.latency
        alone = latency + self.nbytes / min(cap, route.bandwidth)
        stream = self.stream if isinstance(self.stream, Stream) else device.stream(self.stream or 0)
        engine = device.copy_engine(direction)
        yield Launch(Copy(self.name, engine, route.resources, self.nbytes, latency, cap, alone), stream)
        if staged and profile.copies_block:  # the driver copies through its own pinned buffer while the caller waits
            path = yield from frontend.block(stream.drained(), "wait: pageable copy")
            frontend.path = max(frontend.path, path)

    def _engine(self) -> tuple[Device, str]:
        if isinstance(self.source, Device):
            return self.source, "peer" if isinstance(self.target, Device) else "d2h"
        if isinstance(self.target, Device):
            return self.target, "h2d"
        raise ProgramError(
            f"{self.name!r} copies from {self.source!r} to {self.target!r}: one of them must be a device"
        )


def copy(
    source: Device | str,
    target: Device | str,
    *,
    nbytes: float,
    pinned: bool = True,
    allocate: bool = False,
    stream: Stream | str | None = None,
    name: str = "copy",
) -> Verb:
    """Copy between host and device or between devices: ``y.to(target, non_blocking=pinned)``.

    Parameters
    ----------
    source, target : Device or str
        A device, or the node id of a host.
    nbytes : float
        Payload [B].
    pinned : bool
        Whether the host side is pinned: the copy then runs behind the frontend's back at
        the link's rate. A pageable copy is staged, slower, and blocks the frontend, unless an engine's thread
        makes the call (`FrontendPart.copies_block`).
    allocate : bool
        Whether the host memory is obtained for this copy (``.to("cpu")`` does), at the
        profile's rate.
    stream : Stream or str, optional
        A stream, or the name of one of the device; its default stream if left out.
    """
    for end in (source, target):
        if not isinstance(end, Device | str):
            raise ProgramError(f"{name!r} copies from or to {end!r}; a device or the node of a host is expected")
    if isinstance(nbytes, bool) or not isinstance(nbytes, int | float) or not 0 <= nbytes < math.inf:
        raise ProgramError(f"{name!r} would copy {nbytes} B; 0 B or more is expected")
    return _Copy(source, target, nbytes, pinned, allocate, stream, name)
