"""A result's timeline as columns, and the sweep that all questions about time are asked of.

The sweep cuts the run at every start and end of a span; between two cuts nothing
changes, so each *slice* of time has one answer to "who is active". Everything is numpy:
100,000 spans are swept in a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simperf.engine.recorder import CATEGORIES, Category, Span
from simperf.results import Result

__all__ = ["Bools", "Floats", "Sweep", "sweep"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Sweep:
    """A segment of time, cut where a span starts or ends.

    Parameters
    ----------
    lengths : ndarray, shape (slices,)
        Length of each slice [s]; they add up to the whole segment.
    active : mapping of str to ndarray of bool, shape (slices,)
        For each category, in which slices at least one of its spans runs.
    """

    lengths: Floats
    active: Mapping[Category, Bools]

    def any(self, *categories: Category) -> Bools:
        """In which slices at least one of `categories` is active."""
        found = np.zeros(len(self.lengths), dtype=np.bool_)
        for category in categories:
            if category in self.active:
                found |= self.active[category]
        return found

    def time(self, where: Bools) -> float:
        """Total length of the slices that are chosen [s]."""
        return float(self.lengths[where].sum())


def sweep(result: Result, *, spans: Sequence[Span] | None = None) -> Sweep:
    """Cut the run from 0 to its end; spans are clipped to it.

    Parameters
    ----------
    result : Result
    spans : sequence of Span, optional
        Instead of all of the result's, such as those of one device.
    """
    chosen = result.spans if spans is None else spans
    starts = np.clip(np.fromiter((span.start for span in chosen), np.float64, len(chosen)), 0.0, result.time)
    ends = np.clip(np.fromiter((span.end for span in chosen), np.float64, len(chosen)), 0.0, result.time)
    number = {category: index for index, category in enumerate(CATEGORIES)}
    kinds = np.fromiter((number[span.category] for span in chosen), np.int64, len(chosen))
    cuts = np.unique(np.concatenate([starts, ends, [0.0, result.time]]))
    first, last = np.searchsorted(cuts, starts), np.searchsorted(cuts, ends)
    active: dict[Category, Bools] = {}
    for category, index in number.items():
        mine = kinds == index
        if mine.any():
            change = np.bincount(first[mine], minlength=len(cuts)) - np.bincount(last[mine], minlength=len(cuts))
            active[category] = np.cumsum(change)[:-1] > 0
    return Sweep(np.diff(cuts), active)
