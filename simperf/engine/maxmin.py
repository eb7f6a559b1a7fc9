"""Max-min fair sharing: how fast each flow goes when flows share links.

An allocation is max-min fair if no flow can get more without taking from a flow that
has no more than it. It is unique, and it is found by *progressive filling*: raise the
rate of all flows together; when a link is full, the flows through it are frozen at that
rate (the link is their bottleneck); continue with the others until all are frozen
(D. Bertsekas and R. Gallager, Data Networks, 2nd ed., section 6.5.2).

Two extensions, both by speaking of a *level* that rises instead of a rate: a flow of
weight w at level x goes at w * x, so that shares are in proportion to weights; and a
flow that may go no faster than its cap is frozen when the level reaches cap / w.

Three ways to the one answer:

- `fill` does one bottleneck at a time in plain Python, which takes a few microseconds
  for a handful of flows.
- `fill_many` works on numpy arrays, and freezes in every round all links that are
  *local* minima: a link whose every flow is offered least on it keeps that level
  whatever happens elsewhere, because levels only rise.
- `refill` starts from the answer to a slightly different question, and is for networks
  where thousands of flows come and go one at a time.

Not modelled: packets, TCP's slow start and loss, queues in switches and head-of-line
blocking. Rates change at once and are shared perfectly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["MANY", "TIE", "fill", "fill_many", "refill"]

#: Levels that differ by less than this, relatively, are one level: a tie that rounding
#: has split is mended, and equal flows get equal rates.
TIE = 1e-12

#: From how many routes on numpy is the faster way.
MANY = 64

#: Rows of a block in which the levels of many bottlenecks are solved.
_BLOCK = 32

#: Up to how many bottlenecks a dense system of equations is worth its n * n cells.
LARGE = 300

Routes = Sequence[Sequence[int]]
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


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
            weight, limit = loads[i], limits[i]
            for link in routes[i]:
                load[link] += weight
            if limit < lowest:
                lowest = limit
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
            limit = limits[i]
            levels[i] = level = limit if limit < low else low
            drawn = level * loads[i]
            for link in routes[i]:
                room[link] -= drawn
        waiting = rest
    return levels


def fill_many(routes: Indices, capacities: Floats, loads: Floats, limits: Floats) -> Floats:
    """Return the level at which each route is frozen; for many routes.

    Parameters
    ----------
    routes : numpy.ndarray of int, shape (longest route, routes)
        ``[k, i]`` is the k-th link of route i: link n as n + 1, and 0 is no link.
    capacities : numpy.ndarray of float, shape (1 + links,)
        Capacity of each link [B/s]; the first, of no link, is infinite.
    loads, limits : numpy.ndarray of float, shape (routes,)
        As for `fill`.

    Returns
    -------
    numpy.ndarray of float, shape (routes,)
        Level of each route [B/s per unit of weight].
    """
    longest, count = routes.shape
    room = capacities.astype(np.float64)
    links = len(room)
    levels = np.zeros(count)
    waiting = np.arange(count)
    while len(waiting):
        offer = np.full(links, np.inf)
        total = np.bincount(routes.ravel(), np.tile(loads, longest), minlength=links)
        np.divide(np.maximum(room, 0.0), total, out=offer, where=total > 0)
        offers = offer[routes]
        low = np.minimum(offers.min(axis=0, initial=np.inf), limits)
        edge = low + low * TIE
        # A link where some route is offered less elsewhere will be left more: it stays open.
        closed = np.ones(links, dtype=bool)
        closed[routes[offers > edge]] = False
        frozen = (closed[routes] & (offers <= edge)).any(axis=0) | (limits <= edge)
        levels[waiting[frozen]] = low[frozen]
        room -= _draw(routes[:, frozen], low[frozen] * loads[frozen], links)
        keep = ~frozen
        routes, loads, limits, waiting = routes[:, keep], loads[keep], limits[keep], waiting[keep]
    return levels


def _draw(routes: Indices, rates: Floats, links: int) -> Floats:
    """Return what routes of these rates draw on each link [B/s]; on no link, nothing."""
    drawn = np.zeros(links)
    for row in routes:
        drawn += np.bincount(row, rates, minlength=links)
    drawn[0] = 0.0
    return drawn


def refill(
    routes: Indices,
    capacities: Floats,
    loads: Floats,
    limits: Floats,
    *,
    levels: Floats,
    marks: Floats,
    since: float,
    patience: int = 8,
) -> tuple[Floats, Floats, Floats]:
    """Return the levels after a small change, given those before it.

    Below the level `since` filling goes as it went before the change, so those routes
    keep their level. For the others: suppose that every route keeps its bottleneck, the
    first to be full of its links. Then "each bottleneck is full" is a linear system in
    the levels of the bottlenecks, and a triangular one, for a link knows only those that
    are full before it. Its solution is right if no link is over-full and every bottleneck
    is full when each route goes at the lowest level that its links allow, for then each
    route has a link that is full and on which none goes faster, which is what max-min
    fair means. If not, each route takes the link that allows it least as its bottleneck,
    an over-full link becomes one, and the system is solved again (Newton's method on a
    piecewise linear system; two or three solutions as a rule). If `patience` runs out,
    `fill_many` decides.

    Parameters
    ----------
    routes, capacities, loads, limits : numpy.ndarray
        The changed network, as for `fill_many`.
    levels : numpy.ndarray of float, shape (routes,)
        Level of each route before the change; infinite for a new one.
    marks : numpy.ndarray of float, shape (1 + links,)
        Level to which each link held its routes before the change; infinite if it was
        not full. Only a guess is needed.
    since : float
        Level below which the change alters nothing.
    patience : int
        Systems to solve at most.

    Returns
    -------
    tuple of numpy.ndarray
        Level of each route, mark of each link, and what is drawn on each link [B/s].
    """
    links = len(capacities)
    base = np.zeros(links)
    room = capacities
    levels = levels.copy()
    moving = levels >= since * (1.0 - 1e-9)
    everything = bool(moving.all())
    if not everything:
        still = ~moving
        base = _draw(routes[:, still], levels[still] * loads[still], links)
        room = np.maximum(capacities - base, 0.0)
        routes, loads, limits = routes[:, moving], loads[moving], limits[moving]
    known = bool((marks < np.inf).any())
    answer = _newton(routes, room, loads, limits, marks, patience) if known else None
    if answer is None:
        new = fill_many(routes, room, loads, limits)
        drawn = _draw(routes, new * loads, links)
        found = np.zeros(links)
        np.maximum.at(found, routes.ravel(), np.tile(new, len(routes)))
        found[drawn < room * (1.0 - TIE)] = np.inf
    else:
        new, found, drawn = answer
    levels[moving] = new
    # Links that were full below `since` still are, at the level at which they were.
    marks = np.where(marks < since * (1.0 - 1e-9), marks, found)
    return levels, marks, base + drawn


def _newton(
    routes: Indices, room: Floats, loads: Floats, limits: Floats, marks: Floats, patience: int
) -> tuple[Floats, Floats, Floats] | None:
    """Return levels, marks and draw by `refill`'s iteration, or None if it does not settle."""
    links = len(room)
    equal = np.full(links, np.inf)
    total = _draw(routes, loads, links)
    np.divide(room, total, out=equal, where=total > 0)
    full, over = room * (1.0 - TIE), room * (1.0 + TIE)
    some_limits = bool((limits < np.inf).any())
    order, held = _first_full(routes, marks)
    levels = marks[held]
    lost = (levels == np.inf) & (limits == np.inf)
    if lost.any():  # Newcomers over links that were not full: guess where they are held.
        _, narrow = _first_full(routes[:, lost], equal)
        marks = marks.copy()
        marks[narrow] = equal[narrow]
        order, held = _first_full(routes, marks)
        levels = marks[held]
    for _ in range(patience):
        right, drawing = room, loads
        uncapped = held
        if some_limits:
            capped = limits <= levels
            right = room - _draw(routes, np.where(capped, np.minimum(limits, levels) * loads, 0.0), links)
            drawing = np.where(capped, 0.0, loads)
            uncapped = held[~capped]
        used = np.zeros(links, dtype=bool)
        used[uncapped] = True
        bottlenecks = order[used[order]]
        if len(bottlenecks) > LARGE:
            return None
        solved = _substitute(routes, held, drawing, right, bottlenecks)
        marks = np.full(links, np.inf)
        marks[bottlenecks] = solved
        order, held = _first_full(routes, marks)
        levels = marks[held]
        new = np.minimum(levels, limits) if some_limits else levels
        drawn = _draw(routes, new * loads, links)
        spilt = np.flatnonzero(drawn > over)
        if not len(spilt) and (drawn[bottlenecks] >= full[bottlenecks]).all() and solved.min(initial=0.0) >= 0.0:
            return new, marks, drawn
        if len(spilt):
            # Hold an over-full link's faster routes to what its slower ones leave of it.
            kept, rest = np.zeros(links), np.zeros(links)
            for row in routes:
                slow = new < equal[row]
                kept += np.bincount(row, np.where(slow, new * loads, 0.0), minlength=links)
                rest += np.bincount(row, np.where(slow, 0.0, loads), minlength=links)
            marks[spilt] = (room[spilt] - kept[spilt]) / np.maximum(rest[spilt], 1e-30)
            order, held = _first_full(routes, marks)
            levels = marks[held]
    return None


