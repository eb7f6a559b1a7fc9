"""The passes of all stages in the order of the plan, each as early as its own stage and its messages let it be.

A stage does its turns one after another. A message leaves behind the pass that makes it, and is received behind the
turn before the one that needs it, or a turn earlier where messages overlap with passes; it takes at least as long as
alone. So no run of the plan ends earlier, whatever else it waits for.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from simperf.schedules import Pass
from simperf.training.pipelined.work import Boundary, StepWork

__all__ = ["PassTimes", "ends_of_passes"]


class PassTimes(NamedTuple):
    """Least times of passes and of what goes between them [s].

    Parameters
    ----------
    parts : sequence of mapping of str to float
        Of each part of the model: by the kind of a pass.
    messages : mapping of Boundary to float
        Of a message between neighbouring parts.
    received : float
        Of the kernels behind each message, before the pass that it is for.
    ahead : bool
        Whether a message is received during the turn before the one that it is for.
    """

    parts: Sequence[Mapping[str, float]]
    messages: Mapping[Boundary, float]
    received: float = 0.0
    ahead: bool = False


class _Turn(NamedTuple):
    """A turn, whatever its micro-batch is: messages before it, its time [s], and messages behind it."""

    receives: tuple[Boundary, ...]
    time: float
    sends: tuple[Boundary, ...]


def ends_of_passes(work: StepWork, times: PassTimes, begun: Sequence[float]) -> list[float]:
    """When each stage has done all of its passes, at the earliest [s].

    Parameters
    ----------
    work : StepWork
        With all of its micro-batches.
    times : PassTimes
    begun : sequence of float
        When each stage may begin with them [s].
    """
    plan = work.plan
    turns = [deque(plan.turns(stage)) for stage in range(work.stages)]
    kinds: list[dict[tuple[tuple[str, int], ...], _Turn]] = [{} for _ in turns]
    ends, posted = list(begun), list(begun)
    sent: dict[Boundary, deque[float]] = defaultdict(deque)
    waiting: dict[Boundary, int] = {}
    ready = deque(range(work.stages))
    while ready:
        stage = ready.popleft()
        own, known, now, asked = turns[stage], kinds[stage], ends[stage], posted[stage]
        while own:
            key = tuple([(one.kind, one.chunk) for one in own[0]])
            turn = known.get(key) or known.setdefault(key, _turn(work, times, stage, own[0]))
            missing = next((edge for edge in turn.receives if not sent[edge]), None)
            if missing is not None:
                waiting[missing] = stage
                break
            own.popleft()
            before = now
            for edge in turn.receives:
                now = max(now, max(asked, sent[edge].popleft()) + times.messages[edge]) + times.received
            now += turn.time
            asked = before if times.ahead else now
            for edge in turn.sends:
                sent[edge].append(now)
                if edge in waiting:
                    ready.append(waiting.pop(edge))
        ends[stage], posted[stage] = now, asked
    return ends


def _turn(work: StepWork, times: PassTimes, stage: int, passes: tuple[Pass, ...]) -> _Turn:
    """A turn of a stage."""
    places = [work.place(stage, one) for one in passes]
    time = sum(times.parts[place.part][one.kind] for place, one in zip(places, passes, strict=True))
    receives = tuple(place.receives for place in places if place.receives is not None)
    return _Turn(receives, time, tuple(place.sends for place in places if place.sends is not None))
