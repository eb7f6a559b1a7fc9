"""Streams whose items end at many times at once: one for each step that is drawn, and each rank.

Each item begins when the one before it has ended and the host has launched it, whichever is later: the recurrence of
a graph of dependences, in the algebra of maximum and sum (F. Baccelli et al., Synchronization and Linearity, 1992).
Kernels that follow each other while the host is ahead of its device in every step are one term.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import simpy

from simperf.engine.device import Device, Stream
from simperf.engine.items import Marker, WaitFor
from simperf.engine.kernel import Kernel
from simperf.errors import ProgramError
from simperf.training.pipelined.meetings import Meeting, Party
from simperf.training.pipelined.noise_draws import ArrayNoise, Floats
from simperf.training.pipelined.stage_time import Hold, StepMark

__all__ = ["DrawnDevice", "DrawnStream", "DrawnWork"]

#: factor by which noise lengthens a launch at most, when a host is taken to be ahead [1]: ten deviations of 0.3
LONGEST = 4.0
#: parts of a queue's depth after each of which its fill is looked at
PARTS = 16


class _HostClock:
    """Times at which a host is, and how far it is ahead of its device.

    Parameters
    ----------
    noise : ArrayNoise
    """

    __slots__ = ("_noise", "_owed", "_square", "lead", "now")

    def __init__(self, noise: ArrayNoise) -> None:
        self._noise, self.now = noise, np.zeros((1, 1))
        self._owed = self._square = 0.0
        self.lead = -np.inf  # at least, when `now` was brought up to date [s]

    def spend(self, time: float, *, varies: bool = False) -> None:
        """Let the host work for a time [s], which noise lengthens or shortens if it is that of a launch."""
        self._owed += time
        self._square += time * time if varies else 0.0

    @property
    def ahead(self) -> bool:
        """Whether all that has been launched waits for the device."""
        owed = self._owed * LONGEST if self._noise.noise.launches else self._owed
        return bool(self.lead >= owed)

    def settle(self) -> Floats:
        """Bring `now` up to date."""
        if self._owed:
            self.now = self.now + self._noise.launches(self._owed, self._square)
            self.lead -= self._owed * (LONGEST if self._noise.noise.launches else 1.0)
            self._owed = self._square = 0.0
        return self.now

    def wait(self, times: Floats) -> None:
        """Let the host wait until some times [s]."""
        self.now = np.maximum(self.settle(), times)
        self.lead = -np.inf

    def compare(self, times: Floats) -> None:
        """Find out how far ahead it is of a device that is idle from some times [s] on."""
        self.lead = float((times - self.settle()).min())


class DrawnWork:
    """A communication of ranks that are simulated together.

    Parameters
    ----------
    device : DrawnDevice
    meeting, party
        Where its ranks meet others.
    number : int
        Of the communication.
    duration : float or None
        As of `Meeting.enter`.
    """

    __slots__ = ("began", "device", "done", "duration", "end", "group", "launch", "member", "number", "path", "place")

    def __init__(self, device: DrawnDevice, place: tuple[Meeting, Party], number: int, duration: float | None) -> None:
        self.device, self.place, self.number, self.duration = device, place, number, duration
        self.member, self.group, self.done = self, self, simpy.Event(device.env)
        self.launch: float | None = None
        self.path = self.began = 0.0
        self.end: Floats | None = None

    def start(self, stream: Stream) -> None:
        """Nothing: `DrawnStream` simulates it."""
        raise ProgramError("a drawn communication is on a stream that is drawn")


class DrawnStream(Stream):
    """A stream of ranks that are simulated together; takes what its base takes."""

    device: DrawnDevice

    def __init__(self, device: DrawnDevice, index: int, *, depth: float, name: str = "") -> None:
        super().__init__(device, index, depth=depth, name=name)
        self.end: Floats = device.begin
        self.pending: deque[tuple[Any, Floats | None]] = deque()
        self._time = self._square = 0.0  # of kernels that are one term
        self._current: DrawnWork | None = None
        self._marks: deque[tuple[int, Floats]] = deque()
        self._marked = 0
        self._followed: Floats | None = None

    @property
    def computes(self) -> bool:
        """Whether it is the stream of the kernels."""
        return self.index == 0

    def submit(self, item: Any, path: float = 0.0, origin: Any = None) -> None:
        """Put an item at the end of the queue, now."""
        self.submitted += 1
        clock, losses = self.device.clock, self.device.losses
        if losses and self.computes and isinstance(item, Kernel):
            item = replace(item, time=item.time + losses.pop(self.submitted - 1, 0.0))
        if self.computes and not self.pending:
            self._at_once(item)
        elif isinstance(item, WaitFor) or (self.device.free and clock.ahead and self._follows()):
            self._put(item, None)
        else:
            self._put(item, clock.settle())
        if self.computes and not self.pending and self.submitted - self._marked >= self.depth / PARTS:
            self._marked = self.submitted
            self._marks.append((self.submitted, self.settled()))

    def _put(self, item: Any, since: Floats | None) -> None:
        self.pending.append((item, since))
        if len(self.pending) == 1:
            self.advance()

    def _follows(self) -> bool:
        """Whether it has been waiting for all that the compute stream was given."""
        return not self.pending and not self.computes and self._followed is self.device.stream().settled()

    def settled(self) -> Floats:
        """Time at which all that it was given ends."""
        if self._time:
            self.end = self.end + self.device.noise.kernels(self._time, self._square)
            self._time = self._square = 0.0
        return self.end

    def due(self) -> Floats | None:
        """Times before which a full queue takes no more; None where it has room."""
        found = None
        while self._marks and self._marks[0][0] <= self.submitted - self.depth:
            found = self._marks.popleft()[1]
        return found

    def _at_once(self, item: Any) -> None:
        """Begin an item on the compute stream, of which all before it is known."""
        clock = self.device.clock
        if not isinstance(item, Kernel):
            self.settled()
            self._put(item, None if clock.ahead else clock.settle())
            return
        if not clock.ahead:
            clock.compare(self.settled())
        if clock.ahead:
            self._time += item.time
            self._square += item.time * item.time
        else:
            self._play(item, clock.now)

    def advance(self) -> None:
        """Simulate what is pending, as far as it is known."""
        while self.pending:
            item, since = self.pending[0]
            if not self._play(item, since):
                return
            self.pending.popleft()

    def _play(self, item: Any, since: Floats | None) -> bool:
        """Simulate an item launched at some times [s], None where they do not count; return whether it is known."""
        if isinstance(item, WaitFor | Hold):
            until = _known(item.work if isinstance(item, Hold) else item.event)
            if until is None:
                return False
            self._followed = until
            self.end = _later(self.end, until if since is None else _later(since, until))
            return True
        if isinstance(item, DrawnWork):
            return self._communicate(item, since)
        end = self.end if since is None else _later(self.end, since)
        if isinstance(item, Kernel):
            self.end = end + self.device.noise.kernels(item.time, item.time * item.time)
            return True
        self.end = end
        if isinstance(item, StepMark):
            self.device.steps.append(end.max(axis=1))
            self.device.noise.next_step()
        elif isinstance(item, Marker):
            item.path = end  # type: ignore[assignment]
        return True

    def _communicate(self, work: DrawnWork, since: Floats | None) -> bool:
        if work.end is None and self._current is None:
            entered = self.end if since is None else _later(self.end, since)
            self._current, (meeting, party) = work, work.place
            meeting.enter(work.number, party, entered, work.duration, self.device.told(work))
        if work.end is None:
            return False
        self._current, self.end = None, work.end
        return True


def _known(event: Any) -> Floats | None:
    """Time at which an event or a communication is over; None if that is not known yet."""
    found = event.path if isinstance(event, Marker) else event.end
    return None if isinstance(found, float) else found


def _later(one: Floats, other: Floats) -> Floats:
    found: Floats = np.maximum(one, other)
    return found


class DrawnDevice(Device):
    """Devices of ranks that are simulated together.

    Parameters
    ----------
    env : simpy.Environment
        In which nothing happens.
    name : str
    noise : ArrayNoise
    depth : float
        Launches that may be outstanding on each stream.
    wake : callable
        Is called when a communication of its ranks has become known.

    Attributes
    ----------
    steps : list of numpy.ndarray of float64, shape (steps,)
        When each step of the program has ended on all of its ranks [s].
    losses : dict of int to float
        By how much longer kernels take beside collectives [s], by their numbers among the items of the stream.
    """

    __slots__ = ("_wake", "begin", "clock", "losses", "noise", "steps")

    def __init__(
        self, env: simpy.Environment, name: str, noise: ArrayNoise, *, depth: float, wake: Callable[[], None]
    ) -> None:
        super().__init__(env, name, None, depth=depth)  # type: ignore[arg-type]
        self.noise, self._wake, self.clock = noise, wake, _HostClock(noise)
        self.begin: Floats = np.zeros(noise.shape)
        self.steps: list[Floats] = []
        self.losses: dict[int, float] = {}

    @property
    def free(self) -> bool:
        """Whether all that its compute stream was given is known."""
        return not self.stream().pending

    def stream(self, which: int | str = 0) -> DrawnStream:
        """A stream by its number or its name."""
        found = super().stream(which)
        assert isinstance(found, DrawnStream)
        return found

    def _made_stream(self, index: int, name: str) -> Stream:
        return DrawnStream(self, index, depth=self.depth, name=name)

    def told(self, work: DrawnWork) -> Callable[[Floats], None]:
        """A function that is called with the times at which a communication ends."""

        def end(times: Floats) -> None:
            work.end = times
            self._wake()

        return end

    def advance(self) -> None:
        """Simulate what is known by now on all streams."""
        before, left = -1, 0
        while before != left:
            before, left = left, 0
            for which in tuple(self._streams):
                stream = self.stream(which)
                stream.advance()
                left += len(stream.pending)
