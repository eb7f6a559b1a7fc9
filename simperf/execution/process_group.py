"""A process group: ranks that communicate, each of which is a device with a process of its own.

The n-th collective that a rank starts is the n-th of all ranks, as with NCCL; kinds and sizes must agree. It begins on
a rank when the stream that it was launched on comes to it, and ends there when the rank has sent and received all that
it has to. Which algorithm carries it out is chosen as for `simperf.collective`: NCCL where it runs, whose channels
begin when the last rank has come and end on all ranks at one time; else a ring, or what is named.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from simperf.collectives.algorithms import algorithms, options_of
from simperf.collectives.execute import Context, Execution, PlacedPlan, start
from simperf.collectives.executors import Executor
from simperf.collectives.machine_plans import plan_for, reducing_sites
from simperf.collectives.nccl import COLLECTIVES as OF_NCCL
from simperf.collectives.nccl_kernels import direct_protocol
from simperf.collectives.placement import PLAIN, Transport, place
from simperf.collectives.plan import COLLECTIVES
from simperf.collectives.plans.direct import one_send
from simperf.collectives.settings import NCCL, NcclSettings, default_algorithm, find_algorithm, runs_on
from simperf.collectives.traffic import add_up
from simperf.engine.device import Device
from simperf.errors import InputError, Problem, ProgramError, UnknownNameError
from simperf.execution.point_to_point import Pairs
from simperf.execution.session import Session
from simperf.execution.works import Member, SendReceive, Work

__all__ = ["ProcessGroup", "RankProcess"]

#: ranks up to which a broadcast is a pipelined chain; beyond, a tree has fewer hops
LONGEST_CHAIN = 256


@dataclass(slots=True)
class _Collective:
    """One collective under way: who has come."""

    name: str
    nbytes: float
    run: Executor
    path: float = 0.0  # critical path up to the last rank that has come [s]
    works: list[Work] = field(default_factory=list)
    owners: dict[int, Work] = field(default_factory=dict)
    left: dict[Work, int] = field(default_factory=dict)
    first: dict[Work, float] = field(default_factory=dict)  # when the first of a member's ranks was done [s]


@dataclass(frozen=True, eq=False, slots=True)
class RankProcess:
    """Whose process a thread is: the rank of a device, in the group of all that were started with it."""

    group: ProcessGroup
    device: Device


class ProcessGroup:
    """Ranks that communicate.

    Parameters
    ----------
    m : Session
    nodes : sequence of str
        Node of each rank.
    members : sequence of Member
        Together they stand for every rank once.
    algorithm : str
        ``"nccl"`` does all collectives as NCCL would, ``"nccl-ring"`` with rings alone; any other name is an idealised
        algorithm of all-reduce, and of the other collectives that have it. Empty for NCCL where it runs, else a ring.
        Where it has none of that name, a broadcast or a reduction is a pipelined chain, over many ranks a tree, and
        any other collective a ring, or what there is.
    slowdown : float
        How many times slower kernels are while a collective holds a part of their device.
    exact : bool
        Every send is an event of its own, where collectives are made of sends; it needs a member a rank.
    transport : Transport
        How sends are carried; not for NCCL's, which bring their own.
    options : mapping or NcclSettings
        Of the algorithm; those of NCCL may be read already.

    Raises
    ------
    InputError
        A slowdown below 1, or members that leave a rank out.
    UnknownNameError
        No such algorithm.
    """

    #: whether a named algorithm is that of broadcasts and reductions too, if they have it
    names_all = True

    def __init__(
        self,
        m: Session,
        nodes: Sequence[str],
        members: Sequence[Member],
        *,
        algorithm: str = "",
        slowdown: float = 1.0,
        exact: bool = False,
        transport: Transport = PLAIN,
        options: Mapping[str, Any] | NcclSettings | None = None,
    ) -> None:
        self.m, self.env, self.nodes, self.members = m, m.simulation.env, tuple(nodes), tuple(members)
        default = default_algorithm(m.simulation.machine, self.nodes)
        self.algorithm, self.named = find_algorithm("all-reduce", algorithm) if algorithm else default, bool(algorithm)
        self.exact, self.transport = exact, transport
        self.options: dict[str, Any] = {} if isinstance(options, NcclSettings) else dict(options or {})
        self.settings: NcclSettings | None = None
        if self.algorithm in NCCL:
            read = options if isinstance(options, NcclSettings) else None
            self.settings = read or NcclSettings.read(self.algorithm, self.options)
        if self.settings is not None and self.size > 1 and not runs_on(m.machine, self.nodes):
            m.notes.append("NCCL does not run on these devices: its constants stand for their own library, unmeasured")
        if not 1.0 <= slowdown < math.inf or 1.0 - 1.0 / slowdown == 1.0:  # at which kernels would never end
            message = "kernels get slower, by a factor of 1 or more at which they still end"
            raise InputError(Problem(message, key="slowdown", value=f"{slowdown}", expected="1 to 1e15"))
        ranks = sorted(rank for member in members for rank in member.members)
        if ranks != list(range(len(nodes))) or (exact and len(members) != len(nodes)):
            raise InputError(
                Problem(
                    "the replicas must stand for every rank once",
                    key="replicas",
                    expected=f"each of the ranks 0 to {len(nodes) - 1} once",
                )
            )
        self.held = 1.0 - 1.0 / slowdown
        self.busy = 0.0  # time for which collectives were under way [s]
        self.moved = 0.0  # payload of all collectives [B]
        self.approximated = False  # whether collectives met other traffic that were too large to be played
        self.context = Context.of(m.simulation)
        self._plans: dict[tuple[str, float], PlacedPlan] = {}
        self._uses: dict[int, tuple[Execution, int]] = {}
        self._turns: dict[int, int] = {}
        self._by_node = {member.device.name: member for member in self.members}
        self._running: dict[int, _Collective] = {}
        self._messages: dict[tuple[int, int, bool], PlacedPlan] = {}
        self.pairs = Pairs(self.nodes, self.context, self.message, self.count, exact=exact)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.nodes)

    @property
    def threads(self) -> int:
        """Collectives of one rank that are under way at a time: 1, or what the hosts' library has threads for."""
        stacks = self.m.simulation.stacks
        return stacks.costs.threads if stacks is not None and self.settings is None else 1

    def turn(self, rank: int) -> int:
        """Number of a rank's next collective: the n-th that it starts is the n-th of all ranks."""
        number = self._turns.get(rank, 0)
        self._turns[rank] = number + 1
        return number

    def process(self, number: int) -> RankProcess:
        """Whose process the one of a rank is."""
        return RankProcess(self, self.members[number].device)

    def member(self, device: Device) -> Member:
        """The rank of a device.

        Raises
        ------
        ProgramError
            It has none in this group.
        """
        member = self._by_node.get(device.name)
        if member is None:
            raise ProgramError(f"{device.name} is not in the group of {_some(self.nodes)}: one of these is expected")
        return member

    def collective(self, member: Member, name: str, nbytes: float) -> Work:
        """A rank's part in a collective, to be launched on a stream.

        Raises
        ------
        UnknownNameError
            No such collective.
        InputError
            The group's library does not have it.
        """
        if name not in COLLECTIVES:
            raise UnknownNameError("collective", name, COLLECTIVES)
        if self.settings is not None and name not in OF_NCCL:
            message = f"NCCL has no {name} of its own"
            raise InputError(Problem(message, key="algorithm", value=self.algorithm, expected="a group of ring"))
        return Work(self, member, name, nbytes)

    def send_receive(self, member: Member, name: str, sides: Sequence[tuple[bool, int, float]]) -> SendReceive:
        """Messages of a rank, to be launched on a stream; `sides` are those of `SendReceive`.

        Raises
        ------
        ProgramError
            The other rank is not in the group, or is the rank itself.
        """
        for _, peer, _ in sides:
            whole = isinstance(peer, int) and not isinstance(peer, bool)
            if not whole or not 0 <= peer < self.size or peer == member.rank:
                raise ProgramError(
                    f"{name}: rank {member.rank} of {self.size} communicates with other ranks of its group, from 0 to "
                    f"{self.size - 1}"
                )
        return SendReceive(self, member, name, sides)

    # What happens when streams come to a collective ------------------------------------

    def enter(self, work: Work) -> None:
        """Called by a rank's `Work` when its stream comes to it."""
        if self.size == 1:
            work.began, work.last = work.entered, work.track
            work.finish(work.path)
            return
        self.hold(work)
        rank = work.member.rank
        number = work.number if work.number is not None else self.turn(rank)
        one = self._running.get(number)
        if one is None:
            one = self._running[number] = _Collective(work.name, work.nbytes, self._start(number, work))
        if (one.name, one.nbytes) != (work.name, work.nbytes):
            message = f"rank {rank} starts {work.name} of {work.nbytes:g} B while others do {one.name}"
            raise InputError(
                Problem(
                    message,
                    value=f"{one.nbytes:g} B",
                    expected="the same collective of the same size on every rank, in the same order",
                )
            )
        one.works.append(work)
        one.path = max(one.path, work.path)
        one.left[work] = len(work.member.members)
        one.owners.update(dict.fromkeys(work.member.members, work))
        one.run.enter(work.member.members)

    def _start(self, number: int, work: Work) -> Executor:
        return start(
            self.placed(work.name, work.nbytes),
            work.nbytes,
            self.context,
            released=lambda ranks: self._release(number, ranks),
            exact=self.exact,
        )

    def _release(self, number: int, ranks: Collection[int]) -> None:
        """Some ranks are done, whatever the others do."""
        one, now = self._running[number], self.env.now
        owners = [one.owners[rank] for rank in ranks]
        done = Counter(owners)  # a work for each member, which may stand for many ranks
        for work, count in done.items():
            one.left[work] -= count
            if len(work.member.members) > 1:
                self.keep(now - one.first.setdefault(work, now))
        over = [work for work in done if not one.left[work]]
        if len(over) > 1:  # in the order of their last ranks
            place = {work: index for index, work in enumerate(owners)}
            over.sort(key=place.__getitem__)
        if over and len(one.owners) == self.size and not any(one.left.values()):
            self._close(number)
        for work in over:
            self.let_go(work)
        last = one.works[-1]
        for work in over:
            work.began, work.last = last.entered, last.track
            work.finish(one.path + one.run.critical)

    def _close(self, number: int) -> None:
        one = self._running.pop(number)
        self.busy += self.env.now - one.works[-1].entered
        self.moved += one.nbytes
        if one.run.isolated is not None:
            self.count(one.run.isolated)
        elif one.run.approximated is not None:
            self.approximate(one.run.approximated)

    def hold(self, work: Work) -> None:
        """Take away from the kernels of a rank's device what a collective holds of it."""
        work.member.device.share.reserve(self.held)

    def let_go(self, work: Work) -> None:
        """Give it back."""
        work.member.device.share.reserve(-self.held)

    def keep(self, time: float) -> None:
        """Note that a rank was done a `time` [s] after the first that its member stands for, which waits for it."""

    def count(self, run: Execution) -> None:
        """Note an execution that was found without other traffic, for `settle`."""
        _, times = self._uses.get(id(run), (run, 0))
        self._uses[id(run)] = run, times + 1

    def approximate(self, run: Execution) -> None:
        """Note what would have been the execution of a collective that went on as phases beside other traffic."""
        self.approximated = True

    def waiting(self) -> list[str]:
        """Communication that has begun and waits for ranks that have not come, one line each."""
        told = []
        for one in self._running.values():
            came = [self.nodes[rank] for rank in sorted(one.owners)]
            missing = [node for rank, node in enumerate(self.nodes) if rank not in one.owners]
            if missing:
                size = f"{one.nbytes:,.0f} B"
                told.append(f"{_some(came)} called {one.name} of {size}, and {_some(missing)} of their group did not")
        return told + self.pairs.waiting()

    # Plans --------------------------------------------------------------------------

    def placed(self, name: str, nbytes: float) -> PlacedPlan:
        """The execution of a collective of a size [B]."""
        algorithm, options = self._asked(name)
        tuned = self.settings is not None
        sized = {"chunks", "degree", "segments"} & set(options_of(name, algorithm)) if not tuned else set()
        fits_all = not tuned and sized <= set(options)
        key = (name, -1.0 if fits_all else nbytes)
        if key not in self._plans:
            self._plans[key] = self._place(name, nbytes)
        return self._plans[key]

    def _asked(self, name: str) -> tuple[str, dict[str, Any]]:
        """Algorithm and options of a collective."""
        if name == "all-reduce" or self.settings is not None:
            return self.algorithm, self.options
        known = algorithms(name)
        if self.algorithm in known and ((self.named and self.names_all) or name not in ("broadcast", "reduce")):
            own = options_of(name, self.algorithm)
            return self.algorithm, {key: value for key, value in self.options.items() if key in own}
        if name not in ("broadcast", "reduce"):
            return "ring" if "ring" in known else known[0], {}
        return ("pipelined-tree", {"degree": 1}) if self.size <= LONGEST_CHAIN else ("binomial-tree", {})

    def _place(self, name: str, nbytes: float) -> PlacedPlan:
        machine = self.m.machine
        if self.settings is not None:
            tuner = self.m.tuner(self.nodes, name, self.settings)
            choice = tuner.best(nbytes)
            if choice.channels is None and self.settings.launches > 1:
                message = f"{name} is simulated send by send, whatever its launches take"
                value = str(self.settings.launches)
                raise InputError(Problem(message, key="options.launches", value=value, expected="1"))
            self.m.simulation.network.provide(tuner.staged.resources)
            return choice.placed
        algorithm, options = self._asked(name)
        plan = plan_for(machine, name, algorithm, ranks=self.nodes, nbytes=nbytes, transport=self.transport, **options)
        sites = reducing_sites(machine, algorithm, self.nodes, options)
        return PlacedPlan(plan, place(plan, machine, ranks=self.nodes, servers=sites), self.transport)

    def message(self, source: int, target: int, nbytes: float) -> PlacedPlan:
        """Plan of a send from rank to rank: as those of an all-to-all of the two."""
        key = source, target, self.settings is not None and direct_protocol(nbytes, 1) == "LL"
        if key not in self._messages:
            pair = self.nodes[source], self.nodes[target]
            plan, machine, transport = one_send(), self.m.machine, self.transport
            if self.settings is None:
                self._messages[key] = PlacedPlan(plan, place(plan, machine, ranks=pair), transport)
            else:
                tuner = self.m.tuner(pair, "all-to-all", replace(self.settings, launches=0))  # they are the verb's
                choice = tuner.message(nbytes)
                self.m.simulation.network.provide(tuner.staged.resources)
                self._messages[key] = PlacedPlan(plan, choice.placement, choice.transport)
        return self._messages[key]

    def settle(self) -> None:
        """Count the bytes of collectives that were computed as a whole on the links that they went over."""
        self.m.simulation.network.count(add_up((run.moved, times) for run, times in self._uses.values()))
        self._uses.clear()
        if self.approximated:
            told = f"approximate: {self.algorithm} over {self.size} ranks met other traffic, and went on in phases"
            self.m.notes.append(f"{told} in which all ranks wait for the slowest send; exact = true has every send")
            self.approximated = False


def _some(nodes: Sequence[str], most: int = 8) -> str:
    """Some names."""
    rest = len(nodes) - most
    return ", ".join(nodes[:most]) + (f" and {rest} more" if rest > 0 else "")
