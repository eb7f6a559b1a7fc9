"""Models of what only a GPU has: small kernels on several streams, and copies beside kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.fit.choice import ModelChoice, given, keys_of
from simperf.calibrate.fit.model import Array, Columns, Data, FitConstant, Model
from simperf.cost.tiles import tiling
from simperf.workload.op import Gemm

__all__ = ["PARTS", "overlap_model", "overlap_points", "read_overlap", "read_streams", "stream_data", "streams_model"]

#: kernels that any device of today runs at one time: more are not told apart (CUDA C++ Programming Guide, "Maximum
#: number of resident grids per device")
_MOST_KERNELS = 128.0


def stream_data(points: Sequence[Measurement], sms: int) -> Data | None:
    """Points of ``streams/concurrent`` on several streams, for `streams_model`; None if there are none.

    What the kernels of one stream take alone is read from the point on one stream; sizes without it are left out.

    Parameters
    ----------
    points : sequence of Measurement
        Products of square matrices of `side`, `kernels` of them on each of `streams`.
    sms : int
        Multiprocessors of the device.

    Returns
    -------
    Data or None
        With columns ``streams``; ``alone``, of one stream [s]; ``filled``, tiles of a product over multiprocessors [1].
    """
    alone = {_side(point): point.median for point in points if point.number("streams") == 1}
    found = [point for point in points if point.number("streams") > 1 and _side(point) in alone]
    if not found:
        return None
    return Data.of(
        found, ("streams",), alone=lambda point: alone[_side(point)], filled=lambda point: _filled(point, sms)
    )


def _side(point: Measurement) -> tuple[float, float]:
    return point.number("side"), point.number("kernels")


def _filled(point: Measurement, sms: int) -> float:
    side = int(point.number("side"))
    return tiling(Gemm(1, side, side, side), sms).tiles / sms


def _streams_time(values: Mapping[str, float], columns: Columns) -> Array:
    demand = np.minimum(1.0, np.maximum(values["held"] * columns["filled"], 1.0 / values["limit"]))
    return np.asarray(columns["alone"] * np.maximum(1.0, columns["streams"] * demand))


def streams_model(*, limited: bool = False) -> Model:
    """Kernels of each stream in order, all streams beside one another, as `simperf.engine.share` has it.

    A kernel asks for ``held`` of a multiprocessor for each tile, and for one over ``limit`` of the device at least.
    What all ask for beyond the device makes all of them longer, in proportion.

    Parameters
    ----------
    limited : bool
        Also fit `limit`, which only points with more streams than that can tell; without it any number that devices
        have runs side by side.
    """
    held = FitConstant("held", 0.5, low=1e-3, high=16.0, unit="1")
    limit = FitConstant("limit", 16.0, low=1.0, high=_MOST_KERNELS, unit="1")

    def starts(data: Data) -> Sequence[Mapping[str, float]]:
        limits = (3.0, 8.0, 32.0) if limited else (_MOST_KERNELS,)
        return [{"held": held, "limit": limit} for held in (0.1, 0.3, 1.0, 3.0) for limit in limits]

    return Model(
        "streams",
        "kernels on several streams",
        (held, limit) if limited else (held,),
        _streams_time,
        fixed={} if limited else {"limit": _MOST_KERNELS},
        starts=starts,
        columns=("streams", "alone", "filled"),
    )


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


def _overlap_time(values: Mapping[str, float], columns: Columns) -> Array:
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
    return Model(f"overlap.{kind}", title, constants, _overlap_time, starts=starts, columns=("part", "copy", "compute"))


def read_streams(series: str, points: Sequence[Measurement], dataset: Dataset) -> Iterator[ModelChoice]:
    """Model of small kernels that run side by side."""
    sms = int(float(dataset.machine.get("sms", 0) or 0))
    points = [point for point in points if point.median > 0]
    if not sms:
        reason = "the data set does not say how many multiprocessors the device has (sms)"
        yield ModelChoice(series, reason=reason, keys=keys_of(points))
        return
    data = stream_data(points, sms)
    if data is None:
        reason = "no point was taken on several streams, and on one of them alone"
        yield ModelChoice(series, reason=reason, keys=keys_of(points))
        return
    chosen = [point for point in points if point.key in set(data.keys)]
    yield given(series, streams_model(), chosen, data, streams_model(limited=True))


def read_overlap(series: str, points: Sequence[Measurement], dataset: Dataset) -> Iterator[ModelChoice]:
    """Models of copies and kernels that slow each other down, by what bounds the kernels."""
    found = False
    for kind, data in overlap_points(points):
        found = True
        chosen = [point for point in points if point.key in set(data.keys)]
        yield given(series, overlap_model(kind), chosen, data)
    if not found:
        reason = "no point was taken with copy and kernels beside each other, and each of them alone"
        yield ModelChoice(series, reason=reason, keys=keys_of(points))