def _first_full(routes: Indices, marks: Floats) -> tuple[Indices, Indices]:
    """Return the links in order of their marks, and for each route the first of its links."""
    order = np.argsort(marks, kind="stable")
    # Among links that are not full, "no link" comes last.
    order = np.append(order[order != 0], 0)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    first = rank[routes[0]]
    for row in routes[1:]:
        np.minimum(first, rank[row], out=first)
    return order, order[first]


def _substitute(routes: Indices, held: Indices, loads: Floats, room: Floats, bottlenecks: Indices) -> Floats:
    """Solve for the levels of `bottlenecks`, given in the order in which they fill.

    Block by block, for the matrix is lower triangular. A library's routine for the whole
    would start threads, which costs more than the solution does.
    """
    size = len(bottlenecks)
    place = np.full(len(room), size)
    place[bottlenecks] = np.arange(size)
    column = place[held]
    cell = np.concatenate([place[row] * (size + 1) + column for row in routes])
    matrix = np.bincount(cell, np.concatenate([loads] * len(routes)), minlength=(size + 1) ** 2)
    matrix = matrix.reshape(size + 1, size + 1)
    right = room[bottlenecks]
    solved = np.zeros(size)
    for start in range(0, size, _BLOCK):
        part = slice(start, min(start + _BLOCK, size))
        known = matrix[part, :start] @ solved[:start]
        solved[part] = np.linalg.solve(matrix[part, part], right[part] - known)
    return solved
