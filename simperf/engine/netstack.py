"""The network stacks of hosts: messages between processes, with what they cost the hosts' cores.

A send is what libraries such as gloo make of it. The sender tells the receiver that it has something, the receiver
tells the sender that it has room, and then the bytes go, one message at a time on a connection. Bytes pass the links
of their route as a flow of the network, and beside that they are work for the cores of both hosts; they are there when
both are done. Work, kernels of a CPU and the host's own threads share the cores max-min fairly.

Where several hosts share their cores (`simperf.hardware.netstack.Hosting`), the work of both ends is one.

Not modelled: single packets and losses, slow start, the scheduler's time slices.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

import simpy

from simperf.engine.bucket import PACKET, TokenBucket
from simperf.engine.contention import cooled, found
from simperf.engine.host import Host
from simperf.engine.network import FlowNetwork
from simperf.engine.share import Share, ShareUser

if TYPE_CHECKING:
    from simperf.hardware import Route

__all__ = ["NetworkStacks", "StackCosts"]

Steps = Generator[simpy.Event, Any, Any]


class StackCosts(Protocol):
    """Costs that are read of a network stack's part (`simperf.hardware.NetworkStackPart` is one)."""

    wake: float
    message: float
    call: float
    cold: float
    poll: float
    keep: float
    operation: float
    byte_rate: float
    bulk_rate: float
    add_rate: float
    rate: float
    efficiency: float
    header: float
    word: float
    segment: float
    window: float
    threads: int


@dataclass(slots=True)
class _Slot:
    """Sends and receives between two processes that belong together, in order."""

    sends: deque[tuple[float, float, simpy.Event]] = field(default_factory=deque)
    receives: deque[simpy.Event] = field(default_factory=deque)
    credits: int = 0


@dataclass(slots=True, eq=False)
class _Connection:
    """The connection from one process to another: messages in order, one at a time."""

    src: Host
    dst: Host
    links: tuple[str, ...]
    back: tuple[str, ...]
    latency: float
    waiting: deque[tuple[float, float, simpy.Event, simpy.Event]] = field(default_factory=deque)
    busy: bool = False
    nbytes: float = 0.0
    out: int = 1
    into: int = 1

    @property
    def inside(self) -> bool:
        """Whether both processes are on one host, so that no network stack has part in it."""
        return self.src is self.dst


