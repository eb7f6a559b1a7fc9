"""A copy from the host beside kernels: how much longer each of them takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from simperf.calibrate.dataset import Measurement
from simperf.calibrate.fit.model import Array, Columns, Data, FitConstant, Model

__all__ = ["PARTS", "overlap_model", "overlap_points"]

#: parts of a point whose end was read while the other one ran -> code in the column ``part``
PARTS: Mapping[str, float] = {"both": 0.0, "copy-beside": 1.0, "compute-beside": 2.0}


def overlap_points(points: Sequence[Measurement]) -> Iterator[tuple[str, Data]]:
    """Data for `overlap_model`, by what runs beside the copies.

    What copy and kernels take alone is read from the points beside; a point without both is left out.
    """
    alone = {(_place(point), point.at.get("part")): point.median for point in points}
    for kind in dict.fromkeys(str(point.at.get("beside", "")) for point in points):
        found = [
            point
            for point in points
            if str(point.at.get("beside", "")) == kind
            and point.at.get("part") in PARTS
            and all((_place(point), part) in alone for part in ("copy", "compute"))
        ]
        if found:
            yield (
                kind,
                Data.of(
                    found,
                    (),
                    part=lambda point: PARTS[str(point.at["part"])],
                    copy=lambda point: alone[_place(point), "copy"],
                    compute=lambda point: alone[_place(point), "compute"],
                ),
            )


def _place(point: Measurement) -> tuple[object, ...]:
    return tuple(point.at.get(key) for key in ("beside", "nbytes", "kernels"))


def _time(values: Mapping[str, float], columns: Columns) -> Array:
    copy, compute = columns["copy"], columns["compute"]
    slow_copy, slow_compute = copy * values["copy"], compute * values["kernel"]
    # both are slowed until the first of them ends; the other goes on at its own pace
    copy_first = slow_copy <= slow_compute
    copy_end = np.where(copy_first, slow_copy, slow_compute + copy - slow_compute / values["copy"])
    compute_end = np.where(copy_first, slow_copy + compute - slow_copy / values["kernel"], slow_compute)
    part = columns["part"]
    whole = np.maximum(copy_end, compute_end)
    return np.asarray(np.where(part == 1.0, copy_end, np.where(part == 2.0, compute_end, whole)))


def overlap_model(kind: str) -> Model:
    """Ends of a copy and of kernels that begin together, each slowed by the other as long as both run.

    Parameters
    ----------
    kind : str
        What runs beside the copy: ``"gemm"`` or ``"memory"``.

    Notes
    -----
    The constants `copy` and `kernel` are the time beside the other over the time alone. They may come out a little
    below 1, as readings scatter; the simulator then takes 1.
    """
    constants = (
        FitConstant("copy", 1.1, low=0.7, high=20.0, unit="1"),
        FitConstant("kernel", 1.1, low=0.7, high=20.0, unit="1"),
    )

    def starts(data: Data) -> Sequence[Mapping[str, float]]:
        return [{"copy": copy, "kernel": kernel} for copy in (1.05, 1.5, 3.0) for kernel in (1.05, 1.5, 3.0)]

    title = f"a copy beside kernels ({kind}): times over those alone"
    return Model(f"overlap.{kind}", title, constants, _time, starts=starts, columns=("part", "copy", "compute"))
