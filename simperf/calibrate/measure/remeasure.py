"""Measuring again what the host of a virtual machine disturbed, when all else is done.

Disturbances last for seconds to minutes, so a point that was disturbed is worth another try later, and the
end of one is waited for. Which of two readings stays is decided by what was taken away meanwhile, never by what they
say.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from simperf.calibrate.dataset import Measurement
from simperf.calibrate.measure.steal_time import STOLEN, calm_now

__all__ = ["AGAIN", "PAUSE", "ROUNDS", "await_calm", "calmer", "repeat"]

#: how often disturbed points are measured again, and over the time of the first round, the most that this may take [1]
ROUNDS, AGAIN = 2, 0.5
#: time between two looks at whether a disturbance is over [s]
PAUSE = 5.0
_Item = TypeVar("_Item")


def calmer(before: Sequence[Measurement], made: Sequence[Measurement]) -> Sequence[Measurement]:
    """The one of two measurements of the same points that was disturbed less, or else is steadier; the later of equals.

    Parameters
    ----------
    before, made : sequence of Measurement
        All that was read in one go, the earlier and the later one; the first of each tells of all.
    """
    return min((made, before), key=lambda one: _disturbance(one[0]))


def repeat(
    doubtful: Callable[[], Sequence[_Item]],
    take: Callable[[_Item], bool],
    *,
    until: float,
    duration: Callable[[_Item], float] = lambda item: 0.0,
    waiting: Callable[[], object] = lambda: None,
    now: Callable[[], float] = time.monotonic,
) -> int:
    """Go through what is doubtful, up to `ROUNDS` times and for so long; gives for how many the time was too short.

    Parameters
    ----------
    doubtful : callable
        What should be measured again as it is now, in order; asked before each round.
    take : callable
        Measures one of them, keeps what is to be kept, and says whether it was disturbed again.
    until : float
        When all must have ended, on the clock `now` [s]; what would take longer is not begun.
    duration : callable
        How long one of them will take [s].
    waiting : callable
        Is called before the end of a disturbance is waited for.
    now : callable
        A clock [s].
    """
    late, elsewhere = 0, False
    for _ in range(ROUNDS):
        late = 0
        for item in doubtful():
            if elsewhere and now() + duration(item) <= until:
                waiting()
                await_calm(until, now=now)
            if now() + duration(item) > until:
                late += 1
            else:
                elsewhere = take(item)
    return late


def await_calm(until: float, *, now: Callable[[], float] = time.monotonic) -> None:
    """Wait until the host takes nothing away any more, or that instant has come [s]."""
    while now() + PAUSE < until and not calm_now():
        time.sleep(PAUSE)


def _disturbance(point: Measurement) -> tuple[float, float]:
    """What decides which of two measurements of a point is kept."""
    stolen = point.stolen or 0.0
    return (stolen if stolen > STOLEN else 0.0), point.spread
