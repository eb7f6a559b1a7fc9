"""A device: streams of items behind bounded queues, which share its compute; copy engines, memory."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import simpy

from simperf.engine.kernel import Kernel
from simperf.engine.memory import DeviceMemory
from simperf.engine.network import FlowNetwork
from simperf.engine.recorder import Category, Recorder
from simperf.engine.share import Share, ShareUser
from simperf.errors import ProgramError

if TYPE_CHECKING:
    from simperf.engine.interference import Interference

__all__ = ["DEFAULT_DEPTH", "Copy", "CopyEngine", "Device", "DevicePart", "Item", "Stream"]

#: Launches outstanding per stream before the frontend blocks, as measured on CUDA devices
#: (forums.developer.nvidia.com/t/68937; with three streams, 1,000 each).
DEFAULT_DEPTH = 1024

Origin = tuple[str, float] | None  # track and time of the launch, for the arrow of the timeline


class Item(Protocol):
    """Item of a `Stream` that is not a kernel; calls ``stream.finish(event)`` once when it is over."""

    @property
    def name(self) -> str:
        """Shown on the timeline."""

    @property
    def holds(self) -> float:
        """Device memory [B] held from launch to end."""

    @property
    def category(self) -> Category:
        """Category that its time counts as."""

    def start(self, stream: Stream) -> None:
        """Begin; the stream's clock is at the moment when all before it is done."""


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


class CopyEngine:
    """Carries the copies of one direction of a device, in the order in which they come.

    Parameters
    ----------
    network : FlowNetwork
        Whose links the copies share with all other traffic.
    name : str
        Such as ``"gpu0/d2h"``.
    interference : Interference, optional
        Of a device whose kernels and copies slow each other.
    """

    __slots__ = ("_interference", "_network", "_queue", "busy", "name")

    def __init__(self, network: FlowNetwork, name: str, *, interference: Interference | None = None) -> None:
        self._network, self.name, self._interference = network, name, interference
        self._queue: deque[tuple[Copy, Callable[[simpy.Event], None]]] = deque()
        self.busy = False

    def carry(self, copy: Copy, done: Callable[[simpy.Event], None]) -> None:
        """Carry `copy` after those that wait, then call `done`."""
        self._queue.append((copy, done))
        if not self.busy:
            self.busy = True
            self._next()

    def _next(self) -> None:
        copy, done = self._queue[0]
        resources = copy.resources
        if self._interference is not None and copy.nbytes > 0:
            alone = copy.nbytes / max(copy.alone - copy.latency, 1e-12)
            resources = (*resources, self._interference.begin_copy(self.name, alone))
        flow = self._network.transfer(resources, copy.nbytes, latency=copy.latency, cap=copy.cap, name=copy.name)

        def finish(event: simpy.Event) -> None:
            self._queue.popleft()
            if self._interference is not None and copy.nbytes > 0:
                self._interference.end_copy(self.name)
            if self._queue:
                self._next()
            else:
                self.busy = False
            done(event)

        assert flow.callbacks is not None
        flow.callbacks.append(finish)


class Stream:
    """Runs what is submitted to it, one item at a time, in order.

    Parameters
    ----------
    device : Device
    index : int
        Its number; -1 for a stream that has a name.
    depth : int or float
        Launches that may be outstanding (submitted and not finished); infinite for a
        backend that never blocks its frontend.
    name : str
        Such as ``"communication"``; empty for a stream that has a number.
    """

    __slots__ = (
        "_due",
        "_ended",
        "_queue",
        "_running",
        "_slots",
        "_started",
        "_waiters",
        "completed",
        "depth",
        "device",
        "index",
        "name",
        "path",
        "submitted",
        "task",
        "track",
    )

    def __init__(self, device: Device, index: int, *, depth: float = DEFAULT_DEPTH, name: str = "") -> None:
        self.device, self.index, self.depth, self.name = device, index, depth, name
        self.track = f"{device.name}/{name or f'stream{index}'}"
        self.task = ShareUser(device.share, self.finish)
        self.submitted = self.completed = 0
        self.path = 0.0  # critical path to the end of what was started, contention left out
        self._queue: deque[tuple[Kernel | Item, float, Origin]] = deque()
        self._running = False
        self._ended, self._due = 0, False  # of the call of `finish` under way: items that ended, and one to start
        self._started = 0.0
        self._slots: deque[Callable[[simpy.Event], None]] = deque()
        self._waiters: deque[tuple[int, simpy.Event]] = deque()

    @property
    def outstanding(self) -> int:
        """Items submitted and not finished."""
        return self.submitted - self.completed

    @property
    def full(self) -> bool:
        """Whether a frontend that wants to launch has to wait."""
        return self.submitted - self.completed >= self.depth

    def when_free(self, call: Callable[[simpy.Event], None]) -> None:
        """Call once when a place in the queue is free; first come, first served."""
        self._slots.append(call)

    def submit(self, item: Kernel | Item, path: float = 0.0, origin: Origin = None) -> None:
        """Put an item at the end of the queue.

        Parameters
        ----------
        item : Kernel or Item
        path : float
            Critical path of the frontend that launches it [s].
        origin : tuple of str and float, optional
            Track and time [s] of the launch.

        Raises
        ------
        DeviceMemoryError
            It holds more memory than is left.
        """
        if item.holds:
            self.device.memory.hold(item.holds, item.name)
        self.submitted += 1
        self._queue.append((item, path, origin))
        recorder = self.device.recorder
        if recorder is not None:
            recorder.counter(self.track, "queue length", self.device.env.now, self.submitted - self.completed)
        if not self._running:
            self._running = True
            self._next()

    def _next(self) -> None:
        item, path, _ = self._queue[0]
        if path > self.path:
            self.path = path
        self._started = self.device.env.now
        self.task.kind = item.category
        if isinstance(item, Kernel):  # the common case, without a call
            self.path += item.time
            self.task.begin(item.time, item.demand)
        else:
            item.start(self)

    def finish(self, event: simpy.Event) -> None:
        """End the running item; called by the item or by its task."""
        self._end()
        self._ended += 1
        self._due = bool(self._queue)
        if self._ended > 1:  # by an item that ended as it started: the loop below goes on
            return
        while self._due:  # a loop, as a thousand waits may be over at once
            self._due = False
            self._next()
        count, self._ended = self._ended, 0
        while self._waiters and self._waiters[0][0] <= self.completed:
            self._waiters.popleft()[1].succeed(self.path)
        for _ in range(count):
            if self._slots and not self.full:
                self._slots.popleft()(event)

    def _end(self) -> None:
        """Take the running item from the queue."""
        item, _, origin = self._queue.popleft()
        self.completed += 1
        if self.device.recorder is not None:
            self._record(item, origin)
        if item.holds:
            self.device.memory.free(item.holds)
        self._running = bool(self._queue)

    def _record(self, item: Kernel | Item, origin: Origin) -> None:
        recorder, now = self.device.recorder, self.device.env.now
        if recorder is None:
            return
        recorder.counter(self.track, "queue length", now, self.submitted - self.completed)
        if now > self._started and not hasattr(item, "kernels"):  # a graph records its own kernels
            began = max(self._started, getattr(item, "began", 0.0))  # of communication, when all ranks had come
            if began > self._started:
                recorder.span(self.track, f"wait: {item.name}", self._started, began, "wait")
            if now > began:
                recorder.span(self.track, item.name, began, now, item.category)
        if origin is not None and item.category != "wait":
            recorder.arrow(item.name, origin[0], origin[1], self.track, self._started)

    def drained(self) -> simpy.Event:
        """Event that comes when all that is submitted by now is done; its value is the critical path [s]."""
        event = simpy.Event(self.device.env)
        if self.completed >= self.submitted:
            event.succeed(self.path)
        else:
            self._waiters.append((self.submitted, event))
        return event


