"""Links of a machine by numbers: each is identified by the server that has it, and by its name there.

Where servers are equal, what one communicator draws on in some of them is what another one that is placed alike draws
on in others, with the servers exchanged: numbers are computed for all of them at once, and names are made when they are
asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from simperf.hardware import Machine
from simperf.hardware.route_classes import JOINTS, LinkNames

__all__ = ["IntArray", "LinkNumbers", "NumberedNames"]

IntArray = npt.NDArray[np.int64]

#: bits of a number that say which link of its server it is
FORM_BITS = 24


class LinkNumbers:
    """Numbers the links of a machine.

    Parameters
    ----------
    machine : Machine

    Attributes
    ----------
    nowhere : int
        Stands for the server of links that are in none, such as those of the fabric.
    """

    def __init__(self, machine: Machine) -> None:
        self._servers = [slot.name for slot in machine.servers] if machine.fabric is not None else []
        self._place = {name: number for number, name in enumerate(self._servers)}
        self.nowhere = len(self._servers)
        self._forms: dict[str, int] = {}
        self._texts: list[str] = []

    def read(self, names: Sequence[str]) -> tuple[IntArray, IntArray] | None:
        """Server and form of links; None if one has the names of two servers."""
        if isinstance(names, LinkNames):
            places, texts = names.parts()
            used = {form: self.form(texts[form]) for form in set(places[1].tolist())}
            table = np.array([used.get(form, 0) for form in range(max(used, default=-1) + 1)], dtype=np.int64)
            return places[0], table[places[1]] if len(table) else places[1]
        servers, forms = [], []
        for name in names:
            parts = JOINTS.split(name)
            inside = [self._place.get(part.partition("/")[0]) if "/" in part else None for part in parts]
            owners = {number for number in inside if number is not None}
            if len(owners) > 1:
                return None
            there = [
                f"\0{part.partition('/')[2]}" if own is not None else part
                for part, own in zip(parts, inside, strict=True)
            ]
            servers.append(owners.pop() if owners else self.nowhere)
            forms.append(self.form("".join(there)))
        return np.array(servers, dtype=np.int64), np.array(forms, dtype=np.int64)

    def form(self, text: str) -> int:
        """Number of a name in a server, in which the server's own name is a null character."""
        found = self._forms.get(text)
        if found is None:
            found = self._forms[text] = len(self._texts)
            self._texts.append(text)
        return found

    def changed(self, forms: IntArray, nodes: Mapping[str, str]) -> IntArray:
        """Forms with names of nodes of the fabric changed."""
        made: dict[int, int] = {}
        for form in set(forms.tolist()):
            parts = JOINTS.split(self._texts[form])
            made[form] = self.form("".join(nodes.get(part, part) for part in parts))
        return np.array([made[form] for form in forms.tolist()], dtype=np.int64)

    def name(self, number: int) -> str:
        """Name of a link."""
        server, text = number >> FORM_BITS, self._texts[number & ((1 << FORM_BITS) - 1)]
        return text if server == self.nowhere else text.replace("\0", self._servers[server] + "/")

    @staticmethod
    def number(servers: IntArray, forms: IntArray) -> IntArray:
        """Numbers of links, of their servers and forms."""
        return (servers << FORM_BITS) + forms


class NumberedNames(Sequence[str]):
    """Names of links that are made when all of them are asked for, once.

    Parameters
    ----------
    links : LinkNumbers
    numbers : numpy.ndarray of int64
    """

    def __init__(self, links: LinkNumbers, numbers: IntArray) -> None:
        self._links, self._numbers = links, numbers
        self._made: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        """A name, or several."""
        if isinstance(index, slice):
            return tuple(map(self._links.name, self._numbers[index].tolist()))
        return self._links.name(int(self._numbers[index]))

    def __iter__(self) -> Iterator[str]:
        if self._made is None:
            self._made = tuple(map(self._links.name, self._numbers.tolist()))
        return iter(self._made)

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)
