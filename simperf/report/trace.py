"""The timeline as a trace for Perfetto (ui.perfetto.dev) and chrome://tracing.

Format: N. Duca and D. Sinclair, "Trace Event Format" (2016). Spans become begin and end events
rather than complete ones, so that both of their times are written as they are and
neighbours that touch do not overlap by a rounding of their duration. Times are
microseconds, as the format has it, at full precision. Spans of no length are instant events.

Arrows are bound to the spans that they leave and reach; one that starts at no span (a launch
that takes no time) cannot be drawn in this format and is counted in ``otherData``.
"""

from __future__ import annotations

import gzip
import json
import math
import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from simperf.analysis.timeline import split_track
from simperf.files import write_bytes
from simperf.report.lanes import Row, natural, rows
from simperf.results import Result

__all__ = ["save_trace", "trace_bytes"]

_MICRO = 1e6
_UNITS = {"memory held": "B", "rate": "B/s", "queue length": "launches"}
#: order of what happens on a thread at one instant: a flow leaves its span before that ends
_LEAVE, _END, _BEGIN, _REACH = range(4)

Timed = tuple[float, int, str]  # time [s], order, the event as JSON
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_text = lru_cache(maxsize=65536)(_encode)


def trace_bytes(result: Result) -> bytes:
    """The trace as JSON, one event a line; the same result gives the same bytes."""
    layout = rows(result)
    owners = list(dict.fromkeys(row.owner for row in layout))
    counted = {split_track(track, result.resources)[0] for track in {sample.track for sample in result.samples}}
    owners += sorted(counted - set(owners), key=natural)
    processes = {name: index for index, name in enumerate(owners, 1)}
    places = {id(row): f'"pid":{processes[row.owner]},"tid":{index}' for index, row in enumerate(layout, 1)}
    timed: list[Timed] = []
    for row in layout:
        timed += _spans(row, places[id(row)])
    arrows = _arrows(result, layout, places)
    timed += arrows
    timed += _counters(result, processes)
    timed.sort(key=lambda entry: entry[:2])  # stable: each thread's own order within an instant stays
    other = {
        "name": result.name,
        "time": f"{result.time!r} s",
        "seed": result.seed,
        "version": result.version,
        "arrows not drawn": len(result.arrows) - len(arrows) // 2,
    }
    lines = [*_names(layout, processes), *(line for _, _, line in timed)]
    text = f'{{"displayTimeUnit":"ns","otherData":{_encode(other)},"traceEvents":[\n' + ",\n".join(lines) + "\n]}\n"
    return text.encode()


def save_trace(result: Result, path: str | os.PathLike[str]) -> None:
    """Write the trace to `path`, gzipped if it ends in ``.gz``; whole or not at all.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    data = trace_bytes(result)
    if os.fspath(path).endswith(".gz"):
        data = gzip.compress(data, 6, mtime=0)
    write_bytes(path, data)


def _names(layout: Iterable[Row], processes: dict[str, int]) -> Iterator[str]:
    def name(what: str, pid: int, tid: int, **args: Any) -> str:
        return _encode({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": args})

    for owner, pid in processes.items():
        yield name("process_name", pid, 0, name=owner)
        yield name("process_sort_index", pid, 0, sort_index=pid)
    for tid, row in enumerate(layout, 1):
        yield name("thread_name", processes[row.owner], tid, name=row.label)
        yield name("thread_sort_index", processes[row.owner], tid, sort_index=tid)


def _spans(row: Row, place: str) -> Iterator[Timed]:
    """Begin and end of each span; of those that end at one instant the inner one first."""
    stack: list[float] = []

    def end(time: float) -> Timed:
        return time, _END, f'{{"ph":"E","ts":{time * _MICRO!r},{place}}}'

    for span in row.spans:
        while stack and stack[-1] <= span.start:
            yield end(stack.pop())
        what = f'"name":{_text(span.name)},"cat":"{span.category}","ts":{span.start * _MICRO!r},{place}'
        if span.end > span.start:
            stack.append(span.end)
            yield span.start, _BEGIN, f'{{"ph":"B",{what}}}'
        else:
            yield span.start, _BEGIN, f'{{"ph":"i","s":"t",{what}}}'
    while stack:
        yield end(stack.pop())


def _arrows(result: Result, layout: Iterable[Row], places: dict[int, str]) -> list[Timed]:
    """Pairs of flow events for the arrows that leave and reach a span."""
    leaves: dict[tuple[str, float], str] = {}
    reaches: dict[tuple[str, float, str], str] = {}
    for row in layout:
        place = places[id(row)]
        for span in row.spans:
            if span.end > span.start:
                leaves[span.track, span.end] = place
                reaches[span.track, span.start, span.name] = place
    found: list[Timed] = []
    for number, (name, from_track, from_time, to_track, to_time) in enumerate(result.arrows):
        source, target = leaves.get((from_track, from_time)), reaches.get((to_track, to_time, name))
        if source is not None and target is not None:
            what = f'"name":"launch","cat":"launch","id":{number}'
            found.append((from_time, _LEAVE, f'{{"ph":"s",{what},"ts":{from_time * _MICRO!r},{source}}}'))
            found.append((to_time, _REACH, f'{{"ph":"f","bp":"e",{what},"ts":{to_time * _MICRO!r},{target}}}'))
    return found


def _counters(result: Result, processes: dict[str, int]) -> Iterator[Timed]:
    known: dict[tuple[str, str], tuple[str, str]] = {}
    for track, name, time, value in result.samples:
        if not math.isfinite(value):
            continue
        if (track, name) not in known:
            owner, lane = split_track(track, result.resources)
            unit = next((unit for start, unit in _UNITS.items() if name.startswith(start)), "value")
            known[track, name] = (f'"name":{_text(f"{lane} {name}".strip())},"pid":{processes[owner]}', unit)
        what, unit = known[track, name]
        yield time, _REACH, f'{{"ph":"C",{what},"ts":{time * _MICRO!r},"args":{{"{unit}":{value!r}}}}}'
