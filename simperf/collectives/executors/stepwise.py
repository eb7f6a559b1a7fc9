"""The reference executor: every send of a plan is a flow and an event of its own.

It runs inside a simulation, beside whatever else uses the network, and knows nothing
about symmetry. The faster executor is held against it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import simpy

from simperf.collectives.placement import Placement, Transport
from simperf.collectives.plan import Channel, Phase, Plan, Round, chunk_sizes, chunks_in
from simperf.engine.network import FlowNetwork
from simperf.engine.recorder import Recorder

__all__ = ["Stepwise"]

#: destination, bytes, whether it is added up there
Send = tuple[int, float, bool]


class _Stage:
    """What a participant must do before it goes on: a round of steps, or a whole pipeline."""

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

    def __init__(self, phase: Phase, sizes: Callable[[Round], list[float]], nchunks: int, count: int) -> None:
        self.by_source: list[list[_Item]] = [[] for _ in range(count)]
        self.expected = [0] * count
        lanes: dict[tuple[int, int], _Lane] = {}
        arrivals: dict[tuple[int, int], list[_Item]] = {}
        for one in phase:
            nbytes = sizes(one)
            new: list[tuple[tuple[int, int], _Item]] = []
            for (src, dst, chunk, span, reduce), size in zip(one.rows(), nbytes, strict=True):
                lane = lanes.setdefault((src, dst), _Lane())
                item = _Item(src, dst, size, reduce, lane)
                lane.queue.append(item)
                for part in chunks_in(chunk, span, nchunks):
                    for earlier in arrivals.get((src, part), ()):
                        earlier.feeds.append(item)
                        item.missing += 1
                    new.append(((dst, part), item))
                self.by_source[src].append(item)
                self.expected[dst] += 1
            for key, item in new:
                arrivals.setdefault(key, []).append(item)


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
        self.nbytes = whole.nbytes * whole.plan.copies * channel.share

    @staticmethod
    def _rounds(phase: Phase) -> Sequence[int]:
        return range(phase.nrounds) if phase.style == "steps" else ((0,) if phase.nrounds else ())

    def _sizes(self, one: Round) -> list[float]:
        unit, nchunks = self.whole.transport.unit, self.channel.nchunks
        sizes: list[float] = chunk_sizes(one.chunk, one.span, nchunks, nbytes=self.nbytes, unit=unit).tolist()
        return sizes

    def _stage(self, number: int) -> _Stage:
        stage = self.stages.get(number)
        if stage is None:
            phase, index = self.keys[number]
            if phase.style == "pipeline":
                pipeline = _Pipeline(phase, self._sizes, self.channel.nchunks, self.count)
                stage = _Stage(pipeline.expected, [], pipeline, self.count)
            else:
                one = phase.make(index)
                expected = np.bincount(one.dst, minlength=self.count).tolist()
                nbytes = self._sizes(one)
                sends: list[list[Send]] = [[] for _ in range(self.count)]
                for (src, dst, _, _, reduce), size in zip(one.rows(), nbytes, strict=True):
                    sends[src].append((dst, size, reduce))
                stage = _Stage(expected, sends, None, self.count)
            self.stages[number] = stage
        return stage

    def advance(self, who: int) -> None:
        """Let a participant go on to the next stage in which it has something to do."""
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


class Stepwise:
    """A plan under way on a flow network.

    Parameters
    ----------
    env : simpy.Environment
        The clock.
    network : FlowNetwork
        Carries the sends, beside whatever else is on it.
    plan : Plan
        Who sends what to whom.
    placement : Placement
        Where the participants sit.
    nbytes : float
        Payload [B].
    transport : Transport
        How sends are carried.
    entry : sequence of float
        Delay from now until each participant takes part [s]; infinite for one that
        `enter` will be called for.
    recorder : Recorder, optional
        Is told of every send.
    released : callable, optional
        Called with the number of a participant when it is done with all channels.

    Attributes
    ----------
    done : simpy.Event
        Succeeds with the time of completion [s].
    finish : list of float
        Time at which each participant was done [s].
    """

    def __init__(
        self,
        env: simpy.Environment,
        network: FlowNetwork,
        *,
        plan: Plan,
        placement: Placement,
        nbytes: float,
        transport: Transport,
        entry: Sequence[float],
        recorder: Recorder | None = None,
        released: Callable[[int], None] | None = None,
    ) -> None:
        self.recorder, self._released = recorder, released
        self.env, self.network, self.plan, self.placement = env, network, plan, placement
        self.nbytes, self.transport = nbytes, transport
        self.done = env.event()
        self.finish = [0.0] * plan.nparticipants
        self.sends = 0
        self.reducing = transport.reduce_rate != float("inf")
        self._reducer = [0.0] * plan.nparticipants
        self._open = [len(plan.channels)] * plan.nparticipants
        self._left = plan.nparticipants
        self._runs = [_Run(self, number, channel) for number, channel in enumerate(plan.channels)]
        groups: dict[float, list[int]] = {}
        for who, delay in enumerate(entry):
            groups.setdefault(delay, []).append(who)
        for delay, members in groups.items():
            if delay < float("inf"):
                self.enter(members, delay)

    def enter(self, members: Sequence[int], delay: float = 0.0) -> None:
        """Let participants take part, `delay` s from now."""
        start = self.env.timeout(delay + self.transport.start)
        assert start.callbacks is not None
        start.callbacks.append(partial(self._enter, members))

    def move(self, env: simpy.Environment, network: FlowNetwork) -> None:
        """Go on by another clock and on another network, to which all that is under way has been handed."""
        self.env, self.network = env, network
        self.done = env.event()

    def _enter(self, members: Sequence[int], _: simpy.Event) -> None:
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
            flow.callbacks.append(partial(self._record, self.recorder, src, dst, self.env.now))
        return flow

    def _record(self, recorder: Recorder, src: int, dst: int, started: float, _: simpy.Event) -> None:
        source, target = self.placement.nodes[src], self.placement.nodes[dst]
        recorder.span(f"{source}/send", f"to {target}", started, self.env.now, "communication")

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
        self.finish[who] = self.env.now
        if self._released is not None:
            self._released(who)
        self._left -= 1
        if self._left == 0:
            self.done.succeed(self.env.now)
