"""The boxed cluster as the simulator has it: shaped links around a switch, and cores that all hosts share.

Everything that takes time is a flow on one network: bytes on their way draw on two links, and the work of the two
kernels and threads for them on the cores; computing draws on the cores alone. The cores count in bytes: so many as they
could move if every segment woke somebody and they did nothing else. So sharing, saturation and the trade of computing
against communication are one max-min fairness. What threads lose by waiting for each other comes on top, and what they
save by it (`simperf.calibrate.cluster.waiting`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy

from simperf.calibrate.cluster.constants import Constants
from simperf.calibrate.cluster.shape import SEGMENT, Shape
from simperf.calibrate.cluster.waiting import KEEP, Pace, cooled
from simperf.engine.bucket import PACKET, TokenBucket
from simperf.engine.network import FlowNetwork

__all__ = ["BoxedMachine", "Steps"]

Steps = Generator[simpy.Event, Any, Any]
CORES = "cores"


@dataclass(slots=True)
class _Slot:
    """Sends and receives between two hosts that belong together, in order."""

    sends: deque[tuple[float, simpy.Event]] = field(default_factory=deque)
    receives: deque[simpy.Event] = field(default_factory=deque)
    credits: int = 0


@dataclass(slots=True, eq=False)
class _Lane:
    """The connection from one host to another: messages in order, one at a time."""

    src: int
    dst: int
    waiting: deque[tuple[float, simpy.Event, simpy.Event]] = field(default_factory=deque)
    busy: bool = False
    nbytes: float = 0.0
    out: int = 1
    into: int = 1


class BoxedMachine:
    """Hosts on a switch inside one machine.

    Parameters
    ----------
    hosts : int
    shape : Shape
        Of the links.
    constants : Constants
    uneven : float
        Standard deviation of the logarithm of what messages claim of a link that they share [1].
    seed : int
        Of these claims.
    """

    def __init__(
        self,
        hosts: int,
        shape: Shape,
        constants: Constants,
        *,
        uneven: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.env = simpy.Environment()
        self.shape, self.constants = shape, constants
        links = [f"h{host}>" for host in range(hosts)] + [f">h{host}" for host in range(hosts)]
        self.byte = constants.byte
        capacity = constants.cores / self.byte
        self.network = FlowNetwork(self.env, {CORES: capacity, **dict.fromkeys(links, 0.0)})
        payload = constants.efficiency
        self._buckets: dict[str, TokenBucket] = {}
        for host in range(hosts):
            for link in (f"h{host}>", f">h{host}"):
                rate, burst = shape.of(host) * payload, constants.burst * payload
                self._buckets[link] = TokenBucket(self.network, link, rate=rate, burst=burst, peak=max(rate, capacity))
        self._pace = Pace(self._buckets, capacity, constants.segments, together=constants.together)
        self._slots: dict[tuple[int, int, int], _Slot] = {}
        self._lanes: dict[tuple[int, int], _Lane] = {}
        self._active: list[_Lane] = []
        self._busy = 0
        self._inputs = [0] * hosts
        self._taken = [-math.inf] * hosts
        self._promised = dict.fromkeys(links, 0.0)
        self._uneven = uneven
        self._claims = np.random.default_rng(seed)

    def work(self, seconds: float) -> simpy.Event:
        """Event that comes when one thread has done so much work [s alone]."""
        core = 1.0 / self.byte
        event = self.network.transfer((CORES,), seconds * core, cap=core)
        self._busy += 1
        assert event.callbacks is not None
        event.callbacks.append(self._rested)
        return event

    def resume(self, slept: float, seconds: float = 0.0) -> Steps:
        """A thread goes on with some work [s alone] after it has slept so long [s]."""
        if self._asleep:
            seconds += self.constants.resume * cooled(slept, KEEP)
        if seconds:
            yield self.work(seconds)

    def _rested(self, _: simpy.Event) -> None:
        self._busy -= 1

    def _wake(self) -> simpy.Event:
        """Event that comes when a message has found a core: one that sleeps has to be woken, a busy one has not."""
        return self.env.timeout(self.constants.latency if self._asleep else 0.0)

    def _input(self, host: int, seconds: float) -> Steps:
        """The thread that takes in all that comes to a host does some work [s alone]; if it sleeps it is woken first.

        On a sleeping core that is part of `Constants.cold`, on a busy one a message more from kernel to thread. While
        it works nobody has to wake it: in a train of messages it finds the next one when it is done with one.
        """
        if not self._inputs[host] and not self._asleep:
            seconds += self.constants.traversal
        self._inputs[host] += 1
        yield self.work(seconds)
        self._inputs[host] -= 1

    @property
    def _asleep(self) -> bool:
        """Whether a core has nothing to do, so that it is the one that a thread is woken on."""
        return self._busy < self.constants.cores

    @property
    def load(self) -> float:
        """Share of the cores' time that has been asked for, 0 to 1."""
        return self.network.moved[CORES] * self.byte / (self.constants.cores * float(self.env.now))

    def process(self, steps: Steps) -> simpy.Process:
        """Start a thread."""
        return self.env.process(steps)

    # Messages -------------------------------------------------------------------------

    def send(self, src: int, dst: int, nbytes: float, slot: int = 0) -> simpy.Event:
        """Ask for a send; the event comes when the sender's socket has taken all in."""
        sent = simpy.Event(self.env)
        self._slot(src, dst, slot).sends.append((nbytes, sent))
        self.process(self._announce(dst))
        self._match(src, dst, slot)
        return sent

    def receive(self, src: int, dst: int, slot: int = 0) -> simpy.Event:
        """Ask for what `src` sends next in a slot; the event comes when all of it is there."""
        received = simpy.Event(self.env)
        self._slot(src, dst, slot).receives.append(received)
        self.process(self._ready(src, dst, slot))
        return received

    def _slot(self, src: int, dst: int, slot: int) -> _Slot:
        return self._slots.setdefault((src, dst, slot), _Slot())

    def hand_over(self) -> Steps:
        """A thread wakes another one."""
        yield self.work(self.constants.traversal)
        yield self._wake()

    def _announce(self, dst: int) -> Steps:
        """The sender tells the receiver that it has something, and waits for no answer."""
        yield self.work(self.constants.traversal / 2)
        yield self._wake()
        yield from self._input(dst, self.constants.traversal / 2)

    def _ready(self, src: int, dst: int, slot: int) -> Steps:
        """The receiver tells the sender that it has room: no byte leaves before.

        On its way out the message stands behind what the receiver's own sends have in its adapter's queue, unless
        there are tokens, so that nothing stands there.
        """
        yield self.work(self.constants.traversal / 2)
        if self._buckets[f"h{dst}>"].tokens < PACKET:
            standing = sum(min(self.constants.window, lane.nbytes / 2) for lane in self._active if lane.src == dst)
            yield self.env.timeout(standing / (self.shape.of(dst) * self.constants.efficiency))
        yield self._wake()
        yield from self._input(src, self.constants.traversal / 2)
        self._slot(src, dst, slot).credits += 1
        self._match(src, dst, slot)

    def _match(self, src: int, dst: int, slot: int) -> None:
        asked = self._slot(src, dst, slot)
        lane = self._lanes.setdefault((src, dst), _Lane(src, dst))
        while asked.credits and asked.sends:
            asked.credits -= 1
            nbytes, sent = asked.sends.popleft()
            lane.waiting.append((nbytes, sent, asked.receives.popleft()))
        if lane.waiting and not lane.busy:
            lane.busy = True
            self.process(self._carry(lane))

    def _carry(self, lane: _Lane) -> Steps:
        links = (f"h{lane.src}>", f">h{lane.dst}")
        self._enter(lane)
        while lane.waiting:
            lane.nbytes, sent, received = lane.waiting.popleft()
            yield self.work(self.constants.traversal / 2)
            weight = float(np.exp(self._uneven * self._claims.standard_normal())) if self._uneven else 1.0
            self._answer(lane)
            nbytes = lane.nbytes + self.constants.along * self.constants.efficiency
            began = float(self.env.now)
            self._pace.enter(lane, links)
            burst = self._burst(links, nbytes)
            effort = self._effort(lane, nbytes, burst)
            kept = min(nbytes, self.constants.buffer)
            if nbytes > kept:
                yield self._move(links, nbytes - kept, effort, weight)
            sent.succeed()
            if kept:
                yield self._move(links, kept, effort, weight)
            self._pace.leave(lane)
            self._promise(links, -burst)
            lost = self._lost(lane)
            if lost:
                yield self.network.transfer(links[1:], lost, cap=2.0 / self.byte)
            self.process(self._arrive(lane, received, began))
        lane.busy = False
        self._active.remove(lane)

    def _move(self, links: tuple[str, ...], nbytes: float, effort: float, weight: float) -> simpy.Event:
        """Event that comes when bytes have passed their links, and threads and kernels have done their work."""
        passed = self.network.transfer(links, nbytes, weight=weight)
        return passed & self.network.transfer((CORES,), nbytes * effort, cap=2.0 / self.byte, weight=weight)

    def _effort(self, lane: _Lane, nbytes: float, burst: float) -> float:
        """Work for bytes of a message, over that for bytes whose every segment wakes somebody [1].

        Nobody is woken for those that pass in a burst, nor for a segment that is there when a thread gets its core; of
        a message, no more than it has.
        """
        together = self.constants.together
        found = min(self._pace.found, max(1.0, lane.nbytes / SEGMENT))
        return together + (1.0 - together) / found * (1.0 - burst / nbytes) if nbytes else 1.0

    def _burst(self, links: tuple[str, ...], nbytes: float) -> float:
        """How many bytes of a message pass both links at once, for tokens that no other message counts on [B].

        They come together: a byte costs `Constants.batched`.
        """
        found = max(0.0, min(nbytes, *(self._buckets[link].tokens - self._promised[link] for link in links)))
        self._promise(links, found)
        return found

    def _promise(self, links: tuple[str, ...], nbytes: float) -> None:
        for link in links:
            self._promised[link] += nbytes

    def _answer(self, lane: _Lane) -> None:
        """Start what a message sends the other way, which nobody waits for but which takes room on those links.

        Where the same connection has data to send the other way, its packets carry the acknowledgements.
        """
        back = self._lanes.get((lane.dst, lane.src))
        segments = 0 if back is not None and back.busy else math.ceil(lane.nbytes / SEGMENT)
        nbytes = self.constants.against + self.constants.frame * segments
        if nbytes > 0.0:
            self.network.transfer((f"h{lane.dst}>", f">h{lane.src}"), nbytes * self.constants.efficiency)

    def _enter(self, lane: _Lane) -> None:
        """Note how many connections share a link with others that go elsewhere, or that come from elsewhere."""
        self._active.append(lane)
        lane.out = lane.into = 1
        beside = [other for other in self._active if other.src == lane.src]
        for other in beside:
            other.out = max(other.out, len(beside))
        beside = [other for other in self._active if other.dst == lane.dst]
        for other in beside:
            other.into = max(other.into, len(beside))

    def _lost(self, lane: _Lane) -> float:
        """What a link loses to connections that have to share at both of their ends [B].

        A window of each stands in the queue of one link while the other one runs dry, in turn with its neighbours. It
        takes two links that hold the connection back about alike; where one does alone, the other is never waited for.
        """
        if lane.out < 2 or lane.into < 2:
            return 0.0
        ratio = (self.shape.of(lane.src) / lane.out) / (self.shape.of(lane.dst) / lane.into)
        if not 0.5 < ratio < 2.0:
            return 0.0
        return lane.nbytes * self.constants.window / (lane.nbytes + self.constants.window)

    def _arrive(self, lane: _Lane, received: simpy.Event, began: float) -> Steps:
        """The receiver's input thread takes a message and wakes who waits for it."""
        dst, nbytes, slept = lane.dst, lane.nbytes, float(self.env.now) - began
        yield self._wake()
        yield from self._input(dst, self.constants.traversal / 2 + self._cold(dst, nbytes, slept))
        if received.callbacks and not self._asleep:
            yield self.work(self.constants.traversal)
        received.succeed()

    def _cold(self, dst: int, nbytes: float, slept: float) -> float:
        """CPU time that a message takes longer because of what has slept, or what others put out of the caches [s].

        A core that sleeps takes its threads' caches with it. On busy cores a thread loses them to those that run since
        it took its last message, or its last segment of this one, which has been under way for `slept`.
        """
        now = float(self.env.now)
        since = now - self._taken[dst]
        if nbytes > SEGMENT:
            since = min(since, slept * SEGMENT / nbytes)
        self._taken[dst] = now
        return self.constants.cold * (cooled(slept) if self._asleep else cooled(since, KEEP))
