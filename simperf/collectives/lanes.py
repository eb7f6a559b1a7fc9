"""The connections of a library's channels on a machine, as arrays: their latencies, their rates, their links.

A collective library moves slices through a few buffers of each connection, so that a channel advances at the
pace of its slowest connection: all of its connections carry bytes at one rate. Its pace is the max-min fair share
that the slowest of them gets when all connections of all channels are busy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from simperf.collectives.links import FloatArray
from simperf.collectives.placement import Hop, Placement, Transport
from simperf.collectives.plan import IntArray, Plan
from simperf.collectives.plan_routes import PlanRoutes
from simperf.engine.link_table import LinkClass
from simperf.engine.maxmin import fill_many
from simperf.hardware.route_classes import LinkNames
from simperf.layout.distinct import distinct
from simperf.layout.flow_classes import float_words, mix_words

__all__ = ["Lanes", "pairs_of"]


def pairs_of(plan: Plan) -> list[tuple[IntArray, IntArray]]:
    """Sources and destinations of each channel's connections: the pairs of participants between which it sends."""
    found = []
    for channel in plan.channels:
        keys = [np.zeros(0, dtype=np.int64)]
        for phase in channel.phases:
            for index in range(min(1, phase.nrounds) if phase.repeats else phase.nrounds):
                one = phase.make(index)
                keys.append(one.src * plan.nparticipants + one.dst)
        key = np.unique(np.concatenate(keys))
        found.append((key // plan.nparticipants, key % plan.nparticipants))
    return found


class Lanes:
    """Connections of channels between participants.

    Parameters
    ----------
    placement : Placement
        Where the participants sit.
    pairs : sequence of (numpy.ndarray, numpy.ndarray)
        Sources and destinations of each channel's connections.

    Attributes
    ----------
    channel : numpy.ndarray of int64, shape (lanes,)
        The channel of each connection.
    capacity : numpy.ndarray of float64, shape (1 + links,)
        Of each link [B/s]; number 0 is no link.
    """

    def __init__(self, placement: Placement, pairs: Sequence[tuple[IntArray, IntArray]]) -> None:
        self.placement, self.pairs = placement, list(pairs)
        sizes = [len(src) for src, _ in self.pairs]
        self.bounds = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        self.channel = np.repeat(np.arange(len(sizes)), sizes)
        none = np.zeros(0, dtype=np.int64)
        self._src = np.concatenate([none, *(src for src, _ in self.pairs)])
        self._dst = np.concatenate([none, *(dst for _, dst in self.pairs)])
        routes = PlanRoutes.of(placement)
        found = self._by_kind(routes) if routes is not None else self._one_by_one()
        self._links, self._kind, self._hops, self._names, self.capacity = found

    def __len__(self) -> int:
        return len(self.channel)

    @property
    def media(self) -> frozenset[str]:
        """Media of all connections."""
        return frozenset(hop.medium for hop in self._hops)

    def latency(self, transport: Transport) -> FloatArray:
        """Latency of a send on each connection [s]."""
        by_kind = np.array([transport.latency(hop) for hop in self._hops])
        return by_kind[self._kind] if len(self) else np.zeros(0)

    def paces(self, *, connections: int = 1) -> tuple[float, ...]:
        """Rate of each channel [B/s]; `connections` is as in `Transport`."""
        if not len(self):
            return ()
        limits = np.array([hop.cap * connections for hop in self._hops])[self._kind]
        rates = fill_many(self._links, self.capacity, np.ones(len(self)), limits)
        slowest = np.full(len(self.pairs), np.inf)
        np.minimum.at(slowest, self.channel, rates)
        return tuple(slowest.tolist())

    @cached_property
    def classes(self) -> tuple[LinkClass, ...]:
        """Links that the channels draw on alike."""
        size = len(self.capacity)
        rows = [
            np.bincount(self._links[:, a:b].ravel(), minlength=size)
            for a, b in zip(self.bounds[:-1], self.bounds[1:], strict=True)
        ]
        if not rows:
            return ()
        counts = np.stack(rows)[:, 1:]
        of, looks = _alike(np.vstack((counts, self.capacity[1:])))
        order = np.lexsort(looks[::-1])
        members = np.split(np.argsort(of, kind="stable"), np.cumsum(np.bincount(of, minlength=len(order)))[:-1])
        return tuple(
            LinkClass(
                _some(self._names, members[index]), tuple(int(n) for n in looks[:-1, index]), float(looks[-1, index])
            )
            for index in order.tolist()
        )

    # Routes ----------------------------------------------------------------------------

    def _by_kind(self, routes: PlanRoutes) -> tuple[IntArray, IntArray, list[Hop], Sequence[str], FloatArray]:
        numbers, kind = routes.find(self._src, self._dst)
        found, local = routes.distinct(numbers)
        capacity = np.concatenate(([np.inf], routes.capacity(found)))
        if not len(local):
            local = np.zeros((1, len(self._src)), dtype=np.int64)
        return local, kind, routes.hops, LinkNames(routes, found), capacity

    def _one_by_one(self) -> tuple[IntArray, IntArray, list[Hop], Sequence[str], FloatArray]:
        numbers: dict[str, int] = {"": 0}
        kinds: dict[tuple[int, int], int] = {}
        hops: list[Hop] = []
        kind = np.zeros(len(self._src), dtype=np.int64)
        for lane, pair in enumerate(zip(self._src.tolist(), self._dst.tolist(), strict=True)):
            if pair not in kinds:
                kinds[pair] = len(hops)
                hops.append(self.placement.hop(*pair))
            kind[lane] = kinds[pair]
        rows = [[numbers.setdefault(name, len(numbers)) for name in hop.resources] for hop in hops]
        table = np.zeros((max(map(len, rows), default=0) or 1, len(rows)), dtype=np.int64)
        for column, row in enumerate(rows):
            table[: len(row), column] = row
        resources = self.placement.machine.resources
        capacity = np.array([np.inf, *(float(resources[name]) for name in list(numbers)[1:])])
        return table[:, kind], kind, hops, tuple(numbers)[1:], capacity


def _some(names: Sequence[str], places: IntArray) -> Sequence[str]:
    """Names at some places, made when they are asked for if all are."""
    return names.take(places) if isinstance(names, LinkNames) else tuple(names[place] for place in places.tolist())


def _alike(looks: FloatArray) -> tuple[IntArray, FloatArray]:
    """Columns that are equal: the number of each column, and one column of each number."""
    mixed = np.zeros(looks.shape[1], dtype=np.uint64)
    for row in looks:
        mixed = mix_words(mixed + float_words(row))
    _, first, of = distinct(mixed)
    found = looks[:, first]
    if np.any(found[:, of] != looks):  # two columns were mixed into one word
        found, of = np.unique(looks, axis=1, return_inverse=True)
    return of.ravel(), found
