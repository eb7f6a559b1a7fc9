"""A stream: kernels in order, behind a bounded queue of launches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import simpy

from simperf.engine.kernel import Item, Kernel
from simperf.engine.share import Task

if TYPE_CHECKING:
    from simperf.engine.device import Device

__all__ = ["DEFAULT_DEPTH", "Stream"]

#: Launches outstanding per stream before the frontend blocks, as measured on CUDA devices
#: (forums.developer.nvidia.com/t/68937; with three streams, 1,000 each).
DEFAULT_DEPTH = 1024

Origin = tuple[str, float] | None  # track and time of the launch, for the arrow of the timeline


class Stream:
    """Runs what is submitted to it, one item at a time, in order.

    Parameters
    ----------
    device : Device
    index : int
    depth : int or float
        Launches that may be outstanding (submitted and not finished); infinite for a
        backend that never blocks its frontend.
    """

    __slots__ = (
        "_queue",
        "_running",
        "_slots",
        "_started",
        "_waiters",
        "completed",
        "depth",
        "device",
        "index",
        "path",
        "submitted",
        "task",
        "track",
    )

    def __init__(self, device: Device, index: int, *, depth: float = DEFAULT_DEPTH) -> None:
        self.device, self.index, self.depth = device, index, depth
        self.track = f"{device.name}/stream{index}"
        self.task = Task(device.share, self.finish)
        self.submitted = self.completed = 0
        self.path = 0.0  # critical path to the end of what was started, contention left out
        self._queue: deque[tuple[Kernel | Item, float, Origin]] = deque()
        self._running = False
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
        if self.device.beside is not None:
            self.task.kind = item.category
        if item.__class__ is Kernel:  # the common case, without a call
            self.path += item.time
            self.task.begin(item.time, item.demand)
        else:
            item.start(self)

    def finish(self, event: simpy.Event) -> None:
        """End the running item; called by the item or by its task."""
        item, _, origin = self._queue.popleft()
        self.completed += 1
        if self.device.recorder is not None:
            self._record(item, origin)
        if item.holds:
            self.device.memory.free(item.holds)
        if self._queue:
            self._next()
        else:
            self._running = False
        while self._waiters and self._waiters[0][0] <= self.completed:
            self._waiters.popleft()[1].succeed(self.path)
        if self._slots and not self.full:
            self._slots.popleft()(event)

    def _record(self, item: Kernel | Item, origin: Origin) -> None:
        recorder, now = self.device.recorder, self.device.env.now
        if recorder is None:
            return
        recorder.counter(self.track, "queue length", now, self.submitted - self.completed)
        if now > self._started and not hasattr(item, "kernels"):  # a graph records its own kernels
            recorder.span(self.track, item.name, self._started, now, item.category)
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
