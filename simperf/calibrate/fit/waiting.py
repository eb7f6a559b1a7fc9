"""What takes the same time whatever its size: a launch (t1), a synchronisation (t3), and the depth of a queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simperf.calibrate.fit.model import Array, Columns, Data, FitConstant, Model

__all__ = ["constant_model", "queue_model"]


def constant_model(name: str, constant: str, title: str, *, unit: str = "s") -> Model:
    """One number that all readings share, such as the host's time for a call.

    Its residuals are the readings' own spread, so that the interval is that of a robust mean.
    """

    def same(values: Mapping[str, float], columns: Columns) -> Array:
        return np.full(len(columns["one"]), values[constant])

    def middle(data: Data) -> Sequence[Mapping[str, float]]:
        return [{constant: float(np.median(data.measured))}]

    return Model(name, title, (FitConstant(constant, 1e-6, unit=unit),), same, starts=middle, columns=("one",))


def _queue(values: Mapping[str, float], columns: Columns) -> Array:
    """Mean time of a launch among the first n: launches at the host's pace, then at the device's."""
    n, depth = columns["launches"], values["depth"]
    beyond = np.maximum(0.0, n - depth)
    return np.asarray((values["launch"] * (n - beyond) + max(values["launch"], values["kernel"]) * beyond) / n)


def _queue_starts(data: Data) -> Sequence[Mapping[str, float]]:
    n, mean = data.columns["launches"], data.measured
    order = np.argsort(n)
    launch = float(np.median(mean[order[: max(1, len(n) // 4)]]))
    total = (mean * n)[order]
    kernel = float((total[-1] - total[-2]) / (n[order][-1] - n[order][-2])) if len(n) > 1 else launch
    return [
        {"launch": launch, "kernel": max(kernel, 2 * launch), "depth": float(depth)}
        for depth in np.quantile(n, (0.1, 0.2, 0.3, 0.5, 0.7))
    ]


def queue_model(name: str = "frontend") -> Model:
    """The bounded launch queue: mean time a launch over the number of launches shows where the host begins to wait.

    Launches beyond the depth go at the device's pace, so the mean bends there.
    """
    constants = (
        FitConstant("launch", 5e-6, low=1e-9, high=1.0),
        FitConstant("kernel", 5e-5, low=1e-9, high=10.0),
        FitConstant("depth", 1024.0, low=1.0, high=1e6, unit="1"),
    )
    return Model(name, "launches into a bounded queue", constants, _queue, starts=_queue_starts, columns=("launches",))
