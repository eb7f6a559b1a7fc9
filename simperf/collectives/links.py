"""Routes of many sends at once, as arrays of link numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from simperf.collectives.placement import PLAIN, Hop, Placement, Transport
from simperf.collectives.plan import IntArray
from simperf.collectives.plan_routes import PlanRoutes
from simperf.engine.link_table import LinkClass
from simperf.errors import InputError, Problem

__all__ = ["FloatArray", "Hops", "Links"]

#: most links that the routes of one round may cross in all
MOST_CROSSED = 4_000_000

#: links that rounds cross in all whose routes are kept as a whole: those of a ring come again and again
MOST_KEPT = 6_000_000

FloatArray: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Hops:
    """The routes of the sends of a round.

    Parameters
    ----------
    links : numpy.ndarray of int64, shape (longest, sends)
        Link numbers; 0 is no link.
    latency : numpy.ndarray of float64, shape (sends,)
        Latency, with what the transport adds [s].
    cap : numpy.ndarray of float64, shape (sends,)
        Most that one flow gets [B/s].
    """

    links: IntArray
    latency: FloatArray
    cap: FloatArray


class Links:
    """Numbers the links that a plan uses, as they are met.

    Parameters
    ----------
    placement : Placement
        Where the participants sit. A regular topology is asked for all routes of a round at once, a cluster for one
        route of each kind (`simperf.collectives.plan_routes`), any other machine for each route once.
    transport : Transport
        Adds its latencies and limits.
    """

    def __init__(self, placement: Placement, transport: Transport = PLAIN) -> None:
        self._placement, self._transport = placement, transport
        self._names: list[str] = [""]
        self._capacities: list[float] = [np.inf]
        self._array: FloatArray = np.array([np.inf])
        self._routes = PlanRoutes.of(placement)
        self._numbers = np.full(1, -1, dtype=np.int64)  # of a cluster's links, by slot
        self._topology = placement.machine.topology
        if self._topology is not None:
            self._node = np.array([self._topology.number(name) for name in placement.nodes], dtype=np.int64)
        self._known = np.zeros(0, dtype=np.int64)
        self._slots = np.zeros(0, dtype=np.int64)
        self._by_name: dict[str, int] = {}
        self._rows: dict[tuple[int, int], tuple[tuple[int, ...], float, float]] = {}
        self._rounds: dict[tuple[bytes, bytes], Hops] = {}
        self._kept = 0
        self._classes: dict[bytes, tuple[LinkClass, ...]] = {}

    @classmethod
    def of(cls, placement: Placement, transport: Transport) -> Links:
        """The placement's own, which knows the routes of earlier payloads."""
        kept: Links | None = placement.kept.get("links")
        if kept is None or kept._transport is not transport:
            kept = placement.kept["links"] = cls(placement, transport)
        return kept

    def __len__(self) -> int:
        return len(self._names) if self._routes is None else len(self._numbers)

    @property
    def capacity(self) -> FloatArray:
        """Capacity [B/s] by link number; that of no link is infinite."""
        if self._routes is None and len(self._array) != len(self._capacities):
            self._array = np.array(self._capacities)
        return self._array

    def name(self, link: int) -> str:
        """Resource id of a link number."""
        return self._names[link] if self._routes is None else self._routes.name(int(self._numbers[link]))

    def classes(self, links: IntArray) -> tuple[LinkClass, ...]:
        """Some links, by capacity, which one route draws on; the same ones are the same objects."""
        key = links.tobytes()
        if key not in self._classes:
            capacity = self.capacity[links]
            self._classes[key] = tuple(
                LinkClass([self.name(link) for link in links[capacity == one].tolist()], (1,), one)
                for one in np.unique(capacity).tolist()
            )
        return self._classes[key]

    def last(self, links: IntArray) -> int:
        """The link whose name comes last in the alphabet, of some link numbers."""
        if self._routes is None:
            return int(max(links.tolist(), key=self._names.__getitem__))
        return int(links[self._routes.last(self._numbers[links])])

    def hops(self, src: IntArray, dst: IntArray) -> Hops:
        """The routes from participants to participants."""
        if self._topology is not None and len(src):
            here, there = self._node[src], self._node[dst]
            found = self._topology.paths(here, there) if not np.any(here == there) else None
            if found is not None:
                links, latency = found
                wait, most = self._transport.latency(Hop((), latency)), self._transport.cap
                return Hops(self._number(links), np.full(len(src), wait), np.full(len(src), most))
        return self._one_by_one(src, dst)

    def _through(self, routes: PlanRoutes, src: IntArray, dst: IntArray) -> Hops:
        links, classes = routes.find(src, dst)
        if links.size > MOST_CROSSED:
            _refuse()
        latency = np.array([self._transport.latency(hop) for hop in routes.hops])
        most = np.array([self._transport.most(hop, len(self._transport.caps)) for hop in routes.hops])
        if not len(links):
            links = np.full((1, len(src)), -1, dtype=np.int64)
        return Hops(self._number(links), latency[classes], most[classes])

    def _number(self, links: IntArray) -> IntArray:
        place = np.searchsorted(self._known, links)
        inside = np.minimum(place, max(len(self._known) - 1, 0))
        if not len(self._known) or np.any(self._known[inside] != links):
            new = np.setdiff1d(links, self._known)
            slots = self._new_slots(new)
            self._known = np.concatenate((self._known, new))
            self._slots = np.concatenate((self._slots, slots))
            order = np.argsort(self._known)
            self._known, self._slots = self._known[order], self._slots[order]
            place = np.searchsorted(self._known, links)
        else:
            place = inside
        return self._slots[place]

    def _new_slots(self, links: IntArray) -> IntArray:
        if self._topology is not None:
            return np.array([self._slot(self._topology.link_name(link)) for link in links.tolist()], dtype=np.int64)
        assert self._routes is not None  # links have numbers of their own
        some = links >= 0  # -1 is no link
        slots = np.where(some, len(self._numbers) + np.cumsum(some) - 1, 0)
        self._numbers = np.concatenate((self._numbers, links[some]))
        self._array = np.concatenate((self._array, self._routes.capacity(links[some])))
        return slots

    def _slot(self, name: str) -> int:
        slot = self._by_name.get(name)
        if slot is None:
            slot = self._by_name[name] = len(self._names)
            self._names.append(name)
            self._capacities.append(float(self._placement.machine.resources[name]))
        return slot

    def _row(self, src: int, dst: int) -> tuple[tuple[int, ...], float, float]:
        hop = self._placement.hop(src, dst)
        links = tuple(self._slot(name) for name in hop.resources)
        return links, self._transport.latency(hop), self._transport.most(hop, len(self._transport.caps))

    def _one_by_one(self, src: IntArray, dst: IntArray) -> Hops:
        key = (src.tobytes(), dst.tobytes())
        found = self._rounds.get(key)
        if found is None:
            found = self._look_up(src, dst) if self._routes is None else self._through(self._routes, src, dst)
            self._rounds[key] = found
            self._kept += found.links.size + len(src)
            while self._kept > MOST_KEPT:
                first = self._rounds.pop(next(iter(self._rounds)))
                self._kept -= first.links.size + len(first.latency)
        return found

    def _look_up(self, src: IntArray, dst: IntArray) -> Hops:
        rows, crossed = [], 0
        for pair in zip(src.tolist(), dst.tolist(), strict=True):
            row = self._rows.get(pair)
            if row is None:
                row = self._rows[pair] = self._row(*pair)
            rows.append(row)
            crossed += len(row[0])
            if crossed > MOST_CROSSED:
                _refuse()
        longest = max((len(row[0]) for row in rows), default=0)
        links = np.zeros((max(longest, 1), len(rows)), dtype=np.int64)
        for column, row in enumerate(rows):
            links[: len(row[0]), column] = row[0]
        return Hops(links, np.array([row[1] for row in rows]), np.array([row[2] for row in rows]))


def _refuse() -> NoReturn:
    message = f"the sends of one round cross more than {MOST_CROSSED:,} links"
    raise InputError(Problem(message, expected="fewer ranks, or an algorithm whose partners are near"))
