"""Channels of communicators on the machine: what each of them draws on, found once for those that are placed alike.

Two communicators are placed alike if their ranks have the same places in servers of the same kind, which hang on
switches that are joined alike. What one draws on is then what the other does, with servers and switches exchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from simperf.collectives.channels import ChannelFlow, ChannelSet
from simperf.collectives.exchange import EXCHANGES
from simperf.collectives.execute import PlacedPlan
from simperf.engine.link_table import LinkClass
from simperf.errors import InputError, Problem
from simperf.execution.process_group import ProcessGroup
from simperf.execution.session import Session
from simperf.hardware import Edge, ServerSlot
from simperf.training.pipelined.communicators import Communicator, Payload
from simperf.training.pipelined.groups import ClassMember, exchanged
from simperf.training.pipelined.link_numbers import IntArray, LinkNumbers

__all__ = ["Pattern", "Placed", "Placer", "Plans", "structures"]

#: switches of a communicator's servers up to which the ways between all of them are compared with those of others
MOST_SWITCHES = 32

#: how all that a communicator does is carried out, each plan with its channels
Plans: TypeAlias = Mapping[Payload, PlacedPlan]


class Placed(NamedTuple):
    """The place of a communicator.

    Parameters
    ----------
    pattern : Pattern
        Of all that are placed alike.
    servers : tuple of int
        Numbers of its servers, in the order in which its ranks meet them.
    switches : tuple of str
        Switches that they hang on, likewise.
    """

    pattern: Pattern
    servers: tuple[int, ...]
    switches: tuple[str, ...]


class Pattern:
    """Channels of a communicator, as others that are placed alike have them in other servers.

    Parameters
    ----------
    plans : mapping of Payload to PlacedPlan
        Of the communicator.
    links : LinkNumbers
    servers, switches : tuple
        As in `Placed`.

    Attributes
    ----------
    servers : tuple of int
        Those that were given, and others whose links it draws on.
    shared : bool
        Whether others may have it.
    structure, kind : numpy.ndarray of int64, shape (entries,)
        Of each link that a set of channels draws on: the number of the set, and that of how often each channel does.
    counts : list of tuple of int
        How often each channel does, by kind.
    capacity : numpy.ndarray of float64, shape (entries,)
        Of the link [B/s].
    """

    def __init__(
        self, plans: Plans, links: LinkNumbers, servers: tuple[int, ...] = (), switches: tuple[str, ...] = ()
    ) -> None:
        self.plans, self.links, self.switches, self.shared = plans, links, switches, True
        self.counts: list[tuple[int, ...]] = []
        kinds: dict[tuple[int, ...], int] = {}
        owners, forms, structure, kind, capacity = ([np.zeros(0, dtype=np.int64)] for _ in range(5))
        for number, classes in structures(plans).values():
            for each in classes:
                read, size = links.read(each.names), len(each.names)
                if read is None:
                    self.shared = False
                    read = np.full(size, links.nowhere), np.array([links.form(name) for name in each.names])
                if each.counts not in kinds:
                    kinds[each.counts] = len(self.counts)
                    self.counts.append(each.counts)
                owners.append(read[0])
                forms.append(read[1])
                structure.append(np.full(size, number))
                kind.append(np.full(size, kinds[each.counts]))
                capacity.append(np.full(size, each.capacity))
        self.structure, self.kind = np.concatenate(structure), np.concatenate(kind)
        self.capacity = np.concatenate(capacity)
        whose = np.concatenate(owners)
        others = sorted(set(whose.tolist()) - {*servers, links.nowhere})
        self.servers = (*servers, *others)
        self.shared &= not others
        place = np.full(links.nowhere + 1, len(self.servers))
        place[list(self.servers)] = np.arange(len(self.servers))
        self._owner = place[whose]
        self._forms = {switches: np.concatenate(forms)}

    def numbers(self, servers: IntArray, switches: tuple[str, ...]) -> IntArray:
        """Numbers of the links of communicators, one a row, of the servers of each in a row."""
        if switches not in self._forms:
            nodes = dict(zip(self.switches, switches, strict=True))
            self._forms[switches] = self.links.changed(self._forms[self.switches], nodes)
        nowhere = np.full((len(servers), 1), self.links.nowhere)
        return self.links.number(np.hstack((servers, nowhere))[:, self._owner], self._forms[switches])


def structures(plans: Plans) -> dict[int, tuple[int, tuple[LinkClass, ...]]]:
    """Different sets of links that a communicator's channels draw on, by identity, with their numbers."""
    found: dict[int, tuple[int, tuple[LinkClass, ...]]] = {}
    for plan in plans.values():
        assert plan.channels is not None
        for classes in (plan.channels.classes, plan.channels.drains):
            if classes:
                found.setdefault(id(classes), (len(found), classes))
    return found


