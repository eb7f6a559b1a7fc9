"""Best-first search: layouts are simulated by rising bound until the next bound exceeds the best time so far.

What is simulated is `simperf.run` of the layout's scenario. Layouts that workers simulated ahead of a better one are
not counted: the answer is that of one worker, however many there are.
"""

from __future__ import annotations

import hashlib
import heapq
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from simperf.errors import EngineError, InputError, Problem
from simperf.study.cache import Cache, cache_folder, folder_hash, point_key
from simperf.study.executors import using, workers_of
from simperf.study.journal import Journal, canonical
from simperf.study.layouts.axes import LayoutChoice
from simperf.study.layouts.request import LayoutRequest
from simperf.study.layouts.scenarios import layout_scenario
from simperf.study.layouts.weighing import MOST_SEARCHED, WeighedLayout, WeighedMachine
from simperf.study.points import Row, Task, failed_row
from simperf.study.rows import read_row, row_problem
from simperf.study.run_point import run_task
from simperf.study.sweep import Progress
from simperf.training.pipelined.excess import refused_events

__all__ = ["MEMORY", "STEP", "TOKENS", "Searched", "search"]

#: by how much a layout is faster by its bound, at least, for a run of more events than one run simulates unasked [1]
LARGE_GAIN = 0.02
#: time that such a run takes, about [s]: without as much before the end of a search none is begun
_LARGE_RUN = 60.0

#: metric by which layouts are ranked [s]
STEP = "time per step"
#: metrics of what a layout trains in a second, and of what its fullest rank holds [B]
TOKENS, MEMORY = "tokens per second", "memory"
#: metrics above 0 without which a run is not ranked
_NEEDED = (STEP, TOKENS, MEMORY)


@dataclass(frozen=True, slots=True)
class Searched:
    """Layouts of a machine that were simulated, in the order in which the search comes to them.

    Parameters
    ----------
    machine : WeighedMachine
    played : tuple of (WeighedLayout, Row)
    left : tuple of WeighedLayout
        What was not simulated, by rising bound, some of which are tighter than those of `machine`.
    finished : bool
        Whether the search came to its end: the bound of all that is left exceeds the best time.
    large : frozenset of LayoutChoice
        Those of more events than a run simulates unasked.
    """

    machine: WeighedMachine
    played: tuple[tuple[WeighedLayout, Row], ...]
    left: tuple[WeighedLayout, ...]
    finished: bool
    large: frozenset[LayoutChoice] = frozenset()


