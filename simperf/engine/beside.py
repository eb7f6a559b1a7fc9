"""Kernels and copies of one device that slow each other: they share its memory, and the copy's way into it.

Only measurements say how much (`simperf.calibrate.fit.overlap`); a device whose part has no such numbers lets copies
run beside kernels for nothing.

Not modelled: copies between two devices, and that a copy slows one kernel more than another of the same kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simperf.engine.copy import CopyEngine
    from simperf.engine.device import Device

__all__ = ["Beside"]


class Beside:
    """Keeps kernels and copies of a device at the pace that they have beside one another.

    Parameters
    ----------
    device : Device
    factors : mapping of str to float
        How much longer each takes [1]: ``kernel.compute``, ``copy.compute``, ``kernel.memory``, ``copy.memory``; what
        is absent takes as long as alone.
    """

    __slots__ = ("_engines", "_paces", "_state", "device")

    def __init__(self, device: Device, factors: Mapping[str, float]) -> None:
        self.device = device
        self._paces = {
            kind: (1.0 / factors.get(f"kernel.{kind}", 1.0), 1.0 / factors.get(f"copy.{kind}", 1.0))
            for kind in ("compute", "memory")
        }
        self._engines: dict[str, tuple[CopyEngine, float]] = {}  # engines at work, and their copies' rates alone
        self._state: tuple[frozenset[str], tuple[str, ...]] = (frozenset(), ())

    def carries(self, engine: CopyEngine, rate: float) -> str:
        """Note that an engine begins a copy that takes `rate` alone [B/s]; gives the resource that it draws on."""
        self.device.network.add(engine.name)
        self._engines[engine.name] = (engine, rate)
        self._state = (self._state[0], ())  # the rate of this copy is another
        self.look()
        return engine.name

    def ends(self, engine: CopyEngine) -> None:
        """Note that an engine rests."""
        del self._engines[engine.name]
        self.look()

    def look(self) -> None:
        """Set all paces anew, if other kinds of kernels run than before, or other copies."""
        share = self.device.share
        kinds = frozenset(task.kind for task in share.running)
        state = (kinds, tuple(self._engines))
        if state == self._state:
            return
        self._state = state
        share.paces = {kind: pace for kind, (pace, _) in self._paces.items()} if self._engines else {}
        share.divide()
        slowest = min((self._paces[kind][1] for kind in kinds if kind in self._paces), default=1.0)
        for name, (_, rate) in self._engines.items():
            self.device.network.set_capacity(name, rate * slowest)
