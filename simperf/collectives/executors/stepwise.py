"""The reference executor: every send of a plan is a flow and an event of its own.

It runs inside a simulation, beside whatever else uses the network, and knows nothing
about symmetry. All other executors are tested against it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from functools import partial
from typing import ClassVar

import numpy as np
import simpy

from simperf.collectives.executors.base import Context, Executor, PlacedPlan, in_order
from simperf.collectives.plan import Channel, Phase
from simperf.engine.network import FlowNetwork

__all__ = ["Stepwise"]

#: destination, bytes, whether it is added up there
Send = tuple[int, float, bool]


class _Stage:
    """A participant's work before it continues: a round of steps, or a whole pipeline."""

    __slots__ = ("expected", "left", "pipeline", "sends")

    def __init__(self, expected: list[int], sends: list[list[Send]], pipeline: _Pipeline | None, left: int) -> None:
        self.expected, self.sends, self.pipeline, self.left = expected, sends, pipeline, left


class _Item:
    """A send of a pipeline."""

    __slots__ = ("dst", "feeds", "lane", "missing", "nbytes", "reduce", "src", "wired")

    def __init__(self, src: int, dst: int, nbytes: float, reduce: bool, lane: _Lane) -> None:
        self.src, self.dst, self.nbytes, self.reduce, self.lane = src, dst, nbytes, reduce, lane
        self.missing = 1  # the participant's entering the stage, and every receive that it waits for
        self.feeds: list[_Item] = []
        self.wired = False


class _Lane:
    """Sends from one participant to another, in order, one on the wire at a time."""

    __slots__ = ("busy", "queue")

    def __init__(self) -> None:
        self.queue: deque[_Item] = deque()
        self.busy = False


class _Pipeline:
    """The sends of a pipeline phase and what they wait for."""

    def __init__(self, whole: Stepwise, channel: Channel, phase: Phase) -> None:
        count = whole.plan.nparticipants
        self.by_source: list[list[_Item]] = [[] for _ in range(count)]
        self.expected = [0] * count
        lanes: dict[tuple[int, int], _Lane] = {}

        def make(src: int, dst: int, nbytes: float, reduce: bool) -> _Item:
            lane = lanes.setdefault((src, dst), _Lane())
            item = _Item(src, dst, nbytes, reduce, lane)
            lane.queue.append(item)
            return item

        for item, before in in_order(phase, channel, whole.sizes, make):
            for earlier in before:
                earlier.feeds.append(item)
            item.missing += len(before)
            self.by_source[item.src].append(item)
            self.expected[item.dst] += 1


class _Run:
    """One channel of a plan on its way."""

    def __init__(self, whole: Stepwise, number: int, channel: Channel) -> None:
        self.whole, self.number, self.channel = whole, number, channel
        self.count = whole.plan.nparticipants
        self.keys = [(phase, index) for phase in channel.phases for index in self._rounds(phase)]
        self.stages: dict[int, _Stage] = {}
        self.at = [-1] * self.count
        self.left = [0] * self.count
        self.early: list[dict[int, int]] = [{} for _ in range(self.count)]

    @staticmethod
    def _rounds(phase: Phase) -> Sequence[int]:
        return range(phase.nrounds) if phase.style == "steps" else ((0,) if phase.nrounds else ())

    def _stage(self, number: int) -> _Stage:
        stage = self.stages.get(number)
        if stage is None:
            phase, index = self.keys[number]
            if phase.style == "pipeline":
                pipeline = _Pipeline(self.whole, self.channel, phase)
                stage = _Stage(pipeline.expected, [], pipeline, self.count)
            else:
                one = phase.make(index)
                expected = np.bincount(one.dst, minlength=self.count).tolist()
                nbytes = self.whole.sizes(self.channel, one)
                sends: list[list[Send]] = [[] for _ in range(self.count)]
                for (src, dst, _, _, reduce), size in zip(one.rows(), nbytes, strict=True):
                    sends[src].append((dst, size, reduce))
                stage = _Stage(expected, sends, None, self.count)
            self.stages[number] = stage
        return stage

    def advance(self, who: int) -> None:
        """Let a participant continue to the next stage in which it has something to do."""
        while True:
            number = self.at[who] + 1
            self.at[who] = number
            if number > 0:
                before = self.stages[number - 1]
                before.left -= 1
                if before.left == 0:
                    del self.stages[number - 1]
            if number == len(self.keys):
                self.whole.finished(who)
                return
            stage = self._stage(number)
            items = stage.pipeline.by_source[who] if stage.pipeline else ()
            sends = stage.sends[who] if stage.sends else ()
            left = stage.expected[who] - self.early[who].pop(number, 0) + len(sends) + len(items)
            if left or items:
                break
        self.left[who] = left
        for item in items:
            self._fed(number, item)
        for dst, nbytes, reduce in sends:
            self._launch(number, who, dst, nbytes, reduce)

    def _launch(self, number: int, src: int, dst: int, nbytes: float, reduce: bool) -> None:
        flow = self.whole.transfer(src, dst, nbytes, self.number)
        assert flow.callbacks is not None
        if reduce and self.whole.reducing:
            flow.callbacks.append(partial(self._add_up, number, src, dst, nbytes))
        else:
            flow.callbacks.append(partial(self._arrived, number, src, dst))

    def _add_up(self, number: int, src: int, dst: int, nbytes: float, _: simpy.Event) -> None:
        self._done(number, src)
        done = self.whole.reduced(dst, nbytes)
        assert done.callbacks is not None
        done.callbacks.append(lambda event: self._received(number, dst))

    def _arrived(self, number: int, src: int, dst: int, _: simpy.Event) -> None:
        self._done(number, src)
        self._received(number, dst)

    def _done(self, number: int, src: int) -> None:
        self.left[src] -= 1
        if self.left[src] == 0:
            self.advance(src)

    def _received(self, number: int, dst: int) -> None:
        if self.at[dst] == number:
            self.left[dst] -= 1
            if self.left[dst] == 0:
                self.advance(dst)
        else:
            early = self.early[dst]
            early[number] = early.get(number, 0) + 1

    # Pipelines -----------------------------------------------------------------------

    def _fed(self, number: int, item: _Item) -> None:
        """Count one of the things that a send waits for; the last one starts its latency."""
        item.missing -= 1
        if item.missing:
            return
        wait = self.whole.env.timeout(self.whole.transport.latency(self.whole.placement.hop(item.src, item.dst)))
        assert wait.callbacks is not None
        wait.callbacks.append(lambda event: self._wire(number, item))

    def _wire(self, number: int, item: _Item) -> None:
        item.wired = True
        self._next(number, item.lane)

    def _next(self, number: int, lane: _Lane) -> None:
        if lane.busy or not lane.queue or not lane.queue[0].wired:
            return
        item = lane.queue.popleft()
        lane.busy = True
        flow = self.whole.transfer(item.src, item.dst, item.nbytes, self.number, waited=True)
        assert flow.callbacks is not None
        flow.callbacks.append(lambda event: self._left_wire(number, item))

    def _left_wire(self, number: int, item: _Item) -> None:
        item.lane.busy = False
        self._next(number, item.lane)
        if item.reduce and self.whole.reducing:
            done = self.whole.reduced(item.dst, item.nbytes)
            assert done.callbacks is not None
            done.callbacks.append(lambda event: self._landed(number, item))
            self._done(number, item.src)
        else:
            self._done(number, item.src)
            self._landed(number, item)

    def _landed(self, number: int, item: _Item) -> None:
        for fed in item.feeds:
            self._fed(number, fed)
        self._received(number, item.dst)


