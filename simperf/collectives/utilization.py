"""Utilization of links: the part of a collective's time for which each of them is busy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from simperf.collectives.channels import ChannelBytes
from simperf.collectives.traffic import LinkTraffic
from simperf.hardware.route_classes import LinkNames

__all__ = ["Utilization"]

#: loads that differ by less are shown as one
DIGITS = 9


class Utilization(Mapping[str, float]):
    """Part of the time for which each resource that moved bytes is busy, 0 to 1; the names are made on first use.

    Parameters
    ----------
    moved : mapping of str to float
        Bytes on the wire by resource [B].
    resources : mapping of str to float
        Capacity by resource [B/s]; what it does not have, is left out.
    time : float
        Time of the collective [s].
    """

    def __init__(self, moved: Mapping[str, float], resources: Mapping[str, float], time: float) -> None:
        self._moved, self._resources, self._time = moved, resources, time

    @cached_property
    def busiest(self) -> tuple[str, float]:
        """The busiest resource, of equal ones the last by name, and its load; no name where nothing moved."""
        moved = self._moved
        if isinstance(moved, ChannelBytes) and self._time:
            found = self._busiest_class(moved)
            if found is not None:
                return found
        if not isinstance(moved, LinkTraffic) or not self._time:
            name = max(self._named, key=lambda name: (round(self._named[name], DIGITS), name), default="")
            return name, self._named.get(name, 0.0)
        loads = moved.amounts / moved.links.capacity[: len(moved.amounts)] / self._time
        if not np.any(loads):
            return "", 0.0
        near = np.flatnonzero(loads >= loads.max() - 10.0**-DIGITS)
        values, which = np.unique(loads[near], return_inverse=True)
        shown = np.array([round(load, DIGITS) for load in values.tolist()])
        link = moved.links.last(near[(shown == shown.max())[which]])
        return moved.links.name(link), float(loads[link])

    def _busiest_class(self, moved: ChannelBytes) -> tuple[str, float] | None:
        """The busiest resource of channels, whose links are in classes; None where it is not known by them."""
        rows = [(nbytes / one.capacity / self._time, one) for one, nbytes in moved.by_class() if nbytes]
        for most in sorted({round(load, DIGITS) for load, _ in rows}, reverse=True):
            here = [(load, one.names) for load, one in rows if round(load, DIGITS) == most]
            last = max((_last(names), load) for load, names in here)
            if ":" not in last[0] and last[0] in self._resources:
                return last
            for name, load in sorted(((name, load) for load, names in here for name in names), reverse=True):
                if ":" not in name and name in self._resources:
                    return name, load
        return None

    @cached_property
    def _named(self) -> dict[str, float]:
        resources, time = self._resources, self._time
        return {
            name: amount / resources[name] / time
            for name, amount in self._moved.items()
            if amount and time and name in resources
        }

    def __getitem__(self, name: str) -> float:
        return self._named[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)


def _last(names: Sequence[str]) -> str:
    """The name that comes last in the alphabet."""
    return names.last() if isinstance(names, LinkNames) else max(names)
