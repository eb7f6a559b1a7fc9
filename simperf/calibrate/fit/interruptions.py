"""What stops all work for moments: how much longer runs take on average than the middle one of a few.

Others on the same cores, the hypervisor and the system itself take them away for some hundredths of a second now and
then. A reading of an operation is the middle one of a few blocks of milliseconds, which leaves such moments out. A
training step, which lasts as long as they are apart or longer, does not: it takes the sum of its operations' means.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

import numpy as np

from simperf.calibrate.dataset import Dataset
from simperf.calibrate.fit.choose import ModelChoice
from simperf.calibrate.fit.model import Data
from simperf.calibrate.fit.waiting import constant_model

__all__ = ["longer_runs"]

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
