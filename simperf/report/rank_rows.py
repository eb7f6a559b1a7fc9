"""Rows of ranks: a process for each rank that is shown, with a thread for its host and for each of its streams.

One rank of each class of like ranks is simulated, and the others do the same at the same times. So a rank that was not
simulated is shown by the rows of the one that stands for it, under a name that says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from simperf.errors import InputError, Problem
from simperf.report.flows import LAUNCHES, FlowArrow
from simperf.report.lanes import TimelineRow, natural
from simperf.results import Result
from simperf.time_use import PRECEDENCE, RankClass

__all__ = ["ShownRows", "show_ranks"]

#: the stream that kernels run on, and the threads of the host's launches and of the computation
_MAIN, _HOST, _COMPUTE = "stream0", "host", "compute"
#: streams of messages between stages begin with it
_MESSAGES = "pipeline"
#: threads in the order in which they are shown, by the first words of their names
_ORDER = (_COMPUTE, _HOST, *PRECEDENCE)
#: spans that are written for ranks that were chosen, at most
_MOST = 10_000_000


@dataclass(frozen=True, slots=True)
class ShownRows:
    """Rows and arrows that a trace shows.

    Parameters
    ----------
    rows : list of TimelineRow
    flows : list of FlowArrow
    names : mapping of str to tuple of str
        Names of the processes that show a node; one that is not there has its own.
    whole : bool
        Whether everything is shown: not only ranks that were chosen.
    """

    rows: list[TimelineRow]
    flows: list[FlowArrow]
    names: Mapping[str, tuple[str, ...]]
    whole: bool

    def processes(self, owner: str) -> tuple[str, ...]:
        """Processes that show what belongs to a node."""
        return self.names.get(owner, (owner,) if self.whole else ())


@dataclass(frozen=True, slots=True)
class _Rank:
    """A rank that is shown: its number, its node, the device that was simulated for it, and its class."""

    number: int
    node: str
    device: str
    like: RankClass

    @property
    def name(self) -> str:
        """Of its process."""
        rest, places = self.number, []
        for dimension, size in self.like.mesh:
            rest, place = divmod(rest, size)
            places.append(f"{dimension} {place}")
        found = f"rank {self.number}: {', '.join([*places, self.node])}"
        if self.number != self.like.numbers[0]:
            return f"{found} (as rank {self.like.numbers[0]})"
        return found

    def thread(self, row: TimelineRow) -> str | None:
        """Name of the thread that shows a row; None if it does not belong to the rank."""
        if row.owner == self.device:
            return self._stream(row.name)
        first = self.like.numbers[0]
        own = {f"rank{first}": _HOST, f"rank{first} {LAUNCHES}": f"{_HOST} {LAUNCHES}"}
        return own.get(row.name)

    def _stream(self, name: str) -> str:
        dimensions = dict(self.like.streams)
        if name not in dimensions:
            return _COMPUTE if name == _MAIN and self.like.mesh else name
        dimension = dimensions[name]
        alike = [one for one, other in dimensions.items() if other == dimension]
        first, _, rest = name.partition(" ")
        if first == _MESSAGES:
            return f"{dimension} {rest}".strip()
        return dimension if name == alike[0] else f"{dimension} {name}"


def show_ranks(
    result: Result, rows: Sequence[TimelineRow], flows: Sequence[FlowArrow], ranks: Sequence[int] | None = None
) -> ShownRows:
    """Rows and arrows that a trace shows of a run.

    Parameters
    ----------
    result : Result
    rows : sequence of TimelineRow
    flows : sequence of FlowArrow
        Between them.
    ranks : sequence of int, optional
        Numbers of the ranks that are shown, and nothing else; without them everything that was simulated is, ranks of a
        layout by their coordinates.

    Raises
    ------
    InputError
        The run has no numbered ranks, one of `ranks` is none of them, or too much would be written.
    """
    chosen = _simulated(result) if ranks is None else _chosen(result, ranks)
    if ranks is None and not chosen:
        return ShownRows(list(rows), list(flows), {}, True)
    shown: list[TimelineRow] = []
    copies: list[dict[int, int]] = []
    of_ranks: set[int] = set()
    names: dict[str, tuple[str, ...]] = {}
    for rank in chosen:
        copy: dict[int, int] = {}
        mine: list[TimelineRow] = []
        for row in rows:
            if (thread := rank.thread(row)) is not None:
                mine.append(replace(row, owner=rank.name, name=thread))
                copy[id(row)] = id(mine[-1])
        shown += sorted(mine, key=_place)
        copies.append(copy)
        of_ranks |= set(copy)
        names[rank.device] = (*names.get(rank.device, ()), rank.name)
    if ranks is not None and (count := sum(len(row.spans) for row in shown)) > _MOST:
        message = f"{count:,} spans would be written for {len(chosen)} ranks"
        raise InputError(Problem(message, key="ranks", expected=f"{_MOST:,} spans at most: fewer ranks"))
    others = [row for row in rows if id(row) not in of_ranks] if ranks is None else []
    copies.append({id(row): id(row) for row in others})
    between = [*_copied(flows, copies), *(_crossing(flows, copies) if ranks is None else ())]
    return ShownRows([*others, *shown], between, names, ranks is None)


def _place(row: TimelineRow) -> tuple[object, ...]:
    """Sort key of a thread within its process."""
    first = row.name.partition(" ")[0]
    return _ORDER.index(first) if first in _ORDER else len(_ORDER), natural(row.name), row.lane


def _copied(flows: Sequence[FlowArrow], copies: Sequence[Mapping[int, int]]) -> Iterator[FlowArrow]:
    """Arrows within each of the processes."""
    for copy in copies:
        for kind, source, target in flows:
            ends = [spot for spot in (source, target) if spot is not None]
            if ends and all(spot[0] in copy for spot in ends):
                mine, other = (spot and (copy[spot[0]], spot[1]) for spot in (source, target))
                yield FlowArrow(kind, mine, other)


def _crossing(flows: Sequence[FlowArrow], copies: Sequence[Mapping[int, int]]) -> Iterator[FlowArrow]:
    """Arrows from a process to another one, and those without ends."""
    place = {row: (index, new) for index, copy in enumerate(copies) for row, new in copy.items()}
    for kind, source, target in flows:
        if source is None and target is None:
            yield FlowArrow(kind, None, None)
        elif source is not None and target is not None and place[source[0]][0] != place[target[0]][0]:
            yield FlowArrow(kind, (place[source[0]][1], source[1]), (place[target[0]][1], target[1]))


def _simulated(result: Result) -> list[_Rank]:
    """Ranks of a layout that were simulated, in order."""
    found = [
        _Rank(one.numbers[0], device, device, one) for device, one in result.ranks.items() if one.numbers and one.mesh
    ]
    return sorted(found, key=lambda rank: rank.number)


def _chosen(result: Result, ranks: Iterable[int]) -> list[_Rank]:
    """Ranks by their numbers, each once.

    Raises
    ------
    InputError
        One of them is none, or the run has none that are numbered.
    """
    known = {
        number: _Rank(number, node, device, one)
        for device, one in result.ranks.items()
        for number, node in zip(one.numbers, one.members, strict=False)
    }
    wanted = sorted(dict.fromkeys(ranks))
    if not known:
        message = "this run has no ranks by number"
        raise InputError(Problem(message, key="ranks", expected="none: a run of DDP or ModelParallel has them"))
    wrong = [number for number in wanted if number not in known]
    if wrong or not wanted:
        value = ", ".join(map(str, wrong)) or "none"
        raise InputError(Problem("no such rank", key="ranks", value=value, expected=f"0 to {max(known)}"))
    return [known[number] for number in wanted]