class _Order:
    """Layouts of one machine on their way to be simulated.

    They are numbered by their bounds. The next one is that with the least bound, which is made tighter first; so they
    come by their tighter bounds, and no other's is looked for.

    Parameters
    ----------
    machine : WeighedMachine
    first : int
        Number of the first layout among those of all machines.
    top : int
        How many of the fastest are found.
    within : float
        By how much one that is not found may be faster [1].
    """

    def __init__(self, machine: WeighedMachine, first: int, top: int, within: float) -> None:
        self.machine, self.first, self.top, self.within = machine, first, top, within
        self.rows: dict[int, Row] = {}
        self._large: dict[int, float] = {}
        self.known = list(machine.fitting)
        self._ahead = [(one.bound, place) for place, one in enumerate(self.known)]
        self._tight: set[int] = set()

    def wanted(self, known: Sequence[WeighedLayout] = ()) -> int | None:
        """Place of the next layout to be simulated; None where its bound exceeds the best time so far.

        Tighter bounds are taken from `known` where it has them.
        """
        worst = self._worst(self.rows.values())
        while self._ahead:
            _, place = self._ahead[0]
            if not self._needed(self.known[place], worst):
                return None
            if place in self._tight:
                return place
            self._tight.add(place)
            found = known[place] if known and known[place] is not self.known[place] else None
            self.known[place] = found or self.machine.tightened(self.known[place])
            heapq.heapreplace(self._ahead, (self.known[place].bound, place))
        return None

    def large(self) -> int | None:
        """Place of the next layout whose run was refused for its events, and which may be clearly faster than the best.

        All of these together simulate about `MOST_SEARCHED` events at most; those that are refused again simulate none.
        """
        alone = self._alone()
        worst, known = alone._worst(alone.rows.values()), self.known
        left = MOST_SEARCHED - sum(
            events for place, events in self._large.items() if refused_events(str(self.rows[place]["error"])) is None
        )
        for place in sorted(alone.rows, key=lambda each: (known[each].bound, each)):
            if place in self._large or known[place].bound * (1.0 + max(self.within, LARGE_GAIN)) > worst:
                continue
            events = refused_events(str(alone.rows[place]["error"]))
            if events is not None and events <= left:
                self._large[place] = events
                return place
        return None

    def begin(self) -> None:
        """The layout that is wanted is simulated."""
        heapq.heappop(self._ahead)

    def _needed(self, one: WeighedLayout, worst: float) -> bool:
        """Whether a layout may be faster than a time [s] by more than is asked for."""
        return one.bound * (1.0 + self.within) <= worst

    def _worst(self, rows: Iterable[Row]) -> float:
        """Time of the slowest of the `top` fastest [s]."""
        times = sorted(step_time(row) for row in rows)
        return times[self.top - 1] if len(times) >= self.top else math.inf

    def _alone(self) -> _Order:
        """The order of one worker, as far as it would have come."""
        alone = _Order(self.machine, self.first, self.top, self.within)
        while (place := alone.wanted(self.known)) is not None and place in self.rows:
            alone.begin()
            alone.rows[place] = self.rows[place]
        return alone

    def done(self) -> Searched:
        """Layouts that one worker would have simulated, and the bounds that it would have made tighter."""
        alone = self._alone()
        taken = list(alone.rows)
        others = sorted(
            set(range(len(alone.known))).difference(taken), key=lambda place: (alone.known[place].bound, place)
        )
        left = tuple(alone.known[place] for place in others)
        worst = self._worst(alone.rows.values())
        played = tuple((alone.known[place], row) for place, row in alone.rows.items())
        large = frozenset(self.known[place].choice for place in self._large)
        return Searched(self.machine, played, left, not left or left[0].bound > worst, large)


def step_time(row: Row) -> float:
    """Time of a step [s]; infinite where the run failed."""
    return math.inf if row["error"] is not None else float(row["metrics"][STEP][0])


def search(
    request: LayoutRequest,
    machines: Sequence[WeighedMachine],
    *,
    engine: str | Executor = "serial",
    journal: str | None = None,
    fresh: bool = False,
    cache: bool = True,
    progress: Callable[[Progress], None] | None = None,
) -> list[Searched]:
    """Simulate layouts of each machine, best-first.

    Parameters
    ----------
    request : LayoutRequest
    machines : sequence of WeighedMachine
    engine, fresh, cache, progress
        As in `simperf.study.sweep.sweep`.
    journal : str, optional
        File that keeps each finished layout, from which an interrupted search continues.

    Raises
    ------
    InputError
        A journal of another search.
    """
    from simperf.version import __version__

    began, first, orders = time.monotonic(), 0, list[_Order]()
    for machine in machines:
        orders.append(_Order(machine, first, request.top, request.within))
        first += len(machine.fitting)
    with ExitStack() as stack:
        keeper = _Keeper(request, orders, cache=cache)
        stack.callback(keeper.cache.close)
        study = {"simperf": __version__, "points": 2 * first, "study": keeper.identity()}
        book = stack.enter_context(Journal(journal, study, read=keeper.read, fresh=fresh)) if journal else None
        kept = dict(book.rows) if book else {}
        resumed = len({point % first for point in kept})  # a layout of many events may have two rows
        pool = stack.enter_context(using(engine))
        running: dict[Future[Row], tuple[_Order, int, Task]] = {}
        played = failed = 0

        def told(order: _Order, place: int, row: Row) -> None:
            nonlocal played, failed
            before = order.rows.get(place)  # refused for its many events, and simulated now
            order.rows[place] = row
            played += before is None
            failed += (row["error"] is not None) - (before is not None and before["error"] is not None)
            if book is not None and row["point"] not in book.rows:
                book.add(row)
            if progress:
                progress(Progress(played, first, failed, resumed, time.monotonic() - began))

        while True:
            for order, place in _wanted(orders):
                if time.monotonic() - began > request.limit and played:
                    break
                task = keeper.task(order, place)
                known = kept.get(task["point"]) or keeper.known(task)
                order.begin()
                if known is not None:
                    told(order, place, known)
                    continue
                running[pool.submit(run_task, task)] = order, place, task
                if len(running) >= workers_of(pool):
                    break
            left = request.limit - (time.monotonic() - began)
            for order, place in _large(orders, [one for one, _, _ in running.values()]) if left > _LARGE_RUN else ():
                task = keeper.task(order, place, large=True)
                known = kept.get(task["point"]) or keeper.known(task)
                running[pool.submit(run_task, task) if known is None else _known(known)] = order, place, task
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                order, place, task = running.pop(future)
                error = future.exception()
                if error is not None and (not isinstance(error, Exception) or isinstance(error, EngineError)):
                    raise error
                row = failed_row(task, f"{type(error).__name__}: {error}") if error else future.result()
                if error is None:
                    keeper.keep(task, row)
                told(order, place, row)
    return [order.done() for order in orders]


