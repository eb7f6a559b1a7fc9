"""The executor for hosts with network stacks: a thread a participant and channel, which asks for sends and receives.

It stands where `simperf.collectives.executors.stepwise.Stepwise` does on machines whose hosts cost nothing. The order
of sends and receives is that of the plan. What is different is who does them: threads that take CPU time for each, that
wait for messages of both sides, and that add up on their host's cores (`simperf.engine.netstack`).

A library's own algorithm (gloo's) is done by a thread of the process group, which the caller wakes, and which wakes the
caller; it asks for sends and receives at no cost but theirs. Other plans are what people write over send and receive.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, ClassVar

import simpy

from simperf.collectives.executors.base import Context, Executor, PlacedPlan, in_order
from simperf.collectives.placement import PLAIN, Transport
from simperf.collectives.plan import Phase
from simperf.errors import InputError, Problem
from simperf.hardware import Machine

__all__ = ["BY_STACK", "LIBRARY", "HostThreads", "has_network_stacks", "refuse_transport"]

Steps = Generator[simpy.Event, Any, Any]

#: algorithms that a library's own threads do
LIBRARY = ("gloo",)

#: what can be played where hosts have network stacks
BY_STACK = "an idealised algorithm with no protocol, latency or rate of its own, or a machine with no network_stack"

#: other participant, bytes, whether they are added up
Part = tuple[int, float, bool]


def has_network_stacks(machine: Machine) -> bool:
    """Whether the machine's hosts have network stacks."""
    return machine.hosting.stack is not None


def refuse_transport(transport: Transport) -> None:
    """Refuse any transport but `PLAIN`: hosts with network stacks send at their stack's costs.

    Raises
    ------
    InputError
        With all that differs from `PLAIN`.
    """
    given = [
        f"{one.name} = {value}"
        for one in fields(Transport)
        if (value := getattr(transport, one.name)) != getattr(PLAIN, one.name)
    ]
    if given:
        message = "the machine's hosts have a network stack, whose costs alone are those of sends"
        raise InputError(Problem(message, key="transport", value=", ".join(given), expected=BY_STACK))


class _Item:
    """A send of a pipeline, and the events that it waits for."""

    __slots__ = ("arrived", "dst", "feeds", "nbytes", "reduce", "src")

    def __init__(self, env: simpy.Environment, src: int, dst: int, nbytes: float, reduce: bool) -> None:
        self.src, self.dst, self.nbytes, self.reduce = src, dst, nbytes, reduce
        self.feeds: list[simpy.Event] = []
        self.arrived = simpy.Event(env)


