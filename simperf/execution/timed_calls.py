"""Calls of a collective through torch as benchmarks time them, simulated by the hosts of the ranks.

How a table was timed decides what it holds where a call is shorter than the host's part in it:

- ``torch``: CUDA events before and after one call on an idle device. The first event is over at once; the kernel
  begins when the host has issued it. So the host's time and the kernel's add up.
- ``profiler``: durations of one rank's kernels in a profile of calls that follow each other. A kernel lasts from its
  own launch to the end of the collective. Hosts issue calls slower than short kernels run, and ranks begin their
  profiles apart: a rank that is ahead of another has kernels as long as the other host's calls, and the rank that
  begins last has the kernels alone.

Calls in a graph or in a loop need no host: `simperf.collectives.nccl.Tuner` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from simperf.collectives.settings import NcclSettings
from simperf.cost import CostSettings, MeasuredCollectives
from simperf.engine.device import Device
from simperf.engine.simulation import Simulation
from simperf.errors import InputError, Problem
from simperf.execution.communication import collective
from simperf.execution.frontend import Program
from simperf.execution.process_group import ProcessGroup
from simperf.execution.session import Session
from simperf.execution.verbs import compute, record, synchronize, wait
from simperf.execution.works import Member
from simperf.hardware import FrontendPart, Machine

__all__ = ["median_lag", "timed_call", "timed_group", "torch_call_time"]

#: calls of one profile (microsoft/vidur, vidur/profiling/collectives/collectives_wrapper.py)
CALLS = 11

#: time within which the ranks begin their profiles, independently of each other [s]. An assumption: any time well
#: above that of a call gives the same
PROFILE_STARTS = 1e-3


@dataclass(frozen=True, eq=False, slots=True)
class _Ranks:
    """Ranks that do the same at the same time."""

    members: tuple[int, ...]
    device: Device

    @property
    def rank(self) -> int:
        """The first of them, which is simulated."""
        return self.members[0]


def median_lag(ranks: int) -> float:
    """Median of the time by which the last of the other ranks is behind the first one, over `PROFILE_STARTS` [1].

    All begin at times that are distributed evenly and independently. With y for the lag, y + (1 - y^n) / n = 1/2.

    Parameters
    ----------
    ranks : int
        1 or more.

    Examples
    --------
    >>> [round(median_lag(ranks), 2) for ranks in (1, 2, 4, 8)]
    [0.0, 0.0, 0.25, 0.38]
    """
    if ranks <= 2:
        return 0.0
    low, high = 0.0, 0.5
    for _ in range(60):
        middle = (low + high) / 2
        if middle + (1 - middle**ranks) / ranks < 0.5:
            low = middle
        else:
            high = middle
    return high


def timed_group(m: Session, nodes: Sequence[str], settings: NcclSettings) -> ProcessGroup:
    """The ranks of a timed call: the first one, which is timed, and the others, which do alike.

    Raises
    ------
    InputError
        The session's frontend has no time of a collective's call, or one process drives several GPUs.
    """
    if m.profile.collective is None:
        message = f"the frontend {m.profile.name!r} has no time of a collective's call"
        expected = 'frontend.collective = "25 us", such as pytorch has'
        raise InputError(Problem(message, key="timing", value=settings.timing, expected=expected))
    if settings.launches > 1:
        message = "a process of torch drives one GPU"
        raise InputError(Problem(message, key="launches", value=str(settings.launches), expected="1"))
    ranks = (0,), tuple(range(1, len(nodes)))
    members = [_Ranks(of, m.simulation.device(nodes[of[0]])) for of in ranks if of]
    return ProcessGroup(m, nodes, members, algorithm="nccl", options=settings)


def timed_call(m: Session, group: ProcessGroup, name: str, nbytes: float) -> Program:
    """Time one call of a collective as the timing of the group's settings does it; returns it [s].

    Parameters
    ----------
    m : Session
    group : ProcessGroup
        Of `timed_group`.
    name : str
        Such as ``"all-reduce"``.
    nbytes : float
        Payload [B].
    """
    assert group.settings is not None
    benchmark = _BENCHMARKS[group.settings.timing]
    threads = [
        m.spawn(
            benchmark(m, group, member, name, nbytes),
            f"rank{member.rank}",
            host=str(m.machine.host_of(member.device.name)),
            rank=group.process(index),
        )
        for index, member in enumerate(group.members)
    ]
    for thread in threads:
        yield wait(thread.done, why="wait: ranks")
    return threads[0].done.value


def torch_call_time(
    machine: Machine,
    nodes: Sequence[str],
    name: str,
    nbytes: float,
    settings: NcclSettings,
    *,
    frontend: FrontendPart,
    measured: MeasuredCollectives | None = None,
    background: Sequence[tuple[str, str, float]] = (),
) -> float:
    """Time of a call through torch on a machine that does nothing else [s].

    Parameters
    ----------
    machine : Machine
    nodes : sequence of str
        GPU of each rank.
    name : str
        Such as ``"all-reduce"``.
    nbytes : float
        Payload [B].
    settings : NcclSettings
        How NCCL is set up, and how its calls are timed.
    frontend : FrontendPart
        What the hosts pay for a call.
    measured : MeasuredCollectives, optional
        Times that NCCL's collectives take where they were measured.
    background : sequence of (str, str, float)
        Traffic from node to node [B/s].
    """
    cost = CostSettings() if measured is None else CostSettings(collectives=measured)
    m = Session(Simulation(machine), profile=frontend, cost=cost)
    for source, target, rate in background:
        m.simulation.network.background(machine.route(source, target).resources, rate)
    found: list[float] = []

    def program() -> Program:
        found.append((yield from timed_call(m, timed_group(m, nodes, settings), name, nbytes)))

    m.play(program())
    return found[0]


def _between_events(m: Session, group: ProcessGroup, member: Member, name: str, nbytes: float) -> Program:
    """Events before and after a call on an idle device."""
    device = member.device
    begin = yield record(device, "begin")
    yield collective(group, name, nbytes, device=device)
    end = yield record(device, "end")
    yield synchronize(device)
    return end.done.value - begin.done.value


def _in_profile(m: Session, group: ProcessGroup, member: Member, name: str, nbytes: float) -> Program:
    """Durations of kernels in a profile, the first rank's begun before the others' by the median lag."""
    if member.rank:
        yield m.simulation.env.timeout(PROFILE_STARTS * median_lag(group.size))
    works: list[Any] = []
    for _ in range(CALLS):
        yield compute(m.profile.profiling, "profiler")
        work = yield collective(group, name, nbytes, async_op=True, device=member.device)
        yield work.wait()
        works.append(work)
    yield synchronize(member.device)
    return median(work.done.value - work.entered for work in works)


_BENCHMARKS: dict[str, Callable[[Session, ProcessGroup, Member, str, float], Program]] = {
    "torch": _between_events,
    "profiler": _in_profile,
}
