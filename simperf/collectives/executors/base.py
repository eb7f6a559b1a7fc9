"""The interface of executors: a plan on a machine, what it is simulated in, and a plan under way.

An executor is a class whose objects are plans under way. All of them are made from the same arguments, are entered by
ranks one after the other, tell when each rank is done, and give the times of the step-exact one
(`simperf.collectives.executors.stepwise`), but for what the docstring of each says.
`simperf.collectives.execute.start` chooses among them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import simpy

from simperf.collectives.channels import ChannelSet
from simperf.collectives.placement import PLAIN, Placement, Transport
from simperf.collectives.plan import Channel, Phase, Plan, Round, chunk_sizes, chunks_in
from simperf.engine.flow import FlowRoute
from simperf.engine.link_table import LinkClass
from simperf.engine.network import FlowNetwork
from simperf.engine.recorder import Recorder

if TYPE_CHECKING:
    from simperf.collectives.flow_phases import FlowPhases
    from simperf.engine.netstack import NetworkStacks

__all__ = ["MOST_SENDS", "Context", "Execution", "Executor", "PlacedPlan", "in_order", "used_links"]

#: sends of a plan up to which they are played one by one in a simulation, unasked, as soon as there is other traffic
MOST_SENDS = 10_000

#: a send of a pipeline, as an executor keeps it
Send = TypeVar("Send")


@dataclass(frozen=True, slots=True)
class Execution:
    """Times and bytes of a plan that was executed.

    Parameters
    ----------
    time : float
        When the last participant was done [s].
    finish : tuple of float
        When each participant was done [s].
    method : str
        Executor: ``"step-exact"``, ``"collapsed"``, ``"hosts"`` or ``"channels"``.
    moved : mapping of str to float
        Bytes on the wire by resource [B].
    """

    time: float
    finish: tuple[float, ...]
    method: str
    moved: Mapping[str, float] = field(default_factory=dict)


def used_links(plan: Plan, placement: Placement) -> set[str]:
    """All resources that the plan's sends draw on."""
    pairs: set[tuple[int, int]] = set()
    for channel in plan.channels:
        for phase in channel.phases:
            for index in range(min(1, phase.nrounds) if phase.repeats else phase.nrounds):
                one = phase.make(index)
                pairs.update(zip(one.src.tolist(), one.dst.tolist(), strict=True))
    return {name for pair in sorted(pairs) for name in placement.hop(*pair).resources}


@dataclass(frozen=True, eq=False)
class PlacedPlan:
    """A plan on a machine.

    Parameters
    ----------
    plan : Plan
        Who sends what to whom.
    placement : Placement
        Node of each participant.
    transport : Transport
        How sends are carried.
    channels : ChannelSet, optional
        What a library makes of the plan for a payload of one size.
    blocks : int
        Multiprocessors that the library's kernel holds on each GPU (`simperf.collectives.nccl_blocks`).
    """

    plan: Plan
    placement: Placement
    transport: Transport = PLAIN
    channels: ChannelSet | None = None
    blocks: int = 0

    @cached_property
    def playable(self) -> bool:
        """Whether its sends are few enough to be simulated one by one, unasked."""
        return self.plan.nsends <= MOST_SENDS

    @cached_property
    def links(self) -> frozenset[str]:
        """All that its sends draw on."""
        if self.playable:
            return frozenset(used_links(self.plan, self.placement))
        from simperf.collectives.flow_phases import links_of

        return links_of(self.plan, self.placement, self.transport)


@dataclass(frozen=True, eq=False)
class Context:
    """The surroundings in which collectives of one group are simulated.

    Parameters
    ----------
    env : simpy.Environment
        The clock.
    network : FlowNetwork
        Carries the sends beside all other traffic.
    stacks : NetworkStacks, optional
        Of the machine's hosts.
    recorder : Recorder, optional
        Called with every send that is simulated.
    shaped : bool
        Links have token buckets.
    isolated : dict
        Executions of plans without other traffic, by plan, payload [B] and entry times [s]; they are added to.
    routes : dict
        Routes over classes of links that the network has made, by class; they are added to.
    phases : dict
        Phases of plans, by plan and payload [B]; they are added to.
    """

    env: simpy.Environment
    network: FlowNetwork
    stacks: NetworkStacks | None = None
    recorder: Recorder | None = None
    shaped: bool = False
    isolated: dict[tuple[PlacedPlan, float, tuple[float, ...]], Execution] = field(default_factory=dict)
    routes: dict[tuple[LinkClass, ...], list[FlowRoute]] = field(default_factory=dict)
    phases: dict[tuple[PlacedPlan, float], FlowPhases] = field(default_factory=dict)

    @classmethod
    def of(cls, simulation: Any) -> Context:
        """The context of a `simperf.engine.simulation.Simulation`."""
        return cls(
            simulation.env,
            simulation.network,
            getattr(simulation, "stacks", None),
            getattr(simulation, "recorder", None),
            bool(getattr(simulation, "buckets", ())),
        )


