"""Times of a collective by size, one constant a size: what a log of nccl-tests is fitted with.

The times of NCCL jump where it changes algorithm, protocol or channels, so that no form of few constants meets them
all. A time is kept for every size that the line between its neighbours misses; a run takes its latencies and bytes from
NCCL's constants, and its time from these (`simperf.cost.MeasuredCollective`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simperf.calibrate.dataset import Measurement
from simperf.calibrate.fit.model import Array, Columns, Data, FitConstant, Model

__all__ = ["size_data", "size_model"]

#: part of the time by which a size that gets no constant of its own may be missed
_CLOSE = 5e-3


def size_data(points: Sequence[Measurement]) -> Data:
    """The points of a collective, one a size, rising.

    Buffers apart are taken where there are any, which is what nccl-tests names first; readings of one size, such as
    of several types or logs, are taken together.
    """
    apart = [point for point in points if not point.at.get("in_place")] or list(points)
    sizes = sorted({point.number("nbytes") for point in apart})
    groups = [[point for point in apart if point.number("nbytes") == size] for size in sizes]
    samples = tuple(np.array([one for point in group for one in point.samples if one > 0]) for group in groups)
    kept = [index for index, each in enumerate(samples) if len(each)]
    return Data(
        {"nbytes": np.array([sizes[index] for index in kept])},
        np.array([float(np.median(samples[index])) for index in kept]),
        tuple(samples[index] for index in kept),
        tuple(groups[index][0].key for index in kept),
    )


def size_model(name: str, title: str, data: Data, *, launches: int = 0) -> Model:
    """Constants ``time_1``, ``time_2``, ... [s] at the sizes ``size_1``, ``size_2``, ... [B], which are fixed.

    So is the number of GPUs that one process drove, ``launches``, where it is known.
    """
    sizes, times = np.log(data.columns["nbytes"]), np.log(data.measured)
    knots = _knots(sizes, times)
    constants = tuple(FitConstant(f"time_{i + 1}", float(data.measured[at]), high=np.inf) for i, at in enumerate(knots))
    fixed = {f"size_{i + 1}": float(data.columns["nbytes"][at]) for i, at in enumerate(knots)}
    if launches:
        fixed["launches"] = float(launches)
    known = {one.name: one.value for one in constants}
    return Model(name, title, constants, _between, fixed=fixed, direct=lambda points: known)


def _between(values: Mapping[str, float], columns: Columns) -> Array:
    count = sum(word.startswith("size_") for word in values)
    sizes, times = (np.log([values[f"{word}_{i}"] for i in range(1, count + 1)]) for word in ("size", "time"))
    return np.asarray(np.exp(np.interp(np.log(columns["nbytes"]), sizes, times)))


def _knots(sizes: Array, times: Array) -> list[int]:
    """Places of the points that lines between them need, so that all others lie close (Ramer, Douglas and Peucker)."""
    kept = {0, len(sizes) - 1}
    parts = [(0, len(sizes) - 1)]
    while parts:
        a, b = parts.pop()
        if b - a < 2:
            continue
        line = np.interp(sizes[a : b + 1], sizes[[a, b]], times[[a, b]])
        off = np.abs(times[a : b + 1] - line)
        worst = int(off.argmax())
        if off[worst] > _CLOSE:
            kept.add(a + worst)
            parts += [(a, a + worst), (a + worst, b)]
    return sorted(kept)