class HostThreads(Executor):
    """A plan under way between hosts, by threads; the parameters are those of every `Executor`.

    A message waits until its receiver has asked for it. Where receivers are always in time and the network stacks cost
    nothing, the times are those of the step-exact executor.

    Raises
    ------
    InputError
        The transport is another one than `PLAIN`: the network stacks say what sends cost.
    """

    method: ClassVar[str] = "hosts"

    @classmethod
    def accepts(cls, placed: PlacedPlan, context: Context, *, exact: bool = False) -> bool:
        """Any plan between hosts with network stacks."""
        return context.stacks is not None

    def _prepare(self) -> None:
        refuse_transport(self.transport)
        assert self.context.stacks is not None
        self.stacks = self.context.stacks
        self._slots = [self.stacks.slot() for _ in self.plan.channels]
        self._rounds: dict[tuple[int, int, int], tuple[list[list[Part]], list[list[Part]]]] = {}
        self._items: dict[tuple[int, int], list[_Item]] = {}

    def enter(self, members: Collection[int], delay: float = 0.0) -> None:
        """Let participants take part, `delay` [s] from now."""
        for who in members:
            self.env.process(self._participant(who, delay))

    def _participant(self, who: int, delay: float) -> Steps:
        node, stacks = self.placement.nodes[who], self.stacks
        library = self.plan.algorithm in LIBRARY
        if delay:
            yield self.env.timeout(delay)
        if library:
            yield stacks.call(node)
            yield from stacks.hand_over(node)
        yield self.env.all_of(
            [self.env.process(self._thread(who, number)) for number in range(len(self.plan.channels))]
        )
        if library:
            yield from stacks.hand_over(node)
        if who < self.plan.nranks:
            yield stacks.work(node, stacks.costs.operation)
        self.release((who,))

    def _thread(self, who: int, number: int) -> Steps:
        for index, phase in enumerate(self.plan.channels[number].phases):
            if phase.style == "pipeline":
                yield from self._pipeline(who, number, index, phase)
            else:
                for turn in range(phase.nrounds):
                    yield from self._round(who, number, index, turn)

    # Rounds ---------------------------------------------------------------------------

    def _parts(self, number: int, index: int, turn: int) -> tuple[list[list[Part]], list[list[Part]]]:
        """What each participant receives in a round, and what it sends."""
        key = number, index, turn
        if key not in self._rounds:
            channel = self.plan.channels[number]
            one = channel.phases[index].make(turn)
            takes: list[list[Part]] = [[] for _ in range(self.plan.nparticipants)]
            leaves: list[list[Part]] = [[] for _ in range(self.plan.nparticipants)]
            for (src, dst, _, _, reduce), size in zip(one.rows(), self.sizes(channel, one), strict=True):
                takes[dst].append((src, size, reduce))
                leaves[src].append((dst, size, reduce))
            self._rounds[key] = takes, leaves
        return self._rounds[key]

    def _round(self, who: int, number: int, index: int, turn: int) -> Steps:
        every, leaves = self._parts(number, index, turn)
        stacks, nodes, slot, here = self.stacks, self.placement.nodes, self._slots[number], self.placement.nodes[who]
        takes, sent = [], []
        for src, size, reduce in every[who]:
            yield self._ask(here)
            takes.append((self._receive(nodes[src], here, slot), size, reduce))
        for dst, size, _ in leaves[who]:
            yield self._ask(here)
            sent.append(self._send(here, nodes[dst], size, slot))
        for event, size, reduce in takes:
            yield event
            if reduce:
                yield stacks.add(here, size)
        for event in sent:
            yield event

    def _ask(self, node: str) -> simpy.Event:
        return self.env.timeout(0.0) if self.plan.algorithm in LIBRARY else self.stacks.call(node)

    def _send(self, src: str, dst: str, nbytes: float, slot: int) -> simpy.Event:
        """A send; inside a node nothing has to be sent."""
        if src == dst:
            return self.env.timeout(0.0)
        sent = self.stacks.send(src, dst, nbytes, slot)
        if self.context.recorder is not None and sent.callbacks is not None:
            sent.callbacks.append(partial(self._record, src, dst, float(self.env.now)))
        return sent

    def _record(self, src: str, dst: str, asked: float, _: simpy.Event) -> None:
        self.record(src, dst, asked)

    def _receive(self, src: str, dst: str, slot: int) -> simpy.Event:
        return self.stacks.receive(src, dst, slot) if src != dst else self.env.timeout(0.0)

    # Pipelines ------------------------------------------------------------------------

    def _sends(self, number: int, index: int) -> list[_Item]:
        """All sends of a pipeline phase, each with the arrivals that it waits for."""
        key = number, index
        if key not in self._items:
            channel = self.plan.channels[number]
            made = self._items[key] = []
            for item, before in in_order(channel.phases[index], channel, self.sizes, partial(_Item, self.env)):
                item.feeds += [earlier.arrived for earlier in before]
                made.append(item)
        return self._items[key]

    def _pipeline(self, who: int, number: int, index: int, phase: Phase) -> Steps:
        slot = self._slots[number]
        lanes: dict[tuple[str, int], list[_Item]] = {}
        for item in self._sends(number, index):
            if item.src == who:
                lanes.setdefault(("to", item.dst), []).append(item)
            if item.dst == who:
                lanes.setdefault(("from", item.src), []).append(item)
        play = {"to": partial(self._lane_out, slot), "from": partial(self._lane_in, slot)}
        yield self.env.all_of([self.env.process(play[way](items)) for (way, _), items in lanes.items()])

    def _lane_out(self, slot: int, items: Sequence[_Item]) -> Steps:
        nodes, sent = self.placement.nodes, []
        for item in items:
            for event in item.feeds:
                if not event.processed:
                    yield event
            yield self._ask(nodes[item.src])
            sent.append(self._send(nodes[item.src], nodes[item.dst], item.nbytes, slot))
        yield self.env.all_of(sent)

    def _lane_in(self, slot: int, items: Sequence[_Item]) -> Steps:
        nodes, coming = self.placement.nodes, []
        for item in items:
            yield self._ask(nodes[item.dst])
            coming.append(self._receive(nodes[item.src], nodes[item.dst], slot))
        for item, event in zip(items, coming, strict=True):
            yield event
            if item.reduce:
                yield self.stacks.add(nodes[item.dst], item.nbytes)
            item.arrived.succeed()
