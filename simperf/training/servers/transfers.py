"""Transfers of a parameter server: through memories, and over links in turn.

A `Site` is a node whose memory adds up, updates and encodes; a `Courier` carries bytes
between nodes; a `Lane` decides which of the transfers that wait at a port goes next.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

import simpy

from simperf.engine.items import Marker
from simperf.engine.kernel import Kernel
from simperf.engine.netstack import NetworkStacks
from simperf.errors import InputError, Problem
from simperf.execution.session import Session
from simperf.hardware import CpuPart
from simperf.workload import Op

__all__ = ["CPU_STREAM", "Courier", "Lane", "Site", "Then", "after"]

#: Share of a CPU's memory bandwidth that streaming code reaches: STREAM triad on two-socket Xeons, 75-85 %
#: (McCalpin, STREAM benchmark results).
CPU_STREAM = 0.8

#: Stream of a GPU on which it serves others, beside its own computation.
_SERVICE = 2

#: memory traffic of adding a gradient to another, for each of its bytes: two are read, one is written
PASSES = 3.0

#: what happens next
Then = Callable[[], None]


class Site:
    """A node whose memory does the work of adding up, updating, encoding and decoding.

    Such work is bound by memory: it takes its bytes over the bandwidth. On a GPU it is a kernel that
    shares the device with whatever computes there; on a CPU one piece of work comes after the other.

    Not modelled: caches, the cores of a CPU that the work keeps busy, and NUMA.

    Parameters
    ----------
    m : Session
    node : str
        A GPU or a CPU.
    bandwidth : float
        Of its memory [B/s]; 0 takes the part's, with what streaming code reaches of it.

    Raises
    ------
    InputError
        The node has no memory in the catalogue, and no bandwidth is given.
    """

    __slots__ = ("_device", "_free", "_kernels", "_m", "_stacks", "_turns", "bandwidth", "busy", "node")

    def __init__(self, m: Session, node: str, *, bandwidth: float = 0.0) -> None:
        self._m, self.node = m, node
        place = m.machine.nodes[node]
        self._device = m.simulation.device(node) if place.kind == "gpu" else None
        self.bandwidth = bandwidth
        self._stacks = m.simulation.stacks if not bandwidth and self._device is None else None
        if not bandwidth and self._device is None and self._stacks is None:
            if not isinstance(place.part, CpuPart):
                raise InputError(Problem(f"{node} has no memory that could add up gradients", key="servers"))
            self.bandwidth = place.part.memory_bandwidth * CPU_STREAM
        self.busy = 0.0
        self._free = 0.0
        self._turns: deque[Callable[[], None]] = deque()
        self._kernels: dict[tuple[str, float], Kernel] = {}

    def work(self, what: str, nbytes: float, then: Then) -> None:
        """Move `nbytes` [B] through the memory, then continue; nothing to move takes no time."""
        if nbytes <= 0.0:
            then()
        elif self._stacks is not None:
            self._on_core(self._stacks, nbytes / PASSES, then)
        elif self._device is not None:
            kernel = self._kernel(what, nbytes)
            self.busy += kernel.time
            stream = self._device.stream(_SERVICE)
            stream.submit(kernel)
            marker = Marker(self._m.simulation.env, what)
            assert marker.done.callbacks is not None
            marker.done.callbacks.append(lambda _: then())
            stream.submit(marker)
        else:
            now = self._m.simulation.env.now
            start = max(self._free, now)
            time = nbytes / self.bandwidth
            self._free = end = start + time
            self.busy += time
            recorder = self._m.simulation.recorder
            if recorder is not None:
                recorder.span(f"{self.node}/memory", what, start, end, "memory")
            after(self._m.simulation.env, end - now, then)

    def _on_core(self, stacks: NetworkStacks, nbytes: float, then: Then) -> None:
        """Add bytes up on a core of a host whose network stack says what that takes, one after the other."""
        started = self._m.now

        def begin(_: simpy.Event | None = None) -> None:
            done = stacks.add(self.node, nbytes)
            assert done.callbacks is not None
            done.callbacks.append(over)

        def over(_: simpy.Event) -> None:
            self.busy += self._m.now - started
            self._turns.popleft()
            if self._turns:
                self._turns[0]()
            then()

        self._turns.append(begin)
        if len(self._turns) == 1:
            begin()

    def _kernel(self, what: str, nbytes: float) -> Kernel:
        key = (what, nbytes)
        if key not in self._kernels:
            if self.bandwidth:
                kernel = Kernel(what, nbytes / self.bandwidth, category="memory")
            else:
                kernel = self._m.kernel(Op(what, nbytes_read=nbytes), self._device)
            self._kernels[key] = kernel
        return self._kernels[key]


def after(env: simpy.Environment, delay: float, then: Then) -> None:
    """Continue after `delay` [s]."""
    event = simpy.Timeout(env, delay)
    event.callbacks.append(lambda _: then())


class Lane:
    """Transfers through one port, so many at a time, the most urgent first.

    Parameters
    ----------
    window : int
        Transfers under way at one time; 0 lets all go at once, and the links share themselves out.

    Examples
    --------
    >>> lane, order = Lane(1), []
    >>> lane.submit(0, lambda: order.append("a")); lane.submit(9, lambda: order.append("late"))
    >>> lane.submit(1, lambda: order.append("soon")); lane.free(); lane.free(); order
    ['a', 'soon', 'late']
    """

    __slots__ = ("_busy", "_order", "_queue", "window")

    def __init__(self, window: int) -> None:
        self.window = window or math.inf
        self._queue: list[tuple[float, int, Then]] = []
        self._busy = self._order = 0

    def submit(self, priority: float, start: Then) -> None:
        """Start a transfer when its turn comes; the lowest priority first, then the first to come."""
        if self._busy < self.window:
            self._busy += 1
            start()
        else:
            self._order += 1
            heappush(self._queue, (priority, self._order, start))

    def free(self) -> None:
        """One of the transfers has ended."""
        if self._queue:
            heappop(self._queue)[2]()
        else:
            self._busy -= 1


class Courier:
    """Carries bytes from node to node over the machine's links.

    Parameters
    ----------
    m : Session
    message : float
        Time that a message takes beside the wire: software at both ends [s].
    rate : float
        Rate that one transfer cannot exceed [B/s].
    uneven : float
        Standard deviation of the logarithm of a connection's claim on what it shares with others, drawn again for
        each transfer from the session's seed [1]; 0 shares evenly.
    """

    __slots__ = ("_claims", "_m", "_routes", "carried", "env", "message", "rate", "uneven")

    def __init__(self, m: Session, *, message: float = 0.0, rate: float = math.inf, uneven: float = 0.0) -> None:
        self._m, self.message, self.rate, self.uneven = m, message, rate, uneven
        self._claims = m.rng("claims of transfers") if uneven else None
        self.env = m.simulation.env
        self._routes: dict[tuple[str, str], tuple[tuple[str, ...], float, float]] = {}
        self.carried = 0.0

    def way(self, source: str, target: str) -> tuple[tuple[str, ...], float, float]:
        """Resources, latency [s] and rate limit [B/s] between two nodes.

        Raises
        ------
        MachineError
            No way leads from one to the other.
        """
        key = (source, target)
        if key not in self._routes:
            route = self._m.machine.route(source, target)
            self._routes[key] = (route.resources, route.latency, min(self.rate, route.flow_limit))
        return self._routes[key]

    def claim(self) -> float:
        """Weight with which the next transfer of a connection shares a bottleneck [1]."""
        return math.exp(self.uneven * float(self._claims.standard_normal())) if self._claims is not None else 1.0

    def send(
        self, source: str, target: str, nbytes: float, then: Then, *, name: str = "send", weight: float = 1.0
    ) -> None:
        """Carry `nbytes` [B], then continue; from a node to itself it takes no time."""
        if source == target:
            then()
            return
        resources, latency, cap = self.way(source, target)
        simulation = self._m.simulation
        self.carried += nbytes
        stacks = simulation.stacks
        if stacks is not None and self._m.machine.host_of(source) != self._m.machine.host_of(target):
            flow = stacks.carry(source, target, nbytes, weight=weight)
        else:
            late = latency + self.message
            flow = simulation.network.transfer(resources, nbytes, latency=late, cap=cap, weight=weight, name=name)
        assert flow.callbacks is not None
        recorder = simulation.recorder
        if recorder is None:
            flow.callbacks.append(lambda _: then())
            return
        started, track, env = simulation.env.now, f"{source}/to {target}", simulation.env

        def arrived(_: simpy.Event) -> None:
            recorder.span(track, name, started, env.now, "communication")
            then()

        flow.callbacks.append(arrived)
