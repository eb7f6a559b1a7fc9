"""The flow network: bytes on their way over shared links.

A flow waits its latency, then moves its bytes at its max-min fair share of the links of
its route, and the shares are found anew after every change. Flows that start or end at
one instant are re-shared once, and only the flows that are connected with a change, by
a chain of shared links, are looked at.

Flows over the same links with the same cap and weight have the same rate. They are one
*bundle*, which counts the bytes that each of its flows has been served since the bundle
began; a flow is done when that count reaches the mark that was set when it joined. So
a re-share costs what the number of different routes asks for, not the number of flows.

Not modelled: packets, TCP's slow start and loss recovery, queues in switches and
head-of-line blocking. A rate changes at the instant of its cause, and nothing is lost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import count

import simpy
from simpy.events import EventPriority

from simperf.engine.maxmin import MANY, columns, fill, fill_many
from simperf.engine.recorder import Recorder
from simperf.errors import ProgramError, UnknownNameError

__all__ = ["Background", "FlowNetwork"]

#: After all that happens of itself at an instant (SimPy's priorities are 0 and 1).
LAST = EventPriority(2)

#: An infinite capacity [B/s], as a number that can be reckoned with.
UNLIMITED = 1e30

#: Part of a flow's bytes, and of the time since its last re-share, that is rounding.
ROUNDING = 1e-12

#: Part of the clock's reading that is rounding: some dozens of units in the last place.
TICK = 1e-14


class _Link:
    """One capacity: the bundles that draw on it, and what it has moved."""

    __slots__ = ("busy", "capacity", "ceiling", "index", "mark", "members", "moved", "name", "peak", "rate", "since")

    def __init__(self, name: str, capacity: float) -> None:
        self.name = name
        self.capacity = self.ceiling = capacity
        self.members: dict[_Bundle, None] = {}
        self.index = self.mark = 0
        self.rate = self.peak = 0.0
        self.moved = self.busy = self.since = 0.0


Key = tuple[tuple[_Link, ...], float, float]


class _Flow(simpy.Event):
    """The event that succeeds when its bytes have moved."""

    def __init__(self, env: simpy.Environment, links: tuple[_Link, ...], nbytes: float, name: str) -> None:
        super().__init__(env)
        self.links = links
        self.nbytes = nbytes
        self.name = name
        self.base = 0.0
        self.key: Key | None = None
        self.bundle: _Bundle | None = None


class _Bundle:
    """Flows with one route, cap and weight, and so with one rate."""

    __slots__ = ("flows", "key", "limit", "links", "mark", "rate", "served", "share", "updated", "weight")

    def __init__(self, key: Key, now: float) -> None:
        self.key = key
        self.links, cap, self.weight = key
        self.limit = cap / self.weight
        self.flows: list[tuple[float, int, _Flow]] = []
        self.rate = self.served = 0.0
        self.updated = now
        self.share: _Share | None = None
        self.mark = 0

    def advance(self, now: float) -> None:
        """Serve the flows until `now` [s]."""
        self.served += self.rate * (now - self.updated)
        self.updated = now

    def rebase(self) -> None:
        """Count from zero again, so that small flows are not lost in a long count."""
        served = self.served
        for _, _, flow in self.flows:
            flow.base -= served
        self.flows = [(flow.base + flow.nbytes, order, flow) for _, order, flow in self.flows]
        heapify(self.flows)
        self.served = 0.0


class _Share:
    """Bundles that were shared out together, until one of them is again."""

    __slots__ = ("bundles", "live", "updated")

    def __init__(self, bundles: list[_Bundle], now: float) -> None:
        self.bundles = bundles
        self.updated = now
        self.live = True


class Background:
    """Constant-rate traffic of `FlowNetwork.background`; `stop` ends it."""

    def __init__(self, network: FlowNetwork, flow: simpy.Event | None) -> None:
        self._network = network
        self._flow = flow

    def stop(self) -> None:
        """End the traffic now; a second call does nothing."""
        flow, self._flow = self._flow, None
        if flow is not None:
            self._network.cancel(flow)


class FlowNetwork:
    """Links with capacities, and the flows that share them max-min fairly.

    Parameters
    ----------
    env : simpy.Environment
        The clock.
    capacities : mapping of str to float
        Capacity of each resource [B/s]: one direction of a link, or a bus that both
        directions share. 0 is a link that is down, infinity one that never limits.
    recorder : Recorder, optional
        Is told the allocated rate of a resource whenever it has changed.

    Examples
    --------
    >>> env = simpy.Environment()
    >>> network = FlowNetwork(env, {"up": 10.0, "down": 4.0})
    >>> first = network.transfer(["up"], 60.0)
    >>> second = network.transfer(["up", "down"], 40.0, latency=2.0)
    >>> env.run(first), env.run(second)  # 20 B alone, then 6 B/s beside 4 B/s
    (8.66..., 12.0)
    """

    def __init__(
        self, env: simpy.Environment, capacities: Mapping[str, float], *, recorder: Recorder | None = None
    ) -> None:
        self.env = env
        self.shares = 0
        self.touched = 0
        self._recorder = recorder
        self._links = {name: _Link(name, _capacity(name, value)) for name, value in capacities.items()}
        self._routes: dict[tuple[str, ...], tuple[_Link, ...]] = {}
        self._bundles: dict[Key, _Bundle] = {}
        self._joins: dict[float, list[_Flow]] = {}
        self._seeds: list[_Bundle] = []
        self._idle: list[_Link] = []
        self._ends: list[tuple[float, int, _Share]] = []
        self._wakes: list[tuple[float, simpy.Event]] = []
        self._order = count()
        self._mark = 0
        self._longest = 0.0

    # What a program calls ------------------------------------------------------------

    def transfer(
        self,
        resources: Sequence[str],
        nbytes: float,
        *,
        latency: float = 0.0,
        cap: float = math.inf,
        weight: float = 1.0,
        name: str = "",
    ) -> simpy.Event:
        """Start a flow and return the event of its end.

        Parameters
        ----------
        resources : sequence of str
            Resources that the flow draws on; one named twice is drawn on twice. None
            at all is a route without a limit other than `cap`.
        nbytes : float
            Payload [B]; 0 takes just the latency.
        latency : float
            Time before the first byte moves [s].
        cap : float
            Rate that the flow cannot exceed [B/s].
        weight : float
            Claim in proportion to which bottlenecks are shared.
        name : str
            For people who look at the event.

        Returns
        -------
        simpy.Event
            Succeeds with the time of completion [s].

        Raises
        ------
        ProgramError
            If a quantity is negative or not finite.
        UnknownNameError
            If there is no such resource.
        """
        if not (0.0 <= nbytes < math.inf and 0.0 <= latency < math.inf):
            raise ProgramError(f"transfer {name!r}: bytes and latency must be finite, 0 or more: {nbytes}, {latency}")
        links = self._route(resources)
        if nbytes == 0.0 or (not links and cap == math.inf):
            return simpy.Timeout(self.env, latency, self.env.now + latency)
        flow = _Flow(self.env, links, nbytes, name)
        self._enter(flow, latency, cap, weight)
        alone = latency + nbytes / min(cap, self._narrowest(links))
        self._longest = max(self._longest, alone)
        return flow

    def background(self, resources: Sequence[str], rate: float, name: str = "") -> Background:
        """Start traffic that wants `rate` until it is stopped, and takes part in sharing.

        Parameters
        ----------
        resources : sequence of str
            Resources that the traffic draws on.
        rate : float
            What it sends where nothing hinders it [B/s].
        name : str
            For people who look at it.

        Returns
        -------
        Background
            Its `stop` ends the traffic.
        """
        if not 0.0 <= rate < math.inf:
            raise ProgramError(f"background {name!r}: the rate must be finite, 0 or more: {rate}")
        if rate == 0.0:
            return Background(self, None)
        flow = _Flow(self.env, self._route(resources), math.inf, name)
        self._enter(flow, 0.0, rate, 1.0)
        return Background(self, flow)

    def set_capacity(self, resource: str, value: float) -> None:
        """Change the capacity of `resource` to `value` [B/s] now; at 0 its flows stall."""
        (link,) = self._route((resource,))
        link.capacity = _capacity(resource, value)
        link.ceiling = max(link.ceiling, link.capacity)
        self._seeds.extend(link.members)
        self._settle()

    def cancel(self, flow: simpy.Event) -> float:
        """Take a flow of `transfer` off the network; its event never happens.

        Returns
        -------
        float
            Bytes that had not been moved [B]; 0 if the flow had ended.
        """
        if not isinstance(flow, _Flow) or flow.triggered or flow.key is None:
            return 0.0
        flow.key = None
        bundle = flow.bundle
        if bundle is None:
            return flow.nbytes
        bundle.advance(self.env.now)
        done = min(max(bundle.served - flow.base, 0.0), flow.nbytes)
        bundle.flows = [entry for entry in bundle.flows if entry[2] is not flow]
        heapify(bundle.flows)
        for link in bundle.links:
            link.moved += done
        self._leave(bundle)
        return flow.nbytes - done

    # What a program reads ------------------------------------------------------------

    def rates(self) -> dict[str, float]:
        """Return the allocated rate of each resource [B/s], as of the last re-share."""
        rates = dict.fromkeys(self._links, 0.0)
        for bundle in self._bundles.values():
            for link in bundle.links:
                rates[link.name] += bundle.rate * len(bundle.flows)
        return rates

    def rate(self, flow: simpy.Event) -> float:
        """Return the rate of a flow of `transfer` [B/s]; 0 if it is not under way."""
        bundle = flow.bundle if isinstance(flow, _Flow) and not flow.triggered else None
        return 0.0 if bundle is None else bundle.rate

    @property
    def moved(self) -> dict[str, float]:
        """Bytes that each resource has moved up to now [B]."""
        moved = {name: link.moved for name, link in self._links.items()}
        for bundle in self._bundles.values():
            served = bundle.served + bundle.rate * (self.env.now - bundle.updated)
            done = sum(min(max(served - flow.base, 0.0), flow.nbytes) for _, _, flow in bundle.flows)
            for link in bundle.links:
                moved[link.name] += done
        return moved

    @property
    def busy(self) -> dict[str, float]:
        """Time during which each resource had a flow to serve, up to now [s]."""
        now = self.env.now
        return {name: link.busy + (now - link.since if link.members else 0.0) for name, link in self._links.items()}

    @property
    def peak(self) -> dict[str, float]:
        """Highest rate that each resource has been allocated [B/s]."""
        return {name: link.peak for name, link in self._links.items()}

    def alone(self, resources: Sequence[str], nbytes: float, *, latency: float = 0.0, cap: float = math.inf) -> float:
        """Return the time that a transfer takes with the network to itself [s]."""
        rate = min(cap, self._narrowest(self._route(resources)))
        return latency + (nbytes / rate if nbytes and rate else nbytes and math.inf)

    def floors(self) -> dict[str, float]:
        """Return for each resource the least time in which it can move what it has moved [s].

        Bytes over the highest capacity that the resource has had: a bound whatever the
        order of the flows.
        """
        return {name: nbytes and nbytes / self._links[name].ceiling for name, nbytes in self.moved.items()}

    @property
    def bandwidth_floor(self) -> float:
        """Bound on the elapsed time by the busiest resource [s]."""
        return max(self.floors().values(), default=0.0)

    # Coming and going ----------------------------------------------------------------

    def _route(self, resources: Sequence[str]) -> tuple[_Link, ...]:
        key = tuple(resources)
        links = self._routes.get(key)
        if links is None:
            for name in key:
                if name not in self._links:
                    raise UnknownNameError("resource", name, self._links)
            links = self._routes[key] = tuple(self._links[name] for name in key)
        return links

    @staticmethod
    def _narrowest(links: tuple[_Link, ...]) -> float:
        return min((link.capacity for link in links), default=UNLIMITED)

    def _enter(self, flow: _Flow, latency: float, cap: float, weight: float) -> None:
        """Let `flow` join the sharing when its latency has passed."""
        if not cap > 0.0 or not 0.0 < weight < math.inf:
            raise ProgramError(f"transfer {flow.name!r}: cap and weight must be above 0: {cap}, {weight}")
        flow.key = (flow.links, min(cap, UNLIMITED), weight)
        self._settle(latency).append(flow)

    def _settle(self, delay: float = 0.0) -> list[_Flow]:
        """Have the flows shared out `delay` s from now; return the list of those that join then."""
        time = self.env.now + delay
        joins = self._joins.get(time)
        if joins is None:
            joins = self._joins[time] = []
            self._alarm(self._share_out, delay, LAST)
        return joins

    def _alarm(self, callback: simpy.events.EventCallback, delay: float, priority: EventPriority) -> simpy.Event:
        alarm = simpy.Event(self.env)
        alarm._ok = True
        alarm._value = None
        assert alarm.callbacks is not None
        alarm.callbacks.append(callback)
        self.env.schedule(alarm, priority, delay)
        return alarm

    def _join(self, flow: _Flow, now: float) -> _Bundle:
        key = flow.key
        assert key is not None
        bundle = self._bundles.get(key)
        if bundle is None:
            bundle = self._bundles[key] = _Bundle(key, now)
            for link in bundle.links:
                if not link.members:
                    link.since = now
                link.members[bundle] = None
        else:
            bundle.advance(now)
            if bundle.served > 256.0 * flow.nbytes:
                bundle.rebase()
        flow.bundle = bundle
        flow.base = bundle.served
        heappush(bundle.flows, (flow.base + flow.nbytes, next(self._order), flow))
        return bundle

    def _leave(self, bundle: _Bundle) -> None:
        """Note that `bundle` has lost flows, and see to those that it shared with."""
        share = bundle.share
        if share is not None and share.live:
            share.live = False
            self._seeds.extend(share.bundles)
        if not bundle.flows:
            self._bundles.pop(bundle.key, None)
            now = self.env.now
            for link in bundle.links:
                if link.members.pop(bundle, self) is None and not link.members:
                    link.busy += now - link.since
                    self._idle.append(link)
        self._settle()

    def _wake(self, _: simpy.Event) -> None:
        """End the flows whose time has come."""
        now = self.env.now
        self._wakes.pop()
        ends = self._ends
        while ends:
            time, _, share = ends[0]
            if share.live:
                if time > now + TICK * now + ROUNDING * (now - share.updated):
                    break
                heappop(ends)
                self._end(share, now)
            else:
                heappop(ends)
        self._arm()

    def _end(self, share: _Share, now: float) -> None:
        slack = TICK * now + ROUNDING * (now - share.updated)
        for bundle in share.bundles:
            bundle.advance(now)
            flows = bundle.flows
            near = bundle.served + bundle.rate * slack
            ended = False
            while flows and flows[0][0] - near <= ROUNDING * flows[0][2].nbytes < math.inf:
                flow = heappop(flows)[2]
                for link in bundle.links:
                    link.moved += flow.nbytes
                flow.succeed(now)
                ended = True
            if ended:
                self._leave(bundle)
        if share.live:
            heappush(self._ends, (self._first(share.bundles, now), next(self._order), share))

    # Sharing -------------------------------------------------------------------------

    def _share_out(self, _: simpy.Event) -> None:
        """Let the flows of this instant join, and re-share what they and the leavers touch."""
        now = self.env.now
        seeds = self._seeds
        self._seeds = []
        for flow in self._joins.pop(now):
            if flow.key is not None:
                seeds.append(self._join(flow, now))
        self._mark += 1
        mark = self._mark
        for seed in seeds:
            if seed.mark != mark and seed.flows:
                self._reshare(seed, now, mark)
        if self._idle:
            for link in self._idle:
                if not link.members:
                    self._allocate(link, 0.0, now)
            self._idle.clear()
        self._arm()

    def _reshare(self, seed: _Bundle, now: float, mark: int) -> None:
        """Find what is connected with `seed` and give each flow its fair share."""
        seed.mark = mark
        bundles = [seed]
        links: list[_Link] = []
        for bundle in bundles:
            if bundle.share is not None:
                bundle.share.live = False
            bundle.advance(now)
            for link in bundle.links:
                if link.mark != mark:
                    link.mark = mark
                    link.index = len(links)
                    links.append(link)
                    for other in link.members:
                        if other.mark != mark:
                            other.mark = mark
                            bundles.append(other)
        self.shares += 1
        self.touched += len(bundles)
        capacities = [link.capacity for link in links]
        routes = [[link.index for link in bundle.links] for bundle in bundles]
        loads = [bundle.weight * len(bundle.flows) for bundle in bundles]
        limits = [bundle.limit for bundle in bundles]
        if len(bundles) < MANY:
            levels = fill(routes, capacities, loads, limits)
        else:
            levels = fill_many(columns(routes, len(links)), capacities, loads, limits).tolist()
        used = [0.0] * len(links)
        share = _Share(bundles, now)
        for bundle, route, level, load in zip(bundles, routes, levels, loads, strict=True):
            bundle.share = share
            bundle.rate = level * bundle.weight
            for index in route:
                used[index] += level * load
        for link, rate in zip(links, used, strict=True):
            self._allocate(link, rate, now)
        heappush(self._ends, (self._first(bundles, now), next(self._order), share))

    @staticmethod
    def _first(bundles: list[_Bundle], now: float) -> float:
        """Return when the first flow of `bundles` ends [s], if nothing changes."""
        first = math.inf
        for bundle in bundles:
            if bundle.rate > 0.0:
                first = min(first, (bundle.flows[0][0] - bundle.served) / bundle.rate)
        return now + max(first, 0.0)

    def _allocate(self, link: _Link, rate: float, now: float) -> None:
        if rate != link.rate:
            link.rate = rate
            link.peak = max(link.peak, rate)
            if self._recorder is not None:
                self._recorder.counter("network", f"rate {link.name}", now, rate)

    def _arm(self) -> None:
        """See that the clock stops at the next end of a flow."""
        ends, wakes = self._ends, self._wakes
        while ends and not ends[0][2].live:
            heappop(ends)
        if ends and ends[0][0] < math.inf:
            time = ends[0][0]
            if not wakes or time < wakes[-1][0]:
                now = self.env.now
                wakes.append((time, self._alarm(self._wake, max(time - now, 0.0), EventPriority(1))))
        elif wakes and not self._seeds:
            # Every flow is done before a stop that was planned for a slower one: the clock
            # must not run on to it.
            planned = {id(event) for _, event in wakes}
            queue = self.env._queue
            queue[:] = [entry for entry in queue if id(entry[3]) not in planned]
            heapify(queue)
            wakes.clear()


def _capacity(name: str, value: float) -> float:
    if not value >= 0.0:
        raise ProgramError(f"resource {name!r}: the capacity must be 0 or more: {value}")
    return min(float(value), UNLIMITED)
