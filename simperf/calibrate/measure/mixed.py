"""A training step of many layers on tiny tensors, after other memory was touched: what calls cost that are made late.

A loop over one operation finds its code, and everything that the interpreter and the library keep about it, in the
first caches. A training step comes back to an operation after all the others, and on a CPU after megabytes of data have
gone through the same caches: the same call then takes up to ten times as long. A GPU's data go through caches of its
own; there the host's time is taken until a pass is launched, which takes longer than its kernels.
"""

from __future__ import annotations

import time
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench, measuring_torch
from simperf.calibrate.measure.task import Family, Task, points_of_rows
from simperf.calibrate.measure.update import trained_by

__all__ = ["family", "layers"]

#: memory that is touched between two passes [B]
TOUCHED = (0.0, 1e6, 4e6, 1e7, 2e7, 4e7, 8e7, 1.6e8, 3.2e8)
PASSES = ("forward", "backward", "update")


def layers() -> Any:
    """Fourteen layers, no two alike in a row."""
    nn = measuring_torch().nn
    return nn.Sequential(
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
    )


class _Net:
    """These layers and a loss."""

    def __init__(self, bench: Bench) -> None:
        self.layers = layers().to(bench.device)
        self.calls = len(self.layers) + 1
        self.loss = bench.torch.nn.functional.cross_entropy
        self.x, self.target = bench.new("fp32")(1, 2, 8, 8), bench.new("fp32")(1, high=8)
        self.optimizer = trained_by("sgd", list(self.layers.parameters()))

    def step(self, touch: Any) -> tuple[float, float, float]:
        """Times of the host of forward and backward pass, a call, and of the update [s]; `touch` comes before each."""
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
            bench.synchronize()
            if half:
                sink.copy_(source)

        for _ in range(10):
            net.step(touch)
        return [net.step(touch) for _ in range(30 if bench.quick else 60)]

    return points_of_rows(points, take)


def family(bench: Bench) -> Family:
    """Steps after more and more memory was touched; of a GPU after none, as its data go through caches of its own."""
    if bench.cuda:
        yield _task(bench, 0.0)
        return
    for touched in TOUCHED[::2] if bench.quick else TOUCHED:
        yield _task(bench, touched)
