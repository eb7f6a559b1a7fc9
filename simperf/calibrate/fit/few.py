"""Intervals where little was seen: of a fit to a handful of points, and of a board that nobody measured.

How far readings scatter about a fit of eight points is itself uncertain, and by the median size of what is left the
rare large misses do not show. So the scatter here is the mean square, with Student's t for the points that are left
when the constants are taken off, and drawn towards what is usual among the fits of one sort
(`simperf.calibrate.fit.between.usual`).

What is predicted for a board from the fits of others is missed by two parts: one that its readings share, and one of
each reading's own. Both are estimated from the other boards, each predicted while it, too, was left out, and never from
the board itself: variance components of a layout with boards as random effects (S. R. Searle, G. Casella, C. E.
McCulloch, *Variance Components*, 1992, chapter 3).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from simperf.analysis.chance import NORMAL
from simperf.calibrate.fit.between import SessionSpread, Usual, usual
from simperf.calibrate.fit.intervals import log_residual
from simperf.calibrate.fit.model import Array
from simperf.calibrate.fit.solve import Fit

__all__ = ["half_width", "told_together", "unseen"]

#: deviations of fits below which none is told from another [1]: clocks of GPUs tick by a microsecond
_LEAST = 1e-4


def told_together(fits: Sequence[Fit]) -> list[Fit]:
    """The same fits of one sort of kernel, each with a scatter that its intervals of readings can be made of.

    Parameters
    ----------
    fits : sequence of Fit
        Of different points. Values, and intervals of constants, stay as they are.
    """
    known = []
    for one in fits:
        # constants at a bound, or that the points do not depend on, took nothing off the residuals
        free = sum(not constant.note for constant in one.constants.values())
        residual = log_residual(one.model, one.data, one.values)
        freedom = max(1, len(residual) - free)
        known.append((float(np.sum(residual**2)) / freedom, freedom))
    like = usual([variance for variance, _ in known], [freedom for _, freedom in known], least=_LEAST)
    found = []
    for one, (variance, freedom) in zip(fits, known, strict=True):
        drawn, longer = like.drawn(variance, freedom)
        found.append(replace(one, scatter=longer * math.sqrt(drawn)))
    return found


def unseen(
    tables: Mapping[str, Mapping[str, Sequence[Array]]], *, alike: Collection[str] = frozenset()
) -> dict[str, SessionSpread]:
    """How far a board lies from what is predicted for it from others, by sort of kernel.

    Let boards lie b apart from what all have in common. Predicted from the m - 1 others of m, a board is missed by
    m/(m-1) times its distance from their mean, so that m times the mean square of these misses estimates (m/(m-1))^2
    times m - 1 variances of b. The board that is to be predicted is m + 1st: its b counts, and the error of the mean.
    Sorts of kernels help each other, but what is usual among them is no surer than all the boards make it. What a board
    shares is the median of its misses, which a part of their own scatter moves: pi/2 of its variance over their number.
    That is in the common part, and not counted twice.

    Parameters
    ----------
    tables : mapping of str to mapping of str to sequence of ndarray
        By sort and board: logarithms of measured over predicted while the board was left out, an array an operation.
        At least two boards.
    alike : collection of str
        Boards whose readings scatter like those of the one that is to be predicted, as far as data sheets tell. Where a
        sort has none of them, all its boards count.

    Returns
    -------
    dict of str to SessionSpread
        `common` is widened by Student's t, as a normal deviation that holds nine of ten as well.
    """
    known: dict[str, tuple[float, int]] = {}
    for sort, boards in tables.items():
        shared = [float(np.mean([np.median(row) ** 2 for row in rows])) for rows in boards.values()]
        count = len(shared)
        known[sort] = (1.0 - 1.0 / count) * float(np.mean(shared)), count - 1
    like = usual([variance for variance, _ in known.values()], [freedom for _, freedom in known.values()])
    total = sum(freedom for _, freedom in known.values())
    if math.isinf(like.freedom):  # one variance, known from all deviations
        like = Usual(sum(variance * freedom for variance, freedom in known.values()) / total, total)
    like = Usual(like.variance, min(like.freedom, total))
    found = {}
    for sort, boards in tables.items():
        variance, freedom = known[sort]
        drawn, longer = like.drawn(variance, freedom)
        common = longer * math.sqrt(drawn * (1.0 + 1.0 / (freedom + 1)))
        near = {board: rows for board, rows in boards.items() if board in alike} or boards
        own = [float(row.var(ddof=1)) for rows in near.values() for row in rows if len(row) > 1]
        points = float(np.mean([len(row) for rows in boards.values() for row in rows]))
        twice = 0.5 * math.pi / points * (1.0 + 1.0 / (freedom + 1))
        found[sort] = SessionSpread(common, math.sqrt(float(np.mean(own)) * max(0.0, 1.0 - twice)) if own else 0.0)
    return found


def half_width(spread: SessionSpread) -> float:
    """Half of the 90 % interval of a reading's logarithm [1].

    Examples
    --------
    >>> round(half_width(SessionSpread(0.3, 0.4)), 3)
    0.823
    """
    return NORMAL * math.hypot(spread.common, spread.own)
