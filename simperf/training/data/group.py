"""The process group of a training run: its collectives, and the time for which devices wait for them.

One replica may stand for any number of ranks that do the same at the same time, and all continue together when the last
one is done. That is the same where all ranks end a collective at one time, as on equal links; where they do not, a
small run is simulated rank by rank, and of a large one a note says by how much.
"""

from __future__ import annotations

from collections.abc import Mapping

import simpy

from simperf.collectives import Execution
from simperf.collectives.executors import PlacedPlan, used_links
from simperf.collectives.executors.collapsed import ROUNDING, isolated
from simperf.engine.device import Stream
from simperf.engine.recorder import Category
from simperf.execution.process_group import ProcessGroup
from simperf.execution.works import Work
from simperf.training.replica import Replica

__all__ = ["CollectiveHold", "Group", "ReplicaWork"]

#: ranks, and sends in all of rounds of steps and of pipelines of chunks, up to which every rank is simulated where
#: ranks end collectives at different times: in a pipeline some end a whole depth of the tree earlier, in rounds a step
MOST_RANKS, MOST_STEPS, MOST_PIPELINED = 64, 10_000, 400_000


class ReplicaWork(Work):
    """A collective as one replica sees it."""

    __slots__ = ("replica",)

    def __init__(self, group: Group, replica: Replica, name: str, nbytes: float) -> None:
        super().__init__(group, replica, name, nbytes)
        self.replica = replica

    def finish(self, path: float) -> None:
        """The collective is over on this rank, at the end of a critical `path` [s]."""
        assert self.stream is not None
        if self.stream.index == 0:  # nothing else runs there meanwhile
            self.replica.exposed += self.group.env.now - self.entered
        super().finish(path)


class CollectiveHold:
    """Holds a stream until a collective is over, and keeps count of the time that it is held."""

    __slots__ = ("replica", "work")

    holds = 0.0
    category: Category = "wait"
    launch: float | None = 0.0
    name = "wait: communication"

    def __init__(self, work: ReplicaWork) -> None:
        self.work, self.replica = work, work.replica

    def start(self, stream: Stream) -> None:
        """Continue at once if it is over, or else when it is."""
        since = stream.device.env.now

        def proceed(event: simpy.Event) -> None:
            self.replica.exposed += stream.device.env.now - since
            stream.path = max(stream.path, self.work.path)
            stream.finish(event)

        if self.work.done.callbacks is None:
            proceed(self.work.done)
        else:
            self.work.done.callbacks.append(proceed)


class Group(ProcessGroup):
    """The ranks of one training run.

    Parameters
    ----------
    m, nodes, members, algorithm, slowdown, exact, transport, options
        As for `simperf.execution.process_group.ProcessGroup`; the members are replicas.

    Raises
    ------
    InputError
        A slowdown below 1, or replicas that leave a rank out.
    UnknownNameError
        No such algorithm.
    """

    names_all = False  # a strategy's algorithm is that of all-reduce
    members: tuple[Replica, ...]
    spread = 0.0  # most by which ranks of one collective ended before the last one, and were kept [s]

    def all_reduce(self, replica: Replica, nbytes: float) -> ReplicaWork:
        """Add up `nbytes` [B] of every rank and give the sum to all."""
        return ReplicaWork(self, replica, "all-reduce", nbytes)

    def broadcast(self, replica: Replica, nbytes: float) -> ReplicaWork:
        """Give `nbytes` [B] of rank 0 to all."""
        return ReplicaWork(self, replica, "broadcast", nbytes)

    def all_to_all(self, replica: Replica, nbytes: float) -> ReplicaWork:
        """Give every rank an equal part of `nbytes` [B] of every rank."""
        return ReplicaWork(self, replica, "all-to-all", nbytes)

    def reduce(self, replica: Replica, nbytes: float) -> ReplicaWork:
        """Add up `nbytes` [B] of every rank on rank 0."""
        return ReplicaWork(self, replica, "reduce", nbytes)

    def keep(self, time: float) -> None:
        """Note that a rank was done a `time` [s] after the first that its replica stands for, which waits for it."""
        if time > ROUNDING * self.m.now:
            self.spread = max(self.spread, time)

    def count(self, run: Execution) -> None:
        """Note an execution that was found without other traffic, for `settle`."""
        super().count(run)
        self.spread = max(self.spread, self._spread(run))

    def approximate(self, run: Execution) -> None:
        """Note what would have been the execution of a collective that went on as phases beside other traffic."""
        super().approximate(run)
        self.spread = max(self.spread, self._spread(run))

    def _uneven(self, run: Execution) -> bool:
        """Whether ranks end at different times, and not by rounding."""
        return run.time - min(run.finish[: self.size]) > ROUNDING * run.time

    def _spread(self, run: Execution) -> float:
        """Most time between the ends of ranks that one replica stands for [s]; 0 for rounding."""
        ends = [[run.finish[rank] for rank in replica.members] for replica in self.members]
        spread = max(max(times) - min(times) for times in ends)
        return spread if spread > ROUNDING * run.time else 0.0

    def told_apart(self, works: Mapping[tuple[str, float], int]) -> str:
        """Reason why ranks of one replica would not do the same at the same time; empty if they do, or are too many.

        Their ends are looked at where all ranks enter together, and where those of one replica are late by a part of
        the time that it takes, or by more than that.

        Parameters
        ----------
        works : mapping of (str, float) to int
            Name and payload [B] of collectives, and how many of them there are.
        """
        alike = all(len(replica.members) == 1 for replica in self.members)
        if self.exact or alike or not 1 < self.size <= MOST_RANKS:
            return ""
        plans = {work: self.placed(*work) for work in works}
        plans = {work: one for work, one in plans.items() if one.channels is None}
        pipelined = any(
            phase.style == "pipeline" for one in plans.values() for c in one.plan.channels for phase in c.phases
        )
        sends = sum(one.plan.nsends * works[work] for work, one in plans.items())
        if sends > (MOST_PIPELINED if pipelined else MOST_STEPS):
            return ""
        if any(self._apart(one, nbytes) for (_, nbytes), one in plans.items()):
            return "they end a collective at different times"
        copies = {link for replica in self.members for link in replica.copy_links(self.m.machine)}
        if any(not copies.isdisjoint(used_links(one.plan, one.placement)) for one in plans.values()):
            return "copies from the host share links with their collectives"
        return ""

    def _apart(self, placed: PlacedPlan, nbytes: float) -> bool:
        run = isolated(placed, nbytes, self.context)
        if self._uneven(run):
            return True
        for replica in self.members if len(self.members) > 1 else ():
            for part in (0.3, 3.0):
                late = [part * run.time * (rank in replica.members) for rank in range(self.size)]
                if self._uneven(isolated(placed, nbytes, self.context, late)):
                    return True
        return False

    def settle(self) -> None:
        """Count the bytes of collectives that were computed as a whole on the links that they went over."""
        super().settle()
        if self.spread:
            self.m.notes.append(
                f"ranks that end a collective up to {self.spread * 1e6:.3g} us before the last one continue with it"
            )
