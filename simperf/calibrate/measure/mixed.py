"""A training step of many layers on tiny tensors, after other memory was touched: what calls cost that are made late.

A loop over one operation finds its code, and everything that the interpreter and the library keep about it, in the
first caches. A training step comes back to an operation after all the others, and after megabytes of data have gone
through the same caches: the same call then takes up to ten times as long.
"""

from __future__ import annotations

import time
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.task import Family, Task, points_of_rows

__all__ = ["family"]

#: memory that is touched between two passes [B]
TOUCHED = (0.0, 1e6, 4e6, 1e7, 2e7, 4e7, 8e7, 1.6e8, 3.2e8)
PASSES = ("forward", "backward", "update")


class _Net:
    """Fourteen layers and a loss, no two alike in a row."""

    def __init__(self, bench: Bench) -> None:
        torch = bench.torch
        nn = torch.nn
        self.layers = nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 4, 3, padding=1),
            nn.GELU(),
            nn.AvgPool2d(2),
            nn.Flatten(),
            nn.Linear(16, 16),
            nn.LayerNorm(16),
            nn.Tanh(),
            nn.Dropout(0.1),
            nn.Linear(16, 8),
            nn.Sigmoid(),
        ).to(bench.device)
        self.calls = len(self.layers) + 1
        self.loss = nn.functional.cross_entropy
        self.x, self.target = bench.new("fp32")(1, 2, 8, 8), bench.new("fp32")(1, high=8)
        self.optimizer = torch.optim.SGD(self.layers.parameters(), lr=1e-6)

    def step(self, touch: Any) -> tuple[float, float, float]:
        """Times of forward and backward pass, a call, and of the update [s]; `touch` is called before each."""
        clock = time.perf_counter
        self.optimizer.zero_grad(set_to_none=True)
        touch()
        begin = clock()
        cost = self.loss(self.layers(self.x), self.target)
        forward = clock() - begin
        touch()
        begin = clock()
        cost.backward()
        backward = clock() - begin
        touch()
        begin = clock()
        self.optimizer.step()
        return forward / self.calls, backward / self.calls, clock() - begin


def _task(bench: Bench, touched: float) -> Task:
    points: list[tuple[str, dict[str, Value]]] = [
        ("frontend/mixed", {"device": bench.kind, "threads": bench.threads, "pass": name, "touched": touched})
        for name in PASSES
    ]

    def take() -> list[tuple[float, float, float]]:
        torch = bench.torch
        net = _Net(bench)
        half = round(touched / 8)
        source, sink = torch.rand(max(1, half)), torch.empty(max(1, half))

        def touch() -> None:
            if half:
                sink.copy_(source)

        for _ in range(10):
            net.step(touch)
        return [net.step(touch) for _ in range(30 if bench.quick else 60)]

    return points_of_rows(points, take)


def family(bench: Bench) -> Family:
    """Steps after more and more memory was touched; on a CPU, whose caches the data share with the code."""
    if bench.cuda:
        yield "frontend/mixed: not measured: a GPU's data go through caches of its own"
        return
    for touched in TOUCHED[::2] if bench.quick else TOUCHED:
        yield _task(bench, touched)
