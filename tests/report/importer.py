"""A reader of the Trace Event Format that does what Perfetto's importer does, and counts what that counts as errors.

Times become whole nanoseconds. Events of one nanosecond stand as they do in the file; but where it has complete
events, ends come first, then longer complete events, then all others. (Perfetto does the latter from the first
complete event on.) Arrows are bound to what is on top of a thread's stack.
"""

import json
from collections import Counter
from dataclasses import dataclass, field

#: runs of each kind that traces are made of: file and changes
SCENARIOS = {
    "async frontend": ("d2l/async", ["program.n=2000"]),
    "full queue": ("d2l/run-ahead", ["program.batches=20"]),
    "launches that take no time": ("d2l/streams", []),
    "copies": ("d2l/copy-overlap", []),
    "input pipeline": ("d2l/input-pipeline", []),
    "DDP": ("training/buckets", ["program.model=resnet18"]),
    "parameter servers": ("training/ps-overlap", []),
    "collective": ("d2l/ring-8-v100", []),
    "several collectives": ("training/collectives-together", []),
    "links that change": ("training/jitter-link-flap", ["program.share=0.25"]),
}
#: slices within each other on one thread, above which the importer drops them
DEEPEST = 512


@dataclass
class Slice:
    process: str
    thread: str
    name: str
    category: str
    start: int
    length: int | None = None
    depth: int = 0


@dataclass
class Trace:
    """What was read; times in ns. Names of counters end with their unit."""

    other: dict
    slices: list[Slice] = field(default_factory=list)
    flows: list[tuple[str, Slice, Slice]] = field(default_factory=list)
    counters: dict[tuple[str, str], list[tuple[int, float]]] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    errors: Counter = field(default_factory=Counter)

    def of(self, thread):
        return [found for found in self.slices if found.thread == thread]


def drawable(result):
    """Arrows that lead to a span."""
    begins = {(span.track, span.start, span.name) for span in result.spans}
    return [arrow for arrow in result.arrows if (arrow.to_track, arrow.to_time, arrow.name) in begins]


def _nano(stamp):
    return round(stamp * 1000)


def _by_time(event):
    return -1 if event["ph"] == "M" else _nano(event["ts"])


def _within(event):
    """Order of what happens within one nanosecond, where a file has complete events."""
    if event["ph"] == "M":
        return -1, 0, 0
    longest = _nano(event["dur"]) if event["ph"] == "X" else 0
    return _nano(event["ts"]), event["ph"] != "E", -longest


class _Threads:
    """The stack of each thread."""

    def __init__(self, trace):
        self.trace, self.stacks = trace, {}

    def settle(self, place, now, moment=False):
        """Take off what has ended; moments of one time stand on each other."""
        stack = self.stacks.setdefault(place, [])
        while stack and stack[-1].length is not None:
            end = stack[-1].start + stack[-1].length
            if end > now or (end == now and moment and stack[-1].length == 0):
                break
            stack.pop()
        return stack

    def begin(self, place, found, length):
        stack = self.settle(place, found.start, moment=length == 0)
        if len(stack) >= DEEPEST:
            self.trace.errors["slice_max_depth_exceeded"] += 1
            return
        for parent in stack:
            if parent.length is not None and length is not None and found.start + length > parent.start + parent.length:
                self.trace.errors["slice_spill_overlapping_complete_event"] += 1
        found.depth, found.length = len(stack), length
        stack.append(found)
        self.trace.slices.append(found)

    def end(self, place, now):
        stack = self.settle(place, now)
        unfinished = [found for found in stack if found.length is None]
        if not unfinished:
            self.trace.errors["end without begin"] += 1
            return
        if stack[-1] is not unfinished[-1]:
            self.trace.errors["misplaced_end_event"] += 1
        unfinished[-1].length = now - unfinished[-1].start
        stack.remove(unfinished[-1])

    def top(self, place):
        stack = self.stacks.get(place)
        if not stack:
            self.trace.errors["flow_no_enclosing_slice"] += 1
            return None
        return stack[-1]


def _counted(trace, event, process):
    for key, value in event["args"].items():
        name = f"{event['name']} {key}"
        trace.counters.setdefault((process, name), []).append((_nano(event["ts"]), value))


def read(data):
    """Read a trace; everything that the importer would complain of is counted in its ``errors``."""
    document = json.loads(data)
    trace = Trace(document.get("otherData", {}))
    threads, names, started = _Threads(trace), {}, {}
    complete = any(event["ph"] == "X" for event in document["traceEvents"])
    for event in sorted(document["traceEvents"], key=_within if complete else _by_time):
        kind, place = event["ph"], (event["pid"], event.get("tid"))
        process, thread = names.get(("process_name", place[0])), names.get(("thread_name", *place))
        if kind == "M":
            if event["name"].endswith("_name"):
                key = (event["name"], *place) if event["name"] == "thread_name" else (event["name"], place[0])
                names[key] = event["args"]["name"]
                trace.order.append(names[key])
            continue
        if process is None or (kind != "C" and thread is None):
            trace.errors["without a name"] += 1
        now = _nano(event["ts"])
        if kind in "BX":
            length = _nano(event["dur"]) if kind == "X" else None
            threads.begin(place, Slice(process, thread, event["name"], event["cat"], now), length)
        elif kind == "E":
            threads.end(place, now)
        elif kind == "s":
            source = threads.top(place)
            key = event["id"], event["cat"], event["name"]
            trace.errors["flow_duplicate_id"] += key in started
            started[key] = source
        elif kind == "f":
            source, target = started.get((event["id"], event["cat"], event["name"])), threads.top(place)
            trace.errors["flow_end_without_start"] += source is None
            if source is not None and target is not None:
                trace.flows.append((event["name"], source, target))
        elif kind == "C":
            _counted(trace, event, process)
        else:
            trace.errors[f"phase {kind}"] += 1
    trace.errors["did not end"] += sum(found.length is None for found in trace.slices)
    trace.errors = +trace.errors
    return trace
