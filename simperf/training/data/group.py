"""A process group: the ranks that do collectives together while they train.

The n-th collective that a rank starts is the n-th of all ranks, as with NCCL. It begins on
a rank when the rank's communication stream comes to it, and ends there when the rank has
sent and received all that it has to.

NCCL's collectives are channels on the one network (`simperf.collectives.executors.channels`), beside whatever
else is on their links; they begin when the last rank has come, and end on all ranks at one time.

Idealised algorithms are computed alone while nothing else is on their links, and played send by send as soon as
something is (`simperf.collectives.executors.collapsed`). Computed alone, one replica may stand for any number of ranks
that do the same at the same time, and all go on together when the last one is done. That is the same where all ranks
end at one time, as on equal links; where they do not, a small run is simulated rank by rank, and
of a large one a note says by how much.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import simpy

from simperf.collectives import Execution, Plan, Transport, execute, options_of
from simperf.collectives.execute import used_links
from simperf.collectives.executors.channels import ChannelRun, ChannelSet
from simperf.collectives.executors.collapsed import Undisturbed
from simperf.collectives.executors.host_threads import Hosted
from simperf.collectives.executors.stepwise import Stepwise
from simperf.collectives.moved import add_up
from simperf.collectives.placement import PLAIN, Placement, place
from simperf.collectives.settings import NCCL, NcclSettings, default_algorithm, find_algorithm, runs_on
from simperf.collectives.suit import plan_for, reducing_sites
from simperf.engine.device import Stream
from simperf.engine.flow import Route
from simperf.engine.link_table import LinkClass
from simperf.engine.recorder import Category
from simperf.errors import InputError, Problem
from simperf.execution.session import Session
from simperf.training.replica import Replica
from simperf.training.tuned import session_tuner

__all__ = ["Group", "Work"]

#: part of a time that is rounding
ROUNDING = 1e-10

#: ranks, and sends in all, up to which every rank is simulated where ranks end collectives at different times; in a
#: pipeline of chunks some end a whole depth of the tree earlier, in rounds of steps a step
MOST_RANKS, MOST_SENDS, MOST_PIPELINED = 64, 10_000, 400_000

#: ranks up to which a broadcast is a pipelined chain; beyond, a tree has fewer hops
LONGEST_CHAIN = 256


class Work:
    """A collective as one rank sees it: what a stream runs, and what may be waited for."""

    __slots__ = (
        "done",
        "entered",
        "group",
        "launch",
        "name",
        "nbytes",
        "number",
        "path",
        "replica",
        "result",
        "stream",
    )

    holds = 0.0
    category: Category = "communication"

    def __init__(self, group: Group, replica: Replica, name: str, nbytes: float) -> None:
        self.group, self.replica, self.name, self.nbytes = group, replica, name, nbytes
        self.launch: float | None = None
        self.result: float | None = None
        self.done = simpy.Event(group.env)
        self.entered = self.path = 0.0
        # threads of a library begin collectives in the order in which they were asked for, whichever is free
        self.number = group.turn(replica.rank) if group.threads > 1 else None
        self.stream: Stream | None = None

    def start(self, stream: Stream) -> None:
        """The rank takes part from now on."""
        self.stream, self.entered, self.path = stream, stream.device.env.now, stream.path
        self.group.enter(self)

    def finish(self, event: simpy.Event, path: float) -> None:
        """The collective is over on this rank."""
        assert self.stream is not None
        self.path = self.stream.path = path
        if self.stream.index == 0:  # nothing else runs there meanwhile
            self.replica.exposed += self.group.env.now - self.entered
        self.done.succeed(self.group.env.now)
        self.stream.finish(event)


class Await:
    """Holds a stream until a collective is over, and keeps count of the time that it is held."""

    __slots__ = ("replica", "work")

    holds = 0.0
    category: Category = "wait"
    launch: float | None = 0.0
    name = "wait: communication"

    def __init__(self, work: Work) -> None:
        self.work, self.replica = work, work.replica

    def start(self, stream: Stream) -> None:
        """Go on at once if it is over, or else when it is."""
        since = stream.device.env.now

        def proceed(event: simpy.Event) -> None:
            self.replica.exposed += stream.device.env.now - since
            stream.path = max(stream.path, self.work.path)
            stream.finish(event)

        if self.work.done.callbacks is None:
            proceed(self.work.done)
        else:
            self.work.done.callbacks.append(proceed)


@dataclass(slots=True)
class _Meeting:
    """One collective under way: who has come."""

    name: str
    nbytes: float
    works: list[Work] = field(default_factory=list)
    run: Stepwise | Hosted | None = None
    whole: Undisturbed | None = None
    key: tuple[Any, ...] = ()
    path: float = 0.0
    over: dict[Work, int] = field(default_factory=dict)
    owners: dict[int, Work] = field(default_factory=dict)


@dataclass(frozen=True)
class _Way:
    """How a collective of one size is carried out."""

    plan: Plan
    transport: Transport
    placement: Placement
    channels: ChannelSet | None = None

    @cached_property
    def links(self) -> frozenset[str] | None:
        """All that its sends draw on; None if they are too many to be played."""
        return frozenset(used_links(self.plan, self.placement)) if self.plan.nsends <= MOST_SENDS else None


class Group:
    """The ranks of one training run.

    Parameters
    ----------
    m : Session
    nodes : sequence of str
        Node of each rank.
    replicas : sequence of Replica
        Together they stand for every rank once.
    algorithm : str
        ``"nccl"`` does all collectives as NCCL would, ``"nccl-ring"`` with rings alone; any other name is an idealised
        algorithm of all-reduce. Empty for NCCL where it runs, else a ring.
    slowdown : float
        How many times slower kernels are while a collective holds a part of their device.
    exact : bool
        Step by step, beside other traffic; it needs a replica a rank.
    transport : Transport
        How sends are carried; not for NCCL's, which bring their own.
    options : mapping
        Of the algorithm; those of NCCL are `simperf.collectives.settings.NcclSettings`.

    Raises
    ------
    InputError
        A slowdown below 1, or replicas that leave a rank out.
    UnknownNameError
        No such algorithm.
    """

    def __init__(
        self,
        m: Session,
        nodes: Sequence[str],
        replicas: Sequence[Replica],
        *,
        algorithm: str = "",
        slowdown: float = 1.0,
        exact: bool = False,
        transport: Transport = PLAIN,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.m, self.env, self.nodes, self.replicas = m, m.simulation.env, tuple(nodes), tuple(replicas)
        default = default_algorithm(m.simulation.machine, self.nodes)
        self.algorithm = find_algorithm("all-reduce", algorithm) if algorithm else default
        self.exact, self.transport, self.options = exact, transport, dict(options or {})
        self.settings = NcclSettings.read(self.algorithm, self.options) if self.algorithm in NCCL else None
        if self.settings is not None and self.size > 1 and not runs_on(m.machine, self.nodes):
            m.notes.append("NCCL does not run on these devices: its constants stand for their own library, unmeasured")
        if not 1.0 <= slowdown < math.inf:
            raise InputError(
                Problem("kernels get slower, by a factor of 1 or more", key="slowdown", value=f"{slowdown}")
            )
        ranks = sorted(rank for replica in replicas for rank in replica.members)
        if ranks != list(range(len(nodes))) or (exact and len(replicas) != len(nodes)):
            raise InputError(Problem("the replicas must stand for every rank once", key="replicas"))
        self.held = 1.0 - 1.0 / slowdown
        self.busy = 0.0  # time for which collectives were under way [s]
        self.moved = 0.0  # payload of all collectives [B]
        self._ways: dict[tuple[str, float], _Way] = {}
        self._known: dict[tuple[Any, ...], Execution] = {}
        self._uses: dict[tuple[Any, ...], int] = {}
        self._met: dict[int, int] = {}
        self._meetings: dict[int, _Meeting] = {}
        self._routes: dict[tuple[LinkClass, ...], list[Route]] = {}
        self.unseen = False  # whether collectives that were computed alone met other traffic
        self.spread = 0.0  # most by which ranks of one collective ended before the last one, and were kept [s]

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.nodes)

    @property
    def threads(self) -> int:
        """Collectives of one rank that are under way at a time: 1, or what the hosts' library has threads for."""
        stacks = self.m.simulation.stacks
        return stacks.costs.threads if stacks is not None and self.settings is None else 1

    def all_reduce(self, replica: Replica, nbytes: float) -> Work:
        """Add up `nbytes` [B] of every rank and give the sum to all."""
        return Work(self, replica, "all-reduce", nbytes)

    def broadcast(self, replica: Replica, nbytes: float) -> Work:
        """Give `nbytes` [B] of rank 0 to all."""
        return Work(self, replica, "broadcast", nbytes)

    def all_to_all(self, replica: Replica, nbytes: float) -> Work:
        """Give every rank an equal part of `nbytes` [B] of every rank."""
        return Work(self, replica, "all-to-all", nbytes)

    def reduce(self, replica: Replica, nbytes: float) -> Work:
        """Add up `nbytes` [B] of every rank on rank 0."""
        return Work(self, replica, "reduce", nbytes)

    def turn(self, rank: int) -> int:
        """Number of a rank's next collective: the n-th that it starts is the n-th of all ranks."""
        number = self._met.get(rank, 0)
        self._met[rank] = number + 1
        return number

    # What happens when streams come to a collective ------------------------------------

    def enter(self, work: Work) -> None:
        """Called by a rank's `Work` when its stream comes to it."""
        if self.size == 1:
            work.finish(work.done, work.path)
            return
        work.replica.device.share.reserve(self.held)
        rank = work.replica.rank
        number = work.number if work.number is not None else self.turn(rank)
        meeting = self._meetings.get(number)
        if meeting is None:
            meeting = self._meetings[number] = _Meeting(work.name, work.nbytes)
        if (meeting.name, meeting.nbytes) != (work.name, work.nbytes):
            message = f"rank {rank} starts {work.name} of {work.nbytes:g} B while others do {meeting.name}"
            raise InputError(Problem(message, value=f"{meeting.nbytes:g} B"))
        meeting.works.append(work)
        meeting.owners.update(dict.fromkeys(work.replica.members, work))
        way = self._way(meeting.name, meeting.nbytes)
        if way.channels is not None:
            if len(meeting.works) == len(self.replicas):
                self._by_channels(number, way.channels)
        elif self.exact:
            self._step_by_step(number, meeting, rank)
        else:
            self._as_a_whole(number, meeting, work)

    def _by_channels(self, number: int, channels: ChannelSet) -> None:
        """Channels of a library begin when the last rank has come, and end on all ranks at one time."""
        end = ChannelRun(self.env, self.m.simulation.network, channels, self._routes).start()
        assert end.callbacks is not None
        end.callbacks.append(lambda event: self._end(number, event, channels.time))

    def _step_by_step(self, number: int, meeting: _Meeting, rank: int) -> None:
        if meeting.run is None:
            meeting.run = self._executor(number, meeting)
        meeting.run.enter([rank])

    def _executor(self, number: int, meeting: _Meeting) -> Stepwise | Hosted:
        """What plays a collective that ranks enter one by one: by threads of hosts, where these have network stacks."""
        way, simulation = self._way(meeting.name, meeting.nbytes), self.m.simulation
        entry = [math.inf] * self.size + [0.0] * way.plan.nservers
        if simulation.stacks is not None:
            return Hosted(
                self.env,
                simulation.stacks,
                plan=way.plan,
                placement=way.placement,
                nbytes=meeting.nbytes,
                entry=entry,
                transport=way.transport,
                recorder=simulation.recorder,
                released=lambda who: self._release(number, who),
            )
        return Stepwise(
            self.env,
            simulation.network,
            plan=way.plan,
            placement=way.placement,
            nbytes=meeting.nbytes,
            transport=way.transport,
            entry=entry,
            recorder=simulation.recorder,
            released=lambda who: self._release(number, who),
        )

    def _release(self, number: int, who: int) -> None:
        """One rank is done, whatever the others do."""
        if who >= self.size:
            return
        meeting = self._meetings[number]
        work = meeting.owners[who]
        meeting.over[work] = meeting.over.get(work, 0) + 1
        if meeting.over[work] < len(work.replica.members):
            return
        if all(meeting.over.get(one) == len(one.replica.members) for one in meeting.works):
            self._close(number)
        work.replica.device.share.reserve(-self.held)
        alone = meeting.whole is not None and not meeting.whole.disturbed
        work.finish(work.done, meeting.path if alone else max(work.path for work in meeting.works))

    def _as_a_whole(self, number: int, meeting: _Meeting, work: Work) -> None:
        if meeting.whole is None:
            way = self._way(meeting.name, meeting.nbytes)
            meeting.whole = Undisturbed(
                self.env,
                self.m.simulation.network,
                plan=way.plan,
                placement=way.placement,
                nbytes=meeting.nbytes,
                transport=way.transport,
                compute=lambda entry: self._compute(meeting, way, entry),
                released=lambda who: self._release(number, who),
                ended=lambda run: self._ended(meeting, run),
                recorder=self.m.simulation.recorder,
                links=way.links,
            )
        meeting.whole.enter(work.replica.members)

    def _compute(self, meeting: _Meeting, way: _Way, entry: Sequence[float]) -> Execution:
        key = (meeting.name, meeting.nbytes, tuple(entry) if any(entry) else ())
        if key not in self._known:
            self._known[key] = self._run(way, meeting.nbytes, entry if any(entry) else None)
        meeting.key, run = key, self._known[key]
        meeting.path = max(work.path for work in meeting.works) + (run.time if not key[-1] else 0.0)
        return run

    def _ended(self, meeting: _Meeting, run: Execution) -> None:
        assert meeting.whole is not None
        self.spread = max(self.spread, self._spread(run))
        self._uses[meeting.key] = self._uses.get(meeting.key, 0) + 1
        self.unseen = self.unseen or meeting.whole.disturbed

    def _run(self, way: _Way, nbytes: float, entry: Sequence[float] | None) -> Execution:
        return execute(
            way.plan,
            way.placement.machine,
            nbytes=nbytes,
            entry_times=entry,
            transport=way.transport,
            placement=way.placement,
        )

    def _uneven(self, run: Execution) -> bool:
        """Whether ranks end at different times, and not by rounding."""
        return run.time - min(run.finish[: self.size]) > ROUNDING * run.time

    def _spread(self, run: Execution) -> float:
        """Most time between the ends of ranks that one replica stands for [s]; 0 for rounding."""
        ends = [[run.finish[rank] for rank in replica.members] for replica in self.replicas]
        spread = max(max(times) - min(times) for times in ends)
        return spread if spread > ROUNDING * run.time else 0.0

    def told_apart(self, works: Mapping[tuple[str, float], int]) -> str:
        """Why ranks of one replica would not do the same at the same time; empty if they do, or are too many to play.

        Their ends are looked at where all ranks enter together, and where those of one replica are late by a part of
        the time that it takes, or by more than that.

        Parameters
        ----------
        works : mapping of (str, float) to int
            Name and payload [B] of collectives, and how many of them there are.
        """
        alike = all(len(replica.members) == 1 for replica in self.replicas)
        if self.exact or alike or not 1 < self.size <= MOST_RANKS:
            return ""
        ways = {work: self._way(*work) for work in works}
        ways = {work: way for work, way in ways.items() if way.channels is None}
        pipelined = any(
            phase.style == "pipeline" for way in ways.values() for c in way.plan.channels for phase in c.phases
        )
        sends = sum(way.plan.nsends * works[work] for work, way in ways.items())
        if sends > (MOST_PIPELINED if pipelined else MOST_SENDS):
            return ""
        if any(self._apart(way, *work) for work, way in ways.items()):
            return "they end a collective at different times"
        copies = {link for replica in self.replicas for link in replica.copy_links(self.m.machine)}
        if any(not copies.isdisjoint(used_links(way.plan, way.placement)) for way in ways.values()):
            return "copies from the host share links with their collectives"
        return ""

    def _apart(self, way: _Way, name: str, nbytes: float) -> bool:
        run = self._known[name, nbytes, ()] = self._run(way, nbytes, None)
        if self._uneven(run):
            return True
        for replica in self.replicas if len(self.replicas) > 1 else ():
            for part in (0.3, 3.0):
                late = [part * run.time * (rank in replica.members) for rank in range(self.size)]
                if self._uneven(self._run(way, nbytes, late)):
                    return True
        return False

    def _end(self, number: int, event: simpy.Event, path: float) -> None:
        meeting = self._close(number)
        path += max(work.path for work in meeting.works)
        for work in meeting.works:
            work.replica.device.share.reserve(-self.held)
        for work in meeting.works:
            work.finish(event, path)

    def _close(self, number: int) -> _Meeting:
        meeting = self._meetings.pop(number)
        self.busy += self.env.now - max(work.entered for work in meeting.works)
        self.moved += meeting.nbytes
        return meeting

    def _way(self, name: str, nbytes: float) -> _Way:
        algorithm, options = self._asked(name)
        tuned = self.settings is not None
        sized = {"chunks", "degree", "segments"} & set(options_of(name, algorithm)) if not tuned else set()
        fits_all = not tuned and sized <= set(options)
        key = (name, -1.0 if fits_all else nbytes)
        if key not in self._ways:
            self._ways[key] = self._find_way(name, nbytes)
        return self._ways[key]

    def _asked(self, name: str) -> tuple[str, dict[str, Any]]:
        """Algorithm and options of a collective."""
        if name == "all-reduce" or self.settings is not None:
            return self.algorithm, self.options
        if name == "all-to-all":
            return "direct", {}
        return ("pipelined-tree", {"degree": 1}) if self.size <= LONGEST_CHAIN else ("binomial-tree", {})

    def _find_way(self, name: str, nbytes: float) -> _Way:
        machine = self.m.machine
        if self.settings is not None:
            tuner = session_tuner(self.m, self.nodes, name, self.settings)
            choice = tuner.best(nbytes)
            if choice.channels is None and self.settings.launches > 1:
                message = f"{name} is played send by send, whatever its launches take"
                value = str(self.settings.launches)
                raise InputError(Problem(message, key="options.launches", value=value, expected="1"))
            self.m.simulation.network.provide(tuner.staged.resources)
            return _Way(choice.plan, choice.transport, choice.placement, choice.channels)
        algorithm, options = self._asked(name)
        plan = plan_for(machine, name, algorithm, ranks=self.nodes, nbytes=nbytes, transport=self.transport, **options)
        sites = reducing_sites(machine, algorithm, self.nodes, options)
        return _Way(plan, self.transport, place(plan, machine, ranks=self.nodes, servers=sites))

    def settle(self) -> None:
        """Count the bytes of collectives that were computed as a whole on the links that they went over."""
        self.m.simulation.network.count(add_up((self._known[key].moved, uses) for key, uses in self._uses.items()))
        self._uses.clear()
        if self.unseen:
            told = f"approximate: {self.algorithm} over {self.size} ranks was computed alone beside other traffic"
            self.m.notes.append(f"{told}; exact = true plays every send")
        if self.spread:
            self.m.notes.append(
                f"ranks that end a collective up to {self.spread * 1e6:.3g} us before the last one go on with it"
            )
