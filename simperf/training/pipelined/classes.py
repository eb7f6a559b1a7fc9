"""Classes of like ranks, communicators and links: one rank of a class is simulated for all of it.

Ranks, communicators and links are coloured by what they are, and then again and again by the colours of what they are
joined with, until no colour splits any more (colour refinement, Weisfeiler and Leman, 1968). In the partition that is
left, every flow of a class of communicators crosses as many links of each class of links as every other one, and every
link of a class carries as many flows of each class of communicators as every other one. (Where the norm of the
gradients is added up, all that moves has arrived: its few bytes share links with each other only.) Ranks of a class
begin like work at the same time. So flows of a class have one rate, and links of a class are shared out alike: the rate
is that of one flow which draws on a link as often as all flows of its class together do.

Like flows of one set of channels, such as those by which a switch adds up the part of each rank, count as one kind: a
link is looked at by how often it carries them in ascending order, whichever of them are which. That holds where all
links that are alike but for this are of one class at the end, so that these flows have one rate; otherwise links are
distinguished by each flow.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from simperf.collectives.channels import ChannelFlow
from simperf.collectives.execute import PlacedPlan
from simperf.engine.link_table import LinkClass
from simperf.layout.distinct import distinct
from simperf.layout.flow_classes import float_words, mix_words
from simperf.layout.rank_classes import numbered
from simperf.training.pipelined.channels import Pattern, Placed, Plans, structures
from simperf.training.pipelined.communicators import AROUND, INSIDE, Communicator, Payload
from simperf.training.pipelined.link_numbers import IntArray, LinkNumbers, NumberedNames

__all__ = ["Classes", "refine"]

#: digits to which times and bytes of like flows agree
DIGITS = 12

Words = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Classes:
    """A partition of the ranks and the communicators of a job.

    Parameters
    ----------
    ranks : tuple of int
        Class of each rank, numbered by their first ranks.
    communicators : tuple of int
        Class of each communicator, numbered by the first ones.
    plans : tuple of mapping of Payload to PlacedPlan
        Of the first communicator of each class: its plans, whose channels draw on the links of all communicators of
        the class.
    in_turn : frozenset of (int, int)
        Classes of communicators inside of layers and of those of gradients and weights, of which any two that share a
        link have a rank in common: what they do takes turns, in the order in which that rank does it.
    """

    ranks: tuple[int, ...]
    communicators: tuple[int, ...]
    plans: tuple[Plans, ...]
    in_turn: frozenset[tuple[int, int]] = frozenset()

    @property
    def representatives(self) -> tuple[int, ...]:
        """The first rank of each class."""
        return tuple(_firsts(self.ranks))


@dataclass(frozen=True, eq=False, slots=True)
class _Draws:
    """Links that communicators draw on: an entry for each link of each set of channels, in the communicators' order.

    Parameters
    ----------
    communicator, structure : numpy.ndarray of int64, shape (entries,)
        Whose entry it is, and of which of its sets of channels.
    kind : numpy.ndarray of int64, shape (entries,)
        Numbers by which channels, and how often.
    link : numpy.ndarray of int64, shape (entries,)
        Index of the link, in the order in which they are met.
    names : numpy.ndarray of int64, shape (links,)
        Number of each link.
    capacity : numpy.ndarray of float64, shape (links,)
        Of each link [B/s].
    counts : sequence of tuple of int
        How often each channel of a set draws on a link, by kind.
    origin : numpy.ndarray of int64, shape (entries,)
        The kind before like flows count as one.
    together : numpy.ndarray of int64, shape (entries,)
        Number of which flows count as one; -1 for none.
    alike : sequence of tuple of int
        Numbers of flows by that number, the same for those that count as one.
    """

    communicator: IntArray
    structure: IntArray
    kind: IntArray
    link: IntArray
    names: IntArray
    capacity: npt.NDArray[np.float64]
    counts: Sequence[tuple[int, ...]]
    origin: IntArray
    together: IntArray
    alike: Sequence[tuple[int, ...]]


def refine(
    looks: Sequence[Hashable],
    communicators: Sequence[Communicator],
    placed: Sequence[Placed],
    links: LinkNumbers,
    *,
    marks: Mapping[str, Hashable] | None = None,
) -> Classes:
    """The coarsest partition in which all of a class are joined alike.

    Parameters
    ----------
    looks : sequence of hashable
        What tells each rank apart by itself: its stage, its device, its speed.
    communicators : sequence of Communicator
    placed : sequence of Placed
        Where each of them is.
    links : LinkNumbers
        That they draw on.
    marks : mapping of str to hashable, optional
        What tells links apart beside their capacities.
    """
    found = _refined(looks, communicators, placed, links, marks or {}, _draws(communicators, placed, together=True))
    if found is None:
        found = _refined(looks, communicators, placed, links, marks or {}, _draws(communicators, placed))
    assert found is not None  # no flows count as one
    return found


def _refined(
    looks: Sequence[Hashable],
    communicators: Sequence[Communicator],
    placed: Sequence[Placed],
    links: LinkNumbers,
    marks: Mapping[str, Hashable],
    draws: _Draws,
) -> Classes | None:
    """The partition by what links are drawn on; None if like flows that count as one have several rates."""
    sizes = [len(one.ranks) for one in communicators]
    member = np.fromiter((rank for one in communicators for rank in one.ranks), dtype=np.int64, count=sum(sizes))
    joined = np.repeat(np.arange(len(sizes)), sizes)
    role = np.zeros(len(member), dtype=np.uint64)  # of a sender, and of a receiver
    ways = np.flatnonzero(np.repeat(np.array([one.directed for one in communicators], dtype=bool), sizes))
    role[ways[::2]], role[ways[1::2]] = 1, 2
    kind = mix_words(draws.kind.astype(np.uint64))
    ranks = mix_words(np.array(numbered(looks), dtype=np.uint64))
    groups = mix_words(np.array(_looks(communicators, placed), dtype=np.uint64))
    own = mix_words(float_words(draws.capacity) + mix_words(_marked(draws.names, links, marks)))
    known = 0
    while (found := sum(len(np.unique(words)) for words in (ranks, groups, own))) > known:
        known = found
        drawn = _sums(draws.communicator, mix_words(own[draws.link] + kind), len(groups))
        met = _sums(joined, mix_words(ranks[member] + role), len(groups))
        groups = mix_words(mix_words(groups + mix_words(drawn)) + met)
        ranks = mix_words(ranks + _sums(member, mix_words(groups[joined] + role), len(ranks)))
        own = mix_words(own + _sums(draws.link, mix_words(groups[draws.communicator] + kind), len(own)))
    classes, colours = _in_order(groups), _in_order(own)
    if not _like(draws, colours):
        return None
    plans = _merged(classes, placed, draws, colours, links)
    turns = _in_turn(classes, communicators, draws)
    return Classes(tuple(_in_order(ranks).tolist()), tuple(classes.tolist()), tuple(plans), turns)


def _draws(communicators: Sequence[Communicator], placed: Sequence[Placed], *, together: bool = False) -> _Draws:
    """Links that all communicators draw on; those of the norm are others, though they may have the same names.

    Parameters
    ----------
    communicators, placed
        As of `refine`.
    together : bool
        Whether like flows of a set count as one kind.
    """
    alike: dict[tuple[int, tuple[str, ...], bool], list[int]] = {}
    for index, (one, at) in enumerate(zip(communicators, placed, strict=True)):
        alike.setdefault((id(at.pattern), at.switches, one.dimension == "norm"), []).append(index)
    kinds: dict[tuple[int, ...], int] = {}
    same: dict[tuple[int, ...], int] = {}  # which flows count as one
    columns: list[list[IntArray]] = [[np.zeros(0, dtype=np.int64)] for _ in range(6)]
    rates = [np.zeros(0)]
    for (_, switches, last), several in alike.items():
        pattern: Pattern = placed[several[0]].pattern
        rows = np.array([placed[index].servers for index in several], dtype=np.int64).reshape(len(several), -1)
        numbers = 2 * pattern.numbers(rows, switches) + last
        each = pattern.structure, *_kinds(pattern, kinds, same, together=together)
        found = np.repeat(several, len(pattern.kind)), numbers.ravel(), *(np.tile(one, len(several)) for one in each)
        for column, values in zip(columns, found, strict=True):
            column.append(values)
        rates.append(np.tile(pattern.capacity, len(several)))
    communicator, numbers, structure, kind, origin, together_by = (np.concatenate(column) for column in columns)
    capacity = np.concatenate(rates)
    order = np.argsort(communicator, kind="stable")
    names, first, link = np.unique(numbers[order], return_index=True, return_inverse=True)
    met = np.argsort(first)
    place = np.empty_like(met)
    place[met] = np.arange(len(met))
    of_kind = kind[order] + len(kinds) * structure[order]
    return _Draws(
        communicator[order],
        structure[order],
        of_kind,
        place[link],
        names[met],
        capacity[order][first[met]],
        list(kinds),
        origin[order],
        together_by[order],
        list(same),
    )


def _kinds(
    pattern: Pattern, kinds: dict[tuple[int, ...], int], alike: dict[tuple[int, ...], int], *, together: bool
) -> tuple[IntArray, IntArray, IntArray]:
    """For each entry, how often its channels draw on the link: to distinguish links, and in fact.

    Where like flows count as one, the third has the number of which flows are alike; -1 elsewhere.
    """
    flows = {
        id(each): one.channels.flows
        for one in pattern.plans.values()
        if one.channels is not None
        for each in (one.channels.classes, one.channels.drains)
    }
    of_structure = {number: _alike(flows[key]) for key, (number, _) in structures(pattern.plans).items()}
    known: dict[tuple[int, int], tuple[int, int, int]] = {}
    entries = list(zip(pattern.structure.tolist(), pattern.kind.tolist(), strict=True))
    for entry in dict.fromkeys(entries):
        own, counts = of_structure[entry[0]], pattern.counts[entry[1]]
        number = kinds.setdefault(counts, len(kinds))
        if together and len(set(own)) < len(own) == len(counts):
            one = kinds.setdefault(_ascending(counts, own), len(kinds))
            known[entry] = one, number, alike.setdefault(own, len(alike))
        else:
            known[entry] = number, number, -1
    found = np.array([known[entry] for entry in entries], dtype=np.int64).reshape(-1, 3)
    return found[:, 0], found[:, 1], found[:, 2]


def _alike(flows: Sequence[ChannelFlow]) -> tuple[int, ...]:
    """The number of each flow, the same for like ones."""
    return tuple(numbered(map(_rounded, flows)))


def _ascending(counts: tuple[int, ...], alike: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers of times that flows draw on a link, those of like ones in ascending order."""
    waiting = {one: iter(sorted(c for c, own in zip(counts, alike, strict=True) if own == one)) for one in set(alike)}
    return tuple(next(waiting[one]) for one in alike)


