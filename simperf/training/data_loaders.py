"""Data loaders that the mini-batches of a training run come from: one for each process.

Every process of a run has a loader of its own, as with PyTorch: workers that read and decode ahead, or none, and
then the process does it by itself when it needs a mini-batch. Loaders are uneven: mini-batches differ in
what they take to decode, each loader's by its own seeded stream. Processes on one host share its
cores and its disk. Where all wait for all, a step waits for the slowest loader.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from simperf.engine.device import Device
from simperf.engine.storage import Disk
from simperf.errors import InputError, Problem
from simperf.execution import compute, record
from simperf.execution.session import Session
from simperf.training.input import InputPipeline, Samples, open_disk
from simperf.training.jitter import Constant, Distribution, stream

__all__ = ["Feed", "Feeding", "attach", "tell_feeds"]


class _Source(Protocol):
    """Source of a process's mini-batches."""

    def take(self) -> Generator[Any, Any, None]:
        """Have the next mini-batch in pinned memory."""


class Feed:
    """The data loader of one process, and for how long its device had nothing to do but wait for it.

    A process that waits for data starves nobody as long as its device still has work, launched before. Waiting for the
    very first mini-batch is not starvation either, since nothing could have been read before.

    Attributes
    ----------
    waited : float
        Time for which the device waited for data [s].
    starved : int
        Mini-batches that it waited for.
    """

    __slots__ = ("_source", "_taken", "starved", "waited")

    def __init__(self, source: _Source) -> None:
        self._source, self._taken, self.waited, self.starved = source, 0, 0.0, 0

    def fetch(self, device: Device) -> Generator[Any, Any, None]:
        """Have the next mini-batch in pinned memory; `device` is the one that it is for."""
        asked = device.env.now
        idle = yield record(device, "data wanted")
        yield from self._source.take()
        now = device.env.now
        if self._taken and idle.done.processed:
            since = max(asked, float(idle.done.value))
            self.waited += now - since
            self.starved += now > since
        self._taken += 1


@dataclass(frozen=True, slots=True)
class Feeding:
    """Data loading of the processes of a run.

    Parameters
    ----------
    decode : float
        Time of one core to decode a sample [s].
    workers : int
        Processes of each loader; 0: the process that trains does it by itself.
    prefetch : int
        Mini-batches that each worker may have ready.
    jitter : Distribution
        Of the time to decode a mini-batch, over its mean [1].
    disk : str
        Storage node of each server, without the server's name; empty reads nothing.
    stored : float
        A sample on that disk [B].

    Raises
    ------
    InputError
        Loaders that have nothing to do, and numbers without meaning: all of them.
    """

    decode: float = 0.0
    workers: int = 0
    prefetch: int = 2
    jitter: Distribution = field(default_factory=Constant)
    disk: str = ""
    stored: float = 0.0

    def __post_init__(self) -> None:
        checks = (
            ("workers", self.workers, self.workers >= 0, "0 or more is expected"),
            ("prefetch", self.prefetch, self.prefetch >= 1, "1 or more is expected"),
            ("decode", self.decode, self.decode >= 0, "a time of 0 or more is expected"),
            ("stored", self.stored, self.stored >= 0, "a size of 0 or more is expected"),
            ("stored", self.stored, not self.stored or bool(self.disk), "samples lie on a disk: name it"),
            ("disk", self.disk, not self.disk or self.stored > 0, "nothing is read from it: give stored"),
            ("workers", self.workers, self.idle or self.decode or self.disk, "they have nothing to decode or to read"),
        )
        problems = [Problem(words, key=key, value=str(value)) for key, value, right, words in checks if not right]
        if problems:
            raise InputError(problems)

    @property
    def idle(self) -> bool:
        """Whether mini-batches lie in pinned memory from the start."""
        return not (self.workers or self.decode or self.disk)


class _ByItself:
    """A process without workers: it reads and decodes when it needs a mini-batch."""

    def __init__(self, samples: Samples, drive: Disk | None, factors: Iterator[float]) -> None:
        self._samples, self._drive, self._factors = samples, drive, factors

    def take(self) -> Generator[Any, Any, None]:
        """Read and decode."""
        samples = self._samples
        if self._drive is not None:
            yield self._drive.read(samples.batch * samples.stored, sequential=True)
        yield compute(samples.batch * samples.decode * next(self._factors), "decode")


class _Fed(Protocol):
    rank: int
    source: str
    host: str
    feed: Feed | None


def attach(m: Session, fed: Sequence[tuple[_Fed, float]], feeding: Feeding, *, batches: int) -> None:
    """Give processes their loaders.

    Parameters
    ----------
    m : Session
    fed : sequence of (Replica, float)
        The process of a replica, and the samples of a mini-batch that it takes.
    feeding : Feeding
    batches : int
        Mini-batches of each process.

    Raises
    ------
    InputError
        A server has no such disk.
    """
    if feeding.idle:
        return
    drives: dict[str, Disk | None] = {}
    for replica, count in fed:
        server = replica.host.rpartition("/")[0]
        disk = f"{server}/{feeding.disk}" if server and feeding.disk else feeding.disk
        if disk not in drives:
            drives[disk] = open_disk(m, disk)
        samples = Samples(round(count), feeding.stored, 0.0, feeding.decode, feeding.jitter)
        name = f"loader{replica.rank} "
        if not feeding.workers:
            replica.feed = Feed(_ByItself(samples, drives[disk], stream(feeding.jitter, m.rng(f"decode {name}"))))
            continue
        pipeline = InputPipeline(
            m,
            samples,
            workers=feeding.workers,
            prefetch=feeding.prefetch,
            disk=drives[disk] or "",
            host=replica.source or replica.host,
            batches=batches,
            name=name,
        )
        replica.feed = Feed(pipeline)
    ahead = feeding.workers * feeding.prefetch
    if ahead >= batches:
        text = f"each loader runs ahead by up to {ahead} mini-batches, and the run has {batches}"
        m.notes.append(f"{text}: a longer one may wait more")


def tell_feeds(m: Session, feeds: Sequence[Feed | None], *, batches: int) -> None:
    """Report how long devices waited for data, the first mini-batch not counted, and for how many of the others."""
    there = [feed for feed in feeds if feed is not None]
    if there:
        m.metric("waited for data, max over ranks", max(feed.waited for feed in there), "s")
        m.metric("starved steps", sum(feed.starved for feed in there) / (len(there) * batches))
