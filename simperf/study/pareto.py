"""The choices that no other beats in everything."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["pareto_front"]


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Numbers of the points that no other one beats in both values (the lower, the better), by the first value.

    Examples
    --------
    >>> pareto_front([(1, 9), (2, 5), (3, 6), (4, 1), (1, 9)])
    [0, 1, 3]
    """
    front: list[int] = []
    least = float("inf")
    for index in sorted(range(len(points)), key=lambda i: (points[i], i)):
        if points[index][1] < least:
            front.append(index)
            least = points[index][1]
    return front