def _like(draws: _Draws, colours: IntArray) -> bool:
    """Whether flows that count as one draw as often on links of each class."""
    for number, own in enumerate(draws.alike):
        which = np.flatnonzero(draws.together == number)
        counts = np.array(draws.counts, dtype=object)[draws.origin[which]]
        rows = np.array(counts.tolist(), dtype=np.uint64)  # of each entry, how often each flow draws on its link
        _, key = np.unique(np.stack([draws.communicator[which], draws.structure[which]]), axis=1, return_inverse=True)
        words = mix_words(colours[draws.link[which]].astype(np.uint64) + np.uint64(1))[:, None] * rows
        total = np.zeros((int(key.max()) + 1, len(own)), dtype=np.uint64)
        np.add.at(total, key.ravel(), words)
        for one in set(own):
            several = total[:, [index for index, each in enumerate(own) if each == one]]
            if (several != several[:, :1]).any():
                return False
    return True


def _looks(communicators: Sequence[Communicator], placed: Sequence[Placed]) -> list[int]:
    """Numbers of what communicators do, wherever they are."""
    flows: dict[int, Hashable] = {}
    for at in placed:
        if id(at.pattern) not in flows:
            flows[id(at.pattern)] = _flows(at.pattern.plans)
    number = dict(zip(flows, numbered(flows.values()), strict=True))
    return numbered((one.dimension, number[id(at.pattern)]) for one, at in zip(communicators, placed, strict=True))


