"""Traces of torch's profiler (Kineto, in Chrome's format), as far as a step can be simulated again from them.

Read are calls of the runtime, activities of one GPU, the operations that enclose the calls, and the profiler's steps.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from simperf.errors import InputError, Problem
from simperf.json_file import JsonFile, read_json

__all__ = ["GpuActivity", "Operator", "RuntimeCall", "TraceFile", "read_trace_file"]

#: categories of a trace, by what they are here
_ACTIVITIES = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
_CALLS = frozenset({"cuda_runtime", "cuda_driver"})
_OPERATORS = "cpu_op"
_STEP = "ProfilerStep#"
#: how torch annotates the step of an optimizer, which counts as an operation that encloses others
OPTIMIZER = "Optimizer.step"
#: longest trace [s], largest copy [B], largest number of a step, characters of a name that are kept
_LONGEST, _LARGEST, _MOST_NUMBER, _NAME = 1e5, 1e15, 1 << 62, 120
_MICRO = 1e-6
#: streams of the GPU, and threads of the host, at most
_MOST_LANES = 1024
_EXPECTED = "a trace of torch's profiler: traceEvents with ph X and a category"

Thread = tuple[Any, Any]


class RuntimeCall(NamedTuple):
    """A call of the runtime: its name, thread, begin and end [s], and what links it to activities (-1 without)."""

    name: str
    thread: Thread
    start: float
    end: float
    correlation: int


class GpuActivity(NamedTuple):
    """An activity of the GPU.

    `kind` is ``"kernel"``, ``"memcpy"`` or ``"memset"``; `stream` its number in the trace; `nbytes` those of a copy
    [B], 0 if unknown; `arguments` what the trace says of it.
    """

    kind: str
    name: str
    stream: int
    start: float
    end: float
    correlation: int
    nbytes: float
    arguments: Mapping[str, Any]


class Operator(NamedTuple):
    """An operation of the host: its name, thread, begin and end [s], and what the trace says of its inputs."""

    name: str
    thread: Thread
    start: float
    end: float
    arguments: Mapping[str, Any]


@dataclass
class TraceFile:
    """A trace as read; times are counted from its first event [s].

    Parameters
    ----------
    name : str
        Of the file.
    gpu : str
        The GPU's name as its driver says it; empty if the trace does not.
    rank, world : int
        Of the process; 0 and 1 if the trace does not say.
    origin : float
        Time of the first event on the trace's clock [s].
    calls, activities, operators : list
        By begin.
    steps : dict of int to (float, float)
        Begin and end of each step of the profiler, by its number.
    waits : dict of int to int
        By correlation of a call that waits, the stream that it waits for, where the trace says it.
    """

    name: str
    gpu: str = ""
    rank: int = 0
    world: int = 1
    origin: float = 0.0
    calls: list[RuntimeCall] = field(default_factory=list)
    activities: list[GpuActivity] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    steps: dict[int, tuple[float, float]] = field(default_factory=dict)
    waits: dict[int, int] = field(default_factory=dict)


def read_trace_file(path: str | os.PathLike[str]) -> TraceFile:
    """Read a trace, packed with gzip or not.

    Raises
    ------
    InputError
        It cannot be read, is too large, is no trace, has events that have no meaning or those of several GPUs, or none
        of a GPU.
    """
    file = read_json(path, what="not a trace", expected=_EXPECTED)
    data = file.data
    rows = data.get("traceEvents") if isinstance(data, Mapping) else data
    if not isinstance(rows, list):
        raise InputError(
            Problem("not a trace: it has no events", file=file.path, key="traceEvents", expected=_EXPECTED)
        )
    trace = TraceFile(file.path)
    if isinstance(data, Mapping):
        _head(trace, file, data)
    timed = [
        (number, row)
        for number, row in enumerate(rows)
        if isinstance(row, Mapping) and row.get("ph") == "X" and _wanted(row)
    ]
    starts = [row["ts"] for _, row in timed if _is_number(row.get("ts"))]
    first = min(starts, default=0.0)
    trace.origin = first * _MICRO
    devices: set[int] = set()
    for number, row in timed:
        _take(trace, file, number, row, first, devices)
    _check(trace, file, devices)
    for lane in (trace.calls, trace.activities):
        lane.sort(key=lambda one: (one.start, one.end))
    trace.operators.sort(key=lambda one: (one.start, -one.end))  # one that encloses another comes first
    return trace


def _head(trace: TraceFile, file: JsonFile, data: Mapping[str, Any]) -> None:
    """What the trace says of its GPU and its rank.

    Raises
    ------
    InputError
        A rank that its job does not have.
    """
    devices, job = data.get("deviceProperties"), data.get("distributedInfo")
    names = [
        str(one["name"])[:_NAME]
        for one in (devices if isinstance(devices, list) else ())
        if isinstance(one, Mapping) and "name" in one
    ]
    trace.gpu = names[0] if names else ""
    if isinstance(job, Mapping):
        rank: Any = job.get("rank")
        world: Any = job.get("world_size")
        if not _is_whole(world) or not 0 < world <= 1 << 24:
            return
        trace.world = int(world)
        if _is_whole(rank):
            if not 0 <= rank < world:
                at, message = ("distributedInfo", "rank"), f"no rank of a job of {world}"
                raise InputError(file.problem(at, message, value=rank, expected=f"0 to {world - 1}"))
            trace.rank = int(rank)


def _category(row: Mapping[str, Any]) -> str:
    return str(row.get("cat", ""))[:_NAME].lower()


def _wanted(row: Mapping[str, Any]) -> bool:
    category = _category(row)
    if category in _ACTIVITIES or category in _CALLS or category in (_OPERATORS, "cuda_sync"):
        return True
    return category == "user_annotation" and str(row.get("name", "")).startswith((_STEP, OPTIMIZER))


def _take(
    trace: TraceFile, file: JsonFile, number: int, row: Mapping[str, Any], first: float, devices: set[int]
) -> None:
    """One event of the trace.

    Raises
    ------
    InputError
        Its time, length, stream or size has no meaning.
    """

    def refuse(key: str, expected: str) -> InputError:
        message = "not a trace: an event that has no meaning"
        return InputError(file.problem(("traceEvents", number, key), message, value=row.get(key), expected=expected))

    within = f"a time in microseconds, within {_LONGEST:g} s of the first event"
    if not _is_number(row.get("ts")) or (start := (row["ts"] - first) * _MICRO) > _LONGEST:
        raise refuse("ts", within)
    length: Any = row.get("dur")
    if not _is_number(length) or length < 0 or (start + length * _MICRO) > _LONGEST:
        raise refuse("dur", within)
    end, name, category = start + length * _MICRO, str(row.get("name", ""))[:_NAME], _category(row)
    given = row.get("args")
    given = given if isinstance(given, Mapping) else {}
    link = given.get("correlation", -1)
    correlation = int(link) if _is_whole(link) else -1
    thread = (_lane(row.get("pid")), _lane(row.get("tid")))
    if category in _CALLS:
        trace.calls.append(RuntimeCall(name, thread, start, end, correlation))
    elif category == _OPERATORS or (category == "user_annotation" and name.startswith(OPTIMIZER)):
        trace.operators.append(Operator(name, thread, start, end, given))
    elif category == "user_annotation":
        step = name.removeprefix(_STEP)
        if step.isascii() and step.isdigit() and len(step) < 16:
            trace.steps.setdefault(int(step), (start, end))
    elif category == "cuda_sync":
        if _is_whole(given.get("stream")) and given["stream"] >= 0 and correlation >= 0:
            trace.waits[correlation] = int(given["stream"])
    else:
        stream, device = given.get("stream", row.get("tid")), given.get("device", row.get("pid"))
        if not _is_whole(stream) or not _is_whole(device):
            raise refuse("args", "the numbers of a device and of a stream")
        nbytes = given.get("bytes", 0)
        if not _is_number(nbytes) or not 0 <= nbytes <= _LARGEST:
            raise refuse("args", "a number of bytes")
        devices.add(int(device))
        kind = _ACTIVITIES[category]
        trace.activities.append(GpuActivity(kind, name, int(stream), start, end, correlation, float(nbytes), given))


def _check(trace: TraceFile, file: JsonFile, devices: set[int]) -> None:
    """Refuse a trace that cannot be simulated.

    Raises
    ------
    InputError
        No activity of a GPU, those of several, no call that launches one, or too many streams or threads.
    """
    if not trace.activities or not trace.calls:
        message = "no activity of a GPU with its launch is in the trace"
        raise InputError(Problem(message, file=file.path, expected="activities=[CPU, CUDA] of torch.profiler.profile"))
    if len(devices) > 1:
        told = ", ".join(map(str, sorted(devices)[:8]))
        message = "activities of several GPUs in one trace"
        raise InputError(Problem(message, file=file.path, value=told, expected="a trace of each rank"))
    for what, count in (
        ("streams", len({one.stream for one in trace.activities})),
        ("threads", len({one.thread for one in trace.calls})),
    ):
        if count > _MOST_LANES:
            raise InputError(
                Problem(
                    f"more than {_MOST_LANES} {what}",
                    file=file.path,
                    value=str(count),
                    expected="a trace of one rank",
                )
            )


def _lane(value: Any) -> Any:
    return value if isinstance(value, int) else str(value)[:_NAME]


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MOST_NUMBER


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def enclosing(trace: TraceFile) -> Iterator[tuple[RuntimeCall, tuple[Operator, ...]]]:
    """Each call with the operations of its thread that enclose it, the innermost first."""
    of: dict[Thread, list[Operator]] = {}
    for one in trace.operators:
        of.setdefault(one.thread, []).append(one)
    place: dict[Thread, int] = dict.fromkeys(of, 0)
    stacks: dict[Thread, list[Operator]] = {thread: [] for thread in of}
    for call in trace.calls:
        thread = call.thread
        stack, mine = stacks.get(thread, []), of.get(thread, [])
        while mine and place[thread] < len(mine) and mine[place[thread]].start <= call.start:
            begun = mine[place[thread]]
            while stack and stack[-1].end <= begun.start:
                stack.pop()
            stack.append(begun)
            place[thread] += 1
        while stack and stack[-1].end <= call.start:
            stack.pop()
        yield call, tuple(reversed(stack[-8:]))
