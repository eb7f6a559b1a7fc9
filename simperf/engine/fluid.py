"""Times at which flows join, share and end, behind the flow network.

Two kinds of alarm drive it. A *wake* comes when the next flow is predicted to end, ends
it and all that end with it, but shares nothing out. The *share-out* of an instant comes
after everything else of that instant (SimPy priority 2), lets the flows join whose
latency has passed, and re-shares once what they, the leavers and changed capacities
touch: what is connected with them by a chain of shared links. Predictions are kept in
a heap; one is void when its share has died, and is dropped when it surfaces.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from itertools import count, islice
from typing import TYPE_CHECKING

import simpy
from simpy.events import EventPriority

from simperf.engine.array_component import ArrayComponent
from simperf.engine.bottleneck import BottleneckComponent, find_hub
from simperf.engine.flow import (
    ROUNDING,
    TICK,
    Allocation,
    Bundle,
    Component,
    Flow,
    FlowRoute,
    Key,
    Link,
    connected,
    first_end,
)
from simperf.engine.maxmin import MANY, fill
from simperf.engine.recorder import Recorder

if TYPE_CHECKING:
    from simperf.engine.claim import Claim

__all__ = ["Fluid"]

#: Names of a class of links whose rates are recorded; of a machine of thousands one stands for all that are alike.
MOST_TOLD = 64

NORMAL, LAST = EventPriority(1), EventPriority(2)

#: Number of bundles behind one link from which a `BottleneckComponent` is the faster way.
SEVERAL = 8

#: How often in a row all of an `ArrayComponent` are at one level before a `BottleneckComponent` is tried, at first
#: and at most.
PATIENCE, MOST_PATIENCE = 2, 256


class Fluid:
    """Bundles of flows under way, and what is due when.

    Parameters
    ----------
    env : simpy.Environment
        The clock.
    recorder : Recorder, optional
        Called with the allocated rate of a link whenever it has changed.

    Attributes
    ----------
    shares, touched : int
        Re-shares so far, and bundles that they looked at: what the sharing has cost.
    watched : bool
        Whether somebody receives the rates of links.
    """

    def __init__(self, env: simpy.Environment, recorder: Recorder | None) -> None:
        self.env = env
        self.recorder = recorder
        self.bundles: dict[Key, Bundle] = {}
        self.shares = self.touched = 0
        self.watched = False
        self.claims: dict[Claim, None] = {}
        self._joins: dict[float, list[Flow]] = {}
        self._seeds: list[Bundle] = []
        self._components: dict[Component, None] = {}
        self._patience = PATIENCE
        self._idle: list[Link] = []
        self._ends: list[tuple[float, int, Allocation]] = []
        self._wakes: list[tuple[float, simpy.Event]] = []
        self._order = count()
        self._mark = 0

    # Coming and going -----------------------------------------------------------------

    def enter(self, flow: Flow, delay: float) -> None:
        """Let `flow` join the sharing in `delay` s."""
        self._plan(delay).append(flow)

    def leave(self, flow: Flow) -> float:
        """Take `flow` off before its end; return the bytes that it has moved [B]."""
        flow.key = None
        bundle = flow.bundle
        if bundle is None:
            return 0.0
        self._advance(bundle, self.env.now)
        done = bundle.drop(flow)
        self._lost(bundle)
        # Even if nobody gains: the stop of the clock at the end of this flow is to be called off.
        self._plan(0.0)
        return done

    def resized(self, link: Link) -> None:
        """Share out again after the capacity of `link` has changed."""
        if link.component is not None:
            link.component.resized(link)
        if link.members:
            self._seeds.extend(link.members)
            self._plan(0.0)

    def extend(self, link: Link, older: Link) -> None:
        """Let a new link, which stood for the same as an older one, be drawn on by whatever draws on that."""
        component = older.component
        if component is not None:
            component.share.live = False
            self._seeds.extend(component.dissolve(self.env.now))
        for bundle in older.members:
            bundle.links += (link,) * bundle.links.count(older)
            link.members[bundle] = None
            self._seeds.append(bundle)
        if older.members:
            self._plan(0.0)

    def waiting(self) -> Iterable[tuple[float, list[Flow]]]:
        """Flows that wait for their latency, by the time at which they join [s]."""
        return self._joins.items()

    def _tell_claims(self, route: FlowRoute) -> None:
        for claim in [one for one in self.claims if one.covers(route)]:
            claim.told()

    def _plan(self, delay: float) -> list[Flow]:
        """Have a share-out in `delay` s; return the list of the flows that join in it."""
        time = self.env.now + delay
        joins = self._joins.get(time)
        if joins is None:
            joins = self._joins[time] = []
            self._alarm(time, LAST, self._share_out)
        return joins

    def _alarm(self, time: float, priority: EventPriority, call: Callable[[simpy.Event], None]) -> simpy.Event:
        """Have `call` called at exactly `time` [s].

        SimPy's own `schedule` takes a delay, and the sum of the clock and a difference of
        times can miss the time by its last digit: by another one with every stop between.
        """
        alarm = simpy.Event(self.env)
        alarm.callbacks = [call]
        alarm._ok, alarm._value = True, None
        heappush(self.env._queue, (time, priority, next(self.env._eid), alarm))
        return alarm

    def _advance(self, bundle: Bundle, now: float) -> None:
        if bundle.component is None:
            bundle.advance(now)
        else:
            bundle.component.advance(now)
            bundle.component.fetch(bundle)

    def _join(self, flow: Flow, key: Key, now: float) -> Bundle:
        bundle = self.bundles.get(key)
        if bundle is None:
            bundle = self.bundles[key] = Bundle(key, now)
            for link in bundle.links:
                if not link.members:
                    link.since = now
                link.members[bundle] = None
            bundle.add(flow, next(self._order))
            return bundle
        self._advance(bundle, now)
        bundle.add(flow, next(self._order))
        if bundle.component is not None:
            bundle.component.changed(bundle)
        return bundle

    def _lost(self, bundle: Bundle) -> None:
        """See to it that those who shared with `bundle`, which has lost flows, are re-shared."""
        share, component = bundle.share, bundle.component
        if share is not None and share.live:
            share.live = False
            if len(share.bundles) > 1 or bundle.flows:
                self._seeds.extend(share.bundles)
        if bundle.flows:
            if component is not None:
                component.changed(bundle)
        else:
            now = self.env.now
            if component is not None:
                component.remove(bundle)
            bundle.rate = 0.0
            del self.bundles[bundle.key]
            for link in bundle.links:
                if bundle in link.members:
                    del link.members[bundle]
                    if not link.members:
                        link.busy += now - link.since
                        if self.recorder is not None or link.watch is not None:
                            self._idle.append(link)
        if component is not None:
            if component.bundles:
                self._components[component] = None
            else:
                component.dissolve(self.env.now)
        if self._seeds or self._idle or self._components:
            self._plan(0.0)

    # Ends -----------------------------------------------------------------------------

    def _wake(self, _alarm: simpy.Event) -> None:
        """End the flows whose time has come."""
        now = self.env.now
        self._wakes.pop()
        ends = self._ends
        while ends:
            time, _, share = ends[0]
            slack = TICK * now + ROUNDING * (now - share.updated)
            if share.live and time > now + slack:
                break
            heappop(ends)
            if not share.live:
                continue
            if share.component is None:
                for bundle in share.bundles:
                    bundle.advance(now)
                    if bundle.finish(slack, now):
                        self._lost(bundle)
                first = math.inf if not share.live else first_end(share.bundles)
            else:
                first = self._end_component(share, share.component, slack, now)
            if share.live:
                # Rounding has woken us too early: once more, and later than what counts as now.
                later = max(now + first, math.nextafter(now + slack, math.inf))
                heappush(ends, (later, next(self._order), share))
        self._arm()

    def _end_component(self, share: Allocation, component: Component, slack: float, now: float) -> float:
        component.advance(now)
        for bundle in component.due(slack):
            if bundle.finish(slack, now):
                share.live = False
                self._lost(bundle)
        return component.share_out() if share.live else math.inf

    def _arm(self) -> None:
        """See that the clock stops at the next end of a flow."""
        ends, wakes = self._ends, self._wakes
        while ends and not ends[0][2].live:
            heappop(ends)
        if ends:
            time = ends[0][0]
            if not wakes or time < wakes[-1][0]:
                now = self.env.now
                wakes.append((time, self._alarm(time if time > now else now, NORMAL, self._wake)))
        elif wakes and not self._seeds and not self._components:
            # All flows have ended before a wake that was set when one was slower. SimPy has
            # no way to call an event off, and the clock must not run on to it.
            void = {id(alarm) for _, alarm in wakes}
            queue = self.env._queue
            queue[:] = [entry for entry in queue if id(entry[3]) not in void]
            heapify(queue)
            wakes.clear()

    # Sharing --------------------------------------------------------------------------

    def _share_out(self, _: simpy.Event) -> None:
        """Let the flows of this instant join, and re-share what they and others have touched."""
        now = self.env.now
        joins = self._joins.pop(now)
        self._mark += 1
        seeds, self._seeds = self._seeds, []
        for flow in joins:
            if flow.key is not None:
                if self.claims:
                    self._tell_claims(flow.key[0])
                seeds.append(self._join(flow, flow.key, now))
        for seed in seeds:
            if seed.mark != self._mark and seed.flows:
                self._reshare(seed, now)
        while self._components:  # A component that is taken apart may leave smaller ones.
            components, self._components = self._components, {}
            for component in components:
                if component.bundles:
                    self._many(component, now)
        for link in self._idle:
            if not link.members and link.rate:
                self._allot(link, 0.0, now)
        self._idle.clear()
        self._arm()

    def _reshare(self, seed: Bundle, now: float) -> None:
        """Find what is connected with `seed`, and give each of its flows its fair share."""
        if seed.component is not None:
            self._components[seed.component] = None
            return
        if not seed.repeats:
            for link in seed.links:
                if len(link.members) > 1 or link.component is not None:
                    break
            else:
                self._alone(seed, now)
                return
        bundles, links, components = connected(seed, self._mark)
        if len(components) == 1 and isinstance(components[0], BottleneckComponent) and components[0].takes(bundles):
            component: Component = components[0]
            component.advance(now)
        elif components and not any(isinstance(one, ArrayComponent) for one in components):
            self._scatter(components, bundles, now)
            return
        elif components:
            component = self._gather(bundles, components, now)
        elif len(bundles) >= SEVERAL and (hub := find_hub(bundles)) is not None:
            component = BottleneckComponent(hub, now)
        elif len(bundles) >= MANY:
            component = ArrayComponent(now)
        else:
            self._few(bundles, links, now)
            return
        for bundle in bundles:
            bundle.advance(now)
            component.add(bundle)
        self._components[component] = None

    def _alone(self, bundle: Bundle, now: float) -> None:
        """Give `bundle`, which shares with no other, what its links allow."""
        bundle.mark = self._mark
        bundle.advance(now)
        if bundle.share is not None:
            bundle.share.live = False
        load = bundle.weight * len(bundle.flows)
        level = bundle.limit
        for link in bundle.links:
            if link.capacity < level * load:
                level = link.capacity / load
        bundle.rate = level * bundle.weight
        drawn = level * load
        for link in bundle.links:
            if drawn != link.rate:
                self._allot(link, drawn, now)
        self.shares += 1
        self.touched += 1
        share = bundle.share = Allocation([bundle], now)
        if bundle.rate > 0.0:
            first = (bundle.flows[0][0] - bundle.served) / bundle.rate
            if first < math.inf:
                heappush(self._ends, (now + (first if first > 0.0 else 0.0), next(self._order), share))

    def _few(self, bundles: list[Bundle], links: list[Link], now: float) -> None:
        routes = [[link.index for link in bundle.links] for bundle in bundles]
        loads = [bundle.weight * len(bundle.flows) for bundle in bundles]
        levels = fill(routes, [link.capacity for link in links], loads, [bundle.limit for bundle in bundles])
        drawn = [0.0] * len(links)
        for bundle, route, level, load in zip(bundles, routes, levels, loads, strict=True):
            bundle.advance(now)
            bundle.rate = level * bundle.weight
            for index in route:
                drawn[index] += level * load
        for link, rate in zip(links, drawn, strict=True):
            if rate != link.rate:
                self._allot(link, rate, now)
        self._await(bundles, now)

    def _await(self, bundles: list[Bundle], now: float) -> None:
        """Predict the first end among bundles that have been shared out together."""
        self.shares += 1
        self.touched += len(bundles)
        share = Allocation(bundles, now)
        for bundle in bundles:
            bundle.share = share
        first = first_end(bundles)
        if first < math.inf:
            heappush(self._ends, (now + first, next(self._order), share))

    def _allot(self, link: Link, rate: float, now: float) -> None:
        link.rate = rate
        if rate > link.peak:
            link.peak = rate
        if self.recorder is not None or link.watch is not None:
            self._tell(link, now)

    def _tell(self, link: Link, now: float) -> None:
        if self.recorder is not None:
            for name in islice(link.names, MOST_TOLD):
                self.recorder.counter("network", f"rate {name}", now, link.rate)
        if link.watch is not None:
            link.watch(link.rate)

    # Crowds ---------------------------------------------------------------------------

    @staticmethod
    def _gather(bundles: list[Bundle], components: list[Component], now: float) -> ArrayComponent:
        """Return the largest `ArrayComponent`, and put the bundles of all other components among `bundles`."""
        arrays = [one for one in components if isinstance(one, ArrayComponent)]
        component = max(arrays, key=lambda one: len(one.bundles))
        component.advance(now)
        for other in components:
            if other is not component:
                other.share.live = False
                bundles.extend(other.dissolve(now))
        return component

    def _scatter(self, components: Iterable[Component], bundles: Iterable[Bundle], now: float) -> None:
        """Take components apart, and share their bundles and others out again."""
        loose = [*bundles]
        for component in components:
            component.share.live = False
            loose += component.dissolve(now)
        self._mark += 1
        for bundle in loose:
            if bundle.mark != self._mark:
                self._reshare(bundle, now)

    def _many(self, component: Component, now: float) -> None:
        """Share out a component, or take it apart if it may no longer be one."""
        component.share.live = False
        component.advance(now)
        if isinstance(component, ArrayComponent):
            apart = len(component.bundles) < MANY // 2 or 2 * component.left > len(component.bundles) + MANY
        else:
            apart = len(component.bundles) < SEVERAL // 2
        first = 0.0 if apart else component.share_out()
        if isinstance(component, BottleneckComponent) and component.broken:
            apart = True
            self._patience = PATIENCE if component.turns > MANY else min(2 * self._patience, MOST_PATIENCE)
        if apart:
            self._scatter([component], (), now)
            return
        self.shares += 1
        self.touched += len(component.bundles)
        component.share = Allocation(component.bundles, now, component)
        if first < math.inf:
            heappush(self._ends, (now + first, next(self._order), component.share))
        if self.recorder is not None or self.watched:
            for link in component.note():
                self._tell(link, now)
        patient = not isinstance(component, ArrayComponent) or component.alike <= self._patience
        if not patient and find_hub(component.bundles) is not None:
            self._scatter([component], (), now)
