"""The timeline as a trace for Perfetto (ui.perfetto.dev) and chrome://tracing.

Format: N. Duca and D. Sinclair, "Trace Event Format" (2016), as Perfetto's trace processor reads it:

- Times are microseconds with three decimals: whole nanoseconds, which is what trace processors keep.
- A span is a begin and an end event. Of all that happens within one nanosecond, ends are taken
  first; so a span that has no length on this grid is a complete event of length 0.
- An arrow is bound to the span that is open where it is written: its start follows the begin of
  its cause at once, its end that of its effect.
- A thread ``receive`` of each node has the moments at which bytes have arrived there; a thread ``python launches``
  those at which the thread ``python`` launched what takes it no time.
- Each rank of a layout is a process, named by its coordinates.

What a viewer could not show is left out and counted in ``otherData``.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from simperf.engine.tracks import split_track
from simperf.files import write_packed
from simperf.report.flows import FlowArrow, Spot, arrivals, launches
from simperf.report.lanes import TimelineRow, natural, ordered, rows
from simperf.report.rank_rows import ShownRows, show_ranks
from simperf.results import Result

__all__ = ["save_trace", "trace_bytes"]

_UNITS = {"memory held": "B", "rate": "B/s", "queue length": "launches"}
#: moments within one nanosecond of one row; trace processors nest them, and no deeper than 512
_PILE = 256
#: order of what happens within one nanosecond
_END, _BEGIN, _REACH = range(3)

Timed = tuple[int, int, str]  # time [ns], order, the events as JSON
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_text = lru_cache(maxsize=65536)(_encode)


def trace_bytes(result: Result, *, ranks: Sequence[int] | None = None) -> bytes:
    """The trace as JSON, one event a line; the same result gives the same bytes.

    Parameters
    ----------
    result : Result
    ranks : sequence of int, optional
        Ranks that are shown, and nothing else (`simperf.report.rank_rows`).

    Raises
    ------
    InputError
        There are no such ranks.
    """
    layout = rows(result)
    received, sends = arrivals(layout)
    launched, flows = launches(result, layout)
    shown = show_ranks(result, ordered([*layout, *received, *launched]), [*flows, *sends], ranks)
    layout, flows = shown.rows, shown.flows
    owners = list(dict.fromkeys(row.owner for row in layout))
    counted = {_counter_place(track, name, result)[0] for track, name in {sample[:2] for sample in result.samples}}
    owners += sorted({one for owner in counted for one in shown.processes(owner)} - set(owners), key=natural)
    processes = {name: index for index, name in enumerate(owners, 1)}
    places = {id(row): f'"pid":{processes[row.owner]},"tid":{index}' for index, row in enumerate(layout, 1)}
    hidden = _hidden(layout)
    leave, reach, late = _bound(flows, {id(row): row for row in layout}, places, hidden)
    timed: list[Timed] = []
    for row in layout:
        timed += _spans(row, places[id(row)], hidden, leave, reach)
    timed += late
    timed += _counters(result, processes, shown)
    timed.sort(key=lambda entry: entry[:2])  # stable: each thread's own order within a nanosecond stays
    other = {
        "name": result.name,
        "time": f"{result.time!r} s",
        "seed": result.seed,
        "version": result.version,
        "arrows not drawn": len(flows) - sum(len(lines) for lines in leave.values()),
        "moments not drawn": len(hidden),
    }
    lines = [*_names(layout, processes), *(line for _, _, line in timed)]
    text = f'{{"displayTimeUnit":"ns","otherData":{_encode(other)},"traceEvents":[\n' + ",\n".join(lines) + "\n]}\n"
    return text.encode()


def save_trace(result: Result, path: str | os.PathLike[str], *, ranks: Sequence[int] | None = None) -> None:
    """Write the trace to `path`, gzipped if it ends in ``.gz``; whole or not at all.

    Raises
    ------
    InputError
        The file cannot be written, or there are no such `ranks`.
    """
    write_packed(path, trace_bytes(result, ranks=ranks))


def _grid(time: float) -> int:
    """`time` [s] in whole ns."""
    return round(time * 1e9)


def _stamp(grid: int) -> str:
    return f'"ts":{grid // 1000}.{grid % 1000:03d}'


def _names(layout: Iterable[TimelineRow], processes: Mapping[str, int]) -> Iterator[str]:
    def name(what: str, pid: int, tid: int, **args: Any) -> str:
        return _encode({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args})

    for owner, pid in processes.items():
        yield name("process_name", pid, 0, name=owner)
        yield name("process_sort_index", pid, 0, sort_index=pid)
    for tid, row in enumerate(layout, 1):
        yield name("thread_name", processes[row.owner], tid, name=row.label)
        yield name("thread_sort_index", processes[row.owner], tid, sort_index=tid)


def _hidden(layout: Iterable[TimelineRow]) -> set[Spot]:
    """Moments that come after `_PILE` others within the same nanosecond of a row."""
    found: set[Spot] = set()
    for row in layout:
        now, piled = -1, 0
        for index, span in enumerate(row.spans):
            start = _grid(span.start)
            if start == _grid(span.end):
                now, piled = start, piled + 1 if start == now else 1
                if piled > _PILE:
                    found.add((id(row), index))
    return found


def _bound(
    flows: Iterable[FlowArrow], layout: Mapping[int, TimelineRow], places: Mapping[int, str], hidden: set[Spot]
) -> tuple[dict[Spot, list[str]], dict[Spot, list[str]], list[Timed]]:
    """Events of all arrows that can be drawn: starts and ends by the span that they follow, and the late ends.

    An effect may begin with its cause. Its arrow's end then waits for all starts of the same
    nanosecond, and is bound to what is open by then, which a moment is not.
    """
    leave: dict[Spot, list[str]] = {}
    reach: dict[Spot, list[str]] = {}
    late: list[Timed] = []
    for number, (kind, source, target) in enumerate(flows):
        if source is None or target is None or source in hidden or target in hidden:
            continue
        cause, effect = (layout[row].spans[index] for row, index in (source, target))
        start, end = _grid(cause.start), _grid(effect.start)
        if start > end or (start == end == _grid(effect.end)):
            continue
        what = f'"name":"{kind}","cat":"{kind}","id":{number}'
        leave.setdefault(source, []).append(f'{{"ph":"s",{what},{_stamp(start)},{places[source[0]]}}}')
        line = f'{{"ph":"f","bp":"e",{what},{_stamp(end)},{places[target[0]]}}}'
        if start < end:
            reach.setdefault(target, []).append(line)
        else:
            late.append((end, _REACH, line))
    return leave, reach, late


def _spans(
    row: TimelineRow, place: str, hidden: set[Spot], leave: Mapping[Spot, list[str]], reach: Mapping[Spot, list[str]]
) -> Iterator[Timed]:
    """Begin and end of each span, with the arrows that it has; of those that end together the inner one first."""
    stack: list[int] = []

    def end(time: int) -> Timed:
        return time, _END, f'{{"ph":"E",{_stamp(time)},{place}}}'

    for index, span in enumerate(row.spans):
        spot, start, stop = (id(row), index), _grid(span.start), _grid(span.end)
        while stack and stack[-1] <= start:
            yield end(stack.pop())
        if spot in hidden:
            continue
        what = f'"name":{_text(span.name)},"cat":"{span.category}",{_stamp(start)},{place}'
        if stop > start:
            stack.append(stop)
            begin = f'{{"ph":"B",{what}}}'
        else:
            begin = f'{{"ph":"X","dur":0,{what}}}'
        yield start, _BEGIN, ",\n".join((begin, *leave.get(spot, ()), *reach.get(spot, ())))
    while stack:
        yield end(stack.pop())


def _counter_place(track: str, name: str, result: Result) -> tuple[str, str, str]:
    """Process, name and unit of a counter; a link's capacity is shown beside its rate."""
    if name == "capacity":
        return "network", f"{name} {track}", "B/s"
    owner, lane = split_track(track, result.resources)
    unit = next((unit for start, unit in _UNITS.items() if name.startswith(start)), "value")
    return owner, f"{lane} {name}".strip(), unit


