"""Time that a virtual machine wanted to run and its host gave to others.

On a shared host a measurement can be disturbed by what no program of this machine does. Linux counts it where the
hypervisor tells (``steal`` in ``/proc/stat``, see ``proc_stat(5)``), in hundredths of a second over all processors.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simperf.calibrate.dataset import Measurement

__all__ = ["STOLEN", "Stolen", "calm_now", "disturbed", "taken_away"]

#: share of the working time from which on a reading is called disturbed [1]
STOLEN = 0.02
_STAT = Path("/proc/stat")
#: how long there is work for, to see whether it is kept from being done [s]: one hundredth is half of what counts
_PROBE = 1.0
#: columns after the word "cpu": idle and waiting for a disk are no work; guests are counted under user and nice
_IDLE, _STEAL, _COLUMNS = (3, 4), 7, 8


class Stolen:
    """Tells, lap by lap, which share of its working time the machine was kept from working.

    Parameters
    ----------
    stat : path
        Where the system counts; elsewhere in tests.
    """

    def __init__(self, stat: str | os.PathLike[str] = _STAT) -> None:
        self._stat = Path(stat)
        self._last = self._read()

    def lap(self) -> float | None:
        """The share since the last lap, 0 to 1; None if the system does not tell.

        Counted in hundredths of a second: of laps that are hardly longer, it is seldom more than zero, and then much.
        """
        before, now = self._last, self._read()
        self._last = now
        if before is None or now is None:
            return None
        wanted, stolen = (max(0, after - earlier) for earlier, after in zip(before, now, strict=True))
        return min(1.0, stolen / wanted) if wanted else 0.0

    def _read(self) -> tuple[int, int] | None:
        """Time that the machine wanted to work, and the part of it that it was kept from working."""
        try:
            with self._stat.open(encoding="ascii") as file:
                name, *words = file.readline().split()
            counts = [int(word) for word in words[:_COLUMNS]]
        except (OSError, ValueError):
            return None
        if name != "cpu" or len(counts) < _COLUMNS:
            return None
        return sum(counts) - sum(counts[index] for index in _IDLE), counts[_STEAL]


def taken_away(share: float | None) -> tuple[str, ...]:
    """A warning for a measurement that was disturbed so, if it was.

    Examples
    --------
    >>> taken_away(0.054), taken_away(0.01), taken_away(None)
    (('disturbed: 5.4 % of the working time was taken away by the host of this machine',), (), ())
    """
    if share is None or share <= STOLEN:
        return ()
    return (f"disturbed: {100 * share:.1f} % of the working time was taken away by the host of this machine",)


def calm_now(seconds: float = _PROBE, *, stat: str | os.PathLike[str] = _STAT) -> bool:
    """Whether the host takes nothing away now, or the system does not tell; works for a while to see that.

    Parameters
    ----------
    seconds : float
        How long to work [s].
    stat : path
        Where the system counts.
    """
    watch, end = Stolen(stat), time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return not taken_away(watch.lap())


def disturbed(points: Iterable[Measurement]) -> str:
    """On how many of the points the machine was kept from working, in words; empty if on none."""
    every = [point.stolen for point in points]
    count = sum(1 for share in every if taken_away(share))
    if not count:
        return ""
    return f"on {count} of {len(every)} points this machine's host gave over {STOLEN:.0%} of the time to others"
