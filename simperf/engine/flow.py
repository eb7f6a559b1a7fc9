"""Objects of the flow network: links, flows, and bundles of equal flows.

Flows over the same route with the same cap and weight have the same rate. They are one
*bundle*, which counts the bytes that each of its flows has been served since the bundle
began; a flow is done when that count reaches the mark that was set when it joined. So
a re-share costs what the number of different routes asks for, not the number of flows.

Bundles that are connected by shared links may be kept as one *component*, which knows how to
share out quickly: `simperf.engine.bottleneck` and `simperf.engine.array_component`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Protocol

import simpy

__all__ = [
    "ROUNDING",
    "TICK",
    "Allocation",
    "Bundle",
    "Component",
    "Flow",
    "FlowRoute",
    "Link",
    "connected",
    "first_end",
]

#: Part of a flow's bytes, and of the time since its last re-share, that is rounding.
ROUNDING = 1e-12

#: Part of the clock's reading that is rounding: some dozens of units in the last place.
TICK = 1e-14

#: How many times the size of a newcomer a bundle's count may be before it starts anew.
LONG_COUNT = 256.0


class Link:
    """One capacity, the bundles that draw on it, and what it has moved.

    Parameters
    ----------
    name : str
        The resource.
    capacity : float
        What it can move [B/s].

    Attributes
    ----------
    names : mapping of str to None
        The names that it stands for.
    watch : callable, optional
        Called with the rate that the link's flows draw together [B/s], whenever it has changed.
    """

    __slots__ = (
        "busy",
        "capacity",
        "ceiling",
        "component",
        "index",
        "mark",
        "members",
        "moved",
        "name",
        "names",
        "peak",
        "rate",
        "since",
        "watch",
    )

    def __init__(self, name: str, capacity: float) -> None:
        self.name = name
        self.names: dict[str, None] = {name: None}
        self.capacity = self.ceiling = capacity
        self.members: dict[Bundle, None] = {}
        self.component: Component | None = None
        self.index = self.mark = 0
        self.rate = self.peak = 0.0
        self.moved = self.busy = self.since = 0.0
        self.watch: Callable[[float], None] | None = None


class FlowRoute:
    """Links that a flow crosses, in order; `repeats` if one is crossed more than once."""

    __slots__ = ("links", "repeats")

    def __init__(self, links: tuple[Link, ...]) -> None:
        self.links = links
        self.repeats = len(set(links)) < len(links)


Key = tuple[FlowRoute, float, float]


class Flow(simpy.Event):
    """The event that succeeds, with the time, when its bytes have moved.

    Parameters
    ----------
    env : simpy.Environment
        The clock.
    key : tuple
        Route, cap [B/s] and weight; it becomes None when the flow is called off.
    nbytes : float
        Payload [B].
    name : str
        For people who look at the event.
    """

    def __init__(self, env: simpy.Environment, key: Key, nbytes: float, name: str) -> None:
        self.env = env
        self.callbacks = []
        self.key: Key | None = key
        self.nbytes = nbytes
        self.name = name
        self.base = 0.0
        self.bundle: Bundle | None = None


class Allocation:
    """Bundles that were shared out together at `updated` [s]; dead once one of them is again."""

    __slots__ = ("bundles", "component", "live", "updated")

    def __init__(self, bundles: list[Bundle], updated: float, component: Component | None = None) -> None:
        self.bundles = bundles
        self.updated = updated
        self.component = component
        self.live = True


class Bundle:
    """Flows with one route, cap and weight, and so with one rate.

    While the bundle is in a component, that one knows `rate` and `served`.
    """

    __slots__ = (
        "component",
        "flows",
        "key",
        "limit",
        "links",
        "mark",
        "rate",
        "repeats",
        "served",
        "share",
        "slot",
        "updated",
        "weight",
    )

    def __init__(self, key: Key, now: float) -> None:
        route, cap, weight = self.key = key
        self.links = route.links
        self.repeats = route.repeats
        self.weight = weight
        self.limit = cap / weight
        self.flows: list[tuple[float, int, Flow]] = []
        self.rate = self.served = 0.0
        self.updated = now
        self.share: Allocation | None = None
        self.component: Component | None = None
        self.mark = self.slot = 0

    def now_served(self, now: float) -> tuple[float, float]:
        """Return the rate [B/s] and the bytes served each flow [B] at `now` [s]."""
        if self.component is not None:
            return self.component.now_served(self.slot, now)
        return self.rate, self.served + self.rate * (now - self.updated)

    def advance(self, now: float) -> None:
        """Serve the flows until `now` [s]."""
        if now != self.updated:
            self.served += self.rate * (now - self.updated)
            self.updated = now

    def add(self, flow: Flow, order: int) -> None:
        """Let `flow` have its bytes counted from here on; `order` breaks ties."""
        if self.served > LONG_COUNT * flow.nbytes:
            # Count from zero again, or the small flow is lost in the rounding of a long count.
            served = self.served
            for _, _, other in self.flows:
                other.base -= served
            self.flows = [(other.base + other.nbytes, rank, other) for _, rank, other in self.flows]
            heapify(self.flows)
            self.served = 0.0
        flow.bundle = self
        flow.base = self.served
        heappush(self.flows, (flow.base + flow.nbytes, order, flow))

    def finish(self, slack: float, now: float) -> bool:
        """End the flows that have had all their bytes, or will within `slack` [s]; say if any did."""
        flows = self.flows
        near = self.served + self.rate * slack
        ended = False
        while flows and flows[0][0] - near <= ROUNDING * flows[0][2].nbytes < math.inf:
            flow = heappop(flows)[2]
            for link in self.links:
                link.moved += flow.nbytes
            flow.succeed(now)
            ended = True
        return ended

    def drop(self, flow: Flow) -> float:
        """Take `flow` out unfinished; return the bytes that it has been served [B]."""
        self.flows = [entry for entry in self.flows if entry[2] is not flow]
        heapify(self.flows)
        done = min(max(self.served - flow.base, 0.0), flow.nbytes)
        for link in self.links:
            link.moved += done
        return done


class Component(Protocol):
    """Connected bundles that are kept and shared out together.

    Attributes
    ----------
    bundles : list of Bundle
    updated : float
        The time up to which its flows have been served [s].
    share : Allocation
        Of the last share-out.
    """

    bundles: list[Bundle]
    updated: float
    share: Allocation

    def add(self, bundle: Bundle) -> None:
        """Take in a bundle that has been advanced to the component's time."""

    def changed(self, bundle: Bundle) -> None:
        """Note that the flows of a bundle, whose count is up to date, are others than before."""

    def resized(self, link: Link) -> None:
        """Note that the capacity of a link in the component is another than before."""

    def remove(self, bundle: Bundle) -> None:
        """Take out a bundle that has no flows left."""

    def dissolve(self, now: float) -> list[Bundle]:
        """Give back all bundles and links, advanced to `now` [s]."""

    def now_served(self, slot: int, now: float) -> tuple[float, float]:
        """Return rate [B/s] and bytes served each flow [B] of one bundle at `now` [s]."""

    def advance(self, now: float) -> None:
        """Serve all flows until `now` [s]."""

    def fetch(self, bundle: Bundle) -> None:
        """Bring the rate and the count of one bundle up to date."""

    def due(self, slack: float) -> list[Bundle]:
        """Return the bundles, brought up to date, in which a flow ends within `slack` [s]."""

    def share_out(self) -> float:
        """Give every flow its fair share; return the time until the first of them ends [s]."""

    def note(self) -> list[Link]:
        """Write rates and peaks back to the links; return those whose rate has changed."""


def connected(seed: Bundle, mark: int) -> tuple[list[Bundle], list[Link], list[Component]]:
    """Return what is connected with `seed` by shared links: bundles, their links, and components as wholes.

    Parameters
    ----------
    seed : Bundle
        In no component.
    mark : int
        Is left on all that is found; nothing in reach bears it yet.
    """
    seed.mark = mark
    bundles = [seed]
    links: list[Link] = []
    components: list[Component] = []
    for bundle in bundles:
        if bundle.share is not None:
            bundle.share.live = False
        for link in bundle.links:
            if link.component is not None:
                if link.component not in components:
                    components.append(link.component)
            elif link.mark != mark:
                link.mark = mark
                link.index = len(links)
                links.append(link)
                for other in link.members:
                    if other.mark != mark:
                        other.mark = mark
                        bundles.append(other)
    return bundles, links, components


def first_end(bundles: Iterable[Bundle]) -> float:
    """Return the time until the first flow of `bundles` ends [s], if nothing changes."""
    first = math.inf
    for bundle in bundles:
        if bundle.rate > 0.0:
            left = (bundle.flows[0][0] - bundle.served) / bundle.rate
            if left < first:
                first = left
    return first if first > 0.0 else 0.0
