"""Distinct values of large arrays with few of them, or of small whole numbers, without sorting the array."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["distinct", "renumber"]

IntArray = npt.NDArray[np.int64]
T = TypeVar("T", bound=np.generic)

#: values per distinct value from which a table of them is worthwhile
FEW = 8


def renumber(numbers: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Sorted distinct numbers, and the index of each number among them.

    Parameters
    ----------
    numbers : numpy.ndarray of int64
        From 0 to ``size - 1``.
    size : int
        What they are below.

    Examples
    --------
    >>> found, index = renumber(np.array([[7, 3], [3, 9]]), 10)
    >>> found.tolist(), index.tolist()
    ([3, 7, 9], [[1, 0], [0, 2]])
    """
    used = np.zeros(size, dtype=bool)
    used[numbers] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[numbers]


def distinct(values: npt.NDArray[T]) -> tuple[npt.NDArray[T], IntArray, IntArray]:
    """Sorted distinct values, the first index of each, and the index of each value among them.

    Parameters
    ----------
    values : numpy.ndarray, shape (n,)
        Without a value that is not equal to itself.

    Examples
    --------
    >>> found, first, of = distinct(np.array([5.0, 2.0, 5.0]))
    >>> found.tolist(), first.tolist(), of.tolist()
    ([2.0, 5.0], [1, 0], [1, 0, 1])
    """
    found: Any = np.unique(values)
    if FEW * len(found) > len(values):
        found, first, of = np.unique(values, return_index=True, return_inverse=True)
        return found, first, of
    of = np.searchsorted(found, values)
    first = np.empty(len(found), dtype=np.int64)
    first[of[::-1]] = np.arange(len(values) - 1, -1, -1)  # of equal indices the last one stays
    return found, first, of
