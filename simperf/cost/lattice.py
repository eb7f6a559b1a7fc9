"""A coarse lattice of corrections by shape: what measured kernels take over what the catalogue's constants give.

Nodes lie evenly in no unit but in the logarithms of a kernel's sizes: of a product m, n and k; of attention its
queries, instances (heads of all sequences), the head's width, and how many times the window goes into the queries; of
experts of a mixture their tokens, experts with rows, and width. Between nodes the logarithm of the factor is linear in
each. Beyond the outer nodes the factor stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import exp, inf, log, log2, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simperf.errors import InputError, Problem
from simperf.workload.op import Op

__all__ = [
    "LATTICE",
    "NODES",
    "corrected",
    "correction",
    "fit_lattice",
    "lattice_kind",
    "node_names",
    "node_weights",
    "op_sizes",
    "verify_lattice",
]

#: constant of a model that says that its others are the factors of a lattice
LATTICE = "lattice"
#: first word of a model's name -> binary logarithms of the sizes at which the nodes lie, a row for each size; of two
#: lattices of products and two smoothings, those that met a third of the fitting halves best when fitted to the others
NODES: Mapping[str, tuple[tuple[float, ...], ...]] = {
    "gemm": ((0, 4, 7, 10, 11, 12, 13, 15), (6, 8, 9.5, 11, 12.5, 14), (6, 8, 10, 12, 13.6)),
    "attention": ((0, 4, 7, 9, 11, 13.6), (0, 4, 8, 13), (6, 7, 8), (0, 3, 6.6)),
    "moe": ((0, 3, 6, 9, 12, 15), (0, 3, 6, 8), (7, 9, 11, 13)),
}
#: weights of a node's own size and of its bend against its neighbours, over one point's
_SIZE, _BEND = 0.1, 0.4
#: deviation from which a point counts less
_ROBUST = 0.1

Array = NDArray[np.float64]


def lattice_kind(name: str) -> str:
    """Which of `NODES` a model's factors stand at, by the model's name.

    Raises
    ------
    InputError
        Kernels that have no lattice.

    Examples
    --------
    >>> lattice_kind("gemm-fp8:block_scaled_matmul")
    'gemm'
    """
    kind = name.partition("-")[0]
    if kind not in NODES:
        raise InputError(Problem("there is no lattice of these kernels", key=name, expected=", ".join(NODES)))
    return kind


def op_sizes(op: Op) -> tuple[float, ...] | None:
    """Sizes by which an operation is corrected, in the order of its `NODES`; None if it has no lattice."""
    if op.experts is not None:
        shape = op.experts
        return (shape.tokens, max(1, shape.active), shape.intermediate)
    if op.family == "attention":
        from simperf.cost.attention import attention_shape

        found = attention_shape(op)
        if found is None:
            return None
        seen = min(found.keys, found.window) if found.window else found.keys
        width = 0.5 * (found.head_dim + found.value_dim)
        return (found.queries, found.batch * found.heads, width, max(1.0, found.keys / seen))
    return (op.gemm.m, op.gemm.n, op.gemm.k) if op.gemm is not None else None


def node_names(kind: str = "gemm") -> list[str]:
    """Names of the factors' constants, the first size slowest: the nodes' numbers along each size.

    Examples
    --------
    >>> len(node_names()), node_names()[0], node_names()[-1]
    (240, 'node-0-0-0', 'node-7-5-4')
    """
    numbers = product(*(range(len(axis)) for axis in NODES[kind]))
    return ["-".join(("node", *map(str, at))) for at in numbers]


def verify_lattice(name: str, factors: Mapping[str, float]) -> None:
    """Refuse a lattice that lacks a node, has another, or a factor that is none.

    Raises
    ------
    InputError
        With the model's `name`.
    """
    known = set(node_names(lattice_kind(name)))
    given = {key: value for key, value in factors.items() if key.startswith("node-")}
    problems = [Problem("a node is missing", key=f"{name}.{key}") for key in sorted(known - given.keys())[:1]]
    problems += [Problem("no node of the lattice", key=f"{name}.{key}") for key in sorted(given.keys() - known)]
    problems += [
        Problem("must be finite and above 0", key=f"{name}.{key}", value=repr(value))
        for key, value in given.items()
        if not 0.0 < value < inf
    ]
    if problems:
        raise InputError(problems)


def node_weights(sizes: Array, kind: str = "gemm") -> Array:
    """Weight of each node for each shape: a row a shape, each row adding up to 1.

    Parameters
    ----------
    sizes : ndarray of shape (shapes, sizes)
        As `op_sizes` has them.
    kind : str
        One of `NODES`.

    Examples
    --------
    >>> node_weights(np.array([[1.0, 64.0, 64.0]]))[0, :2].tolist()
    [1.0, 0.0]
    """
    found = np.ones((len(sizes), 1))
    for values, axis in zip(np.log2(sizes).T, NODES[kind], strict=True):
        side = _side(values, np.array(axis))
        found = (found[:, :, None] * side[:, None, :]).reshape(len(sizes), -1)
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


def correction(sizes: Sequence[float], factors: Mapping[str, float], kind: str = "gemm") -> float:
    """Factor of a kernel's time by its shape.

    Parameters
    ----------
    sizes : sequence of float
        As `op_sizes` has them.
    factors : mapping of str to float
        By node (`node_names`).
    kind : str
        One of `NODES`.

    Examples
    --------
    >>> factors = {name: 1.21 for name in node_names()}
    >>> round(correction((4096, 4096, 4096), factors), 2)
    1.21
    """
    along = []
    for value, axis in zip(sizes, NODES[kind], strict=True):
        at = min(max(log2(value), axis[0]), axis[-1])
        left = max(i for i in range(len(axis) - 1) if axis[i] <= at or i == 0)
        share = (at - axis[left]) / (axis[left + 1] - axis[left])
        along.append(((left, 1.0 - share), (left + 1, share)))
    total = 0.0
    for corner in product(*along):
        factor = factors["-".join(("node", *(str(number) for number, _ in corner)))]
        total += prod(share for _, share in corner) * log(factor)
    return exp(total)


def corrected(weights: Array, factors: Mapping[str, float], kind: str = "gemm") -> Array:
    """Factors of many shapes by their `node_weights`."""
    found: Array = np.exp(weights @ np.log([factors[name] for name in node_names(kind)]))
    return found


def fit_lattice(sizes: Array, ratio: Array, *, share: Array | float = 1.0, kind: str = "gemm") -> dict[str, float]:
    """Factors of least robust squares, smoothed: a node that no shape lies near is drawn to its neighbours, all to 1.

    Parameters
    ----------
    sizes : ndarray of shape (shapes, sizes)
        As `op_sizes` has them.
    ratio : ndarray
        Measured over predicted time of each shape [1].
    share : ndarray or float
        Part of the predicted time that is the kernel's, which alone is corrected [1].
    kind : str
        One of `NODES`.
    """
    weights = node_weights(sizes, kind) * np.reshape(share, (-1, 1))
    wanted = np.log(ratio)
    smooth = np.concatenate([_SIZE * np.eye(weights.shape[1]), _BEND * _bends(kind)])
    counts, at = np.ones(len(wanted)), np.zeros(weights.shape[1])
    for _ in range(10):
        root = np.sqrt(counts)
        left: Any = np.concatenate([weights * root[:, None], smooth])
        right = np.concatenate([wanted * root, np.zeros(len(smooth))])
        at = np.linalg.lstsq(left, right, rcond=None)[0]
        counts = 1.0 / np.maximum(1.0, np.abs(wanted - weights @ at) / _ROBUST)
    return {name: float(np.exp(value)) for name, value in zip(node_names(kind), at, strict=True)}


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
