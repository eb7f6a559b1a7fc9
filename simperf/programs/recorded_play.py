"""Recorded steps at work: threads of the host, activities of streams, and collectives that ranks do together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import simpy

from simperf.engine.device import Device, Stream
from simperf.engine.recorder import Category
from simperf.execution import Program, wait
from simperf.execution.process_group import ProcessGroup
from simperf.execution.session import Session
from simperf.execution.thread import Spend
from simperf.workload.recorded.recorded_step import HostCall, RecordedActivity, RecordedStep

__all__ = ["PlayedActivity", "PlayedRank", "RankMeeting", "RankMember"]

_CATEGORIES: Mapping[str, Category] = {"collective": "communication", "copy": "copy", "memory": "memory"}


@dataclass(frozen=True, eq=False, slots=True)
class RankMember:
    """A recorded rank as a member of a process group, with the ranks that it stands for."""

    members: tuple[int, ...]
    device: Device

    @property
    def rank(self) -> int:
        """The first of them."""
        return self.members[0]


class RankMeeting:
    """A collective of several recorded ranks: it begins when the last of them has come.

    Parameters
    ----------
    env : simpy.Environment
    ranks : int
        That take part.
    """

    __slots__ = ("_left", "begun")

    def __init__(self, env: simpy.Environment, ranks: int) -> None:
        self._left, self.begun = ranks, simpy.Event(env)

    def arrive(self) -> simpy.Event:
        """A rank has come; the event is that all have."""
        self._left -= 1
        if self._left == 0:
            self.begun.succeed()
        return self.begun


@dataclass(eq=False, slots=True)
class PlayedActivity:
    """An activity as an item of a stream.

    Parameters
    ----------
    name : str
    category : str
    duration : float
        On the GPU that it is simulated on [s].
    latency, gap : float
        As of `RecordedActivity` [s].
    after : sequence of simpy.Event
        Ends of activities that it waits for.
    done : simpy.Event or None
        Its end, if anybody waits for it.
    meeting : RankMeeting or None
        What other ranks have to come to.
    work : callable, optional
        The collective on the network in place of `duration`.
    """

    name: str
    category: Category
    duration: float
    latency: float
    gap: float
    after: Sequence[simpy.Event] = ()
    done: simpy.Event | None = None
    meeting: RankMeeting | None = None
    work: Callable[[], Any] | None = None
    launched: float = 0.0
    began: float = 0.0
    holds: float = 0.0
    launch: float | None = 0.0

    def start(self, stream: Stream) -> None:
        """Wait for other streams, then for the launch."""
        env, pending = stream.device.env, [one for one in self.after if not one.triggered]
        if pending:
            _then(env.all_of(pending), lambda _: self._ready(stream))
        else:
            self._ready(stream)

    def _ready(self, stream: Stream) -> None:
        now = stream.device.env.now
        begin = max(self.launched + self.latency, now + self.gap)
        if begin > now:
            _then(stream.device.env.timeout(begin - now), lambda _: self._arrived(stream))
        else:
            self._arrived(stream)

    def _arrived(self, stream: Stream) -> None:
        if self.meeting is None or (begun := self.meeting.arrive()).callbacks is None:
            self._run(stream)
        else:
            _then(begun, lambda _: self._run(stream))

    def _run(self, stream: Stream) -> None:
        env = stream.device.env
        self.began = env.now
        if self.work is not None:
            communication = self.work()
            _then(communication.done, self._tell)
            communication.start(stream)
            return
        stream.path += self.duration

        def end(event: simpy.Event) -> None:
            self._tell(event)
            stream.finish(event)

        _then(env.timeout(self.duration), end)

    def _tell(self, event: simpy.Event) -> None:
        if self.done is not None:
            self.done.succeed()


def _then(event: simpy.Event, call: Callable[[Any], None]) -> None:
    assert event.callbacks is not None
    event.callbacks.append(call)


@dataclass(eq=False)
class PlayedRank:
    """A recorded rank on a device.

    Parameters
    ----------
    m : Session
    device : Device
    step : RecordedStep
    duration : callable
        Time of an activity on the device [s].
    speed : float
        How many times as fast the host is [1].
    offset : float
        When it begins [s].
    meetings : mapping of int to (RankMeeting, float)
        By activity, where its ranks meet and how long it then takes as recorded [s].
    groups : mapping of int to (ProcessGroup, RankMember)
        By activity, that in which it is simulated on the network.
    """

    m: Session
    device: Device
    step: RecordedStep
    duration: Callable[[RecordedActivity], float]
    speed: float = 1.0
    offset: float = 0.0
    meetings: Mapping[int, tuple[RankMeeting, float]] = field(default_factory=dict)
    groups: Mapping[int, tuple[ProcessGroup, RankMember]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        env = self.m.simulation.env
        waited = {one for call in self.step.calls for one in call.waits}
        waited |= {one for activity in self.step.activities for one in activity.after}
        self._done = {number: simpy.Event(env) for number in waited}
        others = {call.after for call in self.step.calls if call.after >= 0}
        self._passed = {number: simpy.Event(env) for number in others}

    def threads(self) -> Iterator[tuple[str, Program]]:
        """Name and program of each thread of the host."""
        of: dict[int, list[tuple[int, HostCall]]] = {}
        for number, call in enumerate(self.step.calls):
            of.setdefault(call.thread, []).append((number, call))
        for thread, calls in sorted(of.items()):
            yield f"rank{self.step.rank} thread{thread}", self._thread(calls, first=thread == min(of))

    def _thread(self, calls: Sequence[tuple[int, HostCall]], *, first: bool) -> Program:
        if self.offset:
            yield wait(self.m.simulation.env.timeout(self.offset), why="wait: begin")
        if first:
            for number in range(self.step.running):
                self._submit(number)
        for number, call in calls:
            if call.after >= 0 and not self._passed[call.after].triggered:
                yield wait(self._passed[call.after], why="wait: another thread")
            if call.host:
                yield Spend(call.host / self.speed)
            if not call.first:
                for one in call.launches:
                    self._submit(one)
            for one in call.waits:
                if not self._done[one].triggered:
                    yield wait(self._done[one], why="wait: GPU")
            if call.rest:
                yield Spend(call.rest / self.speed)
            if call.first:
                for one in call.launches:
                    self._submit(one)
            if number in self._passed:
                self._passed[number].succeed()

    def _submit(self, number: int) -> None:
        one, env = self.step.activities[number], self.m.simulation.env
        meeting, duration = self.meetings.get(number, (None, None))
        found = self.groups.get(number)
        work = None
        if found is not None and one.kind.collective is not None:
            group, member = found
            name, nbytes = one.kind.collective.name, one.kind.collective.nbytes

            def work() -> Any:
                return group.collective(member, name, nbytes)

        item = PlayedActivity(
            one.name,
            _CATEGORIES.get(one.kind.kind, "compute"),
            self.duration(one) if duration is None else duration,
            one.latency,
            one.gap,
            [self._done[other] for other in one.after],
            self._done.get(number),
            None if work is not None else meeting,
            work,
            launched=env.now,
        )
        self.device.stream(one.stream).submit(item)
