"""A GPU's time in parts: kernels by family, exposed communication and copies, waits, and gaps that the host leaves.

Each instant belongs to one part, so that the parts add up: to the kernel that began first of those that run; else to
communication, else to a copy, else to a wait that is known. Where nothing runs, the next activity says why: the host,
if that was launched within the gap; otherwise a wait.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

__all__ = ["HOST", "WAIT", "GpuInterval", "step_parts"]

HOST, WAIT = "host", "wait"
#: kinds of activities in the order in which they claim an instant
_KINDS = ("kernel", "communication", "copy", "wait")
#: times that differ by less are one [s]
_SAME = 1e-9


class GpuInterval(NamedTuple):
    """An activity of a GPU.

    `start` and `end` [s]; `kind` is ``"kernel"``, ``"communication"``, ``"copy"`` or ``"wait"``; `part` what its time
    counts as; `launched` the moment from which it could have begun, as the host had launched it [s].
    """

    start: float
    end: float
    kind: str
    part: str
    launched: float


def step_parts(activities: Iterable[GpuInterval], begin: float, end: float) -> dict[str, float]:
    """Time of each part from `begin` to `end` [s]; the parts add up to it.

    Examples
    --------
    >>> product = GpuInterval(1.0, 3.0, "kernel", "products", 1.0)
    >>> send = GpuInterval(2.0, 5.0, "communication", "exposed all-reduce", 0.0)
    >>> step_parts([product, send], 0.0, 6.0)
    {'host': 2.0, 'products': 2.0, 'exposed all-reduce': 2.0}
    """
    known = sorted(one for one in activities if one.end > begin and one.start < end)
    found: dict[str, float] = {}

    def add(part: str, time: float) -> None:
        if time > 0.0:
            found[part] = found.get(part, 0.0) + time

    moments = sorted({begin, end, *(t for one in known for t in (one.start, one.end) if begin < t < end)})
    running: list[tuple[int, float, int]] = []  # kind, start, number: the first is what the instant belongs to
    place = 0
    work = [one for one in known if one.kind != "wait"]
    begun = 0
    for now, then in pairwise(moments):
        while place < len(known) and known[place].start <= now:
            heapq.heappush(running, (_KINDS.index(known[place].kind), known[place].start, place))
            place += 1
        while running and known[running[0][2]].end <= now:
            heapq.heappop(running)
        while begun < len(work) and work[begun].start <= now:
            begun += 1
        if running:
            add(known[running[0][2]].part, then - now)
        elif begun < len(work):
            add(HOST if work[begun].launched > now + _SAME else WAIT, then - now)
        else:
            add(HOST, then - now)
    return found
