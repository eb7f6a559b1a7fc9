"""The layers of a job that are closed, each played once for all stages that have it alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from simperf.execution.process_group import ProcessGroup
from simperf.execution.session import Session
from simperf.training.pipelined.classes import Classes
from simperf.training.pipelined.closed import ClosedLayer, Played, play_alone
from simperf.training.pipelined.communicators import Communicator, Payload
from simperf.training.pipelined.groups import ClassGroup, ClassMember
from simperf.training.pipelined.ledger import Ledger
from simperf.training.pipelined.stage import StageProcess, never_closed
from simperf.workload.transformers.passes import Item, Sync

__all__ = ["apart", "close_layers"]


def apart(classes: Classes, communicators: Sequence[Communicator], changed: Sequence[str]) -> frozenset[int]:
    """Classes of tensor-parallel communicators whose links carry nothing else while layers run.

    Parameters
    ----------
    classes : Classes
    communicators : sequence of Communicator
    changed : sequence of str
        Links whose capacities change.
    """
    links: dict[int, frozenset[str]] = {}
    for colour, own in enumerate(classes.channels):
        sets = (each for one in own.values() for each in (*one.classes, *one.drains))
        links[colour] = frozenset(name for each in sets for name in each.names)
    first = {colour: index for index, colour in reversed(list(enumerate(classes.communicators)))}
    used = Counter(
        name for colour, names in links.items() if communicators[first[colour]].dimension != "norm" for name in names
    )
    used.update(changed)
    return frozenset(
        colour
        for colour, names in links.items()
        if communicators[first[colour]].dimension == "tp" and all(used[name] == 1 for name in names)
    )


def close_layers(m: Session, processes: Sequence[StageProcess], closed: Callable[[StageProcess], bool]) -> None:
    """Have processes use closed layers, if all layers of the job's that are closed are bound by the device.

    Parameters
    ----------
    m : Session
    processes : sequence of StageProcess
    closed : callable
        Whether nothing outside touches what a process's layers use.
    """
    if m.mode.waits:
        return
    known: dict[Hashable, ClosedLayer] = {}
    found: list[tuple[StageProcess, dict[tuple[int, str], ClosedLayer]]] = []
    for one in processes:
        group = one.groups.get("tp")
        if not closed(one) or (group is not None and len(group.members) > 1):
            continue
        own: dict[tuple[int, str], ClosedLayer] = {}
        for items, within in passes(one):
            key = (_look(one, items), id(items), within)
            if key not in known:
                known[key] = ClosedLayer(partial(_play, m, one, items, within))
            if not known[key].bound_by_device:
                return
            own[id(items), within] = known[key]
        found.append((one, own))
    for one, own in found:
        one.close = partial(_known, own)


def passes(process: StageProcess) -> Generator[tuple[tuple[Item, ...], str], None, None]:
    """Items of all passes over layers of a process that has any, each with what it is within."""
    split, done = process.work.plan.split, set[int]()
    for chunk in process.work.chunks(process.stage):
        for layer in process.work.layers(process.stage, chunk):
            backward = (layer.input_gradients, layer.weight_gradients) if split else (layer.backward,)
            for items, within in ((layer.forward, "forward"), *((each, "backward") for each in backward)):
                if items and id(items) not in done:
                    done.add(id(items))
                    yield items, within


def _known(own: dict[tuple[int, str], ClosedLayer], items: tuple[Item, ...], within: str) -> ClosedLayer | None:
    return own.get((id(items), within))


def _payloads(items: Sequence[Item]) -> Counter[Payload]:
    """Collectives of a pass."""
    return Counter(Payload(one.name, one.nbytes) for one in items if isinstance(one, Sync))


def _look(process: StageProcess, items: Sequence[Item]) -> Hashable:
    """What the outcome of a pass depends on beside its items: the device, and the channels of its collectives."""
    group, found = process.groups.get("tp"), list[Hashable]()
    for payload in _payloads(items) if group is not None else ():
        channels = group.placed(*payload).channels if group is not None else None
        if channels is not None:
            links = Counter((each.counts, each.capacity) for each in channels.classes)
            drains = Counter((each.counts, each.capacity) for each in channels.drains)
            found.append((payload, channels.flows, channels.last, channels.least, *map(_frozen, (links, drains))))
    return id(process.device.part), process.speed, tuple(found)


def _frozen(counts: Counter[Any]) -> frozenset[Any]:
    return frozenset(counts.items())


def _play(m: Session, process: StageProcess, items: tuple[Item, ...], within: str, lead: float) -> Played:
    """Play a pass with a lead, in a session of its own."""

    def alone(single: Session) -> tuple[Ledger, Generator[Any, Any, None]]:
        device, groups = single.simulation.device(process.device.name), dict[Any, ProcessGroup]()
        group = process.groups.get("tp")
        if isinstance(group, ClassGroup):
            (member,) = group.members
            groups["tp"] = group.again(single, [ClassMember(member.members, device)])
        one = replace(process, device=device, groups=groups, close=never_closed, ledger=Ledger())
        return one.ledger, one.layer(items, within)

    payloads = _payloads(items) if "tp" in process.groups else Counter()
    return play_alone(m, process.device.name, lead, alone, payloads)
