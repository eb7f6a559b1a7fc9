"""Classes of like flows: one flow and one link stand for all that share their fate.

Flows with the same start, size and limit over links that are alike go at the same rate at
all times, whatever they are called. Colours find them: a flow's colour is what it is
and the colours of its links, a link's colour is its capacity and the colours of its flows,
and both are split until nothing changes (an equitable partition; Weisfeiler and Leman, 1968;
Grohe, Kersting, Mladenov and Selman, "Dimension reduction via colour refinement", ESA
2014, who solve linear programs on the quotient). A thousand ranks that send to each other at
once are one class of flows over two classes of links.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simperf.layout.distinct import distinct, renumber

__all__ = ["FlowClasses", "float_words", "flow_classes", "mix_words"]

#: passes after which flows are taken as they come
MOST_PASSES = 12

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class FlowClasses:
    """The quotient of flows over links.

    Parameters
    ----------
    of : numpy.ndarray of int64, shape (flows,)
        Class of each flow.
    first : numpy.ndarray of int64, shape (classes,)
        A flow of each class.
    count : numpy.ndarray of float64, shape (classes,)
        Flows in each class.
    links : numpy.ndarray of int64, shape (longest, classes)
        Classes of links that a flow of each class crosses; 0 is no link.
    capacity : numpy.ndarray of float64, shape (1 + link classes,)
        Capacity of all links of a class together [B/s]; that of no link is infinite.
    """

    of: IntArray
    first: IntArray
    count: FloatArray
    links: IntArray
    capacity: FloatArray


def flow_classes(links: IntArray, capacity: FloatArray, looks: list[FloatArray]) -> FlowClasses | None:
    """Put flows into classes; None if they are too unlike for it to be worthwhile.

    Parameters
    ----------
    links : numpy.ndarray of int64, shape (longest, flows)
        Link numbers; 0 is no link.
    capacity : numpy.ndarray of float64, shape (links,)
        Capacity by link number [B/s].
    looks : list of numpy.ndarray of float64, shape (flows,)
        What tells flows apart by themselves: start, size, limit.
    """
    used, local = renumber(links, len(capacity))
    if used[0] != 0:  # keep 0 for no link
        used, local = np.concatenate(([0], used)), local + 1
    own = mix_words(float_words(capacity[used]) + np.uint64(1))
    own[0] = 0
    colour = np.zeros(links.shape[1], dtype=np.uint64)
    for look in looks:
        colour = mix_words(colour + float_words(look))
    known = len(np.unique(colour))
    for _ in range(MOST_PASSES):
        if 4 * known > 3 * links.shape[1]:
            return None
        mixed, on = mix_words(colour), own.copy()
        for row in local:
            np.add.at(on, row, mixed)
        on = mix_words(on)
        on[0] = 0
        crossed = np.zeros_like(colour)
        for row in local:
            crossed += mix_words(on[row])
        new = mix_words(colour * np.uint64(3) + crossed)
        _, first, of = distinct(new)
        if len(first) == known:  # the last pass has split nothing, so that `on` is the colour of links
            return _quotient(local, of, first, on, capacity[used])
        known, colour = len(first), new
    return None


def _quotient(local: IntArray, of: IntArray, first: IntArray, on: Words, capacity: FloatArray) -> FlowClasses:
    count = np.bincount(of, minlength=len(first))
    _, one, kind = distinct(on[1:])
    many = np.bincount(kind, minlength=len(one))
    number = np.concatenate(([0], kind + 1))
    together = np.concatenate(([np.inf], capacity[1:][one] * many))
    return FlowClasses(of, first, count.astype(np.float64), number[local[:, first]], together)


def float_words(values: FloatArray) -> Words:
    """The bits of numbers; those of 0 for -0."""
    return np.ascontiguousarray(values + 0.0, dtype=np.float64).view(np.uint64)


def mix_words(words: Words) -> Words:
    """Scatter the bits of every word, as splitmix64 does (Steele, Lea and Flood, OOPSLA 2014)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
