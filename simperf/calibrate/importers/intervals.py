"""Lengths of time on a line: unions, and for how long two of them last at once."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Intervals"]


class Intervals:
    """Spans of time that may touch and overlap.

    Examples
    --------
    >>> a, b = Intervals(), Intervals()
    >>> a.add(0.0, 2.0); a.add(1.0, 3.0); b.add(2.5, 4.0)
    >>> a.length, Intervals.union((a, b)).length, Intervals.shared((a, b))
    (3.0, 4.0, 0.5)
    """

    def __init__(self) -> None:
        self._spans: list[tuple[float, float]] = []

    def add(self, start: float, end: float) -> None:
        """Add a span [s]."""
        self._spans.append((start, end))

    def merged(self) -> list[tuple[float, float]]:
        """The same time as spans that do not overlap, in order."""
        done: list[tuple[float, float]] = []
        for start, end in sorted(self._spans):
            if done and start <= done[-1][1]:
                done[-1] = (done[-1][0], max(done[-1][1], end))
            else:
                done.append((start, end))
        return done

    @property
    def length(self) -> float:
        """Time that any of the spans covers [s]."""
        return sum(end - start for start, end in self.merged())

    @staticmethod
    def union(many: Iterable[Intervals]) -> Intervals:
        """All spans of all."""
        whole = Intervals()
        for each in many:
            whole._spans += each._spans
        return whole

    @staticmethod
    def shared(many: Iterable[Intervals]) -> float:
        """Time for which two or more of them last at once [s]."""
        marks = sorted(mark for each in many for start, end in each.merged() for mark in ((start, 1), (end, -1)))
        total, depth, last = 0.0, 0, 0.0
        for time, change in marks:
            if depth >= 2:
                total += time - last
            depth, last = depth + change, time
        return total
