"""The nodes of a job: at work, standing by, or under repair."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

__all__ = ["Fleet"]


class Fleet:
    """Nodes that work and nodes that stand by, and when the broken ones are back.

    Parameters
    ----------
    nodes : int
        Nodes that the job wants; nodes 0 to nodes - 1 work from the start.
    spares : int
        Nodes that stand by.
    repairs : iterator of float
        Times of repair [s], one a node that breaks.
    """

    def __init__(self, nodes: int, spares: int, repairs: Iterator[float]) -> None:
        self.wanted = nodes
        self._active = dict.fromkeys(range(nodes))
        self._ready = list(range(nodes, nodes + spares))
        self._repairs = repairs
        self._broken: list[tuple[float, int]] = []

    @property
    def active(self) -> int:
        """Nodes at work."""
        return len(self._active)

    @property
    def missing(self) -> int:
        """Nodes that the job wants and does not have."""
        return self.wanted - len(self._active)

    @property
    def ready(self) -> int:
        """Nodes that stand by."""
        return len(self._ready)

    @property
    def next_repair(self) -> float:
        """When the next broken node is back [s]; infinite if none is broken."""
        return self._broken[0][0] if self._broken else math.inf

    def works(self, node: int) -> bool:
        """Whether `node` takes part in the job."""
        return node in self._active

    def advance(self, now: float) -> None:
        """Put the nodes that are repaired by `now` [s] among those that stand by."""
        while self._broken and self._broken[0][0] <= now:
            self._ready.append(heapq.heappop(self._broken)[1])

    def lose(self, node: int, now: float) -> None:
        """Send `node` to repair, if it is not there already."""
        if node in self._active:
            del self._active[node]
        elif node in self._ready:
            self._ready.remove(node)
        else:
            return
        heapq.heappush(self._broken, (now + next(self._repairs), node))

    def pick(self, share: float) -> int:
        """The node at work that a number from 0 to 1 falls on."""
        return sorted(self._active)[min(int(share * len(self._active)), len(self._active) - 1)]

    def fill(self) -> int:
        """Put nodes that stand by to work where some are missing; returns how many."""
        count = min(self.missing, len(self._ready))
        for _ in range(count):
            self._active[self._ready.pop(0)] = None
        return count