def _known(row: Row) -> Future[Row]:
    """A run that was made before."""
    found: Future[Row] = Future()
    found.set_result(row)
    return found


def _wanted(orders: Sequence[_Order]) -> Iterator[tuple[_Order, int]]:
    """Layouts that are to be simulated, one of each machine in turn."""
    going = list(orders)
    while going:
        for order in list(going):
            place = order.wanted()
            if place is None:
                going.remove(order)
            else:
                yield order, place


def _large(orders: Sequence[_Order], busy: Sequence[_Order]) -> Iterator[tuple[_Order, int]]:
    """Layouts of many events that are to be simulated, one of each machine of which nothing else is.

    One at a time: so what is simulated does not depend on the number of workers.
    """
    for order in orders:
        if order not in busy and order.wanted() is None and (place := order.large()) is not None:
            yield order, place


class _Keeper:
    """Tasks of layouts, and rows of earlier runs of them."""

    def __init__(self, request: LayoutRequest, orders: Sequence[_Order], *, cache: bool) -> None:
        self.request, self.orders = request, orders
        self.cache = Cache(cache_folder() if cache else None)
        self._cached = cache
        self._files: str | None = None
        self._total = sum(len(order.machine.fitting) for order in orders)

    def task(self, order: _Order, place: int, *, large: bool = False) -> Task:
        """The task that simulates a layout; where it is `large`, of as many events as a search may have of such."""
        one = order.machine.fitting[place]
        return {
            "point": order.first + place + (self._total if large else 0),
            "set": {},
            "seed": 0,
            "samples": 0,
            "record": False,
            "data": layout_scenario(self.request, order.machine.machine, one.choice),
            "folder": self.request.folder,
            "path": str(Path(self.request.toml.path).absolute()) if self.request.toml.path else "",
            "name": one.choice.name,
            **({"most": MOST_SEARCHED} if large else {}),
        }

    def identity(self) -> str:
        """Hash of all layouts that may be simulated."""
        digest = hashlib.sha256(canonical([self.request.base, self.request.batch, self.request.force]).encode())
        for order in self.orders:
            digest.update(canonical([order.machine.machine.table, order.machine.machine.gpus]).encode())
            for one in order.machine.fitting:
                digest.update(repr((one.choice, one.bound)).encode())
        return digest.hexdigest()

    def read(self, text: bytes) -> Row:
        """The row of a journal's line."""
        row = read_row(text)
        number = row.get("point")
        large = type(number) is int and self._total <= number
        for order in self.orders:
            place = number - order.first - large * self._total if type(number) is int else -1
            if 0 <= place < len(order.machine.fitting):
                if wrong := row_problem(row, self.task(order, place, large=large), needs=_NEEDED):
                    raise InputError(Problem(wrong))
                return row
        raise InputError(Problem("point: not one of the study"))

    def known(self, task: Task) -> Row | None:
        """The row of a run that was made before."""
        if not self._cached:
            return None

        def read(text: bytes) -> Row:
            row = read_row(text)
            if wrong := row_problem(row, task, numbered=False, needs=_NEEDED):
                raise InputError(Problem(wrong))
            return row

        row = self.cache.get(self._key(task), read)
        return None if row is None else {**row, "point": task["point"]}

    def keep(self, task: Task, row: Row) -> None:
        """Keep a row for later runs."""
        if self._cached:
            self.cache.put(self._key(task), row)

    def _key(self, task: Task) -> str:
        if self._files is None:
            self._files = folder_hash(task["data"], task["folder"], named={})
        return point_key(task, files=self._files)
