"""Causes in a recorded step: which call begins after which, and what each call and each activity of the GPU waited for.

A trace says when things happened, not why. The rules by which causes are found:

- A call begins so long after the one before it: the last call of its own thread, or one of another thread if that was
  later. What lies between is time of the host.
- A call that synchronises waits for the last activity of each stream that was launched before it and ended before it
  did, and so does a copy that has ended when its call returns. A launch that finds a full queue waits for the activity
  that ended last before it returned.
- An activity begins when its launch has reached the GPU, when the one before it on its stream has ended, and, if its
  thread asked for it by an event just before, when the last activities of other streams that had ended by then have.
  How long a launch takes, and the gap between two activities, are its own where they decided when it began, and the
  trace's medians elsewhere.

Simulated with these times, everything begins and ends when it did.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from simperf.errors import InputError, Problem
from simperf.workload.recorded.kernel_class import KernelClass, classify
from simperf.workload.recorded.recorded_step import HostCall, RecordedActivity, RecordedStep
from simperf.workload.recorded.trace_file import GpuActivity, Operator, RuntimeCall, Thread, TraceFile, enclosing

__all__ = ["record_step"]

#: launches of a stream that are outstanding when a launch waits for a place (CUDA's queue has 1,024)
FULL = 1000
#: digits of a second to which two times are the same
DIGITS = 10
#: from a launch to its begin on an idle stream, and between two activities, where the trace shows neither; assumed [s]
_LATENCY, _GAP = 6e-6, 1e-6


class _Lane(NamedTuple):
    """Activities of a stream so far, with the ends at which they are taken to be over, in order."""

    numbers: list[int]
    ends: list[float]

    def ended(self, time: float) -> int:
        """The last activity that had ended at a time; -1 if there is none."""
        place = bisect_right(self.ends, time) - 1
        return self.numbers[place] if place >= 0 else -1


@dataclass
class _Recording:
    """Activities with what they wait for, as they are found."""

    begin: float
    lanes: dict[int, _Lane] = field(default_factory=lambda: defaultdict(lambda: _Lane([], [])))
    starts: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)
    launched: list[float] = field(default_factory=list)
    ready: list[float] = field(default_factory=list)
    after: list[tuple[int, ...]] = field(default_factory=list)
    taken: list[tuple[GpuActivity, KernelClass]] = field(default_factory=list)

    def add(self, one: GpuActivity, kind: KernelClass, launch: float, *, waits: bool) -> int:
        """Take an activity that was launched at a time [s] up; `waits` says whether it waits for an event."""
        lane, number = self.lanes[one.stream], len(self.taken)
        previous = lane.ends[-1] if lane.ends else -1.0
        start, after = one.start - self.begin, tuple[int, ...]()
        if waits:
            others = [other.ended(start) for stream, other in self.lanes.items() if stream != one.stream]
            after = tuple(sorted(each for each in others if each >= 0))
        ready = max([previous, *(self.ends[each] for each in after)])
        start = max(start, ready, launch)
        end = max(one.end - self.begin, start)
        lane.numbers.append(number)
        lane.ends.append(end)
        for column, value in (
            (self.starts, start),
            (self.ends, end),
            (self.launched, launch),
            (self.ready, ready),
        ):
            column.append(value)
        self.after.append(after)
        self.taken.append((one, kind))
        return number

    def activities(self) -> tuple[RecordedActivity, ...]:
        """All of them, with the latencies and gaps that decided."""
        waited = [start - launch for start, launch in zip(self.starts, self.launched, strict=True)]
        gaps = [start - ready for start, ready in zip(self.starts, self.ready, strict=True)]
        idle = [one for one, ready, launch in zip(waited, self.ready, self.launched, strict=True) if ready < launch]
        busy = [gap for gap, one in zip(gaps, waited, strict=True) if one > 10 * _LATENCY and gap < _LATENCY]
        latency, usual = median(idle) if idle else _LATENCY, median(busy) if busy else _GAP
        streams: dict[int, int] = {}
        found = []
        for number, (one, kind) in enumerate(self.taken):
            bound = self.ready[number] < self.launched[number] or gaps[number] > max(4 * usual, _GAP)
            own = waited[number] if bound else min(waited[number], latency)
            gap = min(gaps[number], usual, own) if bound else gaps[number]
            found.append(
                RecordedActivity(
                    one.name,
                    streams.setdefault(one.stream, len(streams)),
                    self.ends[number] - self.starts[number],
                    own,
                    max(0.0, gap),
                    self.after[number],
                    kind,
                    one.nbytes,
                    self.starts[number],
                )
            )
        return tuple(found)


def record_step(trace: TraceFile, step: int = -1) -> RecordedStep:
    """The step that a trace has recorded, with its causes.

    Parameters
    ----------
    trace : TraceFile
    step : int
        Its number in the profiler; -1 for all steps that it counted, or the whole trace if it counted none.

    Raises
    ------
    InputError
        No such step, or nothing was launched in it.
    """
    begin, end, steps = _window(trace, step)
    launched: dict[int, list[GpuActivity]] = defaultdict(list)
    for one in trace.activities:
        launched[one.correlation].append(one)
    linked = {call.correlation for call in trace.calls if call.correlation >= 0 and call.start >= begin}
    early, dropped = _early(trace, begin, end, linked)
    found, calls = _Recording(begin), _Calls(begin)
    for one in early:
        found.add(one, classify(one, ()), 0.0, waits=False)
    asked: dict[Thread, bool] = {}
    for call, operators in enclosing(trace):
        if not begin <= call.start < end:
            continue
        plain = call.name.lower()
        own = launched.get(call.correlation, []) if call.correlation >= 0 else []
        if "streamwaitevent" in plain:
            asked[call.thread] = True
        elif own:
            calls.launch(call, own, operators, found, waits=asked.pop(call.thread, False))
        elif "synchronize" in plain:
            calls.wait(call, found, trace.waits.get(call.correlation))
    if trace.steps:
        calls.end(end - begin)
    activities = found.activities()
    if not activities or not calls.rows:
        message = "nothing was launched on a GPU in this step"
        raise InputError(Problem(message, file=trace.name, value=str(step), expected=_steps(trace)))
    ordered = calls.ordered()
    last = max([*found.ends, *(row.anchor for row in calls.rows)])
    return RecordedStep(
        trace.name,
        trace.gpu,
        trace.rank,
        trace.world,
        steps,
        last,
        trace.origin + begin,
        ordered,
        activities,
        len(early),
        1 + max(one.stream for one in activities),
        len(calls.threads),
        dropped,
    )


def _window(trace: TraceFile, step: int) -> tuple[float, float, int]:
    """Begin and end of what is simulated [s], and how many steps it is."""
    if step >= 0:
        if step not in trace.steps:
            raise InputError(Problem("no such step", file=trace.name, value=str(step), expected=_steps(trace)))
        return *trace.steps[step], 1
    if trace.steps:
        return (
            min(begin for begin, _ in trace.steps.values()),
            max(end for _, end in trace.steps.values()),
            len(trace.steps),
        )
    begins = [trace.calls[0].start, *(one.start for one in trace.operators[:1])]
    return min(begins), float("inf"), 1


def _steps(trace: TraceFile) -> str:
    known = sorted(trace.steps)
    return f"one of {', '.join(map(str, known[:12]))}, or -1 for all" if known else "-1: the profiler counted no steps"


def _early(trace: TraceFile, begin: float, end: float, linked: set[int]) -> tuple[list[GpuActivity], int]:
    """Activities that ran or waited when the step began, in order, and how many others have no launch in it."""
    first: dict[int, float] = {}
    for one in trace.activities:
        if one.correlation in linked:
            first.setdefault(one.stream, one.start)
    early, dropped = [], 0
    for one in trace.activities:
        if one.correlation in linked or one.end <= begin or one.start >= end:
            continue
        if one.start <= first.get(one.stream, -1.0):
            early.append(one._replace(start=max(one.start, begin)))
        else:
            dropped += 1
    return early, dropped


class _Row(NamedTuple):
    """A call as recorded: its number of thread, begin and the moment from which others count [s]."""

    thread: int
    start: float
    anchor: float
    launches: tuple[int, ...]
    waits: tuple[int, ...]
    first: bool
    rest: float


@dataclass
class _Calls:
    """Calls of all threads, as they are found."""

    begin: float
    rows: list[_Row] = field(default_factory=list)
    threads: dict[Thread, int] = field(default_factory=dict)

    def launch(
        self,
        call: RuntimeCall,
        launched: Iterable[GpuActivity],
        operators: Sequence[Operator],
        found: _Recording,
        *,
        waits: bool,
    ) -> None:
        """Take a launch up, with its activities."""
        start, end = call.start - self.begin, call.end - self.begin
        several = sorted(launched, key=lambda one: (one.start, one.end))
        lane = found.lanes[several[0].stream]
        full = len(lane.ends) - bisect_right(lane.ends, start) >= FULL
        blocker = lane.ended(end) if full else -1
        if blocker >= 0 and found.ends[blocker] <= start:
            blocker = -1
        moment = end if blocker >= 0 else start
        numbers = tuple(found.add(one, classify(one, operators), moment, waits=waits) for one in several)
        anchor, waited, rest = start, tuple[int, ...](), 0.0
        if blocker >= 0:
            anchor, waited, rest = end, (blocker,), end - found.ends[blocker]
        elif several[0].kind == "memcpy" and found.ends[numbers[-1]] <= end:
            anchor, waited, rest = end, numbers[-1:], end - found.ends[numbers[-1]]
        self._add(call, start, anchor, numbers, waited, rest, first=blocker >= 0)

    def wait(self, call: RuntimeCall, found: _Recording, stream: int | None) -> None:
        """Take a call that synchronises up."""
        start, end = call.start - self.begin, call.end - self.begin
        lanes = [found.lanes[stream]] if stream is not None and stream in found.lanes else list(found.lanes.values())
        waited = tuple(sorted(one for one in (lane.ended(end) for lane in lanes) if one >= 0))
        last = max([start, *(found.ends[one] for one in waited)])
        self._add(call, start, end, (), waited, end - last, first=True)

    def _add(
        self,
        call: RuntimeCall,
        start: float,
        anchor: float,
        launches: tuple[int, ...],
        waits: tuple[int, ...],
        rest: float,
        *,
        first: bool,
    ) -> None:
        thread = self.threads.setdefault(call.thread, len(self.threads))
        times = round(start, DIGITS), round(anchor, DIGITS)
        self.rows.append(_Row(thread, *times, launches, waits, first, rest))

    def end(self, time: float) -> None:
        """The last thread continues to the end of the step [s] after the first one's begin."""
        if self.rows and time > self.rows[-1].anchor:
            self.rows.append(_Row(self.rows[-1].thread, time, time, (), (), first=True, rest=0.0))

    def _without_nested(self) -> None:
        """A call within which its thread makes another one leaves the waiting to that one."""
        following: dict[int, float] = {}
        for number in reversed(range(len(self.rows))):
            row = self.rows[number]
            if row.anchor > following.get(row.thread, row.anchor) and not (row.first and row.launches):
                self.rows[number] = row._replace(anchor=row.start, waits=(), rest=0.0)
            following[row.thread] = row.start

    def ordered(self) -> tuple[HostCall, ...]:
        """Calls by begin, each with the one after which it begins."""
        self._without_nested()
        rows = self.rows
        moments = [(row.start, number, False) for number, row in enumerate(rows)]
        moments += [(row.anchor, number, True) for number, row in enumerate(rows)]
        last: dict[int, tuple[float, int]] = {}
        found: list[HostCall] = []
        placed: dict[int, HostCall] = {}
        for time, number, over in sorted(moments):
            row = rows[number]
            if over:
                last[row.thread] = time, number
                continue
            anchor, other = last.get(row.thread, (0.0, -1))[0], -1
            for thread, (moment, one) in last.items():
                if thread != row.thread and moment > anchor:
                    anchor, other = moment, one
            placed[number] = HostCall(
                row.thread, other, max(0.0, time - anchor), row.launches, row.waits, row.first, row.rest
            )
        found = [placed[number] for number in range(len(rows))]
        return tuple(found)
