"""Routes in a cluster of equal servers, as arrays: one is found for each pair of kinds of ends.

Where two servers are equal and hang on the same switches, a route from one differs from the
same route from the other by the servers' names only. So one representative a pair of
kinds is asked for, and the links of all other pairs are its links with names exchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from simperf.hardware.machine import Machine

__all__ = ["LinkNames", "RouteClasses"]

IntArray = npt.NDArray[np.int64]

#: bits of a link's number that say which link of its server it is
FORM_BITS = 24

#: what stands between the names of nodes in the name of a link
JOINTS = re.compile(r"([>=+])")

#: pairs of kinds of ends up to which each has a place in a table
MOST_KINDS = 1 << 21


class RouteClasses:
    """Numbers the links between nodes of a cluster: server by server, or of the fabric.

    Parameters
    ----------
    machine : Machine
        A cluster whose fabric has no lanes: its routes do not depend on names.
    nodes : sequence of str
        Between which the routes go.
    capacities : mapping of str to float
        Of the links [B/s].
    links : callable
        Names of the links between two nodes, by their places in `nodes`; asked once a class.

    Attributes
    ----------
    representatives : list of (int, int)
        Ends of one route of each class, by their places in `nodes`.
    """

    def __init__(
        self,
        machine: Machine,
        nodes: Sequence[str],
        capacities: Mapping[str, float],
        links: Callable[[int, int], Sequence[str]],
    ) -> None:
        self._resources, self._links = capacities, links
        slots = {slot.name: number for number, slot in enumerate(machine.servers)}
        self._servers = [slot.name for slot in machine.servers]
        # what makes servers equal, by number
        self._equal = [(id(slot.blueprint), id(slot.ports)) for slot in machine.servers]
        ends: dict[tuple[Any, ...], int] = {}
        slot, end = [], []
        for node in nodes:
            server, _, local = node.partition("/")
            number = slots.get(server, len(slots)) if local else len(slots)
            kind: tuple[Any, ...] = (node,)
            if number < len(slots):
                kind = (*self._equal[number], local)
            slot.append(number)
            end.append(ends.setdefault(kind, len(ends)))
        self._slot, self._end = np.array(slot, dtype=np.int64), np.array(end, dtype=np.int64)
        self._kinds = len(ends)
        self._known: dict[int, int] = {}
        self.representatives: list[tuple[int, int]] = []
        self._forms: dict[tuple[tuple[int, int], str], int] = {}
        self._form_names: list[str] = []
        self._form_capacity: list[float] = []
        self._rows: list[list[tuple[int, int]]] = []  # of each class of pairs: whose link it is, which one
        self._table = np.zeros((3, 0, 0), dtype=np.int64)

    def find(self, src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """Links between nodes, and the class of each pair.

        Returns
        -------
        numbers : numpy.ndarray of int64, shape (longest, pairs)
            Numbers of links, as `name` and `capacity` take them; -1 is no link.
        classes : numpy.ndarray of int64, shape (pairs,)
            Index into `representatives`, where a pair of each class is.
        """
        same = self._slot[src] == self._slot[dst]
        one_node = same & (self._end[src] == self._end[dst])
        apart = np.where(one_node, 2, np.where(same, 1, 0))
        pair = (self._end[src] * self._kinds + self._end[dst]) * 3 + apart
        kinds = 3 * self._kinds**2
        if kinds > MOST_KINDS:
            found, first, pair = np.unique(pair, return_index=True, return_inverse=True)
        else:
            by_kind = np.full(kinds, -1, dtype=np.int64)  # its first pair
            by_kind[pair[::-1]] = np.arange(len(pair) - 1, -1, -1)  # of equal indices the last one stays
            found = np.flatnonzero(by_kind >= 0)
            first = by_kind[found]
        for key, where in zip(found.tolist(), first.tolist(), strict=True):
            if key not in self._known:
                self._known[key] = self._add(int(src[where]), int(dst[where]))
        known = np.array([self._known[key] for key in found.tolist()], dtype=np.int64)
        if kinds <= MOST_KINDS:
            by_kind[found] = known  # from here on its class
            known = by_kind
        classes = known[pair]
        fixed, of_src, of_dst = self._tables()
        numbers = np.empty((len(fixed), len(src)), dtype=np.int64)
        for row in range(len(numbers)):  # a link is that of one end's server, or of none, by the class alone
            np.take(fixed[row], classes, out=numbers[row])
            for own, nodes in ((of_src[row], src), (of_dst[row], dst)):
                if own.any():
                    numbers[row] += own[classes] * self._slot[nodes]
        return numbers, classes

    def distinct(self, numbers: IntArray) -> tuple[IntArray, IntArray]:
        """Different links among some, in ascending order, and the place of each among them, from 1 on; 0 is no link."""
        forms = max(1, len(self._form_names))
        dense = numbers >> FORM_BITS
        dense *= forms
        dense += numbers & ((1 << FORM_BITS) - 1)
        dense += 1
        dense[numbers < 0] = 0
        used = np.zeros((len(self._servers) + 1) * forms + 1, dtype=bool)
        used[dense] = True
        used[0] = True
        found = np.flatnonzero(used)[1:] - 1
        return (found // forms << FORM_BITS) + found % forms, (np.cumsum(used) - 1)[dense]

    @property
    def texts(self) -> Sequence[str]:
        """Names of links in their server, whose own name is a null character."""
        return self._form_names

    def name(self, number: int) -> str:
        """Name of a link."""
        slot, form = number >> FORM_BITS, number & ((1 << FORM_BITS) - 1)
        text = self._form_names[form]
        return text if slot == len(self._servers) else text.replace("\0", self._servers[slot] + "/")

    def last(self, numbers: IntArray) -> int:
        """Index of the link whose name comes last in the alphabet, of some links."""
        slot, form = numbers >> FORM_BITS, numbers & ((1 << FORM_BITS) - 1)
        order = sorted(range(len(self._servers)), key=lambda number: self._servers[number] + "/")
        place = np.empty(len(order) + 1, dtype=np.int64)
        place[order], place[-1] = np.arange(len(order)), -1
        by_name = np.lexsort((place[slot], form))  # names of one form differ by the server alone
        ends: list[int] = by_name[np.flatnonzero(np.diff(form[by_name], append=-1))].tolist()
        return max(ends, key=lambda index: self.name(int(numbers[index])))

    def capacity(self, numbers: IntArray) -> npt.NDArray[np.float64]:
        """Capacities of links [B/s]."""
        found: npt.NDArray[np.float64] = np.array(self._form_capacity)[numbers & ((1 << FORM_BITS) - 1)]
        return found

    def _tables(self) -> IntArray:
        """Links of each class: what is fixed in their numbers, and by what those of the ends' servers are multiplied.

        Shape (3, longest, classes); -1 is no link.
        """
        if self._table.shape[2] != len(self._rows):
            longest = max(map(len, self._rows), default=0)
            self._table = np.zeros((3, longest, len(self._rows)), dtype=np.int64)
            self._table[0] = -1
            for column, row in enumerate(self._rows):
                for at, (owner, form) in enumerate(row):
                    server = len(self._servers) if owner == 2 else 0
                    self._table[0, at, column] = (server << FORM_BITS) + form
                    if owner < 2:
                        self._table[1 + owner, at, column] = 1 << FORM_BITS
        return self._table

    def _add(self, src: int, dst: int) -> int:
        """Learn the route of one pair; return the number of its class."""
        slots = self._slot[[src, dst]].tolist()
        names = [self._servers[slot] if slot < len(self._servers) else "" for slot in slots]
        row = []
        for resource in self._links(src, dst):
            parts = JOINTS.split(resource)
            whose = 2
            for owner in (0, 1):
                head = names[owner] + "/"
                if names[owner] and whose == 2 and any(part.startswith(head) for part in parts):
                    whose = owner
                    parts = ["\0" + part[len(head) :] if part.startswith(head) else part for part in parts]
            kind = self._equal[slots[whose]] if whose < 2 else (0, 0)
            row.append((whose, self._form(kind, "".join(parts), resource)))
        self.representatives.append((src, dst))
        self._rows.append(row)
        return len(self._rows) - 1

    def _form(self, kind: tuple[int, int], text: str, resource: str) -> int:
        key = (kind, text)
        if key not in self._forms:
            self._forms[key] = len(self._forms)
            self._form_names.append(text)
            self._form_capacity.append(float(self._resources[resource]))
        return self._forms[key]


class LinkNames(Sequence[str]):
    """Names of links that are made when they are asked for.

    Parameters
    ----------
    classes : RouteClasses
    numbers : numpy.ndarray of int64
        The links.
    """

    def __init__(self, classes: RouteClasses, numbers: IntArray) -> None:
        self._classes, self._numbers = classes, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        """A name, or several."""
        if isinstance(index, slice):
            return tuple(self._classes.name(number) for number in self._numbers[index].tolist())
        return self._classes.name(int(self._numbers[index]))

    def __iter__(self) -> Iterator[str]:
        return (self._classes.name(number) for number in self._numbers.tolist())

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)

    def parts(self) -> tuple[IntArray, Sequence[str]]:
        """Server and form of each link, and the forms' texts, in which the server's name is a null character.

        The number of a link of the fabric is that of all servers.
        """
        forms = self._numbers & ((1 << FORM_BITS) - 1)
        return np.stack((self._numbers >> FORM_BITS, forms)), self._classes.texts

    def take(self, places: IntArray) -> LinkNames:
        """Those at some places."""
        return LinkNames(self._classes, self._numbers[places])

    def last(self) -> str:
        """The name that comes last in the alphabet."""
        return self[self._classes.last(self._numbers)]
