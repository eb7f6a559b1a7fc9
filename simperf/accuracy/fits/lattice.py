"""Factors of a lattice by bounded least squares, and the spread about them of shapes that were not fitted."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simperf.cost.lattice import FACTORS, NODES, node_names, node_weights, side_weights, spread_names
from simperf.cost.lattice_draws import ALIKE, MOST_SPREAD

__all__ = ["LatticeFit", "fit_lattice", "fit_spread"]

#: weights of a node's own size and of its bend against its neighbours, over one point's
_SIZE, _BEND = 0.1, 0.4
#: deviation from which a point counts less
_ROBUST = 0.1
#: points of the whole table that count for the spread at each node
_ELSEWHERE = 5.0
#: least part of a call that a kernel's spread is divided by: of a smaller one, kernels around it miss the time
_LEAST_SHARE = 0.5
#: part of the shapes that an interval holds, and its half-width in standard deviations
_HELD = 0.9
_HALF = NormalDist().inv_cdf(0.5 + _HELD / 2.0)
#: standardised deviation beyond which a shape says no more about what shapes share
_FAR = 3.0

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class LatticeFit:
    """Factors, and how far each fitted shape would lie from factors that were fitted without it.

    Parameters
    ----------
    factors : dict of str to float
        By node (`simperf.cost.lattice.node_names`).
    away : ndarray
        Logarithm of measured over corrected time of each shape, by its leverage: residual / (1 - leverage) (D. M.
        Allen, "The relationship between variable selection and data augmentation and a method for prediction",
        Technometrics 16(1), 1974).
    held : tuple of str
        Nodes that a limit holds.
    """

    factors: dict[str, float]
    away: Array
    held: tuple[str, ...]


def fit_lattice(
    sizes: Array, ratio: Array, *, share: Array | float = 1.0, least: Array | float = 0.0, kind: str = "gemm"
) -> LatticeFit:
    """Factors of least robust squares, smoothed: a node that no shape lies near is drawn to its neighbours, all to 1.

    Parameters
    ----------
    sizes : ndarray of shape (shapes, sizes)
        As `simperf.cost.lattice.op_sizes` has them.
    ratio : ndarray
        Measured over predicted time of each shape [1].
    share : ndarray or float
        Part of the predicted time that is the kernel's, which alone is corrected [1].
    least : ndarray or float
        Factor of each shape that no kernel can be below: its least time over the predicted one [1].
    kind : str
        One of `NODES`.
    """
    nodes = node_weights(sizes, kind)
    weights, wanted = nodes * np.reshape(share, (-1, 1)), np.log(ratio)
    low, high = _limits(nodes, np.broadcast_to(np.asarray(least, dtype=float), len(wanted)))
    bends = _bends(kind)
    smooth = _SIZE**2 * np.eye(len(low)) + _BEND**2 * bends.T @ bends
    counts, at, held = np.ones(len(wanted)), np.zeros(len(low)), np.zeros(len(low), dtype=bool)
    used = counts
    for _ in range(10):
        at, held = _bounded(weights, wanted, counts, smooth, (low, high))
        used, counts = counts, 1.0 / np.maximum(1.0, np.abs(wanted - weights @ at) / _ROBUST)
    away = _left_out(weights[:, ~held], wanted - weights @ at, used, smooth[np.ix_(~held, ~held)])
    names = node_names(kind)
    factors = {name: float(np.exp(value)) for name, value in zip(names, at, strict=True)}
    return LatticeFit(factors, away, tuple(name for name, one in zip(names, held, strict=True) if one))


def _limits(nodes: Array, least: Array) -> tuple[Array, Array]:
    """Least and largest logarithm of each node's factor: the mean of the limits of the shapes that it is near."""
    bottom, top = log(FACTORS[0]), log(FACTORS[1])
    limits = np.clip(np.log(np.maximum(least, FACTORS[0])), bottom, 0.0)
    total = nodes.sum(axis=0)
    low = np.where(total > 0, nodes.T @ limits / np.maximum(total, 1e-300), bottom)
    return low, np.full(len(low), top)