class Stepwise(Executor):
    """A plan under way on a flow network, send by send; the parameters are those of every `Executor`."""

    method: ClassVar[str] = "step-exact"

    @classmethod
    def accepts(cls, placed: PlacedPlan, context: Context, *, exact: bool = False) -> bool:
        """Any plan between hosts without network stacks."""
        return context.stacks is None

    def _prepare(self) -> None:
        self.recorder = self.context.recorder
        self.sends = 0
        self.reducing = self.transport.reduce_rate != float("inf")
        self._reducer = [0.0] * self.plan.nparticipants
        self._open = [len(self.plan.channels)] * self.plan.nparticipants
        self._runs = [_Run(self, number, channel) for number, channel in enumerate(self.plan.channels)]

    def enter(self, members: Collection[int], delay: float = 0.0) -> None:
        """Let participants take part, `delay` [s] from now."""
        start = self.env.timeout(delay + self.transport.start)
        assert start.callbacks is not None
        start.callbacks.append(partial(self._enter, members))

    def move(self, env: simpy.Environment, network: FlowNetwork) -> None:
        """Continue by another clock and on another network, to which all that is under way has been handed."""
        self.env, self.network = env, network
        self.done = env.event()

    def _enter(self, members: Collection[int], _: simpy.Event) -> None:
        for run in self._runs:
            for who in members:
                run.advance(who)

    def transfer(self, src: int, dst: int, nbytes: float, channel: int, *, waited: bool = False) -> simpy.Event:
        """Send bytes on a channel; the latency has passed already if the send has `waited`."""
        self.sends += 1
        hop, transport = self.placement.hop(src, dst), self.transport
        flow = self.network.transfer(
            hop.resources,
            nbytes / transport.efficiency,
            latency=0.0 if waited else transport.latency(hop),
            cap=transport.most(hop, channel),
        )
        if self.recorder is not None and flow.callbacks is not None:
            flow.callbacks.append(partial(self._record, src, dst, self.env.now))
        return flow

    def _record(self, src: int, dst: int, started: float, _: simpy.Event) -> None:
        self.record(self.placement.nodes[src], self.placement.nodes[dst], started)

    def reduced(self, who: int, nbytes: float) -> simpy.Event:
        """Have a participant add up what has arrived, after what arrived before it."""
        start = max(self._reducer[who], self.env.now)
        self._reducer[who] = end = start + nbytes / self.transport.reduce_rate
        return self.env.timeout(end - self.env.now)

    def finished(self, who: int) -> None:
        """Note that a participant is done with a channel."""
        self._open[who] -= 1
        if self._open[who]:
            return
        self.release((who,))
