"""Classes of like ranks, communicators and links: one rank of a class is played for all of it.

Ranks, communicators and links are coloured by what they are, and then again and again by the colours of what they are
joined with, until no colour splits any more (colour refinement, Weisfeiler and Leman, 1968). In the partition that is
left, every flow of a class of communicators crosses as many links of each class of links as every other one, and every
link of a class carries as many flows of each class of communicators as every other one. (Where the norm of the
gradients is added up, all that moves has arrived: its few bytes share links with each other only.) Ranks of a class
begin like work at the same time. So flows of a class have one rate, and links of a class are shared out alike: the rate
is that of one flow which draws on a link as often as all flows of its class together do.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

from simperf.collectives.channels import ChannelFlow, ChannelSet
from simperf.engine.link_table import LinkClass
from simperf.training.pipelined.channels import Channels
from simperf.training.pipelined.communicators import Communicator, Payload

__all__ = ["Classes", "refine"]

#: digits to which times and bytes of like flows agree
DIGITS = 12


#: whether the norm is added up, and a link
_Name: TypeAlias = tuple[bool, str]


@dataclass(frozen=True, slots=True)
class _Lane:
    """Links on which some channels of a communicator draw alike; `kind` numbers by which, and how often."""

    communicator: int
    number: int
    kind: int
    links: Sequence[_Name]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Classes:
    """A partition of the ranks and the communicators of a job.

    Parameters
    ----------
    ranks : tuple of int
        Class of each rank, numbered by their first ranks.
    communicators : tuple of int
        Class of each communicator, numbered by the first ones.
    channels : tuple of mapping of Payload to ChannelSet
        Of the first communicator of each class: its channels, with the links of all communicators of the class.
    """

    ranks: tuple[int, ...]
    communicators: tuple[int, ...]
    channels: tuple[Mapping[Payload, ChannelSet], ...]

    @property
    def representatives(self) -> tuple[int, ...]:
        """The first rank of each class."""
        return _firsts(self.ranks)


def refine(
    looks: Sequence[Hashable],
    communicators: Sequence[Communicator],
    placed: Sequence[Channels],
    *,
    marks: Mapping[str, Hashable] | None = None,
) -> Classes:
    """The coarsest partition in which all of a class are joined alike.

    Parameters
    ----------
    looks : sequence of hashable
        What tells each rank apart by itself: its stage, its device, its speed.
    communicators : sequence of Communicator
    placed : sequence of mapping
        Channels of all that each of them does.
    marks : mapping of str to hashable, optional
        What tells links apart beside their capacities.
    """
    lanes, capacity = _lanes(communicators, placed)
    crossing: dict[_Name, list[_Lane]] = {name: [] for name in capacity}
    own: list[list[_Lane]] = [[] for _ in communicators]
    for lane in lanes:
        own[lane.communicator].append(lane)
        for name in lane.links:
            crossing[name].append(lane)
    at: list[list[tuple[int, bool]]] = [[] for _ in looks]  # communicators of each rank, and whether it sends there
    for index, one in enumerate(communicators):
        for rank in one.ranks:
            at[rank].append((index, one.directed and rank == one.ranks[0]))
    marked = marks or {}
    ranks = _numbered(looks)
    groups = _numbered([(one.dimension, _flows(all_of)) for one, all_of in zip(communicators, placed, strict=True)])
    links = dict(
        zip(capacity, _numbered([(rate, marked.get(name[1])) for name, rate in capacity.items()]), strict=True)
    )
    known, kinds = 0, max((lane.kind for lane in lanes), default=0) + 1
    while (found := len(set(ranks)) + len(set(groups)) + len(set(links.values()))) > known:
        known = found
        drawn = [[(lane.kind, *sorted([links[name] for name in lane.links])) for lane in each] for each in own]
        joined = [_of_ranks(one, ranks) for one in communicators]
        groups = _numbered(list(zip(groups, joined, map(tuple, drawn), strict=True)))
        met = [tuple(sorted((groups[index], sends) for index, sends in each)) for each in at]
        ranks = _numbered(list(zip(ranks, met, strict=True)))
        crossed = [
            (links[name], *sorted([groups[lane.communicator] * kinds + lane.kind for lane in each]))
            for name, each in crossing.items()
        ]
        links = dict(zip(crossing, _numbered(crossed), strict=True))
    return Classes(tuple(ranks), tuple(groups), tuple(_merged(groups, placed, crossing, links, capacity)))


def _of_ranks(one: Communicator, ranks: Sequence[int]) -> Hashable:
    """Classes of a communicator's ranks: of sender and receiver, or how many there are of each."""
    found = [ranks[rank] for rank in one.ranks]
    return tuple(found if one.directed else sorted(found))


