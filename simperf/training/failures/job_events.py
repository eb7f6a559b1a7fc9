"""The life of a job among failures, from event to event.

Between two events (a failure, a node that comes back, the end) training and checkpoints
alternate regularly; such a segment is computed at once, so that a run costs as much as
it has failures, however many checkpoints it takes.

Every second of the wall time is counted once:

``useful``        training that was not lost again
``fewer nodes``   training on fewer nodes than wanted: the share that the missing ones would have done
``checkpoint``    training stopped for a checkpoint
``redone``        training that a failure undid: what had been done since the last usable checkpoint
``detection``     the job hung and nobody knew
``restart``       bringing up spares, processes and communicators, reading the checkpoint
``repair``        waiting for a node, because no spare was left
``reassignment``  spreading the work over another number of nodes

Not modelled: failures that slow a node down instead of stopping it (see `stragglers`), checkpoints that are damaged,
jobs that take each other's spares.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from typing import Literal, NamedTuple

from simperf.errors import ProgramError
from simperf.training.failures.causes import Failure
from simperf.training.failures.fleet import Fleet
from simperf.training.failures.recovery import FailingRun

__all__ = ["PARTS", "Life", "Part", "Period"]

Part = Literal["useful", "fewer nodes", "checkpoint", "redone", "detection", "restart", "repair", "reassignment"]
PARTS: tuple[Part, ...] = (
    "useful",
    "fewer nodes",
    "checkpoint",
    "redone",
    "detection",
    "restart",
    "repair",
    "reassignment",
)
#: a time that misses a checkpoint's end by rounding is at it
_ROUNDING = 1e-12
#: failures in a row without progress, after which a job is hopeless
_PATIENCE = 10_000
_NEVER = Failure(math.inf, -1, None)  # type: ignore[arg-type]


class Period(NamedTuple):
    """Period of a job, from `start` to `end` [s]; training is ``"useful"`` here, even if it is lost later."""

    part: Part
    start: float
    end: float


class Life:
    """One run of a job.

    Parameters
    ----------
    job : FailingRun
    failures : iterator of Failure
        In order of time; it may end, after which nothing fails.
    repairs : iterator of float
        Times of repair [s].
    detailed : bool
        `phases` gives each training interval and checkpoint instead of none of them.
    """

    def __init__(
        self, job: FailingRun, failures: Iterator[Failure], repairs: Iterator[float], *, detailed: bool = False
    ) -> None:
        self.job, self._failures, self._detailed = job, failures, detailed
        self.fleet = Fleet(job.nodes, job.recovery.spares, repairs)
        self.now = self.done = self._saved = 0.0
        self.over = self._reached = False
        self.ledger: dict[Part, float] = dict.fromkeys(PARTS, 0.0)
        self.interruptions: dict[str, int] = {cause.name: 0 for cause in job.causes}
        self.checkpoints = 0
        self._writing: tuple[float, float] | None = None  # when a checkpoint can be used [s], and its progress
        self._coming = next(failures, _NEVER)
        self._kept, self._vain = 0.0, 0  # progress at the failure before, and failures since it grew

    def phases(self) -> Iterator[Period]:
        """Simulate the run to its end."""
        while not self.over:
            yield from self._train()
            while not self.over and (yield from self._interrupted()):
                pass

    # Failures --------------------------------------------------------------------------

    def _strikes(self, failure: Failure, part: Part = "useful") -> bool:
        """Whether `failure` stops what the job does.

        A job that is down gets no notice of maintenance, and one that waits for nodes can lose nodes only.
        """
        if failure.node >= 0:
            return self.fleet.works(failure.node) and (part == "useful" or not failure.cause.planned)
        return part == "useful" or (part != "repair" and self.fleet.active > 0 and not failure.cause.planned)

    def _pass_over(self) -> None:
        """Let a failure go by that does not stop the job: at most it costs a spare."""
        failure = self._coming
        if failure.node >= 0 and failure.cause.loses_node:
            self.fleet.advance(failure.time)
            if not self.fleet.works(failure.node):
                self.fleet.lose(failure.node, failure.time)
        self._coming = next(self._failures, _NEVER)

    def _spend(self, part: Part, duration: float, *, at_most: float = math.inf) -> Iterator[Period]:
        """Let `duration` [s] go to `part`, unless something else comes first."""
        started, until = self.now, min(self.now + duration, at_most)
        stop = min(until, self.job.horizon)
        while self._coming.time < stop and not self._strikes(self._coming, part):
            self._pass_over()
        self.over = stop < until and self._coming.time >= stop
        self._reached = not self.over and self._coming.time >= stop
        self.now = min(stop, self._coming.time)
        self.ledger[part] += self.now - started
        if self.now > started:
            yield Period(part, started, self.now)

    def _interrupted(self) -> Generator[Period, None, bool]:
        """Come back from a failure; returns whether another one struck meanwhile."""
        failure, recovery = self._coming, self.job.recovery
        self.interruptions[failure.cause.name] = self.interruptions.get(failure.cause.name, 0) + 1
        self._coming = next(self._failures, _NEVER)
        if failure.cause.planned:
            nodes, checkpoint = self.fleet.active, self.job.checkpoint
            yield from self._spend("checkpoint", checkpoint.pause(nodes) + checkpoint.write(nodes))
            if not self._reached:
                return not self.over
            self.checkpoints += 1
            self._saved = self.done
        self._fall_back()
        if failure.cause.loses_node:
            node = failure.node if failure.node >= 0 else self.fleet.pick(failure.pick)
            self.fleet.lose(node, self.now)
        if failure.cause.silent and not failure.cause.planned:
            yield from self._spend("detection", recovery.detection(failure.time))
            if not self._reached:
                return not self.over
        yield from self._replace()
        if self._reached:
            yield from self._spend("restart", recovery.restart + self.job.checkpoint.load(self.fleet.active))
        return not self._reached and not self.over

    def _fall_back(self) -> None:
        """Lose what has been done since the last checkpoint that can be used."""
        if self._writing is not None and self._writing[0] <= self.now * (1 + _ROUNDING):
            self._saved = self._writing[1]
        self._writing = None
        lost = self.done - self._saved
        self._vain = self._vain + 1 if self._saved <= self._kept else 0
        self._kept = self._saved
        if self._vain >= _PATIENCE and self.job.horizon == math.inf:
            raise ProgramError(
                f"the job does not get ahead: {_PATIENCE} failures in a row, each before the next checkpoint "
                f"(every {self.job.checkpoint.interval:g} s of training; a failure every {self.job.mtbf:g} s); "
                "checkpoints at shorter intervals, or rarer failures, are expected"
            )
        self.ledger["useful"] -= lost
        self.ledger["redone"] += lost
        self.done = self._saved

    def _replace(self) -> Iterator[Period]:
        """Find nodes for those that are missing, wait for them, or continue without."""
        recovery, fleet = self.job.recovery, self.fleet
        self._reached = True
        fleet.advance(self.now)
        while fleet.missing and self._reached:
            if fleet.fill():
                yield from self._spend("restart", recovery.spare_time)
            elif recovery.without_spare == "shrink" and fleet.active >= recovery.least:
                yield from self._spend("reassignment", recovery.reassign)
                return
            else:
                back = fleet.next_repair
                yield from self._spend("repair", math.inf, at_most=back)
            fleet.advance(self.now)

    # Training --------------------------------------------------------------------------

    def _train(self) -> Iterator[Period]:
        """Train and checkpoint until something strikes or the run is over."""
        while True:
            fleet, job = self.fleet, self.job
            fleet.advance(self.now)
            start, nodes = self.now, fleet.active
            spacing, pause = job.checkpoint.spacing(nodes), job.checkpoint.pause(nodes)
            need = (job.work - self.done) * job.nodes / nodes
            last = max(0, math.ceil(need / spacing * (1 - _ROUNDING)) - 1) if need < math.inf else 0
            end = start + need + last * pause
            join = math.inf
            if fleet.missing:
                back = start if fleet.ready else fleet.next_repair
                turns = math.ceil((back - start) / (spacing + pause) * (1 - _ROUNDING))
                join = start + max(1, turns) * (spacing + pause)
                if end <= join * (1 + _ROUNDING):  # the work is done when the node would come back
                    join = math.inf
            stop = min(end, join, job.horizon)
            while self._coming.time < stop and not self._strikes(self._coming):
                self._pass_over()
            struck = self._coming.time < stop
            self.over = not struck and stop < join
            yield from self._stretch(min(stop, self._coming.time), spacing, pause, nodes)
            if stop == end and self.over:
                self.done = job.work
            if struck or self.over:
                return
            fleet.advance(self.now)
            if fleet.fill():
                yield from self._spend("reassignment", job.recovery.reassign)
                if not self._reached:
                    return

    def _stretch(self, stop: float, spacing: float, pause: float, nodes: int) -> Iterator[Period]:
        """Training and checkpoints in turn from now to `stop` [s]."""
        start, first, speed = self.now, self.done, nodes / self.job.nodes
        cycle, write = spacing + pause, self.job.checkpoint.write(nodes)
        elapsed = stop - start
        turns = int(elapsed / cycle * (1 + _ROUNDING) + _ROUNDING)
        training = turns * spacing + min(max(elapsed - turns * cycle, 0.0), spacing)
        self.ledger["useful"] += training * speed
        self.ledger["fewer nodes"] += training * (1.0 - speed)
        self.ledger["checkpoint"] += elapsed - training
        self.done = first + training * speed
        self.now = stop
        self.checkpoints += turns
        if self._writing is not None and self._writing[0] <= stop * (1 + _ROUNDING):
            self._saved, self._writing = self._writing[1], None
        for turn in range(max(1, turns - 1), turns + 1):  # a write is over before the next begins
            ready = start + turn * cycle + write
            if ready <= stop * (1 + _ROUNDING):
                self._saved, self._writing = first + turn * spacing * speed, None
            else:
                self._writing = (ready, first + turn * spacing * speed)
        if self._detailed:
            yield from self._cycles(start, stop, spacing, cycle)

    @staticmethod
    def _cycles(start: float, stop: float, spacing: float, cycle: float) -> Iterator[Period]:
        """Each interval of training and each checkpoint of a segment."""
        turn = 0
        while (begin := start + turn * cycle) < stop:
            yield Period("useful", begin, min(begin + spacing, stop))
            if begin + spacing < stop and cycle > spacing:
                yield Period("checkpoint", begin + spacing, min(begin + cycle, stop))
            turn += 1