def _counters(result: Result, processes: Mapping[str, int], shown: ShownRows) -> Iterator[Timed]:
    """Every sample that is shown; for links of known capacity also the share of it that is used."""
    capacity = {name: use.capacity for name, use in result.resources.items() if use.kind == "link"}
    rates: dict[str, float] = {}
    shares: dict[tuple[int, str], tuple[str, float]] = {}
    known: dict[tuple[str, str], tuple[list[tuple[str, str]], str]] = {}

    def event(grid: int, what: str, unit: str, value: float) -> Timed:
        return grid, _REACH, f'{{"ph":"C",{what},{_stamp(grid)},"args":{{"{unit}":{value!r}}}}}'

    for track, name, time, value in result.samples:
        if not math.isfinite(value):
            continue
        if (track, name) not in known:
            owner, label, unit = _counter_place(track, name, result)
            pids = [f'"pid":{processes[one]}' for one in shown.processes(owner)]
            known[track, name] = [(f'"name":{_text(label)},{pid}', pid) for pid in pids], unit
        places, unit = known[track, name]
        grid = _grid(time)
        for what, _ in places:
            yield event(grid, what, unit, value)
        link = track if name == "capacity" else name.removeprefix("rate ") if name.startswith("rate ") else ""
        if not link or not places:
            continue
        (capacity if name == "capacity" else rates)[link] = value
        limit, rate = capacity.get(link, math.inf), rates.get(link)
        if rate is not None and math.isfinite(limit):  # rate and capacity may change together: the last values hold
            shares[grid, link] = places[0][1], 100 * rate / limit if limit > 0 else 0.0
    for (grid, link), (pid, share) in shares.items():
        yield event(grid, f'"name":{_text(f"utilisation {link}")},{pid}', "%", share)
