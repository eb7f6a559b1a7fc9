"""Adding up and giving back inside a machine, around NCCL's rings: reduce-scatter and all-gather.

A slice is cut into as many parts as there are GPUs; each GPU adds up one part, and later gives it to the
others. All GPUs work on a slice together, and slices that wait are taken a few at a time, as one
grouped call (``ncclGroupStart``). After BytePS, docs/architecture.md and
byteps/common/core_loops.cc (Y. Jiang et al., OSDI 2020).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from heapq import heappop, heappush
from typing import Any

import simpy

from simperf.collectives.execute import Context, start
from simperf.collectives.settings import NcclSettings
from simperf.errors import InputError, Problem
from simperf.execution.session import Session
from simperf.training.servers.transfers import Then, after

__all__ = ["GROUPED", "LocalRings"]

#: slices of one grouped call: BYTEPS_NCCL_GROUP_SIZE, 4 unless told otherwise (byteps/common/nccl_manager.cc)
GROUPED = 4


class LocalRings:
    """The collectives that the GPUs of one machine do, one grouped call after the other.

    They are NCCL's, and share links with whatever else is on them (`simperf.collectives.channels`).

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

    __slots__ = ("_busy", "_context", "_m", "_order", "_queue", "gpus", "grouped")

    def __init__(self, m: Session, gpus: Sequence[str], *, grouped: int = GROUPED) -> None:
        if grouped < 1:
            raise InputError(
                Problem("a call is for one slice or more", key="grouped", value=str(grouped), expected="1 or more")
            )
        self._m, self.gpus, self.grouped = m, tuple(gpus), grouped
        self._queue: list[tuple[float, int, str, float, Then]] = []
        self._busy, self._order = False, 0
        self._context = Context.of(m.simulation)

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

        self._m.simulation.env.process(self._play(work, over))

    def _play(self, work: Mapping[str, float], over: Then) -> Generator[simpy.Event, Any, None]:
        for name, nbytes in work.items():
            tuner = self._m.tuner(self.gpus, name, NcclSettings())
            choice = tuner.best(nbytes)
            yield start(choice.placed, nbytes, self._context, entry=[0.0] * choice.plan.nparticipants).done
        over()
