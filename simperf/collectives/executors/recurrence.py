"""Times of a plan as a recurrence: whole rounds as arrays, and a jump over rounds that repeat.

It rests on three facts, none of which is assumed without being looked at:

- Sends that never share a link at one time end when they would alone. The times of a
  plan are then a recurrence in maximum and sum over its participants, round by round.
- Sends of one round that share links with each other only are a fluid of their own,
  which `simperf.collectives.rounds` solves. Whether a round keeps apart from those before
  it is seen link by link; if it does not, `collapse` gives up and the caller goes event
  by event.
- The recurrence does not change when all times move together. If a round of a repeating
  phase moves every participant on by the same time, all rounds after it do, and the
  rest is one multiplication.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simperf.collectives.links import FloatArray, Hops, Links
from simperf.collectives.placement import Placement, Transport
from simperf.collectives.plan import Channel, IntArray, Phase, Plan, Round, chunk_sizes
from simperf.collectives.rounds import ROUNDING, crossings, rate_alone, solve

__all__ = ["Recurrence", "collapse"]

#: part of a time that is rounding: flows that overlap by less do not
TICK = 1e-13

#: part of a time by which advances may differ and still be one advance
STEADY = 2e-15

#: rounds between looks for a steady advance
LOOK = 64

#: largest table of chunks at participants that is kept in memory
MOST_CELLS = 64_000_000


class _OverlappingRounds(Exception):  # noqa: N818  (a signal to go event by event, never seen by a caller)
    """Sends of different rounds share a link at one time, or their order is not known."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The sends of one round in all channels; participants are numbered channel by channel."""

    src: IntArray
    dst: IntArray
    size: FloatArray
    reduce: np.ndarray
    chunk: IntArray
    span: IntArray


