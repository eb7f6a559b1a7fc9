"""Classes of like ranks: one rank can be simulated for all of its class.

Two ranks are alike if they look alike and if, along every dimension, their process groups hold equally many ranks of
each class. The coarsest such partition is found by colour refinement (Weisfeiler and Leman, 1968): ranks that share a
group with a straggler are distinguished from the others, and the others stay together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

__all__ = ["RankClasses", "numbered", "rank_classes"]


@dataclass(frozen=True, slots=True)
class RankClasses:
    """A partition of ranks.

    Parameters
    ----------
    of : tuple of int
        Class of each rank; classes are numbered by their first ranks.
    members : tuple of tuple of int
        Ranks of each class, in ascending order.
    """

    of: tuple[int, ...]
    members: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.members)


def rank_classes(looks: Sequence[Hashable], partitions: Iterable[Sequence[Sequence[int]]] = ()) -> RankClasses:
    """Put ranks into classes.

    Parameters
    ----------
    looks : sequence of hashable
        What tells each rank apart by itself: its step, its stage, its place in the server.
    partitions : iterable of sequence of sequence of int
        Groups along each dimension, such as `simperf.layout.Mesh.groups` gives, and ranks by server; each rank is in at
        most one group of a partition.

    Examples
    --------
    A slow rank in a mesh of 4 x 4 is distinguished from its row, its column and the others:

    >>> from simperf.layout import Mesh
    >>> mesh = Mesh(("tp", "dp"), (4, 4))
    >>> looks = ["slow"] + ["usual"] * 15
    >>> [len(one) for one in rank_classes(looks, [mesh.groups("tp"), mesh.groups("dp")]).members]
    [1, 3, 3, 9]
    """
    groupings = [tuple(one) for one in partitions]
    colours = numbered(looks)
    while True:
        around = [_around(colours, groups) for groups in groupings]
        refined = numbered(list(zip(colours, *around, strict=True)))
        if max(refined, default=0) == max(colours, default=0):
            break
        colours = refined
    members: list[list[int]] = [[] for _ in range(max(colours, default=-1) + 1)]
    for rank, colour in enumerate(colours):
        members[colour].append(rank)
    return RankClasses(tuple(colours), tuple(map(tuple, members)))


def _around(colours: Sequence[int], groups: Sequence[Sequence[int]]) -> list[int]:
    """A number for what each rank's group consists of; -1 for a rank without a group."""
    found = [-1] * len(colours)
    inside = [frozenset(Counter(colours[rank] for rank in group).items()) for group in groups]
    for group, mark in zip(groups, numbered(inside), strict=True):
        for rank in group:
            found[rank] = mark
    return found


def numbered(marks: Iterable[Hashable]) -> list[int]:
    """A number for each mark, the first is 0, the next different one 1, and so on."""
    known: dict[Hashable, int] = {}
    return [known.setdefault(mark, len(known)) for mark in marks]
