"""Layouts that cannot be distinguished: how often published pairs of them were in the other order than predicted."""

from __future__ import annotations

import math
from collections.abc import Sequence

from simperf.study.layouts.ranked_layout import RankedLayout

__all__ = ["LAYOUTS_OFF", "TIE", "groups"]

#: how much larger the predicted ratio of the steps of two layouts is than the measured one, as a logarithm, in nine of
#: ten published pairs: layouts of one model and batch on as many GPUs of one kind, each source counted alike
#: (`python -m tests.truth.layout_pairs`) [1]
LAYOUTS_OFF = 0.089
#: ratio of steps up to which the order of two layouts is not known [1]
TIE = math.exp(LAYOUTS_OFF)


def groups(ranked: Sequence[RankedLayout]) -> list[int]:
    """For each layout the number of the first one from which it cannot be distinguished, or its own number.

    Layouts on one machine and as many GPUs are compared, by the time of a step. Pairs on different machines differ in
    more than their layouts, and those that are not feasible are out of the choice: 0.

    Parameters
    ----------
    ranked : sequence of RankedLayout
        All of them, the first one first.
    """
    leaders: list[tuple[int, RankedLayout]] = []
    found = []
    for number, one in enumerate(ranked, 1):
        if not one.feasible:
            found.append(0)
            continue
        like = next((at for at, leader in leaders if leader.machine == one.machine and _tied(leader, one)), number)
        leaders += [(number, one)] if like == number else []
        found.append(like)
    return found


def _tied(one: RankedLayout, other: RankedLayout) -> bool:
    """Whether steps differ by less than the error of such ratios."""
    return max(one.step, other.step) <= TIE * min(one.step, other.step)