class _Slot(NamedTuple):
    """A server: what makes others equal to it, and the switches that it hangs on."""

    look: Hashable
    switches: tuple[str, ...]


class _Seats(NamedTuple):
    """The places of the ranks of a communicator.

    Attributes
    ----------
    look : hashable
        What it has in common with all that are placed alike.
    """

    look: Hashable
    servers: tuple[int, ...]
    switches: tuple[str, ...]


class _First(NamedTuple):
    """The first of all communicators that are placed alike."""

    seats: _Seats
    group: ProcessGroup
    plans: dict[Payload, PlacedPlan]


@dataclass(eq=False, slots=True)
class Placer:
    """Finds the channels of communicators.

    Parameters
    ----------
    m : Session
    nodes : sequence of str
        Node of each rank.
    options : mapping
        Of NCCL.

    Attributes
    ----------
    links : LinkNumbers
        Of the machine.
    """

    m: Session
    nodes: Sequence[str]
    options: Mapping[str, Any]
    links: LinkNumbers = field(init=False)
    _slots: list[_Slot] = field(init=False)
    _places: list[tuple[int, str] | None] = field(init=False)
    _firsts: dict[Hashable, _First] = field(default_factory=dict, init=False)
    _patterns: dict[Hashable, Pattern] = field(default_factory=dict, init=False)
    _ways: dict[tuple[str, ...], int] = field(default_factory=dict, init=False)
    _joints: dict[tuple[int, ...], tuple[int, tuple[str, ...]]] = field(default_factory=dict, init=False)
    _looks: dict[Hashable, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        machine = self.m.machine
        self.links = LinkNumbers(machine)
        wired: dict[int, tuple[Hashable, tuple[str, ...]]] = {}
        numbers: dict[str, int] = {}
        self._slots = []
        for number, slot in enumerate(machine.servers if machine.fabric is not None else ()):
            if id(slot.ports) not in wired:
                wired[id(slot.ports)] = _wiring(slot)
            look, switches = wired[id(slot.ports)]
            numbers[slot.name] = number
            self._slots.append(_Slot((id(slot.blueprint), look), switches))
        self._places = []
        for node in self.nodes:
            server, _, local = node.partition("/")
            slot_of = numbers.get(server) if local else None
            self._places.append(None if slot_of is None else (slot_of, local))

    def place(self, one: Communicator) -> Placed:
        """The place of a communicator, and the links that it draws on.

        Raises
        ------
        InputError
            A collective that goes send by send.
        """
        seats = self._seats(one)
        if seats is None:
            return self._alone(one)
        key = seats.look, one.payloads
        if key not in self._patterns:
            if seats.look not in self._firsts:
                self._firsts[seats.look] = _First(seats, self._group(one), {})
            first = self._firsts[seats.look]
            plans = self._plans(one, first.group, first.plans)
            self._patterns[key] = Pattern(plans, self.links, first.seats.servers, first.seats.switches)
        pattern = self._patterns[key]
        return Placed(pattern, seats.servers, seats.switches) if pattern.shared else self._alone(one)

    def _alone(self, one: Communicator) -> Placed:
        """A communicator whose links are looked at for it alone."""
        pattern = Pattern(self._plans(one, self._group(one), {}), self.links)
        return Placed(pattern, pattern.servers, ())

    def _seats(self, one: Communicator) -> _Seats | None:
        """The places of its ranks; None where others that are placed alike may draw on other links."""
        order: dict[int, int] = {}
        looks: list[tuple[int, str]] = []
        for rank in one.ranks:
            place = self._places[rank]
            if place is None:
                return None
            slot, local = place
            looks.append((order.setdefault(slot, len(order)), local))
        servers = tuple(order)
        if servers not in self._joints:
            self._joints[servers] = self._joint(servers)
        look, switches = self._joints[servers]
        by_name = bool(switches and self.m.machine.fabric.lanes)  # which way a flow goes
        if len(switches) > MOST_SWITCHES or (by_name and not one.directed):
            return None
        flow = ">".join(self.nodes[rank] for rank in one.ranks) if by_name else ""
        way = self._way(switches, flow)
        return _Seats((one.directed, one.rows, one.kernel, tuple(looks), look, way), servers, switches)

    def _joint(self, servers: tuple[int, ...]) -> tuple[int, tuple[str, ...]]:
        """What servers have in common with others that are equal and hang on switches alike, and these switches."""
        slots = [self._slots[number] for number in servers]
        switches = tuple(dict.fromkeys(name for slot in slots for name in slot.switches)) if len(slots) > 1 else ()
        at = {name: index for index, name in enumerate(switches)}
        hung = tuple((slot.look, *(at.get(name) for name in slot.switches)) for slot in slots)
        return self._looks.setdefault(hung, len(self._looks)), switches

    def _way(self, switches: tuple[str, ...], flow: str) -> int:
        """A number for the connection of switches, whatever their names are."""
        key = (*switches, flow)
        if key not in self._ways:
            fabric, number = self.m.machine.fabric, {name: index for index, name in enumerate(switches)}
            paths = [fabric.path(*pair, key=flow) or () for pair in permutations(switches, 2)]
            joined = [
                [(_end(edge.src, number), _end(edge.dst, number), _look(edge)) for edge in path] for path in paths
            ]
            way = tuple(id(fabric.nodes[name].part) for name in switches), tuple(map(tuple, joined))
            self._ways[key] = self._looks.setdefault(way, len(self._looks))
        return self._ways[key]

    def _group(self, one: Communicator) -> ProcessGroup:
        member = ClassMember(tuple(range(len(one.ranks))), self.m.simulation.device(self.nodes[0]))
        return ProcessGroup(self.m, [self.nodes[rank] for rank in one.ranks], [member], options=self.options)

    @staticmethod
    def _plans(one: Communicator, group: ProcessGroup, known: dict[Payload, PlacedPlan]) -> Plans:
        """The execution of all that a communicator does by a group that is placed alike."""
        for payload in one.payloads:
            if payload in known:
                continue
            if one.directed:
                plan = group.message(0, 1, payload.nbytes)
                plan = replace(plan, channels=_as_channel(plan, payload.nbytes))
            elif payload.name in EXCHANGES:
                plan = exchanged(group, payload, one.rows, one.kernel)
            else:
                plan = group.placed(*payload)
            if plan.channels is None:
                message = f"{payload.name} goes send by send: ranks cannot be taken together"
                raise InputError(Problem(message, key="exact", value="auto", expected="yes"))
            known[payload] = plan
        return {payload: known[payload] for payload in one.payloads}


def _wiring(slot: ServerSlot) -> tuple[Hashable, tuple[str, ...]]:
    """The connection of a server with the fabric, and the switches that it goes to."""
    look = tuple(
        (one.local, one.bandwidth, one.up, one.down, one.part, one.count, one.flow_limit, one.technology)
        for one in slot.ports
    )
    return look, tuple(one.switch for one in slot.ports)


def _end(node: str, number: Mapping[str, int]) -> Hashable:
    return number.get(node, node)


def _look(edge: Edge) -> Hashable:
    return edge.bandwidth, edge.latency, edge.part, edge.count, edge.flow_limit, edge.technology


def _as_channel(placed: PlacedPlan, nbytes: float) -> ChannelSet:
    """A message as one channel, which takes as long and draws on the same links."""
    hop, transport, capacity = placed.placement.hop(0, 1), placed.transport, placed.placement.machine.resources
    start = transport.start + transport.latency(hop)
    flow = ChannelFlow(start, nbytes / transport.efficiency, transport.most(hop, 0))
    links = [LinkClass((name,), (count,), float(capacity[name])) for name, count in Counter(hop.resources).items()]
    return ChannelSet((flow,), tuple(links), ())
