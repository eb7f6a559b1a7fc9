"""A coarse lattice of corrections by shape: what measured kernels take over what the catalogue's constants give.

Nodes lie evenly in no unit but in the logarithms of a kernel's sizes: of a product m, n and k; of attention its
queries, instances (heads of all sequences), the head's width, and how many times the window goes into the queries; of
experts of a mixture their tokens, experts with rows, and width. Between nodes the logarithm of the factor is linear in
each. Beyond the outer nodes the factor stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import exp, log, log2, prod

import numpy as np
from numpy.typing import NDArray

from simperf.cost.lattice_draws import ALIKE, DRAW, MOST_SPREAD
from simperf.errors import InputError, Problem
from simperf.workload.op import Op

__all__ = [
    "FACTORS",
    "LATTICE",
    "NODES",
    "corrected",
    "correction",
    "lattice_kind",
    "node_names",
    "node_weights",
    "op_sizes",
    "side_weights",
    "spread_at",
    "spread_names",
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
#: least and largest factor of a kernel's time: one beyond is of another kernel, or of a table in another unit
FACTORS = (1.0 / 16.0, 16.0)

Array = NDArray[np.float64]


def lattice_kind(name: str) -> str:
    """Key of `NODES` for a model's factors, by the model's name.

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


def spread_names(kind: str = "gemm") -> list[str]:
    """Names of the spreads' constants (`simperf.cost.lattice_draws`): one for each node along the first size.

    Examples
    --------
    >>> spread_names("moe")[-1]
    'spread-5'
    """
    return [f"spread-{number}" for number in range(len(NODES[kind][0]))]


def verify_lattice(name: str, factors: Mapping[str, float]) -> None:
    """Refuse a lattice that lacks a node, has another constant, or a factor or spread that is none.

    Raises
    ------
    InputError
        With the model's `name`.
    """
    kind = lattice_kind(name)
    nodes, spreads = node_names(kind), spread_names(kind)
    given = {key: value for key, value in factors.items() if key not in (LATTICE, DRAW)}
    spread = [ALIKE, *spreads] if ALIKE in given or any(key in given for key in spreads) else []
    problems = [Problem("a node is missing", key=f"{name}.{key}") for key in sorted({*nodes} - given.keys())[:1]]
    problems += [Problem("a spread is missing", key=f"{name}.{key}") for key in sorted({*spread} - given.keys())[:1]]
    unknown = sorted(given.keys() - {*nodes, *spreads, ALIKE})
    problems += [Problem("no node of the lattice, and none of its spreads", key=f"{name}.{key}") for key in unknown]
    ranges = {**dict.fromkeys(nodes, FACTORS), **dict.fromkeys(spreads, (0.0, MOST_SPREAD)), ALIKE: (0.0, 1.0)}
    problems += [
        Problem("out of range", key=f"{name}.{key}", value=repr(given[key]), expected=f"{low:.4g} to {high:.4g}")
        for key, (low, high) in ranges.items()
        if key in given and not low <= given[key] <= high
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
        side = side_weights(values, axis)
        found = (found[:, :, None] * side[:, None, :]).reshape(len(sizes), -1)
    return found


def side_weights(at: Array, axis: Sequence[float]) -> Array:
    """Weights of the nodes along one size, a row for each binary logarithm of it."""
    nodes = np.array(axis)
    place = np.clip(at, nodes[0], nodes[-1])
    left = np.clip(np.searchsorted(nodes, place, side="right") - 1, 0, len(nodes) - 2)
    share = (place - nodes[left]) / (nodes[left + 1] - nodes[left])
    found = np.zeros((len(at), len(nodes)))
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
    along = [_between(value, axis) for value, axis in zip(sizes, NODES[kind], strict=True)]
    total = 0.0
    for corner in product(*along):
        factor = factors["-".join(("node", *(str(number) for number, _ in corner)))]
        total += prod(share for _, share in corner) * log(factor)
    return exp(total)


def spread_at(sizes: Sequence[float], constants: Mapping[str, float], kind: str = "gemm") -> float:
    """Standard deviation of the logarithm of a shape's time about its correction [1]."""
    return sum(share * constants[f"spread-{number}"] for number, share in _between(sizes[0], NODES[kind][0]))


def _between(value: float, axis: Sequence[float]) -> tuple[tuple[int, float], tuple[int, float]]:
    """The two nodes that a size lies between along one axis, each with its weight."""
    at = min(max(log2(value), axis[0]), axis[-1])
    left = max(i for i in range(len(axis) - 1) if axis[i] <= at or i == 0)
    share = (at - axis[left]) / (axis[left + 1] - axis[left])
    return (left, 1.0 - share), (left + 1, share)


def corrected(weights: Array, factors: Mapping[str, float], kind: str = "gemm") -> Array:
    """Factors of many shapes by their `node_weights`."""
    found: Array = np.exp(weights @ np.log([factors[name] for name in node_names(kind)]))
    return found
