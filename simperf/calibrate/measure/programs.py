"""Short programs as people write them, timed whole and held out. Not run on hardware yet.

Each has its counterpart over the simulator's verbs in `simperf.calibrate.programs`; the conditions of a point are that
one's parameters. Sizes are none of those that constants are fitted to.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.graphs import captured
from simperf.calibrate.measure.task import Family, Task, note_text, points_of_rows

__all__ = ["family"]

#: runs a program once, and says when the host had issued everything and when all was done [s]
Once = Callable[[], tuple[float, float]]
#: what is read of a run
PARTS = ("whole", "issued")


def _timed(bench: Bench, issue: Callable[[], object]) -> Once:
    """Time `issue` from an idle device, and until the device is idle again."""

    def once() -> tuple[float, float]:
        bench.synchronize()
        begin = time.perf_counter()
        issue()
        issued = time.perf_counter()
        bench.synchronize()
        return time.perf_counter() - begin, issued - begin

    return once


def _chain(bench: Bench, at: dict[str, Value]) -> Once:
    """More launches than the queue holds, of kernels that take longer than a launch."""
    x = bench.new("fp32")(int(at["elements"]))

    def issue() -> None:
        for _ in range(int(at["n"])):
            x.mul_(0.9999)

    return _timed(bench, issue)


def _item(bench: Bench, at: dict[str, Value]) -> Once:
    """A loop that looks at a number after some small operations."""
    x = bench.new("fp32")(1)

    def issue() -> None:
        for _ in range(int(at["looks"])):
            for _ in range(int(at["n"])):
                x.add_(1.0)
            x.item()

    return _timed(bench, issue)


def _wait(bench: Bench, at: dict[str, Value]) -> Once:
    """A loop that waits for the device after some small operations."""
    x = bench.new("fp32")(1)

    def issue() -> None:
        for _ in range(int(at["looks"])):
            for _ in range(int(at["n"])):
                x.add_(1.0)
            bench.synchronize()

    return _timed(bench, issue)


def _graph(bench: Bench, at: dict[str, Value]) -> Once:
    """A captured graph, replayed several times without waiting."""
    replay = captured(bench, int(at["nodes"]), elements=int(at["elements"]))

    def issue() -> None:
        for _ in range(int(at["n"])):
            replay()

    return _timed(bench, issue)


def _batches(bench: Bench, at: dict[str, Value]) -> Once:
    """Batches copied from pinned memory on a stream of their own, into two buffers, while others are computed."""
    torch = bench.torch
    count = int(at["nbytes"]) // 4
    host = torch.empty(count, pin_memory=True).fill_(1.0)
    buffers = [torch.empty_like(host, device=bench.device) for _ in range(2)]
    side = int(at["side"])
    array = bench.new("fp32")(side, side)
    lane = torch.cuda.Stream()

    def issue() -> None:
        main = torch.cuda.current_stream()
        freed: list[Any] = []
        for batch in range(int(at["batches"])):
            copied = torch.cuda.Event()
            with torch.cuda.stream(lane):
                if batch >= 2:
                    lane.wait_event(freed[batch - 2])
                buffers[batch % 2].copy_(host, non_blocking=True)
                copied.record()
            main.wait_event(copied)
            for _ in range(int(at["n"])):
                if at["beside"] == "gemm":
                    torch.mm(array, array)
                else:
                    array.mul_(0.9999)
            done = torch.cuda.Event()
            done.record()
            freed.append(done)

    return _timed(bench, issue)


def _streams(bench: Bench, at: dict[str, Value]) -> Once:
    """Products on several streams, each of which fills a part of the device."""
    torch = bench.torch
    side, count = int(at["side"]), int(at["streams"])
    arrays = [bench.new("fp32")(side, side) for _ in range(count)]
    lanes = [torch.cuda.Stream() for _ in range(count)]

    def issue() -> None:
        for lane, array in zip(lanes, arrays, strict=True):
            with torch.cuda.stream(lane):
                for _ in range(int(at["n"])):
                    torch.mm(array, array)

    return _timed(bench, issue)


#: program -> how it is set up, and its parameters
_PROGRAMS: tuple[tuple[str, Callable[[Bench, dict[str, Value]], Once], dict[str, Value]], ...] = (
    ("chain", _chain, {"n": 2500, "elements": 8_000_000}),
    ("item", _item, {"looks": 20, "n": 30}),
    ("wait", _wait, {"looks": 50, "n": 4}),
    ("graph", _graph, {"nodes": 120, "n": 20, "elements": 1 << 18}),
    ("batches", _batches, {"batches": 8, "nbytes": 24_000_000, "beside": "gemm", "side": 1536, "n": 3}),
    ("batches", _batches, {"batches": 8, "nbytes": 24_000_000, "beside": "memory", "side": 3000, "n": 20}),
    ("streams", _streams, {"streams": 3, "n": 30, "side": 640}),
)


def _task(bench: Bench, name: str, make: Callable[[Bench, dict[str, Value]], Once], given: dict[str, Value]) -> Task:
    at: dict[str, Value] = {"device": bench.kind, **given}
    parts = PARTS if name in ("chain", "graph") else PARTS[:1]
    points: list[tuple[str, dict[str, Value]]] = [(f"program/{name}", {**at, "part": part}) for part in parts]

    def take() -> list[tuple[float, float]]:
        once = make(bench, at)
        for _ in range(2):
            once()
        return [once() for _ in range(5 if bench.quick else 15)]

    return points_of_rows(points, take)


def family(bench: Bench) -> Family:
    """Programs that depend on several mechanisms at once."""
    if not bench.cuda:
        yield note_text("program/...", "on a CPU a call returns when its work is done: whole steps are the programs")
        return
    for name, make, given in _PROGRAMS:
        yield _task(bench, name, make, given)
