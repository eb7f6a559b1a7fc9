"""Channels: a collective of a library as flows on the one network.

A channel is a pipeline of slices: once the first slice has come around, all of its connections carry bytes at one
rate, that of the slowest. So a channel is one flow that draws on the links of all its connections
at once, beside whatever else is on them, after the time that the first slice takes to get to the last rank. Links
that are drawn on alike are one (`simperf.engine.link_table`), so that a ring over a thousand servers costs what one
over two does. Without other traffic this is the time of the same channels send by send.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from simperf.engine.link_table import LinkClass

__all__ = ["ChannelBytes", "ChannelFlow", "ChannelSet"]


@dataclass(frozen=True, slots=True)
class ChannelFlow:
    """One channel at work.

    Parameters
    ----------
    latency : float
        Time until all of its connections carry bytes [s].
    nbytes : float
        That every connection carries [B on the wire].
    cap : float
        Rate that the channel cannot exceed [B/s].
    drain : float
        What is left to be read out of host memory after the last send [B on the wire].
    drain_cap : float
        Rate of that [B/s].
    """

    latency: float
    nbytes: float
    cap: float
    drain: float = 0.0
    drain_cap: float = float("inf")

    @property
    def time(self) -> float:
        """Time of the channel if nothing hinders it [s]: a lower bound beside other traffic."""
        return self.latency + self.nbytes / self.cap + (self.drain / self.drain_cap if self.drain else 0.0)


@dataclass(frozen=True, slots=True)
class ChannelSet:
    """All channels of one collective of one size.

    Parameters
    ----------
    flows : tuple of ChannelFlow
        A channel each.
    classes : tuple of LinkClass
        Links that the channels draw on: ``counts[i]`` times by channel i.
    drains : tuple of LinkClass
        Links over which channels read out of host memory.
    last : float
        Time after the last channel's end, in which GPUs move what has arrived inside their memory [s].
    least : float
        Time from the start that the collective takes at least, such as that of its launches [s].
    """

    flows: tuple[ChannelFlow, ...]
    classes: tuple[LinkClass, ...]
    drains: tuple[LinkClass, ...]
    last: float = 0.0
    least: float = 0.0

    @classmethod
    def over(
        cls, flows: Sequence[ChannelFlow], drawn: Sequence[Mapping[str, int]], capacity: Mapping[str, float]
    ) -> ChannelSet:
        """Flows that draw so many times on each resource by name, over links of these capacities [B/s]."""
        links: dict[tuple[tuple[int, ...], float], list[str]] = {}
        for resource in dict.fromkeys(resource for one in drawn for resource in one):
            key = tuple(one.get(resource, 0) for one in drawn), float(capacity[resource])
            links.setdefault(key, []).append(resource)
        classes = tuple(LinkClass(tuple(of), counts, rate) for (counts, rate), of in links.items())
        return cls(tuple(flows), classes, ())

    @property
    def time(self) -> float:
        """Time if nothing hinders it [s]."""
        return max(max((flow.time for flow in self.flows), default=0.0) + self.last, self.least)

    def slower(self, factor: float, launching: float) -> ChannelSet:
        """The same channels whose latencies and bytes on the wire are `factor` times as many.

        Parameters
        ----------
        factor : float
            Of the time of the channels [1].
        launching : float
            Of the least time, which launching takes [1].
        """
        if factor == launching == 1.0:
            return self
        flows = tuple(
            replace(one, latency=one.latency * factor, nbytes=one.nbytes * factor, drain=one.drain * factor)
            for one in self.flows
        )
        return replace(self, flows=flows, last=self.last * factor, least=self.least * launching)

    def moved(self) -> Iterator[tuple[LinkClass, float]]:
        """Bytes that every link of a class moves [B]."""
        for one in self.classes:
            yield one, sum(count * flow.nbytes for count, flow in zip(one.counts, self.flows, strict=True))
        for one in self.drains:
            yield one, sum(count * flow.drain for count, flow in zip(one.counts, self.flows, strict=True))


class ChannelBytes(Mapping[str, float]):
    """Bytes by resource [B], named on first use; what `StagedMachine` adds to a machine's resources is left out."""

    def __init__(self, channels: ChannelSet) -> None:
        self._channels = channels
        self._named: dict[str, float] | None = None

    def _all(self) -> dict[str, float]:
        if self._named is None:
            named: dict[str, float] = {}
            for one, nbytes in self._channels.moved():
                for name in one.names:
                    if ":" not in name:
                        named[name] = named.get(name, 0.0) + nbytes
            self._named = named
        return self._named

    def by_class(self) -> list[tuple[LinkClass, float]]:
        """Links that moved equally much, and how much each of them moved [B]; empty if a link is of several classes."""
        return [] if self._channels.drains else list(self._channels.moved())

    def __getitem__(self, name: str) -> float:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())
