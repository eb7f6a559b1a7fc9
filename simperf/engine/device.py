"""A device: streams that share its compute, copy engines, memory."""

from __future__ import annotations

import math
from typing import Protocol

import simpy

from simperf.engine.beside import Beside
from simperf.engine.copy import CopyEngine
from simperf.engine.memory import MemoryPool
from simperf.engine.network import FlowNetwork
from simperf.engine.recorder import Recorder
from simperf.engine.share import Share
from simperf.engine.stream import DEFAULT_DEPTH, Stream

__all__ = ["Device", "DevicePart"]


class DevicePart(Protocol):
    """What the engine reads of a GPU's part."""

    @property
    def memory_capacity(self) -> float:
        """Size of its memory [B]."""


class Device:
    """One GPU (or other accelerator) of the machine.

    Parameters
    ----------
    env : simpy.Environment
    name : str
        Node id in the machine, such as ``"gpu0"``.
    network : FlowNetwork
    part : DevicePart, optional
        Its entry of the catalog; a device without a part has unlimited memory.
    depth : float
        Launches that may be outstanding on each of its streams.
    share : Share, optional
        Cores of a host that it is made of, which others use too; a device of its own if left out.
    """

    __slots__ = (
        "_engines",
        "_streams",
        "beside",
        "depth",
        "env",
        "memory",
        "name",
        "network",
        "part",
        "recorder",
        "share",
    )

    def __init__(
        self,
        env: simpy.Environment,
        name: str,
        network: FlowNetwork,
        *,
        part: DevicePart | None = None,
        depth: float = DEFAULT_DEPTH,
        recorder: Recorder | None = None,
        share: Share | None = None,
    ) -> None:
        self.env, self.name, self.network, self.part = env, name, network, part
        self.depth, self.recorder = depth, recorder
        self.share = share or Share(env, 1.0)
        capacity = part.memory_capacity if part is not None else math.inf
        self.memory = MemoryPool(env, name, capacity, recorder=recorder)
        self._streams: dict[int, Stream] = {}
        self._engines: dict[str, CopyEngine] = {}
        factors = getattr(part, "beside", None)
        self.beside = Beside(self, factors) if factors else None
        if self.beside is not None:
            self.share.watch = self.beside.look

    def stream(self, index: int = 0) -> Stream:
        """The device's stream `index`, made on first use; 0 is the default stream."""
        if index not in self._streams:
            self._streams[index] = Stream(self, index, depth=self.depth)
        return self._streams[index]

    @property
    def streams(self) -> tuple[Stream, ...]:
        """All streams in use."""
        return tuple(self._streams.values())

    @property
    def copies(self) -> bool:
        """Whether any of its copy engines has been asked for."""
        return bool(self._engines)

    def copy_engine(self, direction: str) -> CopyEngine:
        """The engine of ``"h2d"``, ``"d2h"`` or ``"peer"`` copies."""
        if direction not in self._engines:
            beside = self.beside if direction != "peer" else None
            self._engines[direction] = CopyEngine(self.network, f"{self.name}/{direction}", beside=beside)
        return self._engines[direction]
