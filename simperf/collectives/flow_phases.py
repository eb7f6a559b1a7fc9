"""Phases of flows: a collective of too many sends to be events, beside other traffic.

A phase is one round of a plan, rounds that repeat, or a pipeline. In it, links that move equally many bytes, in equally
many sends at a time, are one flow. It begins after the latency of these sends, its weight is their number, and it is
capped at the rate that they have alone. So beside one other flow on a link that k sends share, the collective gets
k / (k + 1) of it, as single sends would. Without other traffic a phase takes exactly its part of the time that the
whole plan takes alone. The next one begins when all flows of the one before it have ended. Long phases continue in
parts, one after the other, so that latencies and bytes take turns as they do in rounds.

What is approximate: all sends of a round wait for the slowest one, so that no rank runs ahead and shares links with
those behind; a pipeline is filled and drained all the time. A test bounds the error, against every send simulated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from simperf.collectives.links import FloatArray, Hops, Links
from simperf.collectives.placement import Placement, Transport
from simperf.collectives.plan import Channel, IntArray, Phase, Plan, chunk_sizes
from simperf.collectives.rounds import ROUNDING, rate_alone, solve
from simperf.engine.link_table import LinkClass

__all__ = ["FlowPhase", "FlowPhases", "LinkFlow", "flow_phases", "links_of"]

#: parts that all phases of a plan are cut into together, roughly
PARTS = 64

#: rounds that do not repeat up to which each is a phase
MOST_ROUNDS = 64

#: classes of links of a phase up to which they are told apart by nine digits, else by fewer
MOST_CLASSES = 16

Rows = Sequence[tuple[int, Channel, Phase]]


@dataclass(frozen=True, slots=True, eq=False)
class LinkFlow:
    """A flow over equal links in a part of a phase.

    Parameters
    ----------
    classes : tuple of LinkClass
        The links, by capacity.
    latency : float
        From the start of the part to the first byte [s].
    nbytes : float
        Bytes that each link moves, on the wire [B].
    busy : float
        Time for which each link moves them, without other traffic [s].
    weight : float
        Sends that are on each link at one time.
    """

    classes: tuple[LinkClass, ...]
    latency: float
    nbytes: float
    busy: float
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class FlowPhase:
    """A phase of equal parts, one after the other.

    Parameters
    ----------
    time : float
        Of one part without other traffic [s].
    parts : int
        Parts that follow each other.
    flows : tuple of LinkFlow
        Of one part.
    """

    time: float
    parts: int
    flows: tuple[LinkFlow, ...]


@dataclass(frozen=True, slots=True, eq=False)
class FlowPhases:
    """A plan as phases.

    Parameters
    ----------
    phases : tuple of FlowPhase
        In order.
    rest : mapping of str to float
        Bytes of the plan less those of the flows, by resource [B].
    """

    phases: tuple[FlowPhase, ...]
    rest: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Draft:
    """Bytes and times of the links in a phase; arrays are by link number.

    Parameters
    ----------
    time : float
        Of the phase, alone [s].
    rounds : int
    nbytes : numpy.ndarray
        On the wire [B].
    sends : numpy.ndarray
        At one time.
    latency : numpy.ndarray
        Before the first byte, of all rounds [s].
    busy : numpy.ndarray
        Time on the wire, of all rounds [s].
    """

    time: float
    rounds: int
    nbytes: FloatArray
    sends: FloatArray
    latency: FloatArray
    busy: FloatArray

    def repeated(self, rounds: int) -> _Draft:
        return _Draft(
            self.time * rounds, rounds, self.nbytes * rounds, self.sends, self.latency * rounds, self.busy * rounds
        )

    def then(self, other: _Draft) -> _Draft:
        """The same with a round more, over the same links."""
        return _Draft(
            self.time + other.time,
            self.rounds + other.rounds,
            self.nbytes + other.nbytes,
            np.maximum(self.sends, other.sends),
            self.latency + other.latency,
            self.busy + other.busy,
        )

    def shifted(self, time: float) -> _Draft:
        """The same, where everything starts later by a `time` [s]."""
        return _Draft(self.time + time, self.rounds, self.nbytes, self.sends, self.latency + time, self.busy)

    @property
    def slack(self) -> float:
        """Time by which everything can start earlier [s]."""
        return float(self.latency[self.nbytes > 0.0].min(initial=self.time))


def flow_phases(plan: Plan, *, placement: Placement, nbytes: float, transport: Transport, time: float) -> FlowPhases:
    """The phases of a plan.

    Parameters
    ----------
    plan : Plan
    placement : Placement
        Node of each participant.
    nbytes : float
        Payload [B].
    transport : Transport
        How sends are carried.
    time : float
        That it takes without other traffic, if all ranks enter at once [s].
    """
    maker = _Maker(plan, placement, transport, nbytes)
    start = transport.start
    first = (FlowPhase(start, 1, ()),) if start else ()
    drafts = _fitted(list(maker.drafts()), time - start, maker.links.capacity)
    rest = np.zeros(len(maker.links))
    phases = tuple(maker.phase(draft, time, rest) for draft in drafts)
    return FlowPhases(first + phases, {maker.links.name(slot): rest[slot] for slot in np.flatnonzero(rest).tolist()})


def links_of(plan: Plan, placement: Placement, transport: Transport) -> frozenset[str]:
    """All resources that the sends of a plan draw on, found round by round."""
    links, count = Links.of(placement, transport), plan.nparticipants
    used: set[int] = set()
    for phase in (phase for channel in plan.channels for phase in channel.phases):
        rounds = [phase.make(index) for index in range(min(1, phase.nrounds) if phase.repeats else phase.nrounds)]
        pairs = [one.src * count + one.dst for one in rounds]
        if phase.style == "pipeline" and pairs:  # of many rounds between the same participants
            pairs = [np.unique(np.concatenate(pairs))]
        for pair in pairs:
            used.update(np.unique(links.hops(pair // count, pair % count).links).tolist())
    return frozenset(links.name(link) for link in used if link)


def _fitted(drafts: list[_Draft], time: float, capacity: FloatArray) -> list[_Draft]:
    """Phases that take a `time` [s] together: all start later or earlier, or are one where they overlap by more."""
    if not drafts:
        return []
    total = sum(draft.time for draft in drafts)
    more = time - total
    if more >= -ROUNDING * time:
        return [draft.shifted(more * (draft.time / total if total else 1.0 / len(drafts))) for draft in drafts]
    slack = [draft.slack for draft in drafts]
    if sum(slack) >= -more:
        return [draft.shifted(more * one / sum(slack)) for draft, one in zip(drafts, slack, strict=True)]
    whole = _merged(drafts, len(capacity))
    busy = np.maximum(np.minimum(whole.busy, time), _least(whole.nbytes, capacity))
    latency = np.full(len(busy), max(0.0, time - float(busy.max())))
    return [_Draft(time, whole.rounds, whole.nbytes, whole.sends, latency, busy)]


def _least(nbytes: FloatArray, capacity: FloatArray) -> FloatArray:
    """Time that links take for bytes at their capacities [s]."""
    least: FloatArray = np.divide(nbytes, capacity, out=np.zeros_like(nbytes), where=capacity < np.inf)
    return least


def _merged(drafts: Sequence[_Draft], count: int) -> _Draft:
    """Rounds one after the other as one phase, at whose end each link has its bytes on the wire."""
    nbytes, sends, busy = np.zeros(count), np.zeros(count), np.zeros(count)
    for draft in drafts:
        here = len(draft.nbytes)
        nbytes[:here] += draft.nbytes
        busy[:here] += draft.busy
        np.maximum(sends[:here], draft.sends, out=sends[:here])
    time = sum(draft.time for draft in drafts)
    return _Draft(time, sum(draft.rounds for draft in drafts), nbytes, sends, np.maximum(time - busy, 0.0), busy)


class _Maker:
    """The phases of one plan, made round by round.

    Parameters
    ----------
    plan, placement, transport, nbytes
        As for `flow_phases`.
    """

    def __init__(self, plan: Plan, placement: Placement, transport: Transport, nbytes: float) -> None:
        self.plan, self.transport, self.nbytes = plan, transport, nbytes
        self.links = Links.of(placement, transport)

    def drafts(self) -> Iterator[_Draft]:
        """The phases, each in the time that its rounds take one by one."""
        for index in range(max((len(channel.phases) for channel in self.plan.channels), default=0)):
            rows = [
                (number, channel, channel.phases[index])
                for number, channel in enumerate(self.plan.channels)
                if index < len(channel.phases) and channel.phases[index].nrounds
            ]
            if any(phase.style == "pipeline" for _, _, phase in rows):
                yield self._pipeline(rows)
            elif rows:
                yield from self._steps(rows)

    def _steps(self, rows: Rows) -> Iterator[_Draft]:
        nrounds = max(phase.nrounds for _, _, phase in rows)
        if all(phase.repeats and phase.nrounds == nrounds for _, _, phase in rows):
            draft = self._round(rows, 0)
            if self._alike(rows):
                yield draft.repeated(nrounds)
                return
            for index in range(1, nrounds):
                draft = draft.then(self._round(rows, index))
            yield draft
            return
        drafts = [self._round(rows, index) for index in range(nrounds)]
        if nrounds <= MOST_ROUNDS:
            yield from drafts
        else:
            yield _merged(drafts, len(self.links))

    def _alike(self, rows: Rows) -> bool:
        """Whether all rounds move the same sizes: even chunks, or whole units that come out even."""
        unit = self.transport.unit
        shares = (self.nbytes * self.plan.copies * channel.share / channel.nchunks for _, channel, _ in rows)
        return unit <= 0.0 or all(size % unit == 0.0 for size in shares)

    def _sends(self, number: int, channel: Channel, phase: Phase, index: int) -> tuple[IntArray, IntArray, FloatArray]:
        """Source, destination and bytes on the wire of the sends of a round."""
        one = phase.make(index)
        nbytes = self.nbytes * self.plan.copies * channel.share
        size = chunk_sizes(one.chunk, one.span, channel.nchunks, nbytes=nbytes, unit=self.transport.unit)
        return one.src, one.dst, size / self.transport.efficiency

    def _hops(self, src: IntArray, dst: IntArray, number: IntArray) -> Hops:
        hops = self.links.hops(src, dst)
        caps = self.transport.caps
        if not caps:
            return hops
        own = np.array([*caps, *[np.inf] * len(self.plan.channels)])[number]
        return Hops(hops.links, hops.latency, np.minimum(hops.cap, own))

    def _round(self, rows: Rows, index: int) -> _Draft:
        """One round of several channels at once."""
        found = [
            (*self._sends(number, channel, phase, index), number)
            for number, channel, phase in rows
            if index < phase.nrounds
        ]
        src, dst, size = (np.concatenate([part[field] for part in found]) for field in range(3))
        number = np.repeat([part[3] for part in found], [len(part[0]) for part in found])
        hops = self._hops(src, dst, number)
        end = solve(hops.latency, size, hops, self.links.capacity)
        draft = self._by_link(hops, size, hops.latency, end - hops.latency)
        draft.time = float(end.max(initial=0.0))
        return draft

    def _pipeline(self, rows: Rows) -> _Draft:
        """All rounds of pipelines beside each other: sends from one participant to another follow without a gap."""
        count = self.plan.nparticipants
        found = [
            (*self._sends(number, channel, phase, index), number)
            for number, channel, phase in rows
            for index in range(phase.nrounds)
        ]
        key = np.concatenate([(number * count + src) * count + dst for src, dst, _, number in found])
        lanes, lane = np.unique(key, return_inverse=True)
        every = np.concatenate([part[2] for part in found])
        size = np.bincount(lane, every, minlength=len(lanes)).astype(np.float64)
        hops = self._hops(lanes // count % count, lanes % count, lanes // count**2)
        rate = rate_alone(hops, self.links.capacity)
        alone = np.divide(size, rate, out=np.zeros_like(size), where=np.isfinite(rate))
        draft = self._by_link(hops, size, np.zeros(len(size)), alone)
        draft.time = float(max(alone.max(initial=0.0), draft.busy.max()))
        draft.rounds = max(phase.nrounds for _, _, phase in rows)
        return draft

    def _by_link(self, hops: Hops, size: FloatArray, latency: FloatArray, busy: FloatArray) -> _Draft:
        count, rows = len(self.links), len(hops.links)
        links = hops.links.ravel()
        nbytes = np.bincount(links, np.tile(size, rows), minlength=count).astype(np.float64)
        sends = np.bincount(links, np.tile(size > 0.0, rows), minlength=count).astype(np.float64)
        wait, on_wire = np.zeros(count), np.zeros(count)
        np.maximum.at(wait, links, np.tile(latency, rows))
        np.maximum.at(on_wire, links, np.tile(busy, rows))
        nbytes[0] = 0.0  # of no link
        # sends that begin at different times may be on a link one after the other
        return _Draft(0.0, 1, nbytes, sends, wait, np.maximum(on_wire, _least(nbytes, self.links.capacity)))

    def phase(self, draft: _Draft, time: float, rest: FloatArray) -> FlowPhase:
        """A phase in parts; bytes of the plan less those of its flows are added to `rest`, by link number [B]."""
        parts = max(1, min(draft.rounds, round(PARTS * draft.time / time))) if time else 1
        used = np.flatnonzero(draft.nbytes)
        table = np.stack((draft.nbytes, draft.sends, draft.latency, draft.busy))[:, used]
        whose = _classes(table)
        flows = []
        for number in range(int(whose.max(initial=-1)) + 1):
            here = whose == number
            nbytes, sends, latency, busy = table[:, here].max(axis=1).tolist()
            latency = min(latency, draft.time - busy)
            slots = used[here]
            rest[slots] += draft.nbytes[slots] - nbytes
            classes = self.links.classes(slots)
            flows.append(LinkFlow(classes, max(0.0, latency) / parts, nbytes / parts, busy / parts, sends))
        return FlowPhase(draft.time / parts, parts, tuple(flows))


def _classes(table: FloatArray) -> IntArray:
    """The class of each column: columns that are equal but for rounding, or nearly so if there are too many kinds."""
    if not table.size:
        return np.zeros(0, dtype=np.int64)
    parts = table / np.maximum(table.max(axis=1, keepdims=True), 1e-300)
    for digits in (9, 3, 2, 1):
        found, whose = np.unique(np.round(parts, digits), axis=1, return_inverse=True)
        if found.shape[1] <= MOST_CLASSES:
            break
    classes: IntArray = whose.ravel()
    return classes
