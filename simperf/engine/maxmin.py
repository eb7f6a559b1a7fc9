"""Max-min fair sharing: how fast each flow goes when flows share links.

An allocation is max-min fair if no flow can get more without taking from a flow that
has no more than it. It is unique, and it is found by *progressive filling*: raise the
rate of all flows together; when a link is full, the flows through it are frozen at that
rate (the link is their bottleneck); go on with the others until all are frozen
(D. Bertsekas and R. Gallager, Data Networks, 2nd ed., section 6.5.2).

Two extensions, both by speaking of a *level* that rises instead of a rate: a flow of
weight w at level x goes at w * x, so that shares are in proportion to weights; and a
flow that may go no faster than its cap is frozen when the level reaches cap / w.

`fill` does one bottleneck at a time in plain Python, which takes a few microseconds for
a handful of flows. `fill_many` works on numpy arrays, and freezes in every round all
links that are *local* minima: a link whose every flow is offered least on it keeps that
level whatever happens elsewhere, because levels only rise.

Not modelled: packets, TCP's slow start and loss, queues in switches and head-of-line
blocking. Rates change at once and are shared perfectly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["MANY", "TIE", "fill", "fill_many", "max_min_rates"]

#: Levels that differ by less than this, relatively, are one level: a tie that rounding
#: has split is mended, and equal flows get equal rates.
TIE = 1e-12

#: From how many routes on numpy is the faster way.
MANY = 48

Routes = Sequence[Sequence[int]]
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


def max_min_rates(
    routes: Routes,
    capacities: Sequence[float],
    *,
    caps: Sequence[float] | None = None,
    weights: Sequence[float] | None = None,
) -> list[float]:
    """Return the max-min fair rate of each flow.

    Parameters
    ----------
    routes : sequence of sequence of int
        For each flow the indices of the links that it crosses; a link that is named
        twice is drawn on twice. A flow without links is bound by its cap alone.
    capacities : sequence of float
        Capacity of each link [B/s], 0 or more.
    caps : sequence of float, optional
        What a flow can use at most [B/s]; unlimited by default.
    weights : sequence of float, optional
        Claims in proportion to which a bottleneck is shared, above 0; 1 by default.

    Returns
    -------
    list of float
        Rate of each flow [B/s].

    Examples
    --------
    Two flows share link 0; one of them also crosses the narrow link 1.

    >>> max_min_rates([(0,), (0, 1)], [10.0, 2.0])
    [8.0, 2.0]
    >>> max_min_rates([(0,), (0,), (0,)], [12.0], caps=[1.0, math.inf, math.inf], weights=[1, 1, 2])
    [1.0, 3.6666..., 7.3333...]
    """
    claims = [1.0] * len(routes) if weights is None else [float(weight) for weight in weights]
    limits = [math.inf] * len(routes) if caps is None else [c / w for c, w in zip(caps, claims, strict=True)]
    if len(routes) < MANY:
        levels = fill(routes, capacities, claims, limits)
    else:
        levels = fill_many(columns(routes, len(capacities)), capacities, claims, limits).tolist()
    return [level * weight for level, weight in zip(levels, claims, strict=True)]


def fill(routes: Routes, capacities: Sequence[float], loads: Sequence[float], limits: Sequence[float]) -> list[float]:
    """Return the level at which each route is frozen; for a few routes.

    A route may stand for several flows that share it: they have one level, and the
    route's load is the sum of their weights.

    Parameters
    ----------
    routes : sequence of sequence of int
        Links that each route crosses.
    capacities : sequence of float
        Capacity of each link [B/s].
    loads : sequence of float
        Weight of each route, above 0: at level x it draws ``load * x`` on its links.
    limits : sequence of float
        Level above which a route does not rise.

    Returns
    -------
    list of float
        Level of each route [B/s per unit of weight].
    """
    room = list(capacities)
    count = len(room)
    levels = [0.0] * len(routes)
    waiting: Sequence[int] = range(len(routes))
    low = 0.0
    while waiting:
        load = [0.0] * count
        lowest = math.inf
        for i in waiting:
            weight = loads[i]
            for link in routes[i]:
                load[link] += weight
            lowest = min(lowest, limits[i])
        offer = [space / weight if weight else math.inf for space, weight in zip(room, load, strict=True)]
        # A level never falls: a link that rounding has left with less than nothing is full.
        low = max(low, min(lowest, min(offer, default=math.inf)))
        edge = low + low * TIE
        rest = []
        for i in waiting:
            if limits[i] > edge:
                for link in routes[i]:
                    if offer[link] <= edge:
                        break
                else:
                    if edge < math.inf:
                        rest.append(i)
                        continue
            levels[i] = level = min(low, limits[i])
            drawn = level * loads[i]
            for link in routes[i]:
                room[link] -= drawn
        waiting = rest
    return levels


def columns(routes: Routes, links: int) -> Indices:
    """Return the routes as columns of equal length, filled up with the index `links`.

    Parameters
    ----------
    routes : sequence of sequence of int
        Links that each route crosses.
    links : int
        Number of links; the index that stands for no link.

    Returns
    -------
    numpy.ndarray of int, shape (longest route, routes)
        ``[k, i]`` is the k-th link of route i.
    """
    longest = max(map(len, routes), default=0)
    padding = (links,) * longest
    table = [(*route, *padding[len(route) :]) for route in routes]
    return np.ascontiguousarray(np.array(table, dtype=np.intp).reshape(len(routes), longest).T)


def fill_many(routes: Indices, capacities: Sequence[float], loads: Sequence[float], limits: Sequence[float]) -> Floats:
    """Return the level at which each route is frozen; for many routes.

    Parameters
    ----------
    routes : numpy.ndarray of int, shape (longest route, routes)
        As `columns` gives them.
    capacities, loads, limits : sequence of float
        As for `fill`.

    Returns
    -------
    numpy.ndarray of float, shape (routes,)
        Level of each route [B/s per unit of weight].
    """
    longest, count = routes.shape
    room = np.append(np.asarray(capacities, dtype=np.float64), np.inf)
    load = np.asarray(loads, dtype=np.float64)
    limit = np.asarray(limits, dtype=np.float64)
    levels = np.zeros(count)
    waiting = np.arange(count)
    links = len(room)
    while len(waiting):
        offer = np.full(links, np.inf)
        total = np.bincount(routes.ravel(), np.tile(load, longest), minlength=links)
        np.divide(np.maximum(room, 0.0), total, out=offer, where=total > 0)
        offer[-1] = np.inf
        offers = offer[routes]
        low = np.minimum(offers.min(axis=0, initial=np.inf), limit)
        edge = low + low * TIE
        # A link where some flow is offered less elsewhere will be left more: not yet frozen.
        open_ = np.zeros(links, dtype=bool)
        open_[routes[offers > edge]] = True
        frozen = (~open_[routes] & (offers <= edge)).any(axis=0) | (limit <= edge)
        levels[waiting[frozen]] = low[frozen]
        drawn = np.tile(low[frozen] * load[frozen], longest)
        done = routes[:, frozen].ravel()
        real = done < links - 1
        room -= np.bincount(done[real], drawn[real], minlength=links)
        keep = ~frozen
        routes, load, limit, waiting = routes[:, keep], load[keep], limit[keep], waiting[keep]
    return levels
