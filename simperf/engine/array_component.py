"""A component of hundreds of bundles, kept in numpy arrays.

Where hundreds of bundles hang together, a start or an end anywhere may change the rate
of all. The component keeps rates and counts in arrays that live on from one re-share to the
next, so that a change costs some dozens of numpy calls and no loop over bundles, and
finds the new levels from the old ones (`simperf.engine.maxmin.refill`).
"""

from __future__ import annotations

import math

import numpy as np

from simperf.engine.flow import ROUNDING, Allocation, Bundle, Link
from simperf.engine.maxmin import TIE, refill

__all__ = ["ArrayComponent"]


class ArrayComponent:
    """Bundles connected by their links, shared out together; a `simperf.engine.flow.Component`.

    Parameters
    ----------
    now : float
        The time at which it begins [s].
    """

    def __init__(self, now: float) -> None:
        self.bundles: list[Bundle] = []
        self.links: list[Link] = []
        self.updated = now
        self.left = 0
        self.share = Allocation(self.bundles, now, self)
        self._routes = np.zeros((1, 64), dtype=np.intp)
        # Row by row: load, limit, weight, level, rate, bytes served, bytes at the next end.
        self._state = np.zeros((7, 64))
        # Column 0 stands for no link: capacity, level that it holds its bundles to, rate, peak.
        self._ends = np.zeros((4, 64))
        self._ends[:2, 0] = math.inf
        self._since = math.inf
        self._changed: list[int] = []
        self.alike = 0  # share-outs, up to now, that have put all flows at one level

    # Who is in it ---------------------------------------------------------------------

    def add(self, bundle: Bundle) -> None:
        """Take in a bundle that has been advanced to the component's time."""
        slot = len(self.bundles)
        if slot == self._state.shape[1]:
            self._state = np.concatenate([self._state, np.zeros_like(self._state)], axis=1)
            self._routes = np.concatenate([self._routes, np.zeros_like(self._routes)], axis=1)
        longer = len(bundle.links) - len(self._routes)
        if longer > 0:
            self._routes = np.concatenate([self._routes, np.zeros((longer, self._routes.shape[1]), dtype=np.intp)])
        column = self._routes[:, slot]
        column[:] = 0
        for row, link in enumerate(bundle.links):
            if link.component is not self:
                self._add_link(link)
            column[row] = link.index
        self.bundles.append(bundle)
        bundle.component, bundle.slot, bundle.share = self, slot, None
        self._state[2:, slot] = bundle.weight, math.inf, bundle.rate, bundle.served, 0.0
        self._state[1, slot] = bundle.limit
        self.changed(bundle)

    def _add_link(self, link: Link) -> None:
        self.links.append(link)
        link.component, link.index = self, len(self.links)
        if link.index == self._ends.shape[1]:
            self._ends = np.concatenate([self._ends, np.zeros_like(self._ends)], axis=1)
        self._ends[:, link.index] = link.capacity, math.inf, link.rate, link.peak

    def changed(self, bundle: Bundle) -> None:
        """Note that the flows of a bundle in the component are others than before."""
        self._state[0, bundle.slot] = bundle.weight * len(bundle.flows)
        self._state[5, bundle.slot] = bundle.served
        self._state[6, bundle.slot] = bundle.flows[0][0]
        self._since = min(self._since, float(self._state[3, bundle.slot]))
        self._changed.extend(link.index for link in bundle.links)

    def resized(self, link: Link) -> None:
        """Note that the capacity of a link in the component is another than before."""
        self._ends[0, link.index] = link.capacity
        self._since = 0.0

    def remove(self, bundle: Bundle) -> None:
        """Take out a bundle that has no flows left."""
        slot, last = bundle.slot, self.bundles.pop()
        self._since = min(self._since, float(self._state[3, slot]))
        if last is not bundle:
            self.bundles[slot] = last
            last.slot = slot
            self._state[:, slot] = self._state[:, len(self.bundles)]
            self._routes[:, slot] = self._routes[:, len(self.bundles)]
        bundle.component = None
        bundle.rate = 0.0
        self.left += 1

    def dissolve(self, now: float) -> list[Bundle]:
        """Give back all bundles and links, advanced to `now` [s]."""
        self.advance(now)
        rates, served = self._state[4].tolist(), self._state[5].tolist()
        for bundle in self.bundles:
            bundle.rate, bundle.served, bundle.updated = rates[bundle.slot], served[bundle.slot], now
            bundle.component = None
        self.note()
        for link in self.links:
            link.component = None
        bundles, self.bundles, self.links = self.bundles, [], []
        return bundles

    # What becomes of it ---------------------------------------------------------------

    def now_served(self, slot: int, now: float) -> tuple[float, float]:
        """Return rate [B/s] and bytes served each flow [B] of one bundle at `now` [s]."""
        rate = float(self._state[4, slot])
        return rate, float(self._state[5, slot]) + rate * (now - self.updated)

    def advance(self, now: float) -> None:
        """Serve all flows until `now` [s]."""
        if now != self.updated:
            count = len(self.bundles)
            self._state[5, :count] += self._state[4, :count] * (now - self.updated)
            self.updated = now

    def fetch(self, bundle: Bundle) -> None:
        """Bring the rate and the count of one bundle up to date with the arrays."""
        bundle.rate = float(self._state[4, bundle.slot])
        bundle.served = float(self._state[5, bundle.slot])
        bundle.updated = self.updated

    def due(self, slack: float) -> list[Bundle]:
        """Return the bundles, brought up to date, in which a flow ends within `slack` [s]."""
        _, _, _, _, rate, served, target = self._state[:, : len(self.bundles)]
        # A mark may be many times the size of its flow: `Bundle.finish` looks again.
        near = target - served <= rate * slack + 2.0 * ROUNDING * np.where(target < math.inf, target, 0.0)
        bundles = [self.bundles[slot] for slot in np.flatnonzero(near).tolist()]
        for bundle in bundles:
            self.fetch(bundle)
        return bundles

    def share_out(self) -> float:
        """Give every flow its fair share; return the time until the first of them ends [s]."""
        count, size = len(self.bundles), len(self.links) + 1
        routes, ends = self._routes[:, :count], self._ends[:, :size]
        load, limit, weight, level, rate, served, target = self._state[:, :count]
        since = self._since
        if self._changed and since > 0.0:
            total = np.bincount(routes.ravel(), np.tile(load, len(routes)), minlength=size)
            touched = np.array(self._changed, dtype=np.intp)
            touched = touched[total[touched] > 0.0]
            since = min(since, float((ends[0, touched] / total[touched]).min(initial=math.inf)))
        level[:], ends[1], drawn = refill(routes, ends[0], load, limit, levels=level, marks=ends[1].copy(), since=since)
        ends[2] = drawn
        np.maximum(ends[3], drawn, out=ends[3])
        np.multiply(level, weight, out=rate)
        self._since = math.inf
        self._changed.clear()
        self.alike = self.alike + 1 if float(np.ptp(level)) <= TIE * float(level[0]) else 0
        left = np.full(count, math.inf)
        np.divide(target - served, rate, out=left, where=rate > 0.0)
        return max(float(left.min(initial=math.inf)), 0.0)

    def note(self) -> list[Link]:
        """Write rates and peaks back to the links; return those whose rate has changed."""
        drawn, peaks = self._ends[2].tolist(), self._ends[3].tolist()
        changed = []
        for link in self.links:
            if drawn[link.index] != link.rate:
                link.rate = drawn[link.index]
                changed.append(link)
            link.peak = peaks[link.index]
        return changed
