"""Where the time went: every instant of the run is given to one category, and to one only.

At an instant several things may go on. It counts for the first of `PRIORITY` that is
active: what keeps a device computing hides all that happens beside it, so what is left
for the others is what they cost, not what they took. A frontend that launches is
``overhead`` only while no device works, which is when its speed matters. A wait is the
absence of work and counts as ``idle`` unless somebody else works meanwhile.
"""

from __future__ import annotations

import math

import numpy as np

from simperf.analysis.timeline import Sweep, sweep
from simperf.engine.recorder import Category, Span
from simperf.engine.tracks import owner
from simperf.results import Result

__all__ = ["IDLE", "PRIORITY", "breakdown", "breakdown_by_owner"]

#: Categories in the order in which they claim an instant.
PRIORITY: tuple[Category, ...] = ("compute", "memory", "communication", "copy", "storage", "overhead", "host")
#: what nobody claims
IDLE = "idle"


def breakdown(result: Result) -> dict[str, float]:
    """Partition of the run's time by category.

    Parameters
    ----------
    result : Result
        With its timeline; a collective or a copy is seen through its spans.

    Returns
    -------
    dict of str to float
        Time of each of `PRIORITY` and of ``"idle"`` [s], adding up to ``result.time``;
        empty if no timeline was recorded, since nothing is known then.

    Examples
    --------
    >>> from simperf.engine.recorder import Span
    >>> spans = (Span("cpu0/python", "launch", 0.0, 2.0, "overhead"), Span("gpu0/stream0", "add", 1.0, 5.0, "compute"))
    >>> found = breakdown(Result("two", 6.0, spans=spans))
    >>> found["overhead"], found["compute"], found["idle"]
    (1.0, 4.0, 1.0)
    """
    if not result.spans:
        return {}
    return _claim(sweep(result), result.time)


def breakdown_by_owner(result: Result) -> dict[str, dict[str, float]]:
    """The same partition for each device, host and storage node by itself, in order of name.

    On a device, time in which it does nothing of its own is ``idle``, whatever others do.
    """
    groups: dict[str, list[Span]] = {}
    for span in result.spans:
        groups.setdefault(owner(span), []).append(span)
    return {name: _claim(sweep(result, spans=groups[name]), result.time) for name in sorted(groups)}


def _claim(swept: Sweep, time: float) -> dict[str, float]:
    free = np.ones(len(swept.lengths), dtype=np.bool_)
    found: dict[str, float] = {}
    for category in PRIORITY:
        mine = free & swept.any(category)
        found[category] = swept.time(mine)
        free &= ~mine
    # what rounding of the sums leaves is idle's, so that the parts add up to the whole
    found[IDLE] = max(0.0, time - math.fsum(found.values())) if free.any() else 0.0
    return found
