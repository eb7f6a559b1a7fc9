"""The layers of a job that are closed, each simulated once for all stages that have it alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from simperf.execution.process_group import ProcessGroup
from simperf.execution.session import Session
from simperf.training.pipelined.classes import Classes
from simperf.training.pipelined.closed import ClosedLayer, ClosedPass, never_closed, play_alone
from simperf.training.pipelined.communicators import AROUND, INSIDE, REPLICAS, Communicator, Dimension, Payload, Place
from simperf.training.pipelined.groups import ClassMember
from simperf.training.pipelined.stage import StageProcess
from simperf.training.pipelined.stage_time import StageTime
from simperf.workload.transformers.passes import Item, Sync

__all__ = ["ClassLinks", "close_layers"]

#: whatever is no communicator
_OTHER = -1


class ClassLinks:
    """Links that classes of communicators draw on, and the classes that draw on each while layers run.

    Parameters
    ----------
    classes : Classes
    communicators : sequence of Communicator
    changed : sequence of str
        Names of links whose capacities change.
    """

    def __init__(self, classes: Classes, communicators: Sequence[Communicator], changed: Sequence[str]) -> None:
        first = {colour: index for index, colour in reversed(list(enumerate(classes.communicators)))}
        self._of: dict[int, frozenset[int]] = {}  # classes of links, by the identity of their names
        self._users: dict[int, set[int]] = {}
        self._plans, self._in_turn = classes.plans, classes.in_turn
        touched = frozenset(changed)
        for colour, own in enumerate(classes.plans):
            sets = [one.channels for one in own.values() if one.channels is not None]
            names = {id(each.names): each.names for one in sets for each in (*one.classes, *one.drains)}
            self._of[colour] = frozenset(names)
            if communicators[first[colour]].dimension == "norm":
                continue
            for key, each in names.items():
                users = self._users.setdefault(key, set())
                users.add(colour)
                if touched and not touched.isdisjoint(each):
                    users.add(_OTHER)

    def closed(self, classes: Mapping[Place, int], *, units: bool) -> Literal["always", "in turn", ""]:
        """When nothing outside touches the layers of a rank, see `close_layers`.

        Parameters
        ----------
        classes : mapping of Place to int
            Of the rank's communicators.
        units : bool
            Whether weights are gathered as they are needed.
        """
        own = {colour for key, colour in classes.items() if key in INSIDE}
        around = [colour for key, colour in classes.items() if key in AROUND or key in REPLICAS.values()]
        # gradients and weights hold multiprocessors of the device, whatever links they go over
        held = any(plan.blocks for colour in around for plan in self._plans[colour].values())
        alone = self._carry_only(own)
        if alone and not held:
            return "always"
        return "in turn" if not units and (alone or self._carry_in_turn(own)) else ""

    def _carry_only(self, own: Collection[int]) -> bool:
        """Whether the links of some classes of communicators carry nothing but what these do."""
        return all(self._users[name].issubset(own) for colour in own for name in self._of[colour])

    def _carry_in_turn(self, own: Collection[int]) -> bool:
        """Whether they carry nothing else but gradients and weights, which never travel beside these classes' own."""
        return all(
            (colour, other) in self._in_turn
            for colour in own
            for name in self._of[colour]
            for other in self._users[name].difference(own)
        )


def close_layers(
    m: Session, processes: Sequence[StageProcess], closed: Callable[[StageProcess], Literal["always", "in turn", ""]]
) -> None:
    """Have processes use closed layers, if the device bounds all of them, and none fills its queue.

    Parameters
    ----------
    m : Session
    processes : sequence of StageProcess
    closed : callable
        Whether nothing outside touches what a process's layers use; in turn, if gradients and weights do at times when
        none of its layers runs that is launched neither after the first reduction of a step nor before the last gather.
    """
    if m.mode.waits:
        return
    known: dict[Hashable, ClosedLayer] = {}
    found: list[tuple[StageProcess, bool, dict[tuple[int, str], ClosedLayer]]] = []
    for one in processes:
        when = closed(one)
        if not when or any(len(group.members) > 1 for group in one.inside.values()):
            continue
        own: dict[tuple[int, str], ClosedLayer] = {}
        for items, within in passes(one):
            key = (_look(one, items), id(items), within)
            if key not in known:
                known[key] = ClosedLayer(partial(_play, m, one, items, within))
            if not (known[key].bound_by_device and known[key].fits(one.device.depth)):
                return
            own[id(items), within] = known[key]
        found.append((one, when == "in turn", own))
    for one, in_turn, own in found:
        one.close, one.in_turn = partial(_known, own), in_turn


def passes(process: StageProcess) -> Generator[tuple[tuple[Item, ...], str], None, None]:
    """Items of all passes over layers of a process that has any, each with what it is within."""
    split, beside, done = process.work.plan.split, bool(process.work.plan.beside), set[int]()
    for chunk in process.work.chunks(process.stage):
        for layer in process.work.every_layer(process.stage, chunk):
            parts = (layer.input_gradients, layer.weight_gradients) if split else ()
            backward = parts if split and not beside else (*parts, layer.backward)
            for items, within in ((layer.forward, "forward"), *((each, "backward") for each in backward)):
                if items and id(items) not in done:
                    done.add(id(items))
                    yield items, within


def _known(own: dict[tuple[int, str], ClosedLayer], items: tuple[Item, ...], within: str) -> ClosedLayer | None:
    return own.get((id(items), within))


def _payloads(process: StageProcess, items: Sequence[Item]) -> dict[Dimension, Counter[Payload]]:
    """Collectives of a pass among several ranks, by dimension."""
    syncs = [one for one in items if isinstance(one, Sync)]
    return {
        dimension: Counter(Payload(one.name, one.nbytes) for one in syncs if one.dimension == dimension)
        for dimension in process.inside
    }


def _look(process: StageProcess, items: Sequence[Item]) -> Hashable:
    """A key of what the outcome of a pass depends on beside its items: device, and channels of its collectives."""
    found = list[Hashable]()
    for dimension, payloads in _payloads(process, items).items():
        for payload in payloads:
            placed = process.inside[dimension].placed(*payload)
            channels = placed.channels
            if channels is not None:
                links = Counter((each.counts, each.capacity) for each in channels.classes)
                drains = Counter((each.counts, each.capacity) for each in channels.drains)
                times = channels.flows, channels.last, channels.least, placed.blocks
                found.append((dimension, payload, *times, *map(_frozen, (links, drains))))
    return id(process.device.part), process.speed, tuple(found)


def _frozen(counts: Counter[Any]) -> frozenset[Any]:
    return frozenset(counts.items())


def _play(m: Session, process: StageProcess, items: tuple[Item, ...], within: str, lead: float) -> ClosedPass:
    """Simulate a pass with a lead, in a session of its own."""

    def alone(single: Session) -> tuple[StageTime, Generator[Any, Any, None]]:
        device, groups = single.simulation.device(process.device.name), dict[Any, ProcessGroup]()
        for dimension, group in process.inside.items():
            (member,) = group.members
            groups[dimension] = group.again(single, [ClassMember(member.members, device)])
        one = replace(process, device=device, groups=groups, close=never_closed, spent=StageTime())
        return one.spent, one.layer(items, within)

    return play_alone(m, process.device.name, lead, alone, _payloads(process, items))
