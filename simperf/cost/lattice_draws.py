"""Draws of what a shape takes beside the factor that a lattice has for it.

A lattice is coarse: shapes between its nodes miss it by a spread that follows the kernel's first size (rows of a
product, queries, tokens). A shape is one kernel and misses alike whenever it is run; shapes with one first size share a
part of their variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, sqrt

from simperf.cost.roofline_draws import even_normal

__all__ = ["ALIKE", "DRAW", "MOST_SPREAD", "drawn_factor"]

#: constant of a model that says which part of their variance shapes with one first size share [1]
ALIKE = "alike"
#: constant that says at which joint draw the others are, from 1; absent for the best ones
DRAW = "draw"
#: largest spread of the logarithm of a time: a factor of 27 either way in 90 % of draws
MOST_SPREAD = 2.0


def drawn_factor(sizes: Sequence[float], *, spread: float, alike: float, draw: int, about: str) -> float:
    """Factor on the corrected time of a shape at a draw [1].

    Parameters
    ----------
    sizes : sequence of float
        As `simperf.cost.lattice.op_sizes` has them.
    spread : float
        Standard deviation of the logarithm [1].
    alike : float
        Part of the variance that shapes with the same first size share [1].
    draw : int
        From 1.
    about : str
        GPU and kernels: what has other names has other draws.

    Examples
    --------
    >>> drawn_factor((64, 64, 64), spread=0.0, alike=0.0, draw=1, about="t4 gemm")
    1.0
    """
    first, *others = map(repr, map(float, sizes))
    shared = even_normal(draw - 1, about, first) if alike else 0.0
    own = even_normal(draw - 1, about, first, *others)
    return exp(spread * (sqrt(alike) * shared + sqrt(1.0 - alike) * own))
