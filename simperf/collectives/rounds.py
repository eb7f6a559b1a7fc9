"""Many flows over shared links at once, solved with arrays instead of events.

The same fluid as `simperf.engine.network`: every flow gets its max-min fair share, found
again whenever one starts or ends. Three things make thousands of flows cheap: a link that
carries one flow only is a limit of that flow; flows that are alike are one
(`simperf.layout.flow_classes`); and what starts or ends at one instant costs one step.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from simperf.collectives.links import FloatArray, Hops
from simperf.collectives.plan import IntArray
from simperf.engine.maxmin import MANY, fill, fill_many
from simperf.layout.flow_classes import flow_classes

__all__ = ["ROUNDING", "crossings", "rate_alone", "solve"]

#: part of a time or of a flow's bytes that is rounding
ROUNDING = 1e-12

#: flows from which it pays to look for those that are alike
ALIKE = 12


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
    end = start + np.divide(size, alone, out=np.zeros_like(size), where=moving)
    used = np.bincount(hops.links[:, moving].ravel(), minlength=len(capacity))
    used[0] = 0
    rows = np.flatnonzero(moving & (used > 1)[hops.links].any(axis=0))
    if not len(rows):
        return end
    links, limit = _own(hops.links[:, rows], hops.cap[rows], capacity, used)
    start, size = start[rows], size[rows]
    alike = flow_classes(links, capacity, [start, size, limit]) if len(rows) >= ALIKE else None
    if alike is None:
        end[rows] = _flow(start, size, links, limit, np.ones(len(rows)), capacity)
        return end
    first, load = alike.first, alike.count
    classes = np.bincount(alike.links.ravel(), minlength=len(alike.capacity))
    classes[0] = 0
    # A class of flows that is alone on a class of links has its share of them, whoever comes and goes elsewhere.
    private = np.where((classes == 1)[alike.links], alike.links, 0)
    limit = np.minimum(limit[first], alike.capacity[private].min(axis=0) / load)
    left = np.where((classes > 1)[alike.links], alike.links, 0)
    done = start[first] + size[first] / limit
    together = np.flatnonzero(left.any(axis=0))
    if len(together):
        some = first[together]
        done[together] = _flow(
            start[some], size[some], left[:, together], limit[together], load[together], alike.capacity
        )
    end[rows] = done[alike.of]
    return end


def _own(links: IntArray, limit: FloatArray, capacity: FloatArray, used: IntArray) -> tuple[IntArray, FloatArray]:
    """Links that several flows use, and what the others allow each flow [B/s]."""
    shared = (used > 1)[links]
    own = np.where(shared, 0, links)
    return np.where(shared, links, 0), np.minimum(limit, capacity[own].min(axis=0))


def _flow(
    start: FloatArray, size: FloatArray, links: IntArray, limit: FloatArray, load: FloatArray, capacity: FloatArray
) -> FloatArray:
    """Follow flows of some load each from start to end."""
    end = start.copy()
    waiting = np.argsort(start, kind="stable")
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
        rates = _levels(links[:, active], capacity, load[active], limit[active])
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


def _levels(links: IntArray, capacity: FloatArray, load: FloatArray, limit: FloatArray) -> FloatArray:
    if links.shape[1] >= MANY:
        return fill_many(links, capacity, load, limit)
    used, local = np.unique(links, return_inverse=True)
    routes = [[int(link) for link in column if used[link]] for column in local.reshape(links.shape).T]
    return np.array(fill(routes, capacity[used].tolist(), load.tolist(), limit.tolist()))
