"""Memory of a device, held by the operations in flight and recorded over time."""

from __future__ import annotations

import math

import simpy

from simperf.engine.recorder import Recorder
from simperf.memory import KINDS, MemoryPool

__all__ = ["OPERATIONS", "DeviceMemory"]

#: kind of what operations hold from their launch to their end
OPERATIONS = "operations"


class DeviceMemory(MemoryPool):
    """A pool with a clock.

    Parameters
    ----------
    env : simpy.Environment
    name : str
        The device, for messages and the counter's track.
    capacity : float
        Size [B]; infinite if the device has no part.
    recorder : Recorder, optional
        Takes the bytes held, after every change.
    """

    __slots__ = ("_env", "_kinds", "_recorder")

    def __init__(
        self, env: simpy.Environment, name: str, capacity: float = math.inf, *, recorder: Recorder | None = None
    ) -> None:
        super().__init__(name, capacity)
        self._env, self._recorder = env, recorder
        self._kinds: dict[str, float] = {}

    def hold(self, nbytes: float, what: str, *, at: float | None = None) -> None:
        """Take `nbytes` [B] for `what`, now."""
        super().hold(nbytes, what, at=self._env.now if at is None else at)
        self._record(what if what in KINDS else OPERATIONS, nbytes)

    def free(self, nbytes: float) -> None:
        """Give `nbytes` back [B], which an operation held: tensors of a kind stay for the whole run."""
        super().free(nbytes)
        self._record(OPERATIONS, -nbytes)

    def _record(self, kind: str, change: float) -> None:
        if self._recorder is not None:
            self._kinds[kind] = self._kinds.get(kind, 0.0) + change
            self._recorder.counter(self.name, "memory held", self._env.now, self.held)
            self._recorder.held(self.name, kind, self._env.now, self._kinds[kind])
