"""Staleness of weights: how fresh they must be, and how stale they were.

The staleness of a gradient is the number of updates that others made to the model between
the moment when its worker read the weights and the moment when the gradient was applied.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from simperf.errors import InputError, Problem, nearest

__all__ = ["MODES", "Clocks", "Consistency", "Staleness"]

Mode = Literal["synchronous", "asynchronous", "bounded", "backup"]

#: ways of keeping the workers together
MODES: tuple[str, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class Consistency:
    """Consistency of the workers: how they are kept together.

    Parameters
    ----------
    mode : str
        ``"synchronous"``: an update is the sum over all workers. ``"asynchronous"``: every gradient is an
        update, nobody waits (Recht et al., NIPS 2011; Dean et al., NIPS 2012). ``"bounded"``: asynchronous, but
        nobody is more than `bound` steps ahead of the slowest (Ho et al., NIPS 2013). ``"backup"``: synchronous,
        but the last `backup` gradients of a step are dropped (Chen et al., arXiv:1604.00981).
    bound : float
        Steps ahead, for ``"bounded"``; infinity never waits, 0 is a barrier.
    backup : int
        Gradients of a step that nobody waits for.

    Raises
    ------
    InputError
        An unknown mode, a negative bound, or a number of backup workers without meaning.
    """

    mode: str = "synchronous"
    bound: float = math.inf
    backup: int = 0

    def __post_init__(self) -> None:
        problems = []
        if self.mode not in MODES:
            problems.append(Problem(f"no such mode{nearest(self.mode, MODES)}", key="mode", value=str(self.mode)))
        if isinstance(self.bound, bool) or not isinstance(self.bound, int | float) or not self.bound >= 0.0:
            message = "a staleness bound is a number of steps, 0 or more"
            problems.append(Problem(message, key="bound", value=str(self.bound), expected="0 or more"))
        if isinstance(self.backup, bool) or not isinstance(self.backup, int):
            message = "a whole number of backup workers is expected"
            problems.append(Problem(message, key="backup", value=str(self.backup), expected="0 or more"))
        elif self.backup < 0 or (self.backup and self.mode != "backup"):
            message = "backup workers are 0 or more, and belong to the mode backup"
            problems.append(
                Problem(message, key="backup", value=str(self.backup), expected="0 or more; with mode = backup")
            )
        if problems:
            raise InputError(problems)

    @property
    def collects(self) -> bool:
        """Whether an update is a sum over workers."""
        return self.mode in ("synchronous", "backup")

    @property
    def ahead(self) -> float:
        """Steps that a worker may be ahead of the slowest."""
        return self.bound if self.mode == "bounded" else math.inf

    def needed(self, workers: int) -> int:
        """Gradients that make an update.

        Raises
        ------
        InputError
            No worker would be waited for.
        """
        if not self.collects:
            return 1
        if self.backup >= workers:
            message = f"{self.backup} backup workers of {workers} leave no gradient to wait for"
            raise InputError(Problem(message, key="backup", expected=f"at most {workers - 1}"))
        return workers - self.backup


class Clocks:
    """Steps done by each worker, and by the slowest; a worker that has left holds nobody back.

    Examples
    --------
    >>> clocks = Clocks(2)
    >>> clocks.tick(0)
    >>> clocks.done, clocks.slowest
    ([1.0, 0.0], 0.0)
    >>> clocks.leave(1)
    >>> clocks.slowest
    1.0
    """

    __slots__ = ("_at", "done", "slowest")

    def __init__(self, workers: int) -> None:
        self.done: list[float] = [0.0] * workers
        self.slowest: float = 0.0
        self._at: Counter[float] = Counter({0.0: workers})

    def tick(self, worker: int) -> None:
        """Note that a worker has done a step."""
        self._move(worker, self.done[worker] + 1)

    def leave(self, worker: int) -> None:
        """Let a worker stop."""
        self._move(worker, math.inf)

    def _move(self, worker: int, count: float) -> None:
        before = self.done[worker]
        if before == math.inf:
            return
        self.done[worker] = count
        self._at[before] -= 1
        if not self._at[before]:
            del self._at[before]
        self._at[count] += 1
        if before == self.slowest and before not in self._at:
            self.slowest = count if before + 1 == count and count in self._at else min(self._at)


class Staleness:
    """Distribution of the staleness of the gradients that were applied; a worker's first is not counted.

    The first gradients of all workers come from the same weights: a start-up that says nothing
    about the steady state.

    Parameters
    ----------
    watch : callable, optional
        Called with every age that is counted.
    """

    __slots__ = ("_watch", "counts")

    def __init__(self, watch: Callable[[int], None] | None = None) -> None:
        self.counts: Counter[int] = Counter()
        self._watch = watch

    def note(self, updates: int) -> None:
        """Count a gradient that is `updates` updates old."""
        self.counts[updates] += 1
        if self._watch is not None:
            self._watch(updates)

    @property
    def mean(self) -> float:
        """Mean number of updates; 0 if nothing was counted."""
        total = sum(self.counts.values())
        return sum(age * count for age, count in self.counts.items()) / total if total else 0.0

    @property
    def highest(self) -> int:
        """Most updates."""
        return max(self.counts, default=0)

    def quantile(self, share: float) -> int:
        """Smallest staleness that `share` of the gradients do not exceed.

        Examples
        --------
        >>> ages = Staleness()
        >>> for age in (0, 1, 1, 9):
        ...     ages.note(age)
        >>> ages.mean, ages.highest, ages.quantile(0.5), ages.quantile(0.95)
        (2.75, 9, 1, 9)
        """
        total, below = sum(self.counts.values()), 0
        for age in sorted(self.counts):
            below += self.counts[age]
            if below >= share * total:
                return age
        return 0
