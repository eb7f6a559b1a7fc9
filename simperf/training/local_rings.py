"""Adding up and giving back inside a machine, around NCCL's rings: reduce-scatter and all-gather.

A slice is cut into as many parts as there are GPUs; each GPU adds up one part, and later gives it to the
others. All GPUs work on a slice together, and slices that wait are taken a few at a time, as one
grouped call (``ncclGroupStart``). After BytePS, docs/architecture.md and
byteps/common/core_loops.cc (Y. Jiang et al., OSDI 2020).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import pairwise

from simperf.collectives.nccl import Tuner
from simperf.errors import InputError, Problem
from simperf.execution.session import Session
from simperf.hardware import Ring, find_rings
from simperf.training.sites import Then, after

__all__ = ["GROUPED", "LocalRings"]

#: slices of one grouped call: BYTEPS_NCCL_GROUP_SIZE, 4 unless told otherwise (byteps/common/nccl_manager.cc)
GROUPED = 4


class LocalRings:
    """The collectives that the GPUs of one machine do, one grouped call after the other.

    Over NVLink, which nothing else uses meanwhile, a call takes the time that NCCL's tuner has for it. Over PCIe it
    is a flow around the ring that is no faster than that, and shares the links with copies and adapters.

    Parameters
    ----------
    m : Session
    gpus : sequence of str
        Of one machine.
    grouped : int
        Slices of one call, at most.

    Raises
    ------
    InputError
        Calls of no slice.
    MachineError
        The GPUs do not reach each other.
    """

    __slots__ = ("_around", "_busy", "_m", "_order", "_queue", "_times", "_tuners", "gpus", "grouped")

    def __init__(self, m: Session, gpus: Sequence[str], *, grouped: int = GROUPED) -> None:
        if grouped < 1:
            raise InputError(Problem("a call is for one slice or more", key="grouped", value=str(grouped)))
        self._m, self.gpus, self.grouped = m, tuple(gpus), grouped
        self._queue: list[tuple[float, int, str, float, Then]] = []
        self._busy, self._order = False, 0
        self._times: dict[tuple[str, float], tuple[float, dict[str, float]]] = {}
        self._tuners: dict[str, Tuner] = {}
        rings = find_rings(m.machine, self.gpus) if len(self.gpus) > 1 else []
        self._around = self._shared(rings)

    def reduce_scatter(self, nbytes: float, urgency: float, then: Then) -> None:
        """Add up `nbytes` [B] of every GPU, a part on each; the lowest urgency goes first."""
        self._submit("reduce-scatter", nbytes, urgency, then)

    def all_gather(self, nbytes: float, urgency: float, then: Then) -> None:
        """Give the parts of `nbytes` [B] to all GPUs."""
        self._submit("all-gather", nbytes, urgency, then)

    def _submit(self, name: str, nbytes: float, urgency: float, then: Then) -> None:
        if len(self.gpus) == 1 or nbytes == 0.0:
            then()
            return
        self._order += 1
        heappush(self._queue, (urgency, self._order, name, nbytes, then))
        if not self._busy:
            self._busy = True
            after(self._m.simulation.env, 0.0, self._call)  # with all others of this instant

    def _call(self) -> None:
        taken = [heappop(self._queue) for _ in range(min(self.grouped, len(self._queue)))]
        work: dict[str, float] = {}
        for _, _, name, nbytes, _ in taken:
            work[name] = work.get(name, 0.0) + nbytes
        env, recorder, started = self._m.simulation.env, self._m.simulation.recorder, self._m.now

        def over() -> None:
            if recorder is not None:
                track = f"{self.gpus[0]}/rings"
                recorder.span(track, " and ".join(work), started, env.now, "communication")
            for entry in taken:
                entry[-1]()
            self._busy = bool(self._queue)
            if self._busy:
                self._call()

        times = [self._time(name, nbytes) for name, nbytes in work.items()]
        total = math.fsum(time for time, _ in times)
        network = self._m.simulation.network
        if not self._around:
            for _, moved in times:
                network.count(moved)
            after(env, total, over)
            return
        least = math.fsum(self._time(name, 0.0)[0] for name in work)
        nbytes = math.fsum(work.values()) * (len(self.gpus) - 1) / len(self.gpus)
        cap = nbytes / (total - least) if total > least else math.inf
        flow = network.transfer(self._around, nbytes, latency=least, cap=cap, name="around the ring")
        assert flow.callbacks is not None
        flow.callbacks.append(lambda _: over())

    def _time(self, name: str, nbytes: float) -> tuple[float, dict[str, float]]:
        """Time [s] of a collective alone, and bytes on the wire by resource [B]."""
        key = (name, nbytes)
        if key not in self._times:
            if name not in self._tuners:
                self._tuners[name] = Tuner(self._m.machine, self.gpus, collective=name, speed=self._m.protocols)
            best = self._tuners[name].best(nbytes)
            self._times[key] = best.time, dict(best.run.moved)
        return self._times[key]

    def _shared(self, rings: Sequence[Ring]) -> tuple[str, ...]:
        """Resources around the ring where others use them as well; none where all rings are of NVLink."""
        if all(ring.links for ring in rings):
            return ()
        order = rings[0].order
        hops = [self._m.machine.route(a, b) for a, b in pairwise((*order, order[0]))]
        return tuple(resource for hop in hops for resource in hop.resources)
