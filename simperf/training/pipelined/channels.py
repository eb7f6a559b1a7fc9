"""Channels of communicators on the machine: what each of them draws on, found once for those that are placed alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from simperf.collectives.channels import ChannelFlow, ChannelSet
from simperf.collectives.exchange import EXCHANGES
from simperf.collectives.execute import PlacedPlan
from simperf.engine.link_table import LinkClass
from simperf.errors import InputError, Problem
from simperf.execution.process_group import ProcessGroup
from simperf.execution.ranks import Rank
from simperf.execution.session import Session
from simperf.layout import local_name
from simperf.training.pipelined.communicators import Communicator, Payload
from simperf.training.pipelined.groups import exchanged

__all__ = ["Channels", "Placer"]

#: channels of all that a communicator does
Channels: TypeAlias = Mapping[Payload, ChannelSet]


#: server in the name of a link, at the beginning or behind what joins two ends
_SERVER = re.compile(r"(^|[>=+])([^/>=+:]+)/")


@dataclass(eq=False, slots=True)
class Placer:
    """Finds the channels of communicators.

    Channels of one that has the same places in servers of the same kind are those of another with the servers' names
    changed, if all links of these names are there, as wide and as long.

    Parameters
    ----------
    m : Session
    nodes : sequence of str
        Node of each rank.
    options : mapping
        Of NCCL.
    """

    m: Session
    nodes: Sequence[str]
    options: Mapping[str, Any]
    _plans: dict[str, Any] = field(init=False)
    _known: dict[tuple[Any, ...], tuple[tuple[str, ...], Channels]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._plans = {slot.name: slot.blueprint for slot in self.m.machine.servers}

    def place(self, one: Communicator) -> Channels:
        """Channels of all that a communicator does.

        Raises
        ------
        InputError
            A collective that goes send by send.
        """
        machine = self.m.machine
        nodes = [self.nodes[rank] for rank in one.ranks]
        of = [machine.nodes[node].server for node in nodes]
        servers = tuple(dict.fromkeys(of))
        if machine.fabric is None or any(server not in self._plans for server in servers):
            return self._found(one, nodes)
        order = {server: place for place, server in enumerate(servers)}
        looks = tuple((order[server], local_name(node)) for server, node in zip(of, nodes, strict=True))
        key = (looks, tuple(id(self._plans[server]) for server in servers), one.payloads, one.rows)
        if key in self._known:
            others, known = self._known[key]
            again = self._renamed(known, dict(zip(others, servers, strict=True)))
            if again is not None:
                return again
        found = self._found(one, nodes)
        self._known.setdefault(key, (servers, found))
        return found

    def _found(self, one: Communicator, nodes: Sequence[str]) -> Channels:
        members = [Rank(rank, self.m.simulation.device(node)) for rank, node in enumerate(nodes)]
        group = ProcessGroup(self.m, nodes, members, options=self.options)
        if one.directed:
            return {each: _as_channel(group.message(0, 1, each.nbytes), each.nbytes) for each in one.payloads}
        found = {}
        for payload in one.payloads:
            if payload.name in EXCHANGES:
                placed = exchanged(group, payload, one.rows)
            else:
                placed = group.placed(*payload)
            channels = placed.channels
            if channels is None:
                message = f"{payload.name} goes send by send: ranks cannot be taken together"
                raise InputError(Problem(message, key="exact", value="auto", expected="yes"))
            found[payload] = channels
        return found

    def _renamed(self, channels: Channels, servers: Mapping[str, str]) -> Channels | None:
        """The same channels in other servers; None if they are not wired in the same way."""
        made: dict[int, tuple[LinkClass, ...]] = {}

        def other(match: re.Match[str]) -> str:
            return f"{match[1]}{servers.get(match[2], match[2])}/"

        for one in channels.values():
            for classes in (one.classes, one.drains):
                if id(classes) in made:
                    continue
                again = []
                for each in classes:
                    names = [(name, _SERVER.sub(other, name)) for name in each.names]
                    if not all(self._alike(*pair) for pair in names):
                        return None
                    again.append(LinkClass(tuple(name for _, name in names), each.counts, each.capacity))
                made[id(classes)] = tuple(again)
        return {
            payload: replace(one, classes=made[id(one.classes)], drains=made[id(one.drains)])
            for payload, one in channels.items()
        }

    def _alike(self, one: str, other: str) -> bool:
        """Whether two links are there that are as wide and as long as each other."""
        if one == other:  # a link of the fabric, over which others may not go
            return False
        edges = self.m.machine.edges
        mine, others = edges.get(one), edges.get(other)
        if mine is None or others is None:
            return False
        return (mine.bandwidth, mine.latency, mine.flow_limit) == (others.bandwidth, others.latency, others.flow_limit)


def _as_channel(placed: PlacedPlan, nbytes: float) -> ChannelSet:
    """A message as one channel, which takes as long and draws on the same links."""
    hop, transport, capacity = placed.placement.hop(0, 1), placed.transport, placed.placement.machine.resources
    start = transport.start + transport.latency(hop)
    flow = ChannelFlow(start, nbytes / transport.efficiency, transport.most(hop, 0))
    links = [LinkClass((name,), (count,), float(capacity[name])) for name, count in Counter(hop.resources).items()]
    return ChannelSet((flow,), tuple(links), ())
