"""Routes in a cluster of equal servers, as arrays: one is found for each pair of kinds of ends.

Where two servers are equal and hang on the same switches, a route from one differs from the
same route from the other by the servers' names only. So one representative a pair of
kinds is asked for, and the links of all other pairs are its links with names exchanged.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from simperf.collectives.forwarding import Forwarding
from simperf.collectives.plan import IntArray
from simperf.hardware import Machine

if TYPE_CHECKING:
    from simperf.collectives.placement import Hop, Placement

__all__ = ["Ways"]

#: bits of a link's number that say which link of its server it is
FORM_BITS = 24

#: what stands between the names of nodes in the name of a link
JOINTS = re.compile(r"([>=+])")


class Ways:
    """Numbers the links of a cluster: server by server, or of the fabric.

    Parameters
    ----------
    placement : Placement
        Where the participants sit; `Ways.of` says whether this will do.
    """

    def __init__(self, placement: Placement) -> None:
        machine: Any = placement.machine
        self._placement, self._resources = placement, machine.resources
        machine = getattr(machine, "machine", machine)
        slots = {slot.name: number for number, slot in enumerate(machine.servers)}
        self._servers = [slot.name for slot in machine.servers]
        ends: dict[tuple[Any, ...], int] = {}
        slot, end = [], []
        self._equal: list[tuple[int, int]] = []  # what makes servers equal, by number
        for one in machine.servers:
            self._equal.append((id(one.blueprint), id(one.ports)))
        for node in placement.nodes:
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
        self.hops: list[Hop] = []
        self._forms: dict[tuple[tuple[int, int], str], int] = {}
        self._form_names: list[str] = []
        self._form_capacity: list[float] = []
        self._rows: list[list[tuple[int, int]]] = []  # of each class of pairs: whose link it is, which one
        self._table = np.zeros((2, 0, 0), dtype=np.int64)

    @classmethod
    def of(cls, placement: Placement) -> Ways | None:
        """Ways over a cluster whose routes do not depend on names; None on other machines."""
        machine = getattr(placement.machine, "machine", placement.machine)
        if isinstance(placement.machine, Forwarding) or not isinstance(machine, Machine):
            return None
        if machine.fabric is None or machine.fabric.lanes or _limited(placement):
            return None
        return cls(placement)

    def find(self, src: IntArray, dst: IntArray) -> tuple[IntArray, IntArray]:
        """Links between participants, and the class of each pair.

        Returns
        -------
        numbers : numpy.ndarray of int64, shape (longest, pairs)
            Numbers of links, as `name` and `capacity` take them; -1 is no link.
        classes : numpy.ndarray of int64, shape (pairs,)
            Index into `hops`, where a pair of each class is.
        """
        same = self._slot[src] == self._slot[dst]
        one_node = same & (self._end[src] == self._end[dst])
        apart = np.where(one_node, 2, np.where(same, 1, 0))
        pair = (self._end[src] * self._kinds + self._end[dst]) * 3 + apart
        found, first, of = np.unique(pair, return_index=True, return_inverse=True)
        for key, where in zip(found.tolist(), first.tolist(), strict=True):
            if key not in self._known:
                self._known[key] = self._add(int(src[where]), int(dst[where]))
        classes = np.array([self._known[key] for key in found.tolist()], dtype=np.int64)[of]
        owner, form = self._tables()[:, :, classes]
        nobody = np.full(len(src), len(self._servers))
        whose = np.stack((self._slot[src], self._slot[dst], nobody))
        numbers = (whose[owner, np.arange(len(src))] << FORM_BITS) + form
        return np.where(form < 0, -1, numbers), classes

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
        if self._table.shape[2] != len(self._rows):
            longest = max(map(len, self._rows), default=0)
            self._table = np.full((2, longest, len(self._rows)), -1, dtype=np.int64)
            for column, row in enumerate(self._rows):
                if row:
                    self._table[:, : len(row), column] = np.array(row).T
        return self._table

    def _add(self, src: int, dst: int) -> int:
        """Learn the route of one pair; return the number of its class."""
        hop = self._placement.hop(src, dst)
        slots = self._slot[[src, dst]].tolist()
        names = [self._servers[slot] if slot < len(self._servers) else "" for slot in slots]
        row = []
        for resource in hop.resources:
            parts = JOINTS.split(resource)
            whose = 2
            for owner in (0, 1):
                head = names[owner] + "/"
                if names[owner] and whose == 2 and any(part.startswith(head) for part in parts):
                    whose = owner
                    parts = ["\0" + part[len(head) :] if part.startswith(head) else part for part in parts]
            kind = self._equal[slots[whose]] if whose < 2 else (0, 0)
            row.append((whose, self._form(kind, "".join(parts), resource)))
        self.hops.append(hop)
        self._rows.append(row)
        return len(self._rows) - 1

    def _form(self, kind: tuple[int, int], text: str, resource: str) -> int:
        key = (kind, text)
        if key not in self._forms:
            self._forms[key] = len(self._forms)
            self._form_names.append(text)
            self._form_capacity.append(float(self._resources[resource]))
        return self._forms[key]


def _limited(placement: Placement) -> bool:
    """Whether a limit on a flow between two servers is a link of its own, named by both."""
    servers = [node.partition("/")[0] for node in placement.nodes]
    away = next((number for number, server in enumerate(servers) if server != servers[0]), None)
    return away is not None and any(name.endswith(":flow") for name in placement.hop(0, away).resources)