class NetworkStacks:
    """The network stacks of a machine's hosts.

    Parameters
    ----------
    env : simpy.Environment
    network : FlowNetwork
        Carries the bytes.
    costs : StackCosts
        Of every host.
    host : callable
        From a node to the host whose cores work for it.
    route : callable
        From two nodes to the way between them.
    capacities : mapping of str to float
        Rate of each link [B/s].
    buckets : mapping of str to TokenBucket
        Links that are shaped.
    """

    def __init__(
        self,
        env: simpy.Environment,
        network: FlowNetwork,
        costs: StackCosts,
        *,
        host: Callable[[str], Host],
        route: Callable[[str, str], Route],
        capacities: Mapping[str, float],
        buckets: Mapping[str, TokenBucket],
    ) -> None:
        self.env, self.network, self.costs = env, network, costs
        self.host, self._route, self._capacities, self._buckets = host, route, capacities, buckets
        self._slots: dict[tuple[str, str, int], _Slot] = {}
        self._connections: dict[tuple[str, str], _Connection] = {}
        self._active: dict[_Connection, None] = {}
        self._users: Counter[str] = Counter()
        self._inputs: Counter[str] = Counter()
        self._moving: Counter[Share] = Counter()
        self._promised: Counter[str] = Counter()
        self._taken: dict[str, float] = {}
        self._callers: dict[str, simpy.Event] = {}
        self._numbers = count(1)

    @property
    def used(self) -> bool:
        """Whether any message passed between two hosts."""
        return any(not line.inside for line in self._connections.values())

    def slot(self) -> int:
        """A number that no sends and receives have been asked for under."""
        return next(self._numbers)

    # What threads do --------------------------------------------------------------------

    def work(self, node: str, seconds: float) -> simpy.Event:
        """Event that comes when one thread of the host of `node` has done so much work [s alone]."""
        if seconds <= 0.0:
            return self.env.timeout(0.0)
        return self.host(node).work(seconds)

    def call(self, node: str) -> simpy.Event:
        """Event that comes when a thread has asked for a send or a receive."""
        return self.work(node, self.costs.call)

    def add(self, node: str, nbytes: float) -> simpy.Event:
        """Event that comes when a thread has added so many bytes [B] to others."""
        return self.work(node, nbytes / self.costs.add_rate)

    def hand_over(self, node: str) -> Steps:
        """A thread wakes another one of its process."""
        yield self.work(node, self.costs.message)
        yield self._wake(self.host(node))

    def asleep(self, host: Host) -> bool:
        """Whether one of the host's cores has nothing to do, so that it is the one that a thread is woken on."""
        return len(host.share.running) - self._moving[host.share] < host.share.capacity

    def _wake(self, host: Host) -> simpy.Event:
        """Event that comes when a message has found a core: one that sleeps has to be woken, a busy one has not."""
        return self.env.timeout(self.costs.wake if self.asleep(host) else 0.0)

    # Messages -------------------------------------------------------------------------

    def carry(self, src: str, dst: str, nbytes: float, *, weight: float = 1.0) -> simpy.Event:
        """Event that comes when so many bytes [B] have arrived, which both ends ask for now.

        They claim links that they share in proportion to their weight [1].
        """
        received, slot = simpy.Event(self.env), self.slot()

        def sender() -> Steps:
            yield from self._called(src)
            yield self.send(src, dst, nbytes, slot, weight=weight)

        def receiver() -> Steps:
            yield from self._called(dst)
            yield self.receive(src, dst, slot)
            received.succeed(self.env.now)

        self.env.process(sender())
        self.env.process(receiver())
        return received

    def _called(self, node: str) -> Steps:
        """The one thread of a node that calls asks for one send or receive after the other."""
        before = self._callers.get(node)
        done = self._callers[node] = simpy.Event(self.env)
        if before is not None and not before.processed:
            yield before
        yield self.call(node)
        done.succeed()

    def send(self, src: str, dst: str, nbytes: float, slot: int = 0, *, weight: float = 1.0) -> simpy.Event:
        """Ask for a send of so many bytes [B]; the event comes when they have left."""
        sent = simpy.Event(self.env)
        self._slot(src, dst, slot).sends.append((nbytes, weight, sent))
        if not self._connection(src, dst).inside:
            self.env.process(self._announce(src, dst))
        self._match(src, dst, slot)
        return sent

    def receive(self, src: str, dst: str, slot: int = 0) -> simpy.Event:
        """Ask for what `src` sends next in a slot; the event comes when all of it is there."""
        received = simpy.Event(self.env)
        asked = self._slot(src, dst, slot)
        asked.receives.append(received)
        if self._connection(src, dst).inside:
            asked.credits += 1
            self._match(src, dst, slot)
        else:
            self.env.process(self._ready(src, dst, slot))
        return received

    def _slot(self, src: str, dst: str, slot: int) -> _Slot:
        return self._slots.setdefault((src, dst, slot), _Slot())

    def _connection(self, src: str, dst: str) -> _Connection:
        if (src, dst) not in self._connections:
            there, back = self._route(src, dst), self._route(dst, src)
            self._connections[src, dst] = _Connection(
                self.host(src), self.host(dst), there.resources, back.resources, there.latency
            )
        return self._connections[src, dst]

    def _announce(self, src: str, dst: str) -> Steps:
        """The sender tells the receiver that it has something, and waits for no answer."""
        line = self._connection(src, dst)
        yield self.work(src, self.costs.message / 2)
        yield self.env.timeout(line.latency)
        yield self._wake(line.dst)
        yield from self._input(dst, line.dst, self.costs.message / 2)

    def _input(self, node: str, host: Host, seconds: float) -> Steps:
        """The thread that takes in all that comes to a host does some work [s alone]; if it sleeps it is woken first.

        On a core that sleeps that is part of `cold`, on a busy one it is a message more, from kernel to thread. While
        the thread works nobody has to wake it: in a train of messages it finds the next one when it is done with one.
        """
        if not self._inputs[host.name] and not self.asleep(host):
            seconds += self.costs.message
        self._inputs[host.name] += 1
        yield self.work(node, seconds)
        self._inputs[host.name] -= 1

    def _ready(self, src: str, dst: str, slot: int) -> Steps:
        """The receiver tells the sender that it has room: no byte leaves before.

        On its way out the message stands behind what the receiver's own sends have in its NIC's queue, unless
        there are tokens, so that nothing stands there.
        """
        line = self._connection(src, dst)
        yield self.work(dst, self.costs.message / 2)
        if line.back and self._tokens(line.back[0]) < PACKET:
            first = line.back[0]
            queued = (min(self.costs.window, one.nbytes / 2) for one in self._active if one.links[:1] == (first,))
            yield self.env.timeout(sum(queued) / (self._rate(first) * self.costs.efficiency))
        yield self.env.timeout(line.latency)
        yield self._wake(line.src)
        yield from self._input(src, line.src, self.costs.message / 2)
        self._slot(src, dst, slot).credits += 1
        self._match(src, dst, slot)

    def _match(self, src: str, dst: str, slot: int) -> None:
        asked = self._slot(src, dst, slot)
        line = self._connection(src, dst)
        while asked.credits and asked.sends:
            asked.credits -= 1
            nbytes, weight, sent = asked.sends.popleft()
            line.waiting.append((nbytes, weight, sent, asked.receives.popleft()))
        if not asked.sends and not asked.receives:  # no credit is left or under way: each belongs to a receive
            del self._slots[src, dst, slot]
        if line.waiting and not line.busy:
            line.busy = True
            self.env.process(self._carry(src, dst, line))

    def _carry(self, src: str, dst: str, line: _Connection) -> Steps:
        self._enter(line)
        while line.waiting:
            nbytes, weight, sent, received = line.waiting.popleft()
            line.nbytes = nbytes
            if line.inside:
                yield self.network.transfer(line.links, nbytes, latency=line.latency, weight=weight)
                sent.succeed()
                received.succeed(self.env.now)
                continue
            yield self.work(src, self.costs.message / 2)
            self._answer(src, dst, line)
            began = float(self.env.now)
            yield from self._move(line, nbytes + self._along, weight)
            sent.succeed()
            self.env.process(self._arrive(dst, line, nbytes, received, began))
        line.busy = False
        del self._active[line]

    def _move(self, line: _Connection, nbytes: float, weight: float) -> Steps:
        """Bytes pass their links, and threads and kernels of both ends do their work."""
        costs = self.costs
        self._users.update(line.links)
        burst = self._burst(line, nbytes)
        passed: list[simpy.Event] = [
            self.network.transfer(
                line.links,
                nbytes / costs.efficiency,
                latency=line.latency,
                cap=costs.rate / costs.efficiency,
                weight=weight,
            )
        ]
        if costs.byte_rate < math.inf and nbytes > 0.0:
            if line.src.share is line.dst.share:
                passed.append(self._bytes(line, line.src, nbytes, burst, demand=2.0))
            else:
                passed += [self._bytes(line, host, nbytes, burst, demand=1.0) for host in (line.src, line.dst)]
        yield self.env.all_of(passed)
        self._users.subtract(line.links)
        self._promised.subtract(dict.fromkeys(line.links, burst))
        lost = self._lost(line)
        if lost:
            yield self.network.transfer(line.links[-1:], lost / costs.efficiency)

    def _bytes(self, line: _Connection, host: Host, nbytes: float, burst: float, *, demand: float) -> simpy.Event:
        """Event that comes when a host's threads have moved bytes: two threads for both ends, or its own one.

        Nobody is woken for those that pass in a burst, nor for a segment that is there when a thread gets its core; of
        a message, no more than it has.
        """
        costs = self.costs
        together = min(1.0, costs.byte_rate / costs.bulk_rate)
        most = max(1.0, line.nbytes / costs.segment)
        segments = found(self._offered(host), together, most)
        effort = together + (1.0 - together) / segments * (1.0 - burst / nbytes)
        event = simpy.Event(self.env)

        def done(_: simpy.Event) -> None:
            self._moving[host.share] -= 1
            event.succeed()

        self._moving[host.share] += 1
        ShareUser(host.share, done).begin(nbytes * effort / costs.byte_rate / 2.0, demand)
        return event

    def _offered(self, host: Host) -> float:
        """Work for a host's cores if no link had to wait and all segments woke a thread, over what they can do [1]."""
        rate = 0.0
        for line in self._active:
            if line.inside:
                continue
            ends = (line.src.share is host.share) + (line.dst.share is host.share)
            if ends:
                shares = (self._rate(link) / max(1, self._users[link]) for link in line.links)
                rate += min(shares, default=math.inf) * self.costs.efficiency * ends / 2.0
        return rate / (self.costs.byte_rate * host.share.capacity)

    def _rate(self, link: str) -> float:
        """Rate of a link while no burst passes it [B/s]."""
        bucket = self._buckets.get(link)
        return bucket.rate if bucket is not None else float(self._capacities[link])

    def _tokens(self, link: str) -> float:
        bucket = self._buckets.get(link)
        return bucket.tokens if bucket is not None else 0.0

    def _burst(self, line: _Connection, nbytes: float) -> float:
        """Bytes of a message that pass all links at once, for tokens that no other message counts on [B]."""
        free = (self._tokens(link) - self._promised[link] for link in line.links)
        burst = max(0.0, min(nbytes, min(free, default=0.0) * self.costs.efficiency))
        self._promised.update(dict.fromkeys(line.links, burst))
        return burst

    @property
    def _along(self) -> float:
        """What takes the way of a message besides its payload [B of payload]: announcement, head, acknowledgement."""
        return (2.0 * self.costs.header + 2.0 * self.costs.word) * self.costs.efficiency

    def _answer(self, src: str, dst: str, line: _Connection) -> None:
        """Start what a message sends the other way, which nobody waits for but which takes room on those links.

        Where the same connection has data to send the other way, its packets carry the acknowledgements.
        """
        back = self._connections.get((dst, src))
        both = back is not None and back.busy
        segments = 0 if both else math.ceil(line.nbytes / self.costs.segment)
        nbytes = 2.0 * self.costs.header + self.costs.word + self.costs.header * segments
        if nbytes > 0.0:
            self.network.transfer(line.back, nbytes)

    def _enter(self, line: _Connection) -> None:
        """Note how many connections share a link with others that lead elsewhere, or that come from elsewhere."""
        self._active[line] = None
        line.out = line.into = 1
        beside = [other for other in self._active if other.links[:1] == line.links[:1]]
        for other in beside:
            other.out = max(other.out, len(beside))
        beside = [other for other in self._active if other.links[-1:] == line.links[-1:]]
        for other in beside:
            other.into = max(other.into, len(beside))

    def _lost(self, line: _Connection) -> float:
        """What a link loses to connections that have to share at both of their ends [B].

        A window of each stands in the queue of one link while the other one runs dry, in turn with its neighbours. It
        takes two links that hold the connection back about alike; where one does alone, the other is never waited for.
        """
        window = self.costs.window
        if line.out < 2 or line.into < 2 or not window:
            return 0.0
        ratio = (self._rate(line.links[0]) / line.out) / (self._rate(line.links[-1]) / line.into)
        if not 0.5 < ratio < 2.0:
            return 0.0
        return line.nbytes * window / (line.nbytes + window)

    def _arrive(self, dst: str, line: _Connection, nbytes: float, received: simpy.Event, began: float) -> Steps:
        """The receiver's input thread takes a message and wakes the one that waits for it."""
        slept = float(self.env.now) - began
        yield self._wake(line.dst)
        yield from self._input(dst, line.dst, self.costs.message / 2 + self._cold(line.dst, nbytes, slept))
        if received.callbacks and not self.asleep(line.dst):
            yield self.work(dst, self.costs.message)
        received.succeed(self.env.now)

    def _cold(self, host: Host, nbytes: float, slept: float) -> float:
        """CPU time that a message takes longer because of what has slept, or what others put out of the caches [s].

        A core that sleeps takes its threads' caches with it. On busy cores a thread loses them to those that run since
        it took its last message, or its last segment of this one, which has been under way for `slept`.
        """
        if not self.costs.cold:
            return 0.0
        now = float(self.env.now)
        since = now - self._taken.get(host.name, -math.inf)
        if nbytes > self.costs.segment:
            since = min(since, slept * self.costs.segment / nbytes)
        self._taken[host.name] = now
        asleep = cooled(slept, self.costs.poll) if self.asleep(host) else cooled(since, self.costs.keep)
        return self.costs.cold * asleep