def _bounded(
    weights: Array, wanted: Array, counts: Array, smooth: Array, limits: tuple[Array, Array]
) -> tuple[Array, Mask]:
    """Weighted least squares within limits; a node that steps over one is held there, and the others found again."""
    matrix: Any = (weights * counts[:, None]).T @ weights + smooth
    right: Any = weights.T @ (counts * wanted)
    at, held = np.zeros(len(right)), np.zeros(len(right), dtype=bool)
    while not held.all():
        free = ~held
        at[free] = np.linalg.solve(matrix[np.ix_(free, free)], right[free] - matrix[np.ix_(free, held)] @ at[held])
        over = free & ((at < limits[0] - 1e-9) | (at > limits[1] + 1e-9))
        if not over.any():
            break
        at[over] = np.clip(at, *limits)[over]
        held |= over
    return at, held


def _left_out(weights: Array, left: Array, counts: Array, smooth: Array) -> Array:
    """What residuals would be had each shape not been fitted."""
    solved = np.linalg.solve((weights * counts[:, None]).T @ weights + smooth, (weights * counts[:, None]).T)
    leverage = np.einsum("ij,ji->i", weights, solved)
    found: Array = left / np.maximum(1.0 - leverage, 0.05)
    return found


def fit_spread(sizes: Array, away: Array, share: Array, *, kind: str = "gemm") -> dict[str, float]:
    """Spreads at the nodes along the first size, and the part of the variance that shapes with one first size share.

    Each spread is the 90 % quantile of the shapes' absolute deviations near the node over that of a normal
    distribution, at the level of split conformal prediction (J. Lei et al., "Distribution-free predictive inference for
    regression", Journal of the American Statistical Association 113(523), 2018), so that few shapes give a wide one.

    Parameters
    ----------
    sizes : ndarray of shape (shapes, sizes)
    away : ndarray
        `LatticeFit.away`.
    share : ndarray
        Part of the corrected time of each call that is the kernel's [1].
    kind : str
        One of `NODES`.
    """
    sides = side_weights(np.log2(sizes[:, 0]), NODES[kind][0])
    own = away / np.maximum(share, _LEAST_SHARE)
    spreads = np.array([_spread(np.abs(own), side + _ELSEWHERE / len(own)) for side in sides.T])
    found = dict(zip(spread_names(kind), map(float, np.minimum(spreads, MOST_SPREAD)), strict=True))
    return {ALIKE: _alike(sizes[:, 0], own / np.maximum(sides @ spreads, 1e-12)), **found}


def _spread(sizes: Array, weights: Array) -> float:
    """Standard deviation of the normal distribution whose quantile the weighted deviations have."""
    effective = weights.sum() ** 2 / (weights**2).sum()
    order = np.argsort(sizes)
    reached = np.cumsum(weights[order]) / weights.sum()
    place = np.searchsorted(reached, min(1.0, _HELD * (1.0 + 1.0 / effective)))
    return float(sizes[order][min(int(place), len(sizes) - 1)]) / _HALF


def _alike(groups: Array, away: Array) -> float:
    """Part of the variance of standardised deviations that is shared within groups: an analysis of variance."""
    near = np.clip(away, -_FAR, _FAR)
    parts = [near[groups == group] for group in np.unique(groups)]
    parts = [part for part in parts if len(part) > 2]
    if not parts:
        return 0.0
    within = float(np.mean([part.var(ddof=1) for part in parts]))
    between = float(np.mean([part.mean() ** 2 - part.var(ddof=1) / len(part) for part in parts]))
    return max(0.0, between) / max(within + max(0.0, between), 1e-12)


def _bends(kind: str) -> Array:
    """Second differences of the nodes along each size, a row each."""
    sizes = tuple(len(axis) for axis in NODES[kind])
    place = np.arange(int(np.prod(sizes))).reshape(sizes)
    rows = []
    for axis in range(len(sizes)):
        for middle in range(1, sizes[axis] - 1):
            before, here, after = (np.take(place, middle + step, axis=axis).ravel() for step in (-1, 0, 1))
            for a, b, c in zip(before, here, after, strict=True):
                row = np.zeros(place.size)
                row[a], row[b], row[c] = 0.5, -1.0, 0.5
                rows.append(row)
    return np.array(rows)