def _flows(placed: Channels) -> Hashable:
    """Times and bytes of all channels of a communicator."""

    def rounded(flow: ChannelFlow) -> tuple[float, ...]:
        return tuple(float(f"{getattr(flow, key):.{DIGITS}g}") for key in _FLOW)

    return tuple((payload, tuple(map(rounded, one.flows)), one.last, one.least) for payload, one in placed.items())


def _structures(placed: Channels) -> dict[int, tuple[int, tuple[LinkClass, ...]]]:
    """Different sets of links that a communicator's channels draw on, by identity, with their numbers."""
    found: dict[int, tuple[int, tuple[LinkClass, ...]]] = {}
    for one in placed.values():
        for classes in (one.classes, one.drains):
            if classes:
                found.setdefault(id(classes), (len(found), classes))
    return found


def _lanes(communicators: Sequence[Communicator], placed: Sequence[Channels]) -> tuple[list[_Lane], dict[_Name, float]]:
    """What all communicators draw on, and the capacity of each link [B/s]."""
    lanes: list[_Lane] = []
    kinds: dict[tuple[int, tuple[int, ...]], int] = {}
    capacity: dict[_Name, float] = {}
    for index, (communicator, one) in enumerate(zip(communicators, placed, strict=True)):
        last = communicator.dimension == "norm"
        for number, classes in _structures(one).values():
            for each in classes:
                names = [(last, name) for name in each.names]
                kind = kinds.setdefault((number, each.counts), len(kinds))
                lanes.append(_Lane(index, number, kind, names, each.counts))
                capacity.update(dict.fromkeys(names, each.capacity))
    return lanes, capacity


def _merged(
    groups: Sequence[int],
    placed: Sequence[Channels],
    crossing: Mapping[_Name, Sequence[_Lane]],
    links: Mapping[_Name, int],
    capacity: Mapping[_Name, float],
) -> Iterator[dict[Payload, ChannelSet]]:
    """Channels of the first communicator of each class, with the links of all of its class."""
    names: dict[int, list[_Name]] = {}
    for name, colour in links.items():
        names.setdefault(colour, []).append(name)
    drawn: dict[tuple[int, int], list[LinkClass]] = {}  # by class and structure
    for same in names.values():
        total: dict[tuple[int, int], tuple[int, ...]] = {}
        for lane in crossing[same[0]]:
            key = groups[lane.communicator], lane.number
            before = total.get(key, (0,) * len(lane.counts))
            total[key] = tuple(a + b for a, b in zip(before, lane.counts, strict=True))
        for key, counts in total.items():
            drawn.setdefault(key, []).append(LinkClass(tuple(name for _, name in same), counts, capacity[same[0]]))
    for number, first in enumerate(_firsts(groups)):
        one = placed[first]
        merged = {key: tuple(drawn.get((number, structure), ())) for key, (structure, _) in _structures(one).items()}
        yield {
            payload: replace(each, classes=merged.get(id(each.classes), ()), drains=merged.get(id(each.drains), ()))
            for payload, each in one.items()
        }


#: numbers of a channel's flow
_FLOW = tuple(one.name for one in fields(ChannelFlow))


def _firsts(numbers: Sequence[int]) -> tuple[int, ...]:
    """Where each number stands first."""
    first: dict[int, int] = {}
    for index, number in enumerate(numbers):
        first.setdefault(number, index)
    return tuple(first.values())


def _numbered(marks: Iterable[Hashable]) -> list[int]:
    """A number for each mark, the first is 0, the next different one 1, and so on."""
    known: dict[Hashable, int] = {}
    return [known.setdefault(mark, len(known)) for mark in marks]