class Executor(ABC):
    """A plan under way.

    Parameters
    ----------
    placed : PlacedPlan
        What is simulated.
    nbytes : float
        Payload [B].
    context : Context
        What it is simulated in.
    entry : sequence of float, optional
        Delay from now until each participant takes part [s]; infinite for one that `enter` will be called for. If left
        out, servers take part from now on, and `enter` will be called for all ranks.
    released : callable, optional
        Called with the numbers of ranks when they are done with all channels.

    Attributes
    ----------
    done : simpy.Event
        Succeeds with the time of completion [s].
    finish : list of float
        Time at which each participant was done [s].
    isolated : Execution or None
        The whole execution, if it was found without other traffic and none came; its bytes are on no network.
    approximated : Execution or None
        What the execution would have been without other traffic, if what was left of it went on as phases.
    disturbed : bool
        Whether other traffic came to its links.
    """

    #: name of the executor, as `Execution.method` has it
    method: ClassVar[str]

    def __init__(
        self,
        placed: PlacedPlan,
        nbytes: float,
        context: Context,
        *,
        entry: Sequence[float] | None = None,
        released: Callable[[Collection[int]], None] | None = None,
    ) -> None:
        self.placed, self.nbytes, self.context = placed, nbytes, context
        self.plan, self.placement, self.transport = placed.plan, placed.placement, placed.transport
        self.env, self.network = context.env, context.network
        self.done = self.env.event()
        self.finish = [0.0] * self.plan.nparticipants
        self.isolated: Execution | None = None
        self.approximated: Execution | None = None
        self.disturbed = False
        self._released = released
        self._left = self.plan.nparticipants
        self._prepare()
        groups: dict[float, list[int]] = {}
        if entry is None:
            if self.plan.nservers:
                groups[0.0] = list(range(self.plan.nranks, self.plan.nparticipants))
        else:
            for who, delay in enumerate(entry):
                if delay < math.inf:
                    groups.setdefault(delay, []).append(who)
        for delay, members in groups.items():
            self.enter(members, delay)

    @classmethod
    @abstractmethod
    def accepts(cls, placed: PlacedPlan, context: Context, *, exact: bool = False) -> bool:
        """Whether it simulates a plan in a context.

        Parameters
        ----------
        placed : PlacedPlan
        context : Context
        exact : bool
            Every send is to be an event of its own.
        """

    @abstractmethod
    def _prepare(self) -> None:
        """Set up what the executor itself keeps, before anybody enters."""

    @abstractmethod
    def enter(self, members: Collection[int], delay: float = 0.0) -> None:
        """Let participants take part, `delay` [s] from now."""

    @property
    def critical(self) -> float:
        """Part of the critical path after the last rank has come [s]; 0 where it is not known."""
        return 0.0

    def release(self, members: Collection[int]) -> None:
        """Note that participants are done with all channels."""
        now = float(self.env.now)
        if len(members) == len(self.finish):
            self.finish = [now] * len(members)
        else:
            for who in members:
                self.finish[who] = now
        self._left -= len(members)
        if self._released is not None:
            ranks = self.ranks_of(members)
            if ranks:
                self._released(ranks)
        if not self._left:
            self.done.succeed(self.env.now)

    def ranks_of(self, members: Collection[int]) -> Collection[int]:
        """Those of some participants that are no servers."""
        nranks = self.plan.nranks
        return [who for who in members if who < nranks] if self.plan.nservers else members

    def sizes(self, channel: Channel, one: Round) -> list[float]:
        """Bytes in each send of a round [B]."""
        nbytes = self.nbytes * self.plan.copies * channel.share
        unit = self.transport.unit
        sizes: list[float] = chunk_sizes(one.chunk, one.span, channel.nchunks, nbytes=nbytes, unit=unit).tolist()
        return sizes

    def record(self, source: str, target: str, started: float) -> None:
        """Show a send that ends now on the timeline."""
        if self.context.recorder is not None:
            now = float(self.env.now)
            self.context.recorder.span(f"{source}/send", f"to {target}", started, now, "communication")


def in_order(
    phase: Phase, channel: Channel, sizes: Callable[[Channel, Round], list[float]], make: Callable[..., Send]
) -> Iterator[tuple[Send, list[Send]]]:
    """All sends of a pipeline phase, each with those whose arrival it waits for.

    Parameters
    ----------
    phase : Phase
        In the style ``"pipeline"``.
    channel : Channel
        That it is a phase of.
    sizes : callable
        Bytes in each send of a round of a channel [B].
    make : callable
        Makes what stands for a send of source, destination, bytes, and whether they are added up.
    """
    arrivals: dict[tuple[int, int], list[Send]] = {}
    for one in phase:
        new: list[tuple[tuple[int, int], Send]] = []
        for (src, dst, chunk, span, reduce), size in zip(one.rows(), sizes(channel, one), strict=True):
            made = make(src, dst, size, reduce)
            parts = chunks_in(chunk, span, channel.nchunks)
            yield made, [earlier for part in parts for earlier in arrivals.get((src, part), ())]
            new += [((dst, part), made) for part in parts]
        for key, made in new:
            arrivals.setdefault(key, []).append(made)
