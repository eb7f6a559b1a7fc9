"""A component behind one bottleneck: flows that all cross one link, which holds all of them back.

While one full link is the bottleneck of everything that hangs together, all flows are at one
level, its capacity over their claims, and nothing else has to be solved for. A virtual clock
counts what a flow of weight 1 has been served; the next end of every bundle is a reading of that
clock, and the first of them is at the top of a heap (processor sharing in virtual time:
A. Parekh and R. Gallager, "A generalized processor sharing approach to flow control", IEEE/ACM
Trans. Networking 1, 1993). A start or an end costs O(log n), whatever the number of flows.

Links that could become a bottleneck of their own, those that are narrower than the bottleneck's, are
watched; when one does, the component is `broken`, and its bundles are shared out the long way.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import count

from simperf.engine.flow import ROUNDING, Allocation, Bundle, Link
from simperf.engine.maxmin import TIE

__all__ = ["BottleneckComponent", "find_hub"]

#: How many times the size of a newcomer the clock may show before it starts anew.
LONG = 64.0


def find_hub(bundles: Sequence[Bundle]) -> Link | None:
    """The link that all of connected bundles cross and that holds every one of them; None if there is none."""
    links = [link for link in bundles[0].links if len(link.members) == len(bundles)]
    if not links or any(bundle.repeats for bundle in bundles):
        return None
    hub = min(links, key=lambda link: link.capacity)
    loads = [bundle.weight * len(bundle.flows) for bundle in bundles]
    level = hub.capacity / math.fsum(loads)
    if not 0.0 < level < math.inf:
        return None
    least = level * (1.0 - TIE)
    claims: dict[Link, float] = {}
    for bundle, load in zip(bundles, loads, strict=True):
        if bundle.limit < least:
            return None
        for link in bundle.links:
            if link.capacity < hub.capacity:
                claims[link] = claims.get(link, 0.0) + load
    return hub if all(link.capacity >= least * claim for link, claim in claims.items()) else None


class BottleneckComponent:
    """Bundles behind one link; a `simperf.engine.flow.Component`.

    Parameters
    ----------
    hub : Link
        The link that all of them cross.
    now : float
        The time at which it begins [s].
    """

    def __init__(self, hub: Link, now: float) -> None:
        self.hub = hub
        self.bundles: list[Bundle] = []
        self.updated = now
        self.left = 0
        self.share = Allocation(self.bundles, now, self)
        self.broken = False
        self._clock = self._level = 0.0
        self._claims: dict[Link, float] = {}  # of all bundles on each link; the hub's are those of all
        self._since: dict[Link, int] = {}  # turn from which a link's claims are as they are
        self._claim: list[float] = []  # by slot: the bundle's claim, the clock at which it was fetched, its next end
        self._seen: list[float] = []
        self._target: list[float] = []
        self._ends: list[tuple[float, int, Bundle]] = []
        self._narrow: list[tuple[float, int, Link]] = []  # what narrow links and capped bundles allow
        self._capped: list[tuple[float, int, Bundle]] = []
        self._order = count()
        self.turns = 0
        self._turns: list[int] = []  # turns and levels, falling: the highest level since any turn is found in it
        self._highs: list[float] = []

    # Who is in it ---------------------------------------------------------------------

    def takes(self, bundles: Sequence[Bundle]) -> bool:
        """Whether all of `bundles` go through the same link, once."""
        return all(self.hub in bundle.links and not bundle.repeats for bundle in bundles)

    def add(self, bundle: Bundle) -> None:
        """Take in a bundle that has been advanced to the component's time."""
        bundle.component, bundle.slot, bundle.share = self, len(self.bundles), None
        self.bundles.append(bundle)
        self._claim.append(0.0)
        self._seen.append(self._clock)
        self._target.append(math.inf)
        for link in bundle.links:
            if link.component is not self:
                link.component = self
                self._claims[link], self._since[link] = 0.0, self.turns
        if bundle.key[1] < self.hub.capacity:
            heappush(self._capped, (bundle.limit, next(self._order), bundle))
        self.changed(bundle)

    def changed(self, bundle: Bundle) -> None:
        """Note that the flows of a bundle, whose count is up to date, are others than before."""
        slot = bundle.slot
        claim = bundle.weight * len(bundle.flows)
        if claim != self._claim[slot]:
            self._alter(bundle, claim - self._claim[slot])
            self._claim[slot] = claim
        mark, _, flow = bundle.flows[0]
        if self._clock * bundle.weight > LONG * flow.nbytes:
            self._restart()
        self._seen[slot] = self._clock
        self._target[slot] = target = self._clock + (mark - bundle.served) / bundle.weight
        heappush(self._ends, (target, next(self._order), bundle))
        if len(self._ends) > 64 + 4 * len(self.bundles):
            self._ends = [entry for entry in self._ends if self._valid(entry)]
            heapify(self._ends)

    def _alter(self, bundle: Bundle, more: float) -> None:
        for link in bundle.links:
            self._note_peak(link)
            self._claims[link] = claims = self._claims[link] + more
            if link.capacity < self.hub.capacity and claims > 0.0:
                heappush(self._narrow, (link.capacity / claims, next(self._order), link))

    def resized(self, link: Link) -> None:
        """Note that the capacity of a link in the component is another than before."""
        self.broken = True

    def remove(self, bundle: Bundle) -> None:
        """Take out a bundle that has no flows left."""
        slot, last = bundle.slot, self.bundles.pop()
        self._alter(bundle, -self._claim[slot])
        self._target[slot] = math.inf
        for column in (self._claim, self._seen, self._target):
            value = column.pop()
            if last is not bundle:
                column[slot] = value
        if last is not bundle:
            self.bundles[slot] = last
            last.slot = slot
        bundle.component = None
        bundle.rate = 0.0
        for link in bundle.links:
            if link is not self.hub and not any(other is not bundle for other in link.members):
                link.component = None
                del self._claims[link], self._since[link]

    def dissolve(self, now: float) -> list[Bundle]:
        """Give back all bundles and links, advanced to `now` [s]."""
        self.advance(now)
        for bundle in self.bundles:
            self.fetch(bundle)
            bundle.updated = now
        for bundle in self.bundles:
            bundle.component = None
        for link in self._claims:
            self._note_peak(link)
            link.component = None
        bundles, self.bundles = self.bundles, []
        self._claims.clear()
        return bundles

    # What becomes of it ---------------------------------------------------------------

    def now_served(self, slot: int, now: float) -> tuple[float, float]:
        """Return rate [B/s] and bytes served each flow [B] of one bundle at `now` [s]."""
        bundle = self.bundles[slot]
        clock = self._clock + self._level * (now - self.updated)
        return self._level * bundle.weight, bundle.served + bundle.weight * (clock - self._seen[slot])

    def advance(self, now: float) -> None:
        """Serve all flows until `now` [s]."""
        if now != self.updated:
            self._clock += self._level * (now - self.updated)
            self.updated = now

    def fetch(self, bundle: Bundle) -> None:
        """Bring the rate and the count of one bundle up to date with the clock."""
        slot = bundle.slot
        bundle.served += bundle.weight * (self._clock - self._seen[slot])
        self._seen[slot] = self._clock
        bundle.rate = self._level * bundle.weight
        bundle.updated = self.updated

    def due(self, slack: float) -> list[Bundle]:
        """Return the bundles, brought up to date, in which a flow ends within `slack` [s]."""
        near = (self._clock + self._level * slack) * (1.0 + 2.0 * ROUNDING)
        found = []
        while self._ends and self._ends[0][0] <= near:
            entry = heappop(self._ends)
            if self._valid(entry):
                found.append(entry)
        for entry in found:  # one that has not ended after all is still to come
            heappush(self._ends, entry)
            self.fetch(entry[2])
        return list(dict.fromkeys(bundle for _, _, bundle in found))

    def share_out(self) -> float:
        """Find the level; return the time until the first flow ends [s], or find that the component is broken."""
        level = self.hub.capacity / self._claims[self.hub]
        self.broken = self.broken or level * (1.0 - TIE) > self._allowed()
        if self.broken:
            return math.inf
        self._level = level
        self.turns += 1
        while self._highs and self._highs[-1] <= level:
            self._highs.pop()
            self._turns.pop()
        self._highs.append(level)
        self._turns.append(self.turns)
        while not self._valid(self._ends[0]):
            heappop(self._ends)
        return max((self._ends[0][0] - self._clock) / level, 0.0)

    def note(self) -> list[Link]:
        """Write rates and peaks back to the links; return those whose rate has changed."""
        changed = []
        for link, claims in self._claims.items():
            self._note_peak(link)
            drawn = claims * self._level
            if drawn != link.rate:
                link.rate = drawn
                changed.append(link)
        return changed

    # ----------------------------------------------------------------------------------

    def _valid(self, entry: tuple[float, int, Bundle]) -> bool:
        target, _, bundle = entry
        return bundle.component is self and self._target[bundle.slot] == target

    def _allowed(self) -> float:
        """Level that the narrowest link or cap allows."""
        narrow, capped = self._narrow, self._capped
        while narrow:
            allowed, _, link = narrow[0]
            claims = self._claims.get(link, 0.0)
            if claims > 0.0 and link.capacity / claims == allowed:
                break
            heappop(narrow)
        while capped and capped[0][2].component is not self:
            heappop(capped)
        return min(narrow[0][0] if narrow else math.inf, capped[0][0] if capped else math.inf)

    def _note_peak(self, link: Link) -> None:
        """Take in the highest rate that a link has had since its claims were last altered."""
        since = bisect_left(self._turns, self._since[link] + 1)
        if since < len(self._highs):
            link.peak = max(link.peak, min(self._highs[since] * self._claims[link], link.capacity))
        self._since[link] = self.turns

    def _restart(self) -> None:
        """Set the clock to zero, or a small flow is lost in the rounding of a long count."""
        for bundle in self.bundles:
            slot = bundle.slot
            bundle.served += bundle.weight * (self._clock - self._seen[slot])
            self._seen[slot] = 0.0
            self._target[slot] -= self._clock
        self._clock = 0.0
        self._ends = [(self._target[one.slot], next(self._order), one) for one in self.bundles]
        heapify(self._ends)
