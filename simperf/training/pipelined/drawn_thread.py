"""The host thread of ranks that are simulated together in many steps at once: it runs the program of one rank."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simperf.engine.device import Stream
from simperf.engine.kernel import Kernel
from simperf.errors import ProgramError
from simperf.execution.session import Session
from simperf.execution.thread import Launch, Spend, Verb
from simperf.training.pipelined.closed import ClosedLayer
from simperf.training.pipelined.drawn_streams import DrawnDevice, DrawnStream, DrawnWork
from simperf.training.pipelined.meetings import Meeting, Party
from simperf.training.pipelined.stage import StageProcess
from simperf.training.pipelined.stage_time import StageTime
from simperf.workload.transformers.passes import Item

__all__ = ["DrawnThread"]


@dataclass(frozen=True, slots=True)
class _Known:
    """Waits until all that a stream was given, or a communication, is known, and then until it is over."""

    what: DrawnStream | DrawnWork


class _DrawnGroup:
    """A communicator of ranks that are simulated together, as their program sees it."""

    def __init__(self, thread: DrawnThread, key: Hashable, place: tuple[Meeting, Party], size: int) -> None:
        self.thread, self.key, self.place, self.size = thread, key, place, size

    def member(self, device: DrawnDevice) -> DrawnDevice:
        """The ranks."""
        return device

    def collective(self, member: DrawnDevice, name: str, nbytes: float) -> DrawnWork:
        """The ranks' part in a collective."""
        return self.thread.work(self.key, self.place, timed=True)

    def send_receive(self, member: DrawnDevice, name: str, sides: Sequence[tuple[bool, int, float]]) -> DrawnWork:
        """The ranks' side of a message, whose time the receivers know."""
        return self.thread.work(self.key, self.place, timed=not sides[0][0])


class DrawnThread:
    """The host thread of ranks that are simulated together.

    Parameters
    ----------
    m : Session
        Whose mode and costs hold.
    device : DrawnDevice
    played : StageProcess
        The process of one of the ranks, after it was simulated without noise.
    places : mapping of Key or Boundary to (Meeting, Party)
        Where the ranks meet others.
    """

    rank = None
    track = "drawn"

    def __init__(
        self,
        m: Session,
        device: DrawnDevice,
        played: StageProcess,
        places: Mapping[Any, tuple[Meeting, Party]],
    ) -> None:
        self.simulation, self.env, self.profile, self.mode = m.simulation, device.env, m.profile, m.mode
        self.device, self.path, self.captured = device, 0.0, dict[Any, Any]()
        self._times = {key: iter(times) for key, times in played.spent.durations.items()}
        device.losses = dict(played.spent.losses)
        self._inside: dict[Hashable, deque[float]] = {}
        self._numbers: Counter[Hashable] = Counter()
        self._close = played.close
        groups: dict[Any, Any] = {
            key: _DrawnGroup(self, key, place, played.groups[key].size) for key, place in places.items()
        }
        process = replace(played, device=device, groups=groups, spent=StageTime(), close=self._closed, noise=None)
        self._callers: list[Generator[Any, Any, Any]] = [process.program()]
        self._verb: Any = None
        self.last: Any = None
        self.over = False

    def _closed(self, items: tuple[Item, ...], within: str) -> ClosedLayer | None:
        """Layers are open here; where they were closed, their collectives take as long as there."""
        closed = self._close(items, within)
        if closed is not None:
            stream = self.device.stream()
            self.device.losses |= {stream.submitted + index: loss for index, loss in closed.ahead.spent.losses.items()}
            self._inside = {key: deque(times) for key, times in closed.ahead.spent.durations.items()}
        return None

    def work(self, key: Hashable, place: tuple[Meeting, Party], *, timed: bool) -> DrawnWork:
        """The next communication in a communicator."""
        number = self._numbers[key]
        self._numbers[key] += 1
        duration = None
        if timed:
            own = self._inside.get(key)
            duration = own.popleft() if own else next(self._times[key])
        return DrawnWork(self.device, place, number, duration)

    def run(self) -> bool:
        """Run the program as far as times are known; whether anything was run."""
        began, value = False, None
        while not self.over:
            if self.device.stream().pending:
                return began
            if isinstance(self._verb, _Known):
                if not self._wait(self._verb):
                    return began
                self._verb = None
            began = True
            try:
                verb = self._callers[-1].send(value)
            except StopIteration as stop:
                self._callers.pop()
                value, self.over = stop.value, not self._callers
                continue
            value, kind = None, verb.__class__
            if kind is Launch:
                self._launch(verb)
            elif kind is Spend:
                self.device.clock.spend(verb.seconds)
            elif kind is _Known:
                self._verb = verb
            elif isinstance(verb, Verb):
                self._callers.append(verb.perform(self))  # type: ignore[arg-type]
            else:
                raise ProgramError(f"{verb!r} cannot be drawn")
        return began

    def _launch(self, verb: Launch) -> None:
        stream, kernel = verb.stream, verb.kernel
        time = self.mode.launch_time(self, kernel)  # type: ignore[arg-type]
        self.device.clock.spend(time, varies=isinstance(kernel, Kernel))
        assert isinstance(stream, DrawnStream)
        full = stream.due()
        if full is not None:
            self.device.clock.wait(full)
        self.last = kernel
        stream.submit(kernel)
        if self.mode.waits and isinstance(kernel, Kernel):
            self._callers.append(self.fetch(stream))

    def _wait(self, verb: _Known) -> bool:
        """Let the host wait; False if it is not known until when."""
        if isinstance(verb.what, DrawnStream):
            if verb.what.pending:
                return False
            self.device.clock.wait(verb.what.settled())
        else:
            if verb.what.end is None:
                return False
            self.device.clock.wait(verb.what.end)
        return True

    def block(self, event: Any, why: str) -> Generator[Any, Any, Any]:
        """Wait for a communication."""
        yield _Known(event)

    def fetch(self, *streams: Stream, why: str = "", value: bool = True) -> Generator[Any, Any, Any]:
        """Wait until streams are drained and, if a value is asked for, the last result has come back."""
        for stream in streams:
            assert isinstance(stream, DrawnStream)
            yield _Known(stream)
        result = getattr(self.last, "result", None)
        if result is None:
            waited = self.profile.synchronize
            result = self.profile.result if value or waited is None else waited
        yield Spend(result)
