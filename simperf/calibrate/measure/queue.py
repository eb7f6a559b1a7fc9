"""Depth of a device's queue: the launches that it takes before the host blocks. Not run on hardware yet."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence

from simperf.calibrate.dataset import Measurement, Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.task import Family, Task, note_text

__all__ = ["depth_of", "family"]

#: launches behind a busy device, several times the usual depth of some thousand
LAUNCHES = 6000
#: how many times the usual launch one must take to count as blocked
BLOCKED = 50.0


def depth_of(times: Sequence[float]) -> int:
    """The number of the first launch that blocked; all of them if none did.

    Parameters
    ----------
    times : sequence of float
        of each launch, in order [s]

    Examples
    --------
    >>> depth_of([1e-6] * 1000 + [2e-3] * 10)
    1000
    """
    usual = statistics.median(times[: max(1, min(200, len(times)))])
    for index, each in enumerate(times):
        if index >= 100 and each > BLOCKED * usual and each > 1e-4:
            return index
    return len(times)


def family(bench: Bench) -> Family:
    """Launches behind a kernel that keeps the device busy."""
    if not bench.cuda:
        yield note_text("queue/depth", "a CPU runs each operation at once, there is no queue")
        return
    at: dict[str, Value] = {"device": bench.kind, "launches": LAUNCHES}
    torch = bench.torch

    def run(wanted: Sequence[int]) -> Iterator[Measurement]:
        x = bench.new("fp32")(1)
        depths, launches = [], []
        for _ in range(3 if bench.quick else 7):
            bench.synchronize()
            torch.cuda._sleep(200_000_000)  # some 0.1 s
            times = []
            for _ in range(LAUNCHES):
                begin = time.perf_counter()
                x.add_(1.0)
                times.append(time.perf_counter() - begin)
            bench.synchronize()
            depths.append(1.0 + depth_of(times))  # the kernel that keeps the device busy has a place, too
            launches.append(statistics.median(times[:500]))
        yield Measurement("queue/depth", at, tuple(depths), "launches")
        yield Measurement("queue/launch", at, tuple(launches))

    yield Task((("queue/depth", at), ("queue/launch", at)), run, together=True)
