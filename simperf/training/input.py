"""The input pipeline: storage, decode workers, pinned buffers, and the copy to the device.

Mini-batch n is worker n mod w's, as in torch's DataLoader (torch/utils/data/dataloader.py). Each worker runs ahead of
training by `prefetch` mini-batches of its own. It reads a mini-batch from the disk, decodes it on a core of the host
(there are only so many), and hands it over in pinned memory. Training takes mini-batches in order: one that is ready
waits for those before it. "Dive into Deep Learning", sections 12.4.1 and 12.4.3.

Not modelled: the page cache of the operating system, decoding on the device, shuffling.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import simpy

from simperf.engine.device import Device, Stream
from simperf.engine.storage import Disk
from simperf.errors import InputError, Problem
from simperf.execution import Program, compute, copy, record, wait
from simperf.execution.drives import find_disk
from simperf.execution.session import Session
from simperf.training.jitter import Constant, Distribution, stream
from simperf.units import Bytes, Seconds

__all__ = ["DataLoading", "InputPipeline", "Samples", "open_disk"]


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of a mini-batch, and the time and memory that they take.

    Parameters
    ----------
    batch : int
        Samples of one mini-batch.
    stored, decoded : float
        Size of a sample on the disk and in memory [B].
    decode : float
        Time of one core to decode a sample [s].
    jitter : Distribution
        Of the time to decode a mini-batch, over its mean [1]: pictures and sentences differ in size.
    """

    batch: int
    stored: float
    decoded: float
    decode: float
    jitter: Distribution = field(default_factory=Constant)


@dataclass(frozen=True, slots=True)
class DataLoading:
    """Samples on a disk, and how workers load them.

    Parameters
    ----------
    stored : float
        bytes of a sample on the disk
    decoded : float
        bytes of a sample when it is decoded
    decode : float
        time of one core to decode a sample
    prefetch : int
        decoded mini-batches that each worker may have ready
    disk : str
        storage node that holds the samples
    """

    stored: Bytes = 110e3
    decoded: Bytes = 602112
    decode: Seconds = 10e-3
    prefetch: int = 2
    disk: str = "disk0"

    def pipeline(
        self, m: Session, batch: int, workers: int, *, jitter: Distribution | None = None, batches: int | None = None
    ) -> InputPipeline:
        """The pipeline of mini-batches of so many samples; `jitter` is of the time to decode one [1]."""
        samples = Samples(batch, self.stored, self.decoded, self.decode, jitter or Constant())
        return InputPipeline(m, samples, workers=workers, prefetch=self.prefetch, disk=self.disk, batches=batches)


class InputPipeline:
    """Feeds one device.

    Parameters
    ----------
    m : Session
    samples : Samples
    workers : int
        Decode processes; more than there are cores do not help.
    prefetch : int
        Mini-batches that each worker may have ready.
    disk : str or Disk
        Storage node, or a drive that others read as well; empty reads nothing.
    host : str
        CPU node whose cores decode; by default that of the session.
    batches : int or None
        Mini-batches in all; None continues for ever.
    name : str
        Before the workers' names, where there are several pipelines.

    Raises
    ------
    InputError
        No workers, no prefetch, no such disk.
    """

    def __init__(
        self,
        m: Session,
        samples: Samples,
        *,
        workers: int,
        prefetch: int = 2,
        disk: str | Disk = "disk0",
        host: str = "",
        batches: int | None = None,
        name: str = "",
    ) -> None:
        problems = [
            Problem("1 or more is expected", key=key, value=str(value))
            for key, value in (("workers", workers), ("prefetch", prefetch), ("batch", samples.batch))
            if value < 1
        ]
        if problems:
            raise InputError(problems)
        env = m.simulation.env
        self.samples, self.waited, self.starved, self._m, self._host = samples, 0.0, 0, m, host or m.host
        self._drive = open_disk(m, disk) if isinstance(disk, str) else disk
        self._buffers = [simpy.Container(env, capacity=prefetch, init=prefetch) for _ in range(workers)]
        self._there: dict[int, simpy.Event] = {}  # of mini-batches that are ready or waited for
        self._taken = self._made = 0
        for index in range(workers):
            worker = f"{name}worker{index}"
            numbers = count(index, workers) if batches is None else range(index, batches, workers)
            factors = stream(samples.jitter, m.rng(f"decode {worker}"))
            m.spawn(self._worker(numbers, self._buffers[index], factors), worker, host=self._host)

    @property
    def fill(self) -> int:
        """Mini-batches that are ready, some perhaps before those that come first."""
        return self._made - self._taken

    def _arrival(self, number: int) -> simpy.Event:
        """Event that comes when a mini-batch is ready."""
        return self._there.setdefault(number, simpy.Event(self._m.simulation.env))

    def _worker(self, numbers: Iterable[int], buffers: simpy.Container, factors: Iterator[float]) -> Program:
        samples = self.samples
        for number in numbers:
            yield buffers.get(1)
            if self._drive is not None:
                yield self._drive.read(samples.batch * samples.stored, sequential=True)
            yield compute(samples.batch * samples.decode * next(factors), "decode")
            self._made += 1
            self._arrival(number).succeed()

    def take(self) -> Generator[Any, Any, None]:
        """Take the next mini-batch, waiting for it if it is not ready; its worker can make one more.

        Waiting for the very first batch is not starvation, since nothing could have been read before.
        """
        m, asked, number = self._m, self._m.now, self._taken
        yield wait(self._arrival(number), why="wait: data")
        del self._there[number]
        if self._taken and m.now > asked:
            self.waited += m.now - asked
            self.starved += 1
        self._taken += 1
        yield self._buffers[number % len(self._buffers)].put(1)

    def load(self, device: Device, queue: Stream) -> Generator[Any, Any, None]:
        """Take the next mini-batch and copy it to `device` on `queue`.

        The default stream of the device waits for the copy; the frontend does not.
        """
        yield from self.take()
        nbytes = self.samples.batch * self.samples.decoded
        yield copy(self._host, device, nbytes=nbytes, stream=queue, name="batch to device")
        yield wait((yield record(queue, "batch there")), device)


def open_disk(m: Session, name: str) -> Disk | None:
    """The drive of a storage node; none if no name is given.

    Raises
    ------
    InputError
        The machine has no such disk.
    """
    return find_disk(m, name) if name else None
