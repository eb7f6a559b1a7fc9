"""A coarse lattice of corrections by shape: what measured products take over what the catalogue's constants give.

Nodes lie evenly in no unit but in the logarithms of m, n and k; between them the logarithm of the factor is linear in
each. Beyond the outer nodes the factor stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, inf, log, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simperf.errors import InputError, Problem

__all__ = ["LATTICE", "NODES", "corrected", "correction", "fit_lattice", "node_names", "node_weights", "verify_lattice"]

#: constant of a model that says that its others are the factors of a lattice
LATTICE = "lattice"
#: binary logarithms of m, n and k at which the nodes lie
NODES: tuple[tuple[float, ...], ...] = ((0, 4, 7, 10, 12, 15), (6, 9, 11.5, 14), (6, 9, 11.5, 13.6))
#: weights of a node's own size and of its bend against its neighbours, over one point's
_SIZE, _BEND = 0.3, 1.0
#: deviation from which a point counts less
_ROBUST = 0.1

Array = NDArray[np.float64]


def node_names() -> list[str]:
    """Names of the factors' constants, m slowest: the nodes' numbers along m, n and k.

    Examples
    --------
    >>> len(node_names()), node_names()[0], node_names()[-1]
    (96, 'node-0-0-0', 'node-5-3-3')
    """
    sizes = [range(len(axis)) for axis in NODES]
    return [f"node-{a}-{b}-{c}" for a in sizes[0] for b in sizes[1] for c in sizes[2]]


def verify_lattice(name: str, factors: Mapping[str, float]) -> None:
    """Refuse a lattice that lacks a node, has another, or a factor that is none.

    Raises
    ------
    InputError
        With the model's `name`.
    """
    known = set(node_names())
    given = {key: value for key, value in factors.items() if key.startswith("node-")}
    problems = [Problem("a node is missing", key=f"{name}.{key}") for key in sorted(known - given.keys())[:1]]
    problems += [Problem("no node of the lattice", key=f"{name}.{key}") for key in given.keys() - known]
    problems += [
        Problem("must be finite and above 0", key=f"{name}.{key}", value=repr(value))
        for key, value in given.items()
        if not 0.0 < value < inf
    ]
    if problems:
        raise InputError(problems)


def node_weights(m: Array, n: Array, k: Array) -> Array:
    """Weight of each node for each shape: a row a shape, each row adding up to 1.

    Examples
    --------
    >>> node_weights(np.array([1.0]), np.array([64.0]), np.array([64.0]))[0, :2].tolist()
    [1.0, 0.0]
    """
    sides = [_side(np.log2(values), np.array(axis)) for values, axis in zip((m, n, k), NODES, strict=True)]
    found: Array = np.einsum("ra,rb,rc->rabc", *sides).reshape(len(m), -1)
    return found


def _side(at: Array, axis: Array) -> Array:
    """Weights along one axis."""
    place = np.clip(at, axis[0], axis[-1])
    left = np.clip(np.searchsorted(axis, place, side="right") - 1, 0, len(axis) - 2)
    share = (place - axis[left]) / (axis[left + 1] - axis[left])
    found = np.zeros((len(at), len(axis)))
    rows = np.arange(len(at))
    found[rows, left], found[rows, left + 1] = 1.0 - share, share
    return found


def correction(m: int, n: int, k: int, factors: Mapping[str, float]) -> float:
    """Factor of a product's time by its shape.

    Parameters
    ----------
    m, n, k : int
    factors : mapping of str to float
        By node (`node_names`).

    Examples
    --------
    >>> factors = {name: 1.21 for name in node_names()}
    >>> round(correction(4096, 4096, 4096, factors), 2)
    1.21
    """
    along = []
    for value, axis in zip((m, n, k), NODES, strict=True):
        at = min(max(log2(value), axis[0]), axis[-1])
        left = max(i for i in range(len(axis) - 1) if axis[i] <= at or i == 0)
        share = (at - axis[left]) / (axis[left + 1] - axis[left])
        along.append(((left, 1.0 - share), (left + 1, share)))
    total = 0.0
    for a, one in along[0]:
        for b, two in along[1]:
            for c, three in along[2]:
                factor = factors[f"node-{a}-{b}-{c}"]
                total += one * two * three * log(factor)
    return exp(total)


def corrected(weights: Array, factors: Mapping[str, float]) -> Array:
    """Factors of many shapes by their `node_weights`."""
    found: Array = np.exp(weights @ np.log([factors[name] for name in node_names()]))
    return found


def fit_lattice(m: Array, n: Array, k: Array, ratio: Array, *, share: Array | float = 1.0) -> dict[str, float]:
    """Factors of least robust squares, smoothed: a node that no shape lies near is drawn to its neighbours, all to 1.

    Parameters
    ----------
    m, n, k : ndarray
    ratio : ndarray
        Measured over predicted time of each shape [1].
    share : ndarray or float
        Part of the predicted time that is the product's, which alone is corrected [1].
    """
    weights = node_weights(m, n, k) * np.reshape(share, (-1, 1))
    wanted = np.log(ratio)
    smooth = np.concatenate([_SIZE * np.eye(weights.shape[1]), _BEND * _bends()])
    counts, at = np.ones(len(wanted)), np.zeros(weights.shape[1])
    for _ in range(10):
        root = np.sqrt(counts)
        left: Any = np.concatenate([weights * root[:, None], smooth])
        right = np.concatenate([wanted * root, np.zeros(len(smooth))])
        at = np.linalg.lstsq(left, right, rcond=None)[0]
        counts = 1.0 / np.maximum(1.0, np.abs(wanted - weights @ at) / _ROBUST)
    return {name: float(np.exp(value)) for name, value in zip(node_names(), at, strict=True)}


def _bends() -> Array:
    """Second differences of the nodes along each axis, a row each."""
    sizes = tuple(len(axis) for axis in NODES)
    place = np.arange(int(np.prod(sizes))).reshape(sizes)
    rows = []
    for axis in range(3):
        for middle in range(1, sizes[axis] - 1):
            before, here, after = (np.take(place, middle + step, axis=axis).ravel() for step in (-1, 0, 1))
            for a, b, c in zip(before, here, after, strict=True):
                row = np.zeros(place.size)
                row[a], row[b], row[c] = 0.5, -1.0, 0.5
                rows.append(row)
    return np.array(rows)
