"""Batches from a DataLoader: in the process itself, and from worker processes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from simperf.calibrate.dataset import Value
from simperf.calibrate.measure.bench import Bench
from simperf.calibrate.measure.task import Family, point

__all__ = ["Pictures", "family"]


class Pictures:
    """A data set that makes each sample from its number: a copy and some arithmetic, as decoding would do."""

    def __init__(self, count: int, side: int) -> None:
        self.count, self.side = count, side

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        import torch

        if index >= self.count:
            raise IndexError(index)
        picture = torch.full((3, self.side, self.side), index % 256, dtype=torch.uint8)
        return picture.float().div_(255.0).sub_(0.5), index % 10


def _take(bench: Bench, workers: int, batch: int, side: int) -> Sequence[float]:
    """Time from batch to batch, the first two, for which workers start, left out."""
    count = (10 if bench.quick else 30) + 2
    loader = bench.torch.utils.data.DataLoader(
        Pictures(count * batch, side), batch_size=batch, num_workers=workers, pin_memory=bench.cuda
    )
    times, last = [], time.perf_counter()
    for _ in loader:
        now = time.perf_counter()
        times.append(now - last)
        last = now
    return times[2:]


def family(bench: Bench) -> Family:
    """No workers, one, two, and as many as there are cores."""
    import os

    cores = os.cpu_count() or 1
    for workers in (0, 1) if bench.quick else sorted({0, 1, 2, min(8, cores)}):
        for side, batch in ((64, 32),) if bench.quick else ((64, 32), (224, 16)):
            at: dict[str, Value] = {"workers": workers, "batch": batch, "side": side, "nbytes": 12 * batch * side**2}
            yield point(
                "loader/batch",
                at,
                lambda w=workers, b=batch, s=side: _take(bench, w, b, s),  # type: ignore[misc]
            )
