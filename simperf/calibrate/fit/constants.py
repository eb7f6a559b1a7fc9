"""Constants that all readings share: a launch (t1), a synchronisation (t3), the depth of a queue, interruptions.

Interruptions: others on the same cores, the hypervisor and the system itself take them away for some hundredths of a
second now and then. A reading of an operation is the middle one of a few blocks of milliseconds, which leaves such
interruptions out. A training step, which lasts as long as they are apart or longer, does not: it takes the sum of its
operations' means.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from simperf.calibrate.dataset import Dataset
from simperf.calibrate.fit.choice import ModelChoice
from simperf.calibrate.fit.model import Array, Columns, Data, FitConstant, Model

__all__ = ["constant_model", "longer_runs"]


def constant_model(name: str, constant: str, title: str, *, unit: str = "s") -> Model:
    """One number that all readings share, such as the host's time for a call.

    Its residuals are the readings' own spread, so that the interval is that of a robust mean.
    """

    def same(values: Mapping[str, float], columns: Columns) -> Array:
        return np.full(len(columns["one"]), values[constant])

    def middle(data: Data) -> Sequence[Mapping[str, float]]:
        return [{constant: float(np.median(data.measured))}]

    return Model(name, title, (FitConstant(constant, 1e-6, unit=unit),), same, starts=middle, columns=("one",))


#: blocks of a point, and points of a series, that say something of their mean
_BLOCKS, _POINTS = 4, 5


def longer_runs(sessions: Sequence[Dataset]) -> Iterator[ModelChoice]:
    """Mean over middle reading of operations on a CPU: a reading for each session and family of operations.

    What is usual is taken, so that a session whose cores were taken away more often counts no more than others.

    Parameters
    ----------
    sessions : sequence of Dataset
        Not pooled: of pooled points the slowest readings are left out.
    """
    readings = []
    for dataset in sessions:
        apart: dict[str, list[float]] = {}
        for point in dataset.select("op/", device="cpu"):
            if len(point.samples) >= _BLOCKS and point.median > 0:
                apart.setdefault(point.series, []).append(statistics.fmean(point.samples) / point.median)
        readings += [statistics.fmean(each) for each in apart.values() if len(each) >= _POINTS]
    if len(readings) > 1:
        data = Data({"one": np.ones(len(readings))}, np.array(readings))
        title = "mean over middle reading: what a run takes longer on average"
        yield ModelChoice("op/", constant_model("run.longer", "longer", title, unit="1"), data)
