"""Many flows over shared links at once, solved with arrays instead of events.

The same fluid as `simperf.engine.network`: every flow gets its max-min fair share, found
anew whenever one starts or ends. Flows that do so at one instant cost one step, so that
a symmetric exchange among thousands of ranks is a single one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from simperf.collectives.links import FloatArray, Hops
from simperf.engine.maxmin import fill_many

__all__ = ["ROUNDING", "crossings", "rate_alone", "solve"]

#: part of a time or of a flow's bytes that is rounding
ROUNDING = 1e-12


def crossings(hops: Hops, moving: npt.NDArray[np.bool_], count: int) -> int:
    """Most flows with bytes to move that any one link carries."""
    used = np.bincount(hops.links[:, moving].ravel(), minlength=count)
    return int(used[1:].max(initial=0))


def rate_alone(hops: Hops, capacity: FloatArray) -> FloatArray:
    """Rate of each flow if it has its links to itself [B/s]."""
    rate: FloatArray = np.minimum(capacity[hops.links].min(axis=0), hops.cap)
    return rate


def solve(start: FloatArray, size: FloatArray, hops: Hops, capacity: FloatArray) -> FloatArray:
    """When each flow ends if all of them, and only they, are on the links.

    Parameters
    ----------
    start : numpy.ndarray of float64, shape (flows,)
        When the first byte moves [s].
    size : numpy.ndarray of float64, shape (flows,)
        Bytes on the wire [B].
    hops : Hops
        Their ways.
    capacity : numpy.ndarray of float64, shape (links,)
        Capacity by link number [B/s].

    Returns
    -------
    numpy.ndarray of float64, shape (flows,)
        Ends [s].
    """
    alone = rate_alone(hops, capacity)
    moving = (size > 0.0) & np.isfinite(alone)
    if crossings(hops, moving, len(capacity)) <= 1:
        return start + np.divide(size, alone, out=np.zeros_like(size), where=moving)
    end = start.copy()
    waiting = np.flatnonzero(moving)
    waiting = waiting[np.argsort(start[waiting], kind="stable")]
    begins = start[waiting]
    active = np.zeros(0, dtype=np.int64)
    left = np.zeros(0)
    now, joined = float(begins[0]), 0
    while joined < len(waiting) or len(active):
        if not len(active):
            now = float(begins[joined])
        upto = int(np.searchsorted(begins, now + abs(now) * 1e-15, side="right"))
        if upto > joined:
            active = np.concatenate((active, waiting[joined:upto]))
            left = np.concatenate((left, size[waiting[joined:upto]]))
            joined = upto
        rates = fill_many(hops.links[:, active], capacity, np.ones(len(active)), hops.cap[active])
        rest = left / rates
        step = float(rest.min())
        following = float(begins[joined]) if joined < len(waiting) else np.inf
        if now + step > following:
            left = left - rates * (following - now)
            now = following
            done = left <= size[active] * ROUNDING
        else:
            left = left - rates * step
            now += step
            done = rest <= step * (1.0 + ROUNDING)
        end[active[done]] = now
        active, left = active[~done], left[~done]
    return end