def _flows(plans: Plans) -> Hashable:
    """Times and bytes of all channels of a communicator."""
    sets = [(payload, plan.blocks, plan.channels) for payload, plan in plans.items() if plan.channels is not None]
    return tuple((*known, tuple(map(_rounded, one.flows)), one.last, one.least) for *known, one in sets)


def _rounded(flow: ChannelFlow) -> tuple[float, ...]:
    return tuple(float(f"{getattr(flow, key):.{DIGITS}g}") for key in _FLOW)


def _marked(names: IntArray, links: LinkNumbers, marks: Mapping[str, Hashable]) -> Words:
    """Marks that tell links apart beside their capacities, by the numbers of their names."""
    found = np.zeros(len(names), dtype=np.uint64)
    if marks:
        number = dict(zip(marks, numbered(marks.values()), strict=True))
        for index, name in enumerate((names >> 1).tolist()):
            found[index] = 1 + number.get(links.name(name), -1)
    return found


def _merged(
    classes: IntArray, placed: Sequence[Placed], draws: _Draws, colours: IntArray, links: LinkNumbers
) -> list[dict[Payload, PlacedPlan]]:
    """Plans of the first communicator of each class, with the links of all of its class."""
    firsts = np.array(_firsts(colours.tolist()), dtype=np.int64)
    order = np.argsort(colours, kind="stable")
    several = np.split(draws.names[order] >> 1, np.cumsum(np.bincount(colours, minlength=len(firsts)))[:-1])
    names = [NumberedNames(links, numbers) for numbers in several]
    drawn: dict[tuple[int, int], dict[int, tuple[int, ...]]] = {}  # by class and structure: draws on each colour
    of_first = np.flatnonzero(firsts[colours[draws.link]] == draws.link)
    rows = colours[draws.link[of_first]], classes[draws.communicator[of_first]]
    entries = zip(*(row.tolist() for row in (*rows, draws.structure[of_first], draws.kind[of_first])), strict=True)
    for colour, group, structure, kind in sorted(entries):
        counts, own = draws.counts[kind % len(draws.counts)], drawn.setdefault((group, structure), {})
        before = own.get(colour, (0,) * len(counts))
        own[colour] = tuple(a + b for a, b in zip(before, counts, strict=True))
    capacity = draws.capacity[firsts].tolist()
    found = []
    for number, first in enumerate(_firsts(classes.tolist())):
        plans = placed[first].pattern.plans
        merged = {
            key: tuple(LinkClass(names[c], n, capacity[c]) for c, n in drawn.get((number, structure), {}).items())
            for key, (structure, _) in structures(plans).items()
        }
        found.append({payload: _drawing(plan, merged) for payload, plan in plans.items()})
    return found


