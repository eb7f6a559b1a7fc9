"""Bytes that collectives moved: as arrays, until somebody asks for the names of the links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from simperf.collectives.links import FloatArray, Links

__all__ = ["LinkTraffic", "add_up"]


class LinkTraffic(Mapping[str, float]):
    """Bytes on the wire [B] by resource; the names are made on first use.

    Parameters
    ----------
    links : Links
        Names the links.
    amounts : numpy.ndarray of float64
        Bytes by link number [B].
    """

    def __init__(self, links: Links, amounts: FloatArray) -> None:
        self.links, self.amounts = links, amounts
        self._named: dict[str, float] | None = None

    def named(self) -> dict[str, float]:
        """The same as a dict."""
        if self._named is None:
            name = self.links.name
            self._named = {name(link): amount for link, amount in enumerate(self.amounts.tolist()) if link}
        return self._named

    def __getitem__(self, name: str) -> float:
        return self.named()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.named())

    def __len__(self) -> int:
        return len(self.amounts) - 1


def add_up(runs: Iterable[tuple[Mapping[str, float], int]]) -> dict[str, float]:
    """Bytes by resource of several collectives [B], each so many times; resources that moved nothing are left out.

    Parameters
    ----------
    runs : iterable of (mapping, int)
        Bytes by resource of a collective [B], and how often it was run.
    """
    total: dict[str, float] = {}
    arrays: dict[int, tuple[Links, FloatArray]] = {}
    for moved, times in runs:
        if isinstance(moved, LinkTraffic):
            links = moved.links
            before = arrays[id(links)][1] if id(links) in arrays else np.zeros(0)
            both = np.zeros(max(len(before), len(moved.amounts)))
            both[: len(before)] += before
            both[: len(moved.amounts)] += moved.amounts * times
            arrays[id(links)] = links, both
        else:
            for name, nbytes in moved.items():
                if nbytes:
                    total[name] = total.get(name, 0.0) + nbytes * times
    for links, amounts in arrays.values():
        amounts[0] = 0.0  # of no link
        for link in np.flatnonzero(amounts).tolist():
            name = links.name(link)
            total[name] = total.get(name, 0.0) + float(amounts[link])
    return total
