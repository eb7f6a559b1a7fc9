"""Memory of a device, held by the operations in flight."""

from __future__ import annotations

import math

import simpy

from simperf.engine.recorder import Recorder
from simperf.errors import DeviceMemoryError
from simperf.units import format_quantity

__all__ = ["MemoryPool"]


class MemoryPool:
    """Bytes held on one device, never more than there are.

    Not modelled: fragmentation and the caching allocator's rounding of sizes.

    Parameters
    ----------
    env : simpy.Environment
    name : str
        The device, for messages and the counter's track.
    capacity : float
        Size [B]; infinite if the device has no part.
    """

    __slots__ = ("_env", "_recorder", "capacity", "held", "name", "peak")

    def __init__(
        self, env: simpy.Environment, name: str, capacity: float = math.inf, *, recorder: Recorder | None = None
    ) -> None:
        self._env, self.name, self.capacity, self._recorder = env, name, capacity, recorder
        self.held = self.peak = 0.0

    def hold(self, nbytes: float, operation: str) -> None:
        """Take `nbytes` for `operation`.

        Raises
        ------
        DeviceMemoryError
            The device has less left than that.
        """
        held = self.held + nbytes
        if held > self.capacity:
            raise DeviceMemoryError(
                f"{self.name} is out of memory at {format_quantity(self._env.now, 's')}: {operation!r} asks for "
                f"{format_quantity(nbytes, 'B')}, {format_quantity(self.held, 'B')} of "
                f"{format_quantity(self.capacity, 'B')} are held by what is in flight or resident"
            )
        self.held = held
        if held > self.peak:
            self.peak = held
        if self._recorder is not None:
            self._recorder.counter(self.name, "memory held", self._env.now, held)

    def free(self, nbytes: float) -> None:
        """Give `nbytes` back."""
        self.held -= nbytes
        if self._recorder is not None:
            self._recorder.counter(self.name, "memory held", self._env.now, self.held)
