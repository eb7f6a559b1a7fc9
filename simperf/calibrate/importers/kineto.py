"""Traces of torch's profiler (Kineto, in Chrome's format): operations, launches, streams and overlap.

Times of a trace are us since the epoch, too many digits for a float: they are read as decimals and counted from the
first event.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from simperf.calibrate.dataset import Dataset, Value
from simperf.calibrate.importers.imported import Imported, Points, parsed_json
from simperf.errors import Problem

__all__ = ["Event", "Intervals", "Trace", "import_kineto", "read_trace"]


class Intervals:
    """Spans of time that may touch and overlap.

    Examples
    --------
    >>> a, b = Intervals(), Intervals()
    >>> a.add(0.0, 2.0); a.add(1.0, 3.0); b.add(2.5, 4.0)
    >>> a.length, Intervals.union((a, b)).length, Intervals.shared((a, b))
    (3.0, 4.0, 0.5)
    """

    def __init__(self) -> None:
        self._spans: list[tuple[float, float]] = []

    def add(self, start: float, end: float) -> None:
        """Add a span [s]."""
        self._spans.append((start, end))

    def merged(self) -> list[tuple[float, float]]:
        """The same time as spans that do not overlap, in order."""
        done: list[tuple[float, float]] = []
        for start, end in sorted(self._spans):
            if done and start <= done[-1][1]:
                done[-1] = (done[-1][0], max(done[-1][1], end))
            else:
                done.append((start, end))
        return done

    @property
    def length(self) -> float:
        """Time that any of the spans covers [s]."""
        return sum(end - start for start, end in self.merged())

    @staticmethod
    def union(many: Iterable[Intervals]) -> Intervals:
        """All spans of all."""
        whole = Intervals()
        for each in many:
            whole._spans += each._spans
        return whole

    @staticmethod
    def shared(many: Iterable[Intervals]) -> float:
        """Time for which two or more of them last at once [s]."""
        marks = sorted(mark for each in many for start, end in each.merged() for mark in ((start, 1), (end, -1)))
        total, depth, last = 0.0, 0, 0.0
        for time, change in marks:
            if depth >= 2:
                total += time - last
            depth, last = depth + change, time
        return total


#: categories of what runs on a device
_DEVICE = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
_HOST = {"cpu_op": "op", "operator": "op", "cuda_runtime": "runtime", "runtime": "runtime", "cuda_driver": "runtime"}
_LAUNCHES = ("launchkernel", "launchcooperative", "graphlaunch")
_MICRO = 1e-6
#: longest event, and trace [s], and largest copy [B] that are taken for such
_LONGEST_EVENT, _LARGEST = 3e8, 1e15
#: characters of a kernel's name that are kept: templates run to thousands
_LONGEST = 120


@dataclass(frozen=True, slots=True)
class Event:
    """Something that took time.

    Parameters
    ----------
    kind : str
        ``"kernel"``, ``"memcpy"``, ``"memset"`` on a device; ``"op"``, ``"runtime"`` on the host.
    name : str
    start, end : float
        since the first event [s]
    device, stream : int
        -1 on the host.
    correlation : int
        What links a launch to its kernel; -1 if there is none.
    nbytes : float
        of a copy [B]; 0 if unknown
    """

    kind: str
    name: str
    start: float
    end: float
    device: int = -1
    stream: int = -1
    correlation: int = -1
    nbytes: float = 0.0


@dataclass
class Trace:
    """A trace as read.

    Parameters
    ----------
    events : list of Event
        By start.
    gpus : dict of int to str
        Names of the devices.
    problems : list of Problem
        Events that could not be read.
    """

    events: list[Event] = field(default_factory=list)
    gpus: dict[int, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def read_trace(text: str, name: str = "") -> Trace:
    """Read a trace; one that breaks off is read up to there.

    Parameters
    ----------
    text, name : str
        The trace, and the file's name for messages.
    """
    decoder = json.JSONDecoder(parse_float=Decimal)
    data, broken = parsed_json(
        text, name, "traceEvents", ("deviceProperties",), what="events", writer="the profiler", decoder=decoder
    )
    trace = Trace(problems=list(broken))
    found = data.get("traceEvents") if isinstance(data, Mapping) else data
    rows = found if isinstance(found, list) else []
    devices = data.get("deviceProperties") if isinstance(data, Mapping) else None
    for device in devices if isinstance(devices, list) else ():
        number = device.get("id", len(trace.gpus)) if isinstance(device, Mapping) and "name" in device else None
        if isinstance(number, int):
            trace.gpus[number] = str(device["name"])
    timed = [row for row in rows if isinstance(row, Mapping) and row.get("ph") == "X" and _kind(row)]
    starts = [row["ts"] for row in timed if _is_time(row.get("ts"))]
    first = min(starts) if starts else 0
    bad = 0
    for row in timed:
        try:
            trace.events.append(_event(row, first))
        except (LookupError, TypeError, ValueError, ArithmeticError):
            bad += 1
    if bad:
        message = f"{bad} events without a time, a length or a stream were not read"
        trace.problems.append(Problem(message, file=name, key="traceEvents", expected="ts, dur and a stream in args"))
    if not trace.events and not trace.problems:
        message = "no events of torch's profiler in it"
        trace.problems.append(Problem(message, file=name, expected="traceEvents with ph X and a category"))
    trace.events.sort(key=lambda event: (event.start, event.end))
    return trace


def _kind(row: Mapping[str, Any]) -> str:
    category = str(row.get("cat", "")).lower()
    return _DEVICE.get(category) or _HOST.get(category, "")


def _event(row: Mapping[str, Any], first: Any) -> Event:
    kind, given = _kind(row), row.get("args") or {}
    if not isinstance(given, Mapping) or not _is_time(row["ts"]) or not _is_time(row["dur"]):
        raise TypeError("no event of the profiler")
    start = float(row["ts"] - first) * _MICRO
    length = float(row["dur"]) * _MICRO
    if not 0 <= length <= _LONGEST_EVENT or start > _LONGEST_EVENT:
        raise ValueError("negative length, or one of years")
    device = stream = -1
    if kind in ("kernel", "memcpy", "memset"):
        device = int(given["device"] if "device" in given else row["pid"])
        stream = int(given["stream"] if "stream" in given else row["tid"])
    nbytes = float(given.get("bytes", 0))
    if not 0 <= nbytes <= _LARGEST:
        raise ValueError("no size of a copy")
    return Event(
        kind=kind,
        name=str(row.get("name", ""))[:_LONGEST],
        start=start,
        end=start + length,
        device=device,
        stream=stream,
        correlation=int(given.get("correlation", -1)),
        nbytes=nbytes,
    )


def _is_time(value: Any) -> bool:
    """Whether something is a number of microseconds."""
    return (type(value) is int and abs(value) < 2**63) or (isinstance(value, Decimal) and value.is_finite())


def is_communication(event: Event) -> bool:
    """Whether a kernel belongs to a collective.

    Examples
    --------
    >>> is_communication(Event("kernel", "ncclKernel_AllReduce_RING_LL_Sum_float", 0.0, 1.0))
    True
    """
    return event.kind == "kernel" and bool(re.search(r"nccl|rccl|oneccl", event.name, re.IGNORECASE))


def import_kineto(text: str, name: str) -> Imported:
    """Import a trace.

    Parameters
    ----------
    text, name : str
        The trace, and the file's name for messages.

    Returns
    -------
    Imported
        ``host/op`` by `name`; ``launch/call`` (time of the host in the runtime's call) by `name`, ``launch/delay``
        (from the start of a launch to the start of its kernel) by `device` and `stream`; ``kernel/run`` by `name` and
        `device`; ``copy/<kind>`` by `nbytes`; ``stream/busy`` by `device` and `stream`; and of each device
        ``device/busy``, ``overlap/streams`` (time for which two or more streams were busy), ``overlap/communication``
        (communication beside anything else) and ``overlap/copy`` (copies beside kernels); ``trace/length``.
    """
    trace = read_trace(text, name)
    points = Points()
    _host(points, trace)
    _devices(points, trace)
    if trace.events:
        points.add("trace/length", {}, [max(event.end for event in trace.events)])
    machine: dict[str, Value] = {}
    used = sorted({event.device for event in trace.events if event.device >= 0})
    names = list(dict.fromkeys(trace.gpus[device] for device in used if device in trace.gpus))
    if names:
        machine["gpu"] = ", ".join(names)
    return Imported(Dataset("a trace of torch's profiler", machine, {}, {}, points.all()), tuple(trace.problems))


def _host(points: Points, trace: Trace) -> None:
    named: dict[tuple[str, str], list[float]] = defaultdict(list)
    launches: dict[int, Event] = {}
    for event in trace.events:
        if event.kind == "op":
            named["host/op", event.name].append(event.end - event.start)
        elif event.kind == "runtime":
            named["launch/call", event.name].append(event.end - event.start)
            if any(word in event.name.lower() for word in _LAUNCHES):
                launches[event.correlation] = event
    delays: dict[tuple[int, int], list[float]] = defaultdict(list)
    for event in trace.events:
        if event.kind == "kernel" and event.correlation in launches:
            delays[event.device, event.stream].append(max(0.0, event.start - launches[event.correlation].start))
    for (series, name), samples in sorted(named.items()):
        points.add(series, {"name": name}, samples)
    for (device, stream), samples in sorted(delays.items()):
        points.add("launch/delay", {"device": device, "stream": stream}, samples)


def _copy_kind(name: str) -> str:
    """``h2d-pinned`` and so on, from a name such as ``Memcpy HtoD (Pinned -> Device)``."""
    plain = name.lower()
    for word, kind in (("htod", "h2d"), ("dtoh", "d2h"), ("dtod", "d2d"), ("ptop", "peer")):
        if word in plain:
            pageable = kind in ("h2d", "d2h") and "pageable" in plain
            pinned = kind in ("h2d", "d2h") and "pinned" in plain
            return f"{kind}-pageable" if pageable else f"{kind}-pinned" if pinned else kind
    return "other"


def _devices(points: Points, trace: Trace) -> None:
    runs: dict[tuple[str, int], list[float]] = defaultdict(list)
    streams: dict[int, dict[int, Intervals]] = defaultdict(lambda: defaultdict(Intervals))
    talks, works, copies = (defaultdict[int, Intervals](Intervals) for _ in range(3))
    counts: dict[tuple[int, int], int] = defaultdict(int)
    for event in trace.events:
        if event.device < 0:
            continue
        streams[event.device][event.stream].add(event.start, event.end)
        counts[event.device, event.stream] += 1
        if event.kind == "memcpy":
            at: dict[str, Value] = {"device": event.device, "nbytes": event.nbytes}
            points.add(f"copy/{_copy_kind(event.name)}", at, [event.end - event.start])
            copies[event.device].add(event.start, event.end)
        else:
            if event.kind == "kernel":
                runs[event.name, event.device].append(event.end - event.start)
            (talks if is_communication(event) else works)[event.device].add(event.start, event.end)
    for (name, device), samples in sorted(runs.items()):
        points.add("kernel/run", {"name": name, "device": device}, samples)
    for device, lanes in sorted(streams.items()):
        for stream, lane in sorted(lanes.items()):
            where: dict[str, Value] = {"device": device, "stream": stream, "activities": counts[device, stream]}
            points.add("stream/busy", where, [lane.length])
        here: dict[str, Value] = {"device": device}
        points.add("device/busy", here, [Intervals.union(lanes.values()).length])
        points.add("overlap/streams", here, [Intervals.shared(lanes.values())])
        rest = Intervals.union((works[device], copies[device]))
        points.add("overlap/communication", here, [Intervals.shared((talks[device], rest))])
        points.add("overlap/copy", here, [Intervals.shared((copies[device], works[device]))])
