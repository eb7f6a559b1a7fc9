"""Waiting for the device, and fetching a number from it (t3)."""

from __future__ import annotations

import time
from collections.abc import Sequence

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.clock import sample
from simperf.calibrate.measure.task import Family, note_text, point

__all__ = ["family"]


def family(bench: Bench) -> Family:
    """``synchronize`` on an idle device, after a short kernel, and ``item``."""
    at: dict[str, Value] = {"device": bench.kind}
    torch = bench.torch

    def item() -> Sequence[float]:
        x = bench.new("fp32")(1)
        bench.synchronize()
        return bench.wall(x.item)

    yield point("sync/item", at, item)
    if not bench.cuda:
        yield note_text("sync/synchronize", "on a CPU an operation is done when its call returns")
        return

    def idle() -> Sequence[float]:
        bench.synchronize()
        return bench.wall(bench.synchronize)

    def after() -> Sequence[float]:
        x = bench.new("fp32")(1)

        def short() -> None:
            x.add_(1.0)
            bench.synchronize()

        return bench.wall(short)

    def event() -> Sequence[float]:
        x = bench.new("fp32")(1)

        def timeit(number: int) -> float:
            """From the end of a kernel on the device until the host continues."""
            total = 0.0
            for _ in range(number):
                torch.cuda._sleep(200_000)
                x.add_(1.0)
                bench.synchronize()
                begin = time.perf_counter()
                x.add_(1.0)
                bench.synchronize()
                total += time.perf_counter() - begin
            return total

        return sample(timeit, bench.care)

    yield point("sync/synchronize", {**at, "state": "idle"}, idle)
    yield point("sync/synchronize", {**at, "state": "after-launch"}, after)
    yield point("sync/synchronize", {**at, "state": "launch-to-return"}, event)
