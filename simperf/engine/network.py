"""The flow network: bytes on their way over shared links.

A flow waits its latency, then moves its bytes at its max-min fair share of the links of
its route, and the shares are found again after every change. Flows that start or end at
one instant are re-shared once, and only the flows that are connected with a change, by
a chain of shared links, are looked at. (Of several hundred connected flows, those that
have come apart are looked at together until half as many have left as remain.)

Not modelled: packets, TCP's slow start and loss recovery, queues in switches and
head-of-line blocking. A rate changes at the instant of its cause, and nothing is lost.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import simpy

from simperf.engine.flow import Flow, FlowRoute
from simperf.engine.fluid import Fluid
from simperf.engine.link_table import UNLIMITED, LinkClass, LinkTable, check_capacity
from simperf.engine.recorder import Recorder
from simperf.errors import ProgramError

if TYPE_CHECKING:
    from simperf.engine.claim import Claim

__all__ = ["Background", "FlowNetwork"]


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
        Called with the allocated rate of a resource whenever it has changed.

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
        self._fluid = Fluid(env, recorder)
        self._links = LinkTable(capacities, self._fluid.extend)
        self._known_routes = self._links.known_routes
        self._counted: dict[str, float] = {}
        self._counted_alike: dict[int, tuple[Sequence[str], float]] = {}

    # What a program calls ------------------------------------------------------------

    def transfer(
        self,
        resources: Sequence[str] | FlowRoute,
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
        resources : sequence of str or FlowRoute
            Resources that the flow draws on; one named twice is drawn on twice. None
            at all is a route without a limit other than `cap`. Or one of `routes`.
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
        if not (cap > 0.0 and 0.0 < weight < math.inf):
            raise ProgramError(f"transfer {name!r}: cap and weight must be above 0: {cap}, {weight}")
        if isinstance(resources, FlowRoute):
            route = resources
        else:
            route = self._known_routes.get(tuple(resources)) or self._links.route(resources)
        if nbytes == 0.0 or (cap == math.inf and not route.links):
            return simpy.Timeout(self.env, latency, self.env.now + latency)
        flow = Flow(self.env, (route, min(cap, UNLIMITED), weight), nbytes, name)
        self._fluid.enter(flow, latency)
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
        flow = Flow(self.env, (self._links.route(resources), min(rate, UNLIMITED), 1.0), math.inf, name)
        self._fluid.enter(flow, 0.0)
        return Background(self, flow)

    def routes(self, classes: Sequence[LinkClass]) -> list[FlowRoute]:
        """Return routes over classes of links that are drawn on alike, for `transfer`.

        Parameters
        ----------
        classes : sequence of LinkClass
            No resource is in two of them. Route i draws ``counts[i]`` times on every link of a class.
        """
        return self._links.routes(classes)

    def provide(self, capacities: Mapping[str, float]) -> None:
        """Know more resources than the machine's from now on: capacity [B/s] by name."""
        self._links.provide(capacities)

    def add(self, resource: str, capacity: float = math.inf) -> None:
        """Add a resource that is none of the machine's, of a capacity [B/s]; once is enough."""
        self._links.add(resource, capacity)

    def set_capacity(self, resource: str, value: float) -> None:
        """Change the capacity of `resource` to `value` [B/s] now; at 0 its flows stall."""
        (link,) = self._links.route((resource,)).links
        link.capacity = check_capacity(resource, value)
        link.ceiling = max(link.ceiling, link.capacity)
        self._fluid.resized(link)

    def watch(self, resource: str, told: Callable[[float], None]) -> None:
        """Have `told` called with the rate that flows draw on `resource` [B/s], whenever it has changed.

        It may change capacities; what it does takes effect at the same instant.
        """
        (link,) = self._links.route((resource,)).links
        link.watch = told
        self._fluid.watched = True

    def cancel(self, flow: simpy.Event) -> float:
        """Take a flow of `transfer` off the network; its event never happens.

        Returns
        -------
        float
            Bytes that had not been moved [B]; 0 if the flow had ended.
        """
        if not isinstance(flow, Flow) or flow.triggered or flow.key is None:
            return 0.0
        return flow.nbytes - self._fluid.leave(flow)

    def claim(self, names: Callable[[], frozenset[str]], told: Callable[[], None]) -> Claim:
        """Have `told` called when a flow or another claim comes to one of these links, before it does.

        Parameters
        ----------
        names : callable
            Gives the resources, when they are asked for.
        told : callable
            Is called at the instant of the change; it may start flows.
        """
        from simperf.engine.claim import Claim

        claim = Claim(names, told, self._forget)
        others = [other for other in self._fluid.claims if other.meets(claim)]
        claim.touched = bool(others) or any(claim.covers(bundle.key[0]) for bundle in self._fluid.bundles.values())
        self._fluid.claims[claim] = None
        for other in others:
            other.told()
        return claim

    def _forget(self, claim: Claim) -> None:
        self._fluid.claims.pop(claim, None)

    def hand_over(self, other: FlowNetwork) -> None:
        """Let all flows continue in another network with the links of this one: those under way with what is left.

        What has been moved up to now is counted there.
        """
        now = self.env.now
        other.count({name: nbytes for name, nbytes in self.moved.items() if nbytes})
        for bundle in list(self._fluid.bundles.values()):
            route, cap, weight = bundle.key
            served = bundle.now_served(now)[1]
            for _, _, flow in sorted(bundle.flows):
                left = max(0.0, flow.nbytes - max(served - flow.base, 0.0))
                _follow(flow, other.transfer(_named(route), left, cap=cap, weight=weight, name=flow.name))
        for time, joins in sorted(self._fluid.waiting()):
            for flow in joins:
                if flow.key is not None:
                    route, cap, weight = flow.key
                    wait = max(0.0, time - now)
                    names = _named(route)
                    again = other.transfer(names, flow.nbytes, latency=wait, cap=cap, weight=weight, name=flow.name)
                    _follow(flow, again)

    def count(self, moved: Mapping[str, float]) -> None:
        """Add bytes [B] that were moved without flows of their own: a collective computed as a whole."""
        for name, nbytes in moved.items():
            self._counted[name] = self._counted.get(name, 0.0) + nbytes

    def count_all(self, names: Sequence[str], nbytes: float) -> None:
        """Add bytes [B] that each of some resources has moved, as `count` does; names are read when they are asked for.

        Those with a colon, which views of a machine add to its resources, are left out.
        """
        _, before = self._counted_alike.get(id(names), (names, 0.0))
        self._counted_alike[id(names)] = names, before + nbytes

    # What a program reads ------------------------------------------------------------

    def rates(self) -> dict[str, float]:
        """Return the allocated rate of each resource [B/s], as of the last re-share."""
        rates = dict.fromkeys((name for name, _ in self._links.known()), 0.0)
        for bundle in self._fluid.bundles.values():
            drawn = bundle.now_served(self.env.now)[0] * len(bundle.flows)
            for link in bundle.links:
                for name in link.names:
                    rates[name] += drawn
        return rates

    def rate(self, flow: simpy.Event) -> float:
        """Return the rate of a flow of `transfer` [B/s]; 0 if it is not under way."""
        if not isinstance(flow, Flow) or flow.bundle is None or flow.key is None or flow.triggered:
            return 0.0
        return flow.bundle.now_served(self.env.now)[0]

    @property
    def moved(self) -> dict[str, float]:
        """Bytes that each resource has moved up to now [B]; on a machine, of those that were used."""
        moved = {name: link.moved for name, link in self._links.known()}
        for bundle in self._fluid.bundles.values():
            served = bundle.now_served(self.env.now)[1]
            done = sum(min(max(served - flow.base, 0.0), flow.nbytes) for _, _, flow in bundle.flows)
            for link in bundle.links:
                for name in link.names:
                    moved[name] += done
        for name, nbytes in self._counted.items():
            moved[name] = moved.get(name, 0.0) + nbytes
        for names, nbytes in self._counted_alike.values():
            for name in names:
                if ":" not in name:
                    moved[name] = moved.get(name, 0.0) + nbytes
        return moved

    @property
    def busy(self) -> dict[str, float]:
        """Time during which each resource had a flow to serve, up to now [s]."""
        now = self.env.now
        return {name: link.busy + (now - link.since if link.members else 0.0) for name, link in self._links.known()}

    @property
    def peak(self) -> dict[str, float]:
        """Highest rate that each resource has been allocated [B/s]."""
        for component in dict.fromkeys(bundle.component for bundle in self._fluid.bundles.values()):
            if component is not None:
                component.note()
        return {name: link.peak for name, link in self._links.known()}

    def alone(self, resources: Sequence[str], nbytes: float, *, latency: float = 0.0, cap: float = math.inf) -> float:
        """Return the time that a transfer takes with the network to itself [s]."""
        links = Counter(self._links.route(resources).links)
        rate = min(cap, min((link.capacity / times for link, times in links.items()), default=math.inf))
        if nbytes == 0.0:
            return latency
        return latency + nbytes / rate if rate > 0.0 else math.inf

    def floors(self, moved: Mapping[str, float] | None = None) -> dict[str, float]:
        """Return for each resource the least time in which it can move what it has moved [s].

        Bytes over the highest capacity that the resource has had: a bound whatever the
        order of the flows.

        Parameters
        ----------
        moved : mapping of str to float, optional
            As `moved` gives it, where that was asked for already [B].
        """
        links = dict(self._links.known())
        return {
            name: nbytes and nbytes / (links[name].ceiling if name in links else self._links.capacity(name))
            for name, nbytes in (self.moved if moved is None else moved).items()
        }

    @property
    def effort(self) -> tuple[int, int]:
        """Re-shares so far, and how many different routes they looked at in all."""
        return self._fluid.shares, self._fluid.touched


def _named(route: FlowRoute) -> list[str]:
    return [link.name for link in route.links]


def _follow(flow: simpy.Event, again: simpy.Event) -> None:
    """What waits for a flow waits for the one that carries on with it."""
    assert again.callbacks is not None
    again.callbacks.extend(flow.callbacks or ())
