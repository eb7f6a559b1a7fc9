"""Kernels and copies of one device that slow each other: they share its memory, and the copy's way into it.

Only measurements say how much (`simperf.calibrate.fit.device`); a device whose part has no such numbers lets copies
run beside kernels for nothing.

Not modelled: copies between two devices, and that a copy slows one kernel more than another of the same kind.
"""

from __future__ import annotations

from collections.abc import Mapping

from simperf.engine.network import FlowNetwork
from simperf.engine.share import Share

__all__ = ["Interference"]


class Interference:
    """Keeps kernels and copies of a device at the pace that they have beside one another.

    Parameters
    ----------
    share : Share
        The device's compute, on which its kernels draw.
    network : FlowNetwork
        Carries its copies.
    factors : mapping of str to float
        How much longer each takes [1]: ``kernel.compute``, ``copy.compute``, ``kernel.memory``, ``copy.memory``; what
        is absent takes as long as alone.
    """

    __slots__ = ("_copies", "_network", "_paces", "_share", "_state")

    def __init__(self, share: Share, network: FlowNetwork, factors: Mapping[str, float]) -> None:
        self._share, self._network = share, network
        self._paces = {
            kind: (1.0 / factors.get(f"kernel.{kind}", 1.0), 1.0 / factors.get(f"copy.{kind}", 1.0))
            for kind in ("compute", "memory")
        }
        self._copies: dict[str, float] = {}  # of engines at work: their copies' rates alone
        self._state: tuple[frozenset[str], tuple[str, ...]] = (frozenset(), ())

    def begin_copy(self, engine: str, rate: float) -> str:
        """Note that an engine begins a copy that takes `rate` alone [B/s]; gives the resource that it draws on."""
        self._network.add(engine)
        self._copies[engine] = rate
        self._state = (self._state[0], ())  # the rate of this copy is another
        self.update()
        return engine

    def end_copy(self, engine: str) -> None:
        """Note that an engine rests."""
        del self._copies[engine]
        self.update()

    def update(self) -> None:
        """Set all paces again, if other kinds of kernels run than before, or other copies."""
        share = self._share
        kinds = frozenset(task.kind for task in share.running)
        state = (kinds, tuple(self._copies))
        if state == self._state:
            return
        self._state = state
        share.paces = {kind: pace for kind, (pace, _) in self._paces.items()} if self._copies else {}
        share.divide()
        slowest = min((self._paces[kind][1] for kind in kinds if kind in self._paces), default=1.0)
        for name, rate in self._copies.items():
            self._network.set_capacity(name, rate * slowest)
