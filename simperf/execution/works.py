"""Communications as the stream of one rank runs them: its part in a collective, and messages to other ranks.

What they need of the process group is a protocol here, so that the group may know them by their types.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol

import simpy

from simperf.engine.device import Device, Stream
from simperf.engine.items import Marker
from simperf.engine.recorder import Category
from simperf.execution.point_to_point import Message, Pairs
from simperf.execution.thread import Verb
from simperf.execution.verbs import wait

__all__ = ["Communication", "Member", "SendReceive", "Work", "WorkGroup"]


class Member(Protocol):
    """One rank of a group, or several that do the same at the same time."""

    @property
    def rank(self) -> int:
        """The first of its ranks, the one that is simulated."""

    @property
    def members(self) -> tuple[int, ...]:
        """All ranks that it stands for."""

    @property
    def device(self) -> Device:
        """Of the rank that is simulated."""


class WorkGroup(Protocol):
    """The group of a communication's rank, such as a `simperf.execution.process_group.ProcessGroup`."""

    env: simpy.Environment
    pairs: Pairs

    @property
    def threads(self) -> int:
        """Collectives of one rank that are under way at a time."""

    def turn(self, rank: int) -> int:
        """Number of a rank's next collective."""

    def enter(self, work: Work) -> None:
        """The stream of a rank has come to a collective."""


class Communication(Marker, ABC):
    """Sends and receives of one rank, as a stream runs them; they may be waited for.

    Parameters
    ----------
    group : WorkGroup
    member : Member
        The rank.
    name : str
        Such as ``"all-reduce"``.

    Attributes
    ----------
    entered : float
        When the rank's stream came to it [s].
    began : float
        When all ranks that take part had come, once it is over [s]. Before that, a rank waits for the others.
    last : str
        Track of the stream of the rank that came last, once it is over.
    """

    __slots__ = ("began", "entered", "group", "last", "launch", "member", "result", "stream")

    category: Category = "communication"

    def __init__(self, group: WorkGroup, member: Member, name: str) -> None:
        super().__init__(group.env, name)
        self.group, self.member = group, member
        self.launch: float | None = None
        self.result: float | None = None
        self.entered = self.began = 0.0
        self.last = ""
        self.stream: Stream | None = None

    @property
    def track(self) -> str:
        """Of its stream; empty before the stream comes to it."""
        return self.stream.track if self.stream is not None else ""

    def start(self, stream: Stream) -> None:
        """The rank takes part from now on."""
        self.stream, self.entered, self.path = stream, stream.device.env.now, stream.path
        self.begin()

    @abstractmethod
    def begin(self) -> None:
        """Do what it does; `finish` is to be called at its end."""

    def finish(self, path: float) -> None:
        """It is over on this rank, at the end of a critical `path` [s]."""
        assert self.stream is not None
        self.path = self.stream.path = path
        recorder = self.stream.device.recorder
        if recorder is not None and self.began > self.entered and self.last != self.track:
            recorder.arrow(self.name, self.last, self.began, self.track, self.began)
        self.done.succeed(self.group.env.now)
        self.stream.finish(self.done)

    def wait(self) -> Verb:
        """Make the device's default stream wait for it, as ``work.wait()`` does; on a CPU the process itself waits."""
        device = self.member.device
        return wait(self, device if device.part is not None else None, why=f"wait: {self.name}")


class Work(Communication):
    """A collective as one rank sees it.

    Parameters
    ----------
    group, member, name
        As for `Communication`.
    nbytes : float
        Payload [B].
    """

    __slots__ = ("nbytes", "number")

    def __init__(self, group: WorkGroup, member: Member, name: str, nbytes: float) -> None:
        super().__init__(group, member, name)
        self.nbytes = nbytes
        # threads of a library begin collectives in the order in which they were asked for, whichever is free
        self.number = group.turn(member.rank) if group.threads > 1 else None

    def begin(self) -> None:
        """Take part in the group's collective."""
        self.group.enter(self)


class SendReceive(Communication):
    """Messages that one rank sends and receives together.

    Parameters
    ----------
    group, member, name
        As for `Communication`.
    sides : sequence of (bool, int, float)
        Whether the rank sends, the other rank, and the payload [B] of each.
    """

    __slots__ = ("_left", "_longest", "_messages")

    def __init__(self, group: WorkGroup, member: Member, name: str, sides: Sequence[tuple[bool, int, float]]) -> None:
        super().__init__(group, member, name)
        here = member.rank
        self._messages = [
            Message(sends, *((here, peer) if sends else (peer, here)), nbytes, self) for sends, peer, nbytes in sides
        ]
        self._left, self._longest = len(sides), 0.0

    def begin(self) -> None:
        """Be there for all messages."""
        for message in self._messages:
            self.group.pairs.post(message)

    def arrived(self, began: float, path: float, last: str) -> None:
        """One of its messages has moved since a time [s], when `last` had come, at the end of a critical `path` [s]."""
        if began >= self.began:
            self.began, self.last = began, last
        self._longest = max(self._longest, path)
        self._left -= 1
        if not self._left:
            self.finish(self._longest)