class DevicePart(Protocol):
    """Fields of a GPU part that the engine reads."""

    @property
    def memory_capacity(self) -> float:
        """Size of its memory [B]."""


class Device:
    """One GPU (or other accelerator) of the machine.

    Parameters
    ----------
    env : simpy.Environment
    name : str
        Node id in the machine, such as ``"gpu0"``.
    network : FlowNetwork
    part : DevicePart, optional
        Its entry of the catalog; a device without a part has unlimited memory.
    depth : float
        Launches that may be outstanding on each of its streams.
    share : Share, optional
        Cores of a host that it is made of, which others use too; a device of its own if left out.
    """

    __slots__ = (
        "_engines",
        "_streams",
        "depth",
        "env",
        "interference",
        "memory",
        "name",
        "network",
        "part",
        "recorder",
        "share",
    )

    def __init__(
        self,
        env: simpy.Environment,
        name: str,
        network: FlowNetwork,
        *,
        part: DevicePart | None = None,
        depth: float = DEFAULT_DEPTH,
        recorder: Recorder | None = None,
        share: Share | None = None,
    ) -> None:
        self.env, self.name, self.network, self.part = env, name, network, part
        self.depth, self.recorder = depth, recorder
        self.share = share or Share(env, 1.0)
        capacity = part.memory_capacity if part is not None else math.inf
        self.memory = DeviceMemory(env, name, capacity, recorder=recorder)
        self._streams: dict[int | str, Stream] = {}
        self._engines: dict[str, CopyEngine] = {}
        factors = getattr(part, "beside", None)
        self.interference: Interference | None = None
        if factors:
            from simperf.engine.interference import Interference

            self.interference = Interference(self.share, network, factors)
            self.share.watch = self.interference.update

    def stream(self, which: int | str = 0) -> Stream:
        """A stream by its number or its name, made on first use; 0 is the default stream, and so is ``"compute"``."""
        try:
            return self._streams[which]
        except (KeyError, TypeError):
            return self._new_stream(which)

    def _new_stream(self, which: int | str) -> Stream:
        if which == "compute":
            return self.stream(0)
        numbered = isinstance(which, int) and not isinstance(which, bool) and which >= 0
        if not numbered and not (which and isinstance(which, str)):
            raise ProgramError(f'{which!r} is no stream: a name, such as "side", or a number from 0 is expected')
        index, name = (which, "") if isinstance(which, int) else (-1, which)
        self._streams[which] = self._made_stream(index, name)
        return self._streams[which]

    def _made_stream(self, index: int, name: str) -> Stream:
        return Stream(self, index, depth=self.depth, name=name)

    def stream_after(self, stream: Stream, number: int) -> Stream:
        """The `number`-th stream after one of the device's, such as for operations that run beside each other."""
        if number == 0:
            return stream
        return self.stream(f"{stream.name}.{number}" if stream.name else stream.index + number)

    @property
    def streams(self) -> tuple[Stream, ...]:
        """All streams in use."""
        return tuple(self._streams.values())

    @property
    def copies(self) -> bool:
        """Whether any of its copy engines has been asked for."""
        return bool(self._engines)

    def copy_engine(self, direction: str) -> CopyEngine:
        """The engine of ``"h2d"``, ``"d2h"`` or ``"peer"`` copies."""
        if direction not in self._engines:
            name = f"{self.name}/{direction}"
            interference = self.interference if direction != "peer" else None
            self._engines[direction] = CopyEngine(self.network, name, interference=interference)
        return self._engines[direction]