class Recurrence:
    """The times of a plan's participants, phase by phase.

    Parameters
    ----------
    plan, placement, nbytes, transport, entry
        As for `simperf.collectives.executors.stepwise.Stepwise`.

    Attributes
    ----------
    time : numpy.ndarray of float64, shape (channels * participants,)
        When each participant is free, in each channel [s].
    """

    def __init__(
        self, plan: Plan, *, placement: Placement, nbytes: float, transport: Transport, entry: Sequence[float]
    ) -> None:
        self.plan, self.nbytes, self.transport = plan, nbytes, transport
        self.count = plan.nparticipants
        self.time = np.tile(np.asarray(entry, dtype=np.float64), len(plan.channels))
        self.time += transport.start
        self.links = Links.of(placement, transport)
        self.busy = np.zeros(1)
        self.moved = np.zeros(1)
        self.adding = transport.reduce_rate != float("inf")
        self.added = np.full(len(self.time), -np.inf)  # when each participant has added up what had arrived
        self.arrived = np.full(len(self.time), -np.inf)
        if self.adding and len(plan.channels) > 1:
            raise _OverlappingRounds
        self.roomy = np.zeros(1, dtype=bool)  # links that never fill
        if transport.caps:
            more = (np.inf,) * (len(plan.channels) - len(transport.caps))
            self.caps = np.array([*transport.caps[: len(plan.channels)], *more])
            self._find_room()

    def run(self) -> None:
        """Go through all phases."""
        for index in range(max((len(channel.phases) for channel in self.plan.channels), default=0)):
            here = [
                (number, channel, channel.phases[index])
                for number, channel in enumerate(self.plan.channels)
                if index < len(channel.phases) and channel.phases[index].nrounds
            ]
            steps = [row for row in here if row[2].style == "steps"]
            pipelines = [row for row in here if row[2].style == "pipeline"]
            if steps:
                self._steps(steps)
            if pipelines:
                self._pipelines(pipelines)

    def finish(self) -> FloatArray:
        """When each participant was done with all channels [s]."""
        done: FloatArray = self.time.reshape(len(self.plan.channels), self.count).max(axis=0)
        return done

    # One round -----------------------------------------------------------------------

    def batch(self, rows: Sequence[tuple[int, Channel, Phase]], index: int) -> Batch:
        """Round `index` of several channels at once."""
        parts = []
        for number, channel, phase in rows:
            if index < phase.nrounds:
                one = phase.make(index)
                shift = number * self.count
                parts.append((one.src + shift, one.dst + shift, self._sizes(channel, one), *self._flags(one)))
        if len(parts) == 1:
            return Batch(*parts[0])
        return Batch(*(np.concatenate([part[field] for part in parts]) for field in range(6)))

    def _sizes(self, channel: Channel, one: Round) -> FloatArray:
        nbytes = self.nbytes * self.plan.copies * channel.share
        return chunk_sizes(one.chunk, one.span, channel.nchunks, nbytes=nbytes, unit=self.transport.unit)

    @staticmethod
    def _flags(one: Round) -> tuple[np.ndarray, IntArray, IntArray]:
        count = len(one)
        return np.broadcast_to(one.reduce, count), one.chunk, np.broadcast_to(one.span, count)

    def hops(self, batch: Batch) -> Hops:
        """The ways of a round's sends, with what the transport adds."""
        hops = self.links.hops(batch.src % self.count, batch.dst % self.count)
        more = len(self.links) - len(self.busy)
        if more:
            self.busy = np.concatenate((self.busy, np.full(more, -np.inf)))
            self.moved = np.concatenate((self.moved, np.zeros(more)))
            self.roomy = np.concatenate((self.roomy, np.zeros(more, dtype=bool)))
        if not self.transport.caps:
            return hops
        return Hops(hops.links, hops.latency, np.minimum(hops.cap, self.caps[batch.src // self.count]))

    def _find_room(self) -> None:
        """Find the links that never fill, because all that may be on them at a time is capped.

        At any time a participant has at most so many sends to another one under way in a channel
        as one of its rounds has, or one if it is a pipeline.
        """
        lanes: Counter[tuple[int, int]] = Counter()
        for index in range(max((len(channel.phases) for channel in self.plan.channels), default=0)):
            for number, channel in enumerate(self.plan.channels):
                if index < len(channel.phases):
                    phase = channel.phases[index]
                    for turn in range(min(1, phase.nrounds) if phase.repeats else phase.nrounds):
                        one, shift = phase.make(turn), number * self.count
                        pairs = zip((one.src + shift).tolist(), (one.dst + shift).tolist(), strict=True)
                        lanes |= Counter(pairs if phase.style == "steps" else dict.fromkeys(pairs, 1))
        if lanes:
            (src, dst), many = np.array(sorted(lanes)).T, [lanes[pair] for pair in sorted(lanes)]
            none = np.zeros(len(src))
            hops = self.hops(Batch(src, dst, none, none, src, src))
            most = np.tile(hops.cap * many, len(hops.links))
            load = np.bincount(hops.links.ravel(), most, minlength=len(self.links))
            self.roomy = load <= self.links.capacity * (1.0 + ROUNDING)

    def carry(self, start: FloatArray, batch: Batch, hops: Hops) -> FloatArray:
        """When flows that start then have moved, which must not meet any of an earlier round."""
        size = batch.size / self.transport.efficiency
        links = np.where((size > 0.0) & ~self.roomy[hops.links], hops.links, 0)
        self.busy[0] = -np.inf
        if np.any(start < (self.busy - np.abs(self.busy) * TICK)[links].max(axis=0)):
            raise _OverlappingRounds
        end = solve(start, size, Hops(links, hops.latency, hops.cap), self.links.capacity)
        np.maximum.at(self.busy, links.ravel(), np.tile(end, len(links)))
        return end

    def count_bytes(self, size: FloatArray, hops: Hops) -> None:
        """Note bytes on the wire by link."""
        payload = size / self.transport.efficiency
        self.moved += np.bincount(hops.links.ravel(), np.tile(payload, len(hops.links)), minlength=len(self.moved))

    def receive(self, batch: Batch, end: FloatArray) -> FloatArray:
        """When what arrives at `end` can be used: at once, or when the receiver has added it up."""
        if not self.adding or not np.any(batch.reduce):
            return end
        cost = batch.size / self.transport.reduce_rate
        dst = batch.dst
        if not np.all(batch.reduce) or np.any(end < self.arrived[dst]):
            raise _OverlappingRounds
        turns = np.bincount(dst, minlength=len(self.added))
        if turns.max() > 1 and (np.ptp(end) or np.ptp(cost)):
            raise _OverlappingRounds  # the order in which one participant adds several up
        np.maximum.at(self.arrived, dst, end)
        done: FloatArray = np.maximum(end, self.added[dst]) + cost * turns[dst]
        self.added[dst] = done
        return done

    # Phases of steps -----------------------------------------------------------------

    def _steps(self, rows: Sequence[tuple[int, Channel, Phase]]) -> None:
        nrounds = max(phase.nrounds for _, _, phase in rows)
        if all(phase.repeats and phase.nrounds == nrounds for _, _, phase in rows):
            self._repeating(rows, nrounds)
            return
        for index in range(nrounds):
            batch = self.batch(rows, index)
            if len(batch.src):
                hops = self.hops(batch)
                self._advance(batch, hops)
                self.count_bytes(batch.size, hops)

    def _advance(self, batch: Batch, hops: Hops) -> None:
        end = self.carry(self.time[batch.src] + hops.latency, batch, hops)
        there = self.receive(batch, end)
        np.maximum.at(self.time, batch.src, end)
        np.maximum.at(self.time, batch.dst, there)

    def _repeating(self, rows: Sequence[tuple[int, Channel, Phase]], nrounds: int) -> None:
        batch = self.batch(rows, 0)
        hops = self.hops(batch)
        takes_part = np.zeros(len(self.time), dtype=bool)
        takes_part[batch.src] = takes_part[batch.dst] = True
        involved = np.flatnonzero(takes_part)
        moving = batch.size > 0.0
        alike = self._alike(rows)
        tight = np.where(self.roomy[hops.links], 0, hops.links)
        shared = crossings(Hops(tight, hops.latency, hops.cap), moving, len(self.links)) > 1
        private = not shared and bool(np.all(moving)) and alike
        steady, index = 0, 0
        while index < nrounds:
            if index and not alike:
                batch = self.batch(rows, index)
            before = self.time[involved]
            self._advance(batch, hops)
            index += 1
            self.count_bytes(batch.size, hops)
            advance = self.time[involved] - before
            steady = steady + 1 if np.ptp(advance) <= STEADY * self.time[involved].max() else 0
            if alike and steady >= 2 and not self.adding:
                self._jump(batch, hops, involved, float(advance.mean()), nrounds - index)
                return
            if private and index >= 2 and not self.adding:
                self._recur(batch, hops, involved, nrounds - index)
                return

    def _alike(self, rows: Sequence[tuple[int, Channel, Phase]]) -> bool:
        """Whether all rounds move the same sizes: even chunks, or whole units that come out even."""
        unit = self.transport.unit
        if unit <= 0.0:
            return True
        shares = [self.nbytes * self.plan.copies * channel.share / channel.nchunks for _, channel, _ in rows]
        return all(size % unit == 0.0 for size in shares)

    def _jump(self, batch: Batch, hops: Hops, involved: IntArray, advance: float, rounds: int) -> None:
        self.time[involved] += advance * rounds
        used = np.zeros(len(self.busy), dtype=bool)
        used[hops.links] = True
        self.busy[used] += advance * rounds
        self.count_bytes(batch.size * rounds, hops)

    def _recur(self, batch: Batch, hops: Hops, involved: IntArray, rounds: int) -> None:
        """Rounds in which every send has links of its own, used by no other source.

        A source waits for its own send, so that two sends never meet on a link.
        """
        tight = np.where(self.roomy[hops.links], 0, hops.links)
        rate = rate_alone(Hops(tight, hops.latency, hops.cap), self.links.capacity)
        cost = hops.latency + batch.size / self.transport.efficiency / rate
        src, dst = batch.src, batch.dst
        closed = len(src) == len(involved) == len(dst) and np.array_equal(np.sort(dst), np.sort(src))
        self.count_bytes(batch.size * rounds, hops)
        if closed and len(np.unique(src)) == len(src):
            place = np.empty(len(self.time), dtype=np.int64)
            place[dst] = np.arange(len(dst))
            sender = place[src]  # which send arrives where this one starts
            now = self.time[src]
            for index in range(rounds):
                end = now + cost
                after = np.maximum(end, end[sender])
                if index % LOOK == 0:
                    advance = after - now
                    if np.ptp(advance) <= STEADY * after.max():
                        now = now + advance.mean() * (rounds - index)
                        break
                now = after
            self.time[src] = now
        else:
            for _ in range(rounds):
                end = self.time[src] + cost
                np.maximum.at(self.time, src, end)
                np.maximum.at(self.time, dst, end)
        np.maximum.at(self.busy, tight.ravel(), np.tile(self.time[src], len(tight)))

    # Phases of pipelines --------------------------------------------------------------

    def _pipelines(self, rows: Sequence[tuple[int, Channel, Phase]]) -> None:
        """Pipeline phases that run concurrently: when each chunk is where, and when each lane is free."""
        nrounds = max(phase.nrounds for _, _, phase in rows)
        batches = [self.batch(rows, index) for index in range(nrounds)]
        batches = [batch for batch in batches if len(batch.src)]
        spans = np.concatenate([batch.span for batch in batches])
        span = int(spans[0])
        chunks = np.concatenate([batch.chunk for batch in batches])
        nchunks = np.array([channel.nchunks for channel in self.plan.channels])
        last = np.concatenate([nchunks[batch.src // self.count] for batch in batches]) - span
        width = int(chunks.max()) // span + 1
        if (
            np.any(spans != span)
            or np.any(chunks % span)
            or np.any(chunks > last)
            or width * len(self.time) > MOST_CELLS
        ):
            raise _OverlappingRounds
        lanes = np.unique(
            np.concatenate([batch.src * len(self.time) + batch.dst for batch in batches]), return_inverse=True
        )[1]
        free = np.full(int(lanes.max()) + 1, -np.inf)
        entry = self.time.copy()
        ready = np.full((len(self.time), width), -np.inf)
        at = 0
        for batch in batches:
            lane = lanes[at : at + len(batch.src)]
            at += len(batch.src)
            if len(np.unique(lane)) < len(lane):
                raise _OverlappingRounds
            hops = self.hops(batch)
            chunk = batch.chunk // span
            start = np.maximum(entry[batch.src], ready[batch.src, chunk]) + hops.latency
            end = self.carry(np.maximum(start, free[lane]), batch, hops)
            free[lane] = end
            there = self.receive(batch, end)
            np.maximum.at(ready, (batch.dst, chunk), there)
            np.maximum.at(self.time, batch.src, end)
            np.maximum.at(self.time, batch.dst, there)
            self.count_bytes(batch.size, hops)


def collapse(
    plan: Plan, *, placement: Placement, nbytes: float, transport: Transport, entry: Sequence[float]
) -> Recurrence | None:
    """Run a plan without events; None if only the step-exact executor knows its times."""
    try:
        run = Recurrence(plan, placement=placement, nbytes=nbytes, transport=transport, entry=entry)
        run.run()
    except _OverlappingRounds:
        return None
    return run
