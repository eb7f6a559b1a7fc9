"""Small kernels on several streams: how much of a device each holds, and how many run side by side at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simperf.calibrate.dataset import Measurement
from simperf.calibrate.fit.model import Array, Columns, Data, FitConstant, Model
from simperf.cost.tiles import tiling
from simperf.workload.op import Gemm

__all__ = ["stream_data", "streams_model"]

#: kernels that any device of today runs at one time: more are not told apart (CUDA C++ Programming Guide, "Maximum
#: number of resident grids per device")
_MOST = 128.0


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
    alone = {_place(point): point.median for point in points if point.number("streams") == 1}
    found = [point for point in points if point.number("streams") > 1 and _place(point) in alone]
    if not found:
        return None
    return Data.of(
        found, ("streams",), alone=lambda point: alone[_place(point)], filled=lambda point: _filled(point, sms)
    )


def _place(point: Measurement) -> tuple[float, float]:
    return point.number("side"), point.number("kernels")


def _filled(point: Measurement, sms: int) -> float:
    side = int(point.number("side"))
    return tiling(Gemm(1, side, side, side), sms).tiles / sms


def _time(values: Mapping[str, float], columns: Columns) -> Array:
    demand = np.minimum(1.0, np.maximum(values["held"] * columns["filled"], 1.0 / values["limit"]))
    return np.asarray(columns["alone"] * np.maximum(1.0, columns["streams"] * demand))


def streams_model(name: str = "streams", *, limited: bool = False) -> Model:
    """Kernels of each stream in order, all streams beside one another, as `simperf.engine.share` has it.

    A kernel asks for ``held`` of a multiprocessor for each tile, and for one over ``limit`` of the device at least.
    What all ask for beyond the device makes all of them longer, in proportion.

    Parameters
    ----------
    name : str
    limited : bool
        Also fit `limit`, which only points with more streams than that can tell; without it any number that devices
        have runs side by side.
    """
    held = FitConstant("held", 0.5, low=1e-3, high=16.0, unit="1")
    limit = FitConstant("limit", 16.0, low=1.0, high=_MOST, unit="1")

    def starts(data: Data) -> Sequence[Mapping[str, float]]:
        limits = (3.0, 8.0, 32.0) if limited else (_MOST,)
        return [{"held": held, "limit": limit} for held in (0.1, 0.3, 1.0, 3.0) for limit in limits]

    return Model(
        name,
        "kernels on several streams",
        (held, limit) if limited else (held,),
        _time,
        fixed={} if limited else {"limit": _MOST},
        starts=starts,
        columns=("streams", "alone", "filled"),
    )
