"""Disks and memory channels: a request waits its access time, then moves its bytes.

A hard disk has one head: requests queue for it, and each pays seek and rotation unless
it follows on from the one before. A solid-state drive, or a volume, takes up IOPS requests a
second one after the other, works on any number of them at the same time, and moves whole
blocks. The latency of its part is that of a random request of one block with nothing else
under way, transfer included. So a queue of d such requests is served at d / latency, up to
IOPS. Of sequential requests latency x IOPS are served at the same time. Sources of the
numbers are the storage parts'.

Not modelled: the operating system's page cache, wear, garbage collection of flash, the
zones of a disk (outer tracks are faster).
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any, Protocol

import numpy as np
import simpy

from simperf.engine.network import FlowNetwork
from simperf.engine.recorder import Recorder

__all__ = ["Disk", "DiskPart", "Dram", "DramPart"]

Steps = Generator[simpy.Event, Any, None]


class DiskPart(Protocol):
    """Fields of a storage part that the engine reads; see `simperf.hardware.StoragePart`."""

    read_bandwidth: float
    write_bandwidth: float
    read_latency: float
    write_latency: float
    read_iops: float
    write_iops: float
    block: float
    seek: float
    rotation: float


class Disk:
    """One disk, drive or volume.

    Parameters
    ----------
    env : simpy.Environment
    name : str
    part : DiskPart
    rng : numpy.random.Generator
        Draws where the platter stands when a request comes.
    worst : bool
        Every rotation is a full one instead of a random part of it.
    recorder : Recorder, optional
        Called with every request.

    Attributes
    ----------
    moving : bool
        Whether it has a head or a platter that moves.
    """

    def __init__(
        self,
        env: simpy.Environment,
        name: str,
        part: DiskPart,
        *,
        rng: np.random.Generator,
        worst: bool = False,
        recorder: Recorder | None = None,
    ) -> None:
        self.env, self.name, self.part, self._rng, self._worst = env, name, part, rng, worst
        self._recorder = recorder
        self.moving = part.rotation > 0 or part.seek > 0
        head = simpy.Resource(env, 1)  # it reads or writes; flash does both at once
        self._ways = {"read": head, "write": head}
        if not self.moving:
            for way, latency, iops in (
                ("read", part.read_latency, part.read_iops),
                ("write", part.write_latency, part.write_iops),
            ):
                self._ways[way] = simpy.Resource(env, max(1, round(latency * iops)))
        self._free = {"read": 0.0, "write": 0.0}  # when the next request of flash can be taken up
        self._bus = FlowNetwork(env, {"read": part.read_bandwidth, "write": part.write_bandwidth})

    def read(self, nbytes: float, *, sequential: bool = False) -> simpy.Event:
        """Read `nbytes` [B]; a sequential request follows on from the one before."""
        return self.env.process(self._serve("read", nbytes, sequential))

    def write(self, nbytes: float, *, sequential: bool = False) -> simpy.Event:
        """Write `nbytes` [B]."""
        return self.env.process(self._serve("write", nbytes, sequential))

    def _serve(self, direction: str, nbytes: float, sequential: bool) -> Steps:
        if not self.moving and not sequential:
            yield from self._random(direction, nbytes)
            return
        part = self.part
        with self._ways[direction].request() as way:
            yield way
            access = part.read_latency if direction == "read" else part.write_latency
            if self.moving and not sequential:
                turn = 1.0 if self._worst else float(self._rng.random())
                access += part.seek + (turn / part.rotation if part.rotation else 0.0)
            moved = nbytes if sequential else self._blocks(nbytes)
            yield from self._access(direction, access, moved, self.env.now)

    def _random(self, direction: str, nbytes: float) -> Steps:
        """Wait until flash takes the request up, for what its latency has beside the transfer, and for the bytes."""
        part, now = self.part, self.env.now
        reads = direction == "read"
        latency, iops = (part.read_latency, part.read_iops) if reads else (part.write_latency, part.write_iops)
        taken = max(self._free[direction], now)
        self._free[direction] = taken + (1.0 / iops if iops else 0.0)
        transfer = part.block / (part.read_bandwidth if reads else part.write_bandwidth)
        yield from self._access(direction, taken - now + max(0.0, latency - transfer), self._blocks(nbytes), now)

    def _blocks(self, nbytes: float) -> float:
        """Whole blocks that hold so many bytes [B]."""
        block = self.part.block
        return math.ceil(nbytes / block) * block if block else nbytes

    def _access(self, direction: str, access: float, moved: float, started: float) -> Steps:
        if access:
            yield self.env.timeout(access)
        yield self._bus.transfer((direction,), moved, name=direction)
        if self._recorder is not None:
            self._recorder.span(self.name, direction, started, self.env.now, "storage")


class DramPart(Protocol):
    """Fields of a memory part that the engine reads; see `simperf.hardware.MemoryPart`."""

    bandwidth: float
    first_access: float
    burst: float


class Dram:
    """The memory of a socket: channels that are read independently, each with banks.

    Parameters
    ----------
    env : simpy.Environment
    part : DramPart
        One channel.
    channels : int
    banks : int
        Addresses that a channel can have open at the same time.
    name : str
        Of the tracks of its channels.
    recorder : Recorder, optional
        Called with every read.
    """

    def __init__(
        self,
        env: simpy.Environment,
        part: DramPart,
        *,
        channels: int,
        banks: int = 1,
        name: str = "memory",
        recorder: Recorder | None = None,
    ) -> None:
        self.env, self.part, self.name, self._recorder = env, part, name, recorder
        self._banks = [simpy.Resource(env, banks) for _ in range(channels)]
        self._bus = FlowNetwork(env, {f"channel{i}": part.bandwidth for i in range(channels)})

    def read(self, nbytes: float, channel: int) -> simpy.Event:
        """Send one address and read `nbytes` [B] from it on one channel."""
        return self.env.process(self._serve(nbytes, channel % len(self._banks)))

    def _serve(self, nbytes: float, channel: int) -> Steps:
        with self._banks[channel].request() as bank:
            yield bank
            started = self.env.now
            yield self.env.timeout(self.part.first_access)
            moved = math.ceil(nbytes / self.part.burst) * self.part.burst
            yield self._bus.transfer((f"channel{channel}",), moved, name="burst")
            if self._recorder is not None:
                self._recorder.span(f"{self.name} {channel}", "read", started, self.env.now, "memory")
