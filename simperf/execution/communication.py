"""Verbs of communication, as `torch.distributed` has them.

A program that is the process of a rank (`simperf.execution.ranks.run_ranks`) yields them::

    def stage(rank):
        if rank == 0:
            yield launch(forward, m.gpu(0))
            yield send(16e6, to=1)                 # dist.send(x, dst=1)
        else:
            yield recv(16e6, source=0)             # dist.recv(x, src=0)
            yield launch(forward, m.gpu(1))
        work = yield collective(None, "all-reduce", 4e6, async_op=True)
        yield work.wait()

As in PyTorch, what is sent or received runs on a stream of its own, which first waits for what the device's default
stream has been given. Without ``async_op``, and by `send` and `recv`, the default stream then waits for the end, and
the process continues at once; the process of a CPU waits itself. What is asynchronous returns what may be waited for:
``work.wait()`` makes the default stream wait, ``wait(work)`` the process.

Not modelled: messages small enough to be kept until a receiver comes. Both sides are held until the last byte is there.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from simperf.engine.device import Device
from simperf.engine.items import Marker, WaitFor
from simperf.errors import ProgramError
from simperf.execution.thread import Thread, Verb
from simperf.execution.verbs import follow, launch

if TYPE_CHECKING:
    from simperf.execution.process_group import ProcessGroup
    from simperf.execution.works import Communication, Member

__all__ = ["batch_isend_irecv", "collective", "irecv", "isend", "recv", "send"]

#: stream on which communication runs if none is named
COMMUNICATION = "communication"


@dataclass(frozen=True, slots=True)
class _Caller:
    """Caller of a communication: its group, its device, and the stream."""

    group: ProcessGroup | None
    device: Device | None
    stream: str
    after: Marker | None = None
    launch: float | None = None

    def find(self, frontend: Thread, what: str) -> tuple[ProcessGroup, Member]:
        """The group, and the rank that calls."""
        rank = frontend.rank
        if rank is None and (self.group is None or self.device is None):
            raise ProgramError(
                f"{what}: {frontend.track} is not the process of a rank; "
                "start it by run_ranks, or give group and device"
            )
        group = self.group if self.group is not None else rank.group
        if not hasattr(group, "member"):
            raise ProgramError(f"{what}: {group!r} is no process group; new_group(m, ranks) makes one")
        return group, group.member(self.device if self.device is not None else rank.device)

    def issue(self, frontend: Thread, work: Communication, *, blocks: bool) -> Generator[Any, Any, None]:
        """Launch it, after what the default stream has been given, or after an event."""
        device = work.member.device
        work.launch = frontend.profile.collective if self.launch is None else self.launch
        current, side = device.stream(), device.stream(self.stream)
        if self.after is None:
            follow(frontend, side, current)
        else:
            side.submit(WaitFor(self.after), frontend.path)
        yield launch(work, side)
        if blocks and (device.part is None or side is not current):
            yield work.wait()


@dataclass(frozen=True, slots=True)
class _Collective(Verb):
    caller: _Caller
    name: str
    nbytes: float
    async_op: bool

    def perform(self, frontend: Thread) -> Generator[Any, Any, Any]:
        group, member = self.caller.find(frontend, self.name)
        work = group.collective(member, self.name, self.nbytes)
        yield from self.caller.issue(frontend, work, blocks=not self.async_op)
        return work if self.async_op else None


def collective(
    group: ProcessGroup | None,
    name: str,
    nbytes: float,
    *,
    async_op: bool = False,
    stream: str = COMMUNICATION,
    device: Device | None = None,
    after: Marker | None = None,
    launch: float | None = None,
) -> Verb:
    """Take part in a collective: ``dist.all_reduce(x, group=group, async_op=True)``.

    Every rank of the group must call it, in the same order as all others, with one name and one size.

    Parameters
    ----------
    group : ProcessGroup or None
        Of `simperf.execution.ranks.new_group`; None is that of all ranks that `run_ranks` started.
    name : str
        Such as ``"all-reduce"``; rooted ones have rank 0 of the group for their root.
    nbytes : float
        Payload [B], as nccl-tests counts it: the larger of the two buffers of a rank.
    async_op : bool
        The yield returns what may be waited for, and nothing waits.
    stream : str
        Stream that it runs on.
    device : Device, optional
        Whose rank calls, where a process drives several devices.
    after : Marker, optional
        An event that its stream waits for in place of all that the default stream has been given.
    launch : float, optional
        Time of the host to issue it [s]; else the frontend's.
    """
    _check(name, nbytes)
    return _Collective(_Caller(group, device, stream, after, launch), name, nbytes, async_op)


@dataclass(frozen=True, slots=True)
class _Side:
    """A send or a receive of a rank."""

    sends: bool
    peer: int
    nbytes: float

    @property
    def name(self) -> str:
        """On the timeline."""
        return f"send to {self.peer}" if self.sends else f"receive from {self.peer}"


@dataclass(frozen=True, slots=True)
class _SendReceive(Verb):
    caller: _Caller
    sides: tuple[_Side, ...]
    async_op: bool
    batch: bool = False

    def perform(self, frontend: Thread) -> Generator[Any, Any, Any]:
        name = ", ".join(side.name for side in self.sides)
        group, member = self.caller.find(frontend, name)
        work = group.send_receive(member, name, [(side.sends, side.peer, side.nbytes) for side in self.sides])
        yield from self.caller.issue(frontend, work, blocks=not self.async_op)
        if self.batch:
            return [work]
        return work if self.async_op else None


def send(
    nbytes: float,
    to: int,
    *,
    group: ProcessGroup | None = None,
    stream: str = COMMUNICATION,
    device: Device | None = None,
) -> Verb:
    """Send to another rank: ``dist.send(x, dst)``.

    It is matched with the receive of that rank from this one, in the order in which each side has called.

    Parameters
    ----------
    nbytes : float
        Payload [B]; the receiver expects as many.
    to : int
        Rank of the receiver in the group.
    group, stream, device
        As for `collective`; without a group, the ranks that `run_ranks` started.
    """
    return _message(True, to, nbytes, _Caller(group, device, stream), async_op=False)


def recv(
    nbytes: float,
    source: int,
    *,
    group: ProcessGroup | None = None,
    stream: str = COMMUNICATION,
    device: Device | None = None,
) -> Verb:
    """Receive from another rank: ``dist.recv(x, src)``; the parameters are those of `send`."""
    return _message(False, source, nbytes, _Caller(group, device, stream), async_op=False)


def isend(
    nbytes: float,
    to: int,
    *,
    group: ProcessGroup | None = None,
    stream: str = COMMUNICATION,
    device: Device | None = None,
) -> _SendReceive:
    """Send, and wait later: ``work = dist.isend(x, dst)``; the parameters are those of `send`."""
    return _message(True, to, nbytes, _Caller(group, device, stream), async_op=True)


def irecv(
    nbytes: float,
    source: int,
    *,
    group: ProcessGroup | None = None,
    stream: str = COMMUNICATION,
    device: Device | None = None,
) -> _SendReceive:
    """Receive, and wait later: ``work = dist.irecv(x, src)``; the parameters are those of `send`."""
    return _message(False, source, nbytes, _Caller(group, device, stream), async_op=True)


def batch_isend_irecv(*operations: Verb) -> Verb:
    """Send and receive together: ``works = dist.batch_isend_irecv([...])``.

    All begin at one time, in whatever order other ranks have theirs, and end when the last one has, as in one call of
    NCCL's ``ncclGroupStart``. The yield returns a list of what may be waited for.

    Parameters
    ----------
    *operations : Verb
        Of `isend` and `irecv`, of one group, stream and device.
    """
    given = [one for one in operations if isinstance(one, _SendReceive) and one.async_op]
    if not given or len(given) < len(operations):
        raise ProgramError("a batch is of isend(...) and irecv(...), one or more")
    if len({(id(one.caller.group), id(one.caller.device), one.caller.stream) for one in given}) > 1:
        raise ProgramError("the sends and receives of a batch have one group, one stream and one device")
    return _SendReceive(given[0].caller, tuple(side for one in given for side in one.sides), True, batch=True)


def _message(sends: bool, peer: int, nbytes: float, caller: _Caller, *, async_op: bool) -> _SendReceive:
    side = _Side(sends, peer, nbytes)
    _check(side.name, nbytes)
    return _SendReceive(caller, (side,), async_op)


def _check(name: str, nbytes: float) -> None:
    if isinstance(nbytes, bool) or not isinstance(nbytes, int | float) or not 0.0 <= nbytes < math.inf:
        raise ProgramError(f"{name} of {nbytes} B; a finite size, 0 B or more, is expected")
