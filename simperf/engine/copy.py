"""Copy engines: one direction each, one copy at a time, beside the kernels."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import simpy

if TYPE_CHECKING:
    from simperf.engine.beside import Beside
    from simperf.engine.kernel import Copy
    from simperf.engine.network import FlowNetwork

__all__ = ["CopyEngine"]


class CopyEngine:
    """Carries the copies of one direction of a device, in the order in which they come.

    Parameters
    ----------
    network : FlowNetwork
        Whose links the copies share with all other traffic.
    name : str
        Such as ``"gpu0/d2h"``.
    beside : Beside, optional
        Of a device whose kernels and copies slow each other.
    """

    __slots__ = ("_beside", "_network", "_queue", "busy", "name")

    def __init__(self, network: FlowNetwork, name: str, *, beside: Beside | None = None) -> None:
        self._network, self.name, self._beside = network, name, beside
        self._queue: deque[tuple[Copy, Callable[[simpy.Event], None]]] = deque()
        self.busy = False

    def carry(self, copy: Copy, done: Callable[[simpy.Event], None]) -> None:
        """Carry `copy` after those that wait, then call `done`."""
        self._queue.append((copy, done))
        if not self.busy:
            self.busy = True
            self._next()

    def _next(self) -> None:
        copy, done = self._queue[0]
        resources = copy.resources
        if self._beside is not None and copy.nbytes > 0:
            alone = copy.nbytes / max(copy.alone - copy.latency, 1e-12)
            resources = (*resources, self._beside.carries(self, alone))
        flow = self._network.transfer(resources, copy.nbytes, latency=copy.latency, cap=copy.cap, name=copy.name)

        def finish(event: simpy.Event) -> None:
            self._queue.popleft()
            if self._beside is not None and copy.nbytes > 0:
                self._beside.ends(self)
            if self._queue:
                self._next()
            else:
                self.busy = False
            done(event)

        assert flow.callbacks is not None
        flow.callbacks.append(finish)
