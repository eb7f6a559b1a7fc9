"""Meetings of ranks in many steps at once: a communication begins in each when the last of its ranks has come.

An array has a row for each step and a column for each rank. The n-th communication of a rank in a communicator is the
n-th of all its ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from simperf.training.pipelined.noise_draws import Floats

__all__ = ["Meeting", "Party", "meetings"]

Indices = npt.NDArray[np.int64]


class Party:
    """Ranks that are simulated together in a kind of communicator.

    Parameters
    ----------
    communicators : numpy.ndarray of int64, shape (ranks,)
        In which of them each rank is.
    """

    __slots__ = ("_order", "_sizes", "communicators", "met", "number")

    def __init__(self, communicators: Indices) -> None:
        self.communicators = communicators
        self.met, self.number, counts = np.unique(communicators, return_inverse=True, return_counts=True)
        order = np.argsort(self.number, kind="stable")
        self._order = None if (order == np.arange(len(order))).all() else order
        self._sizes = counts

    def latest(self, times: Floats) -> Floats:
        """Latest time of each communicator's ranks; shape (steps, communicators)."""
        own = times if self._order is None else times[:, self._order]
        first = int(self._sizes[0])
        if (self._sizes == first).all():
            return own if first == 1 else own.reshape(len(own), -1, first).max(axis=2)
        found: Floats = np.maximum.reduceat(own, np.cumsum(self._sizes) - self._sizes, axis=1)
        return found

    def spread(self, times: Floats) -> Floats:
        """Times of communicators for each of their ranks; shape (steps, ranks)."""
        return times if len(self.met) == len(self.number) and self._order is None else times[:, self.number]


@dataclass(slots=True)
class _Round:
    """One communication of each communicator: who has come, when the last one did, and how long it takes."""

    came: Floats
    durations: Floats
    waiting: list[tuple[Party, float | None, Callable[[Floats], None]]] = field(default_factory=list)


class Meeting:
    """Communicators that have ranks of several parties, or of one.

    Parameters
    ----------
    parties : sequence of Party
    count : int
        Of communicators.
    """

    def __init__(self, parties: Sequence[Party], count: int) -> None:
        self.parties, self._count = len(parties), count
        self._rounds: dict[int, _Round] = {}

    def enter(
        self, number: int, party: Party, times: Floats, duration: float | None, done: Callable[[Floats], None]
    ) -> None:
        """Take part in the communications of a number.

        Parameters
        ----------
        number : int
        party : Party
        times : numpy.ndarray of float64, shape (steps, ranks)
            When its ranks come [s].
        duration : float or None
            From when the last rank has come [s]; None where another party knows it.
        done : callable
            Called with the time at which it ends for each of the ranks [s], once all parties have come.
        """
        if self.parties == 1:
            assert duration is not None
            done(party.spread(party.latest(times) + duration))
            return
        one = self._rounds.get(number)
        if one is None:
            shape = len(times), self._count
            one = self._rounds[number] = _Round(np.full(shape, -np.inf), np.zeros(self._count))
        one.came[:, party.met] = np.maximum(one.came[:, party.met], party.latest(times))
        if duration is not None:
            one.durations[party.met] = np.maximum(one.durations[party.met], duration)
        one.waiting.append((party, duration, done))
        if len(one.waiting) < self.parties:
            return
        del self._rounds[number]
        for each, own, tell in one.waiting:
            told = one.durations[each.met] if own is None else own
            tell(each.spread(one.came[:, each.met] + told))


def meetings(
    communicators: Sequence[Sequence[int]], owner: Indices, column: Indices
) -> dict[int, tuple[Meeting, Party]]:
    """Meetings of communicators of one kind, by the processes that take part in them.

    Parameters
    ----------
    communicators : sequence of sequence of int
        Ranks of each; no rank is in two.
    owner : numpy.ndarray of int64, shape (ranks,)
        Process that each rank is simulated by.
    column : numpy.ndarray of int64, shape (ranks,)
        Of each rank in the arrays of its process.
    """
    home = _together([{int(owner[rank]) for rank in ranks} for ranks in communicators])
    counts: dict[int, int] = {}
    own: dict[int, dict[int, int]] = {}
    for ranks in communicators:
        place = home[int(owner[ranks[0]])]
        number = counts.get(place, 0)
        counts[place] = number + 1
        for rank in ranks:
            own.setdefault(int(owner[rank]), {})[int(column[rank])] = number
    parties = {
        process: Party(np.array([at[index] for index in range(len(at))], dtype=np.int64)) for process, at in own.items()
    }
    of: dict[int, list[Party]] = {}
    for process, party in parties.items():
        of.setdefault(home[process], []).append(party)
    made = {place: Meeting(several, counts[place]) for place, several in of.items()}
    return {process: (made[home[process]], party) for process, party in parties.items()}


def _together(sets: Sequence[set[int]]) -> dict[int, int]:
    """A name for each of those that any set joins, directly or by others."""
    parent: dict[int, int] = {}

    def root(one: int) -> int:
        while parent.setdefault(one, one) != one:
            one = parent[one]
        return one

    for several in sets:
        first = root(min(several))
        for one in several:
            parent[root(one)] = first
    return {one: root(one) for one in list(parent)}
