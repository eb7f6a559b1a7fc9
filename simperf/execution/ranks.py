"""Processes of ranks, and process groups by their ranks: what ``torchrun`` and ``torch.distributed`` set up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simperf.engine.device import Device
from simperf.errors import ProgramError
from simperf.execution.frontend import Program
from simperf.execution.process_group import ProcessGroup
from simperf.execution.session import Session
from simperf.execution.thread import Thread, Verb
from simperf.execution.verbs import wait

__all__ = ["Rank", "new_group", "run_ranks"]


@dataclass(frozen=True, eq=False, slots=True)
class Rank:
    """One rank of a process group.

    Parameters
    ----------
    rank : int
        Its number in the group.
    device : Device
        Its GPU, or its CPU.
    """

    rank: int
    device: Device

    @property
    def members(self) -> tuple[int, ...]:
        """All ranks that it stands for: itself."""
        return (self.rank,)


def new_group(
    m: Session,
    ranks: Iterable[int | str | Device] | None = None,
    *,
    algorithm: str = "",
    options: Mapping[str, Any] | None = None,
) -> ProcessGroup:
    """The process group of some devices of the machine: ``torch.distributed.new_group(ranks)``.

    Asked for again with the same arguments, it is the same group, so that the process of each rank may ask for it.

    Parameters
    ----------
    m : Session
    ranks : iterable of int, str or Device, optional
        Numbers of devices of the machine, such as `simperf.layout.Mesh.group` gives, their nodes, or devices; the
        order is that of the group's ranks. All GPUs of the machine if left out.
    algorithm : str
        ``"nccl"`` does as NCCL would; all others are idealised, and hold for the collectives that have them. NCCL
        where it runs if left out, else a ring.
    options : mapping
        Of the algorithm.

    Raises
    ------
    ProgramError
        No rank, one that is twice, or one that the machine does not have.
    InputError
        An option that has no meaning.
    UnknownNameError
        No such algorithm.
    """
    workers = m.machine.workers
    if ranks is not None and (isinstance(ranks, str) or not isinstance(ranks, Iterable)):
        raise ProgramError(f"ranks of a group are expected, such as [0, 1], not {ranks!r}")
    if options is not None and not isinstance(options, Mapping):
        raise ProgramError(f"options of an algorithm are a mapping, not {options!r}")
    nodes = workers if ranks is None else tuple(_node(workers, one) for one in ranks)
    if not nodes or len(set(nodes)) < len(nodes):
        raise ProgramError(f"a process group has one rank or more, each of a device of its own, not {nodes}")
    key = (nodes, str(algorithm), repr(sorted((options or {}).items())))
    found = m.groups.get(key)
    if not isinstance(found, ProcessGroup):
        members = [Rank(rank, m.simulation.device(node)) for rank, node in enumerate(nodes)]
        exact = m.simulation.own_times
        found = m.groups[key] = ProcessGroup(m, nodes, members, algorithm=algorithm, exact=exact, options=options)
    return found


def _node(workers: Sequence[str], rank: int | str | Device) -> str:
    if isinstance(rank, Device):
        return rank.name
    if isinstance(rank, str):
        return rank
    if isinstance(rank, bool) or not isinstance(rank, int):
        raise ProgramError(f"{rank!r} is no rank: a number, a node or a device is expected")
    if not 0 <= rank < len(workers):
        raise ProgramError(f"the machine has no rank {rank}: one of 0 to {len(workers) - 1} is expected")
    return workers[rank]


def run_ranks(
    m: Session,
    function: Callable[[int], Program],
    ranks: int | Iterable[int | str | Device] | None = None,
    *,
    algorithm: str = "",
) -> Program:
    """Run a program a rank, each in a process of its own: ``torchrun``; for use with ``yield from``.

    It is over when all processes are, and all that they have launched on their devices.

    Parameters
    ----------
    m : Session
    function : callable
        The program of a rank, a generator function of its number.
    ranks : int or iterable of int, str or Device, optional
        How many, or which, as for `new_group`; all GPUs of the machine if left out.
    algorithm : str
        Of the group of all ranks, as for `new_group`.

    Raises
    ------
    ProgramError
        As `new_group`.
    """
    group = new_group(m, range(ranks) if isinstance(ranks, int) else ranks, algorithm=algorithm)
    nodes = m.machine.nodes
    threads = [
        m.spawn(
            function(rank),
            f"rank{rank}",
            host=node if nodes[node].kind == "cpu" else str(m.machine.host_of(node)),
            rank=group.process(rank),
        )
        for rank, node in enumerate(group.nodes)
    ]
    for thread in threads:
        yield wait(thread.done, why="wait: ranks")
    yield _Finish(group)


@dataclass(frozen=True, slots=True)
class _Finish(Verb):
    """Wait for all that the devices of a group have been given."""

    group: ProcessGroup

    def perform(self, frontend: Thread) -> Program:
        for member in self.group.members:
            for stream in member.device.streams:
                path = yield from frontend.block(stream.drained(), "wait: devices")
                frontend.path = max(frontend.path, path)
