"""Breakdown of a run's time: every instant is given to one category, and to one only.

At an instant several things may be active. It counts for the first of `PRIORITY` that is
active: what keeps a device computing hides all that happens beside it, so what is left
for the others is what they cost, not what they took. A frontend that launches is
``overhead`` only while no device works, which is when its speed matters. A wait is the
absence of work and counts as ``idle`` unless somebody else works meanwhile.

Where ranks are stages of a pipeline, the time of each of them is divided by itself, and the parts are means over all
ranks; time in which a stage waits for other ranks is the ``bubble`` (`simperf.analysis.stages`).
"""

from __future__ import annotations

import math

import numpy as np

from simperf.analysis.timeline import Bools, Floats, Sweep, sweep
from simperf.engine.recorder import Category, Span
from simperf.engine.tracks import owner
from simperf.results import Result

__all__ = ["BUBBLE", "IDLE", "PARTS", "PRIORITY", "breakdown", "breakdown_by_owner"]

#: Categories in the order in which they claim an instant.
PRIORITY: tuple[Category, ...] = ("compute", "memory", "communication", "copy", "storage", "overhead", "host")
#: time for which a stage waits for other ranks
BUBBLE = "bubble"
#: what nobody claims
IDLE = "idle"
#: all that a breakdown may tell
PARTS = (*PRIORITY, BUBBLE, IDLE)


def breakdown(result: Result) -> dict[str, float]:
    """Partition of the run's time by category.

    Parameters
    ----------
    result : Result
        With its timeline; a collective or a copy is seen through its spans.

    Returns
    -------
    dict of str to float
        Time of each of `PRIORITY` and of ``"idle"`` [s], with stages of ``"bubble"`` too, adding up to ``result.time``;
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
    return _mean_over_ranks(result) if result.has_stages else _claim(sweep(result), result.time)


def breakdown_by_owner(result: Result) -> dict[str, dict[str, float]]:
    """The same partition for each device, host and storage node by itself, in order of name.

    On a device, time in which it does nothing of its own is ``idle``, whatever others do.
    """
    groups: dict[str, list[Span]] = {}
    for span in result.spans:
        groups.setdefault(owner(span), []).append(span)
    found = {name: _claim(sweep(result, spans=groups[name]), result.time) for name in groups}
    if result.has_stages:
        from simperf.analysis.stages import rank_timelines

        for one in rank_timelines(result):
            waits = one.swept.time(one.bubble)
            found[one.device] |= {BUBBLE: waits, IDLE: max(0.0, found[one.device][IDLE] - waits)}
    return {name: found[name] for name in sorted(found)}


def _mean_over_ranks(result: Result) -> dict[str, float]:
    """Means over all ranks; what hosts and storage do counts where a rank neither works nor waits for others."""
    from simperf.analysis.stages import rank_timelines, spans_of_others

    found = dict.fromkeys(PARTS, 0.0)
    others = _claimed(sweep(result, spans=spans_of_others(result)))
    for one in rank_timelines(result):
        cuts = np.concatenate([[0.0], np.cumsum(one.swept.lengths)])
        free = ~one.bubble
        for category in PRIORITY:
            mine = free & one.swept.any(category)
            found[category] += one.share * one.swept.time(mine)
            free &= ~mine
        found[BUBBLE] += one.share * one.swept.time(one.bubble)
        for name, (at, so_far) in others.items():
            grown = np.interp(cuts[1:][free], at, so_far) - np.interp(cuts[:-1][free], at, so_far)
            found[name] += one.share * float(grown.sum())
    found[IDLE] = max(0.0, result.time - math.fsum(found.values()))
    return found


def _claimed(swept: Sweep) -> dict[str, tuple[Floats, Floats]]:
    """Instants, and the time that each category has claimed up to them [s]."""
    cuts = np.concatenate([[0.0], np.cumsum(swept.lengths)])
    free: Bools = np.ones(len(swept.lengths), dtype=np.bool_)
    found: dict[str, tuple[Floats, Floats]] = {}
    for category in PRIORITY:
        mine = free & swept.any(category)
        found[category] = cuts, np.concatenate([[0.0], np.cumsum(np.where(mine, swept.lengths, 0.0))])
        free &= ~mine
    return found


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