def _in_turn(classes: IntArray, communicators: Sequence[Communicator], draws: _Draws) -> frozenset[tuple[int, int]]:
    """Classes inside of layers and around them that take turns wherever they share links."""
    inside = np.array([one.dimension in INSIDE for one in communicators], dtype=bool)
    around = np.array([one.dimension in AROUND for one in communicators], dtype=bool)
    layers, others = (draws.link[which[draws.communicator]] for which in (inside, around))
    shared = np.isin(draws.link, np.intersect1d(layers, others))
    of_link: dict[int, tuple[set[int], set[int]]] = {}
    for link, one in zip(draws.link[shared].tolist(), draws.communicator[shared].tolist(), strict=True):
        own = of_link.setdefault(link, (set(), set()))
        if inside[one] or around[one]:
            own[0 if inside[one] else 1].add(one)
    pairs = {(one, other) for mine, others in of_link.values() for one in mine for other in others}
    ranks: dict[int, frozenset[int]] = {}
    turns: dict[tuple[int, int], bool] = {}
    for pair in pairs:
        one, other = (ranks.setdefault(index, frozenset(communicators[index].ranks)) for index in pair)
        key = int(classes[pair[0]]), int(classes[pair[1]])
        turns[key] = turns.get(key, True) and not one.isdisjoint(other)
    return frozenset(key for key, whether in turns.items() if whether)


def _drawing(plan: PlacedPlan, merged: Mapping[int, tuple[LinkClass, ...]]) -> PlacedPlan:
    """The plan with other links in place of its sets of links, by the identity of these."""
    one = plan.channels
    assert one is not None
    own, drains = merged.get(id(one.classes), ()), merged.get(id(one.drains), ())
    return replace(plan, channels=replace(one, classes=own, drains=drains))


#: numbers of a channel's flow
_FLOW = tuple(one.name for one in fields(ChannelFlow))


def _sums(index: IntArray, words: Words, size: int) -> Words:
    """Sums of words by index, whatever their order is."""
    found = np.zeros(size, dtype=np.uint64)
    np.add.at(found, index, words)
    return found


def _in_order(words: Words) -> IntArray:
    """A number for each different word, the first is 0, the next different one 1, and so on."""
    if not len(words):
        return np.zeros(0, dtype=np.int64)
    _, first, of = distinct(words)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return place[of]


def _firsts(numbers: Sequence[int]) -> list[int]:
    """Index at which each number stands first."""
    first: dict[int, int] = {}
    for index, number in enumerate(numbers):
        first.setdefault(number, index)
    return list(first.values())
