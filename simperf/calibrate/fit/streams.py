"""Small kernels on several streams: how much of a device each holds, and how many run side by side at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simperf.calibrate.dataset import Measurement
from simperf.calibrate.fit.model import Array, Columns, Constant, Data, Model
from simperf.cost.tiles import tiling
from simperf.workload.op import Gemm

__all__ = ["stream_columns", "streams_model"]

#: kernels that any device of today runs at one time: more are not told apart (CUDA C++ Programming Guide, "Maximum
#: number of resident grids per device")
_MOST = 128.0


def stream_columns(points: Sequence[Measurement], sms: int) -> dict[str, Array]:
    """Columns of points of ``streams/concurrent`` for `streams_model`.

    Parameters
    ----------
    points : sequence of Measurement
        Products of square matrices of `side`, `kernels` of them on each of `streams`.
    sms : int
        Multiprocessors of the device.

    Returns
    -------
    dict of str to ndarray
        ``streams``, ``kernels``, ``side``, and ``filled``: tiles of one product over multiprocessors [1].
    """
    found = {key: np.array([point.number(key) for point in points]) for key in ("streams", "kernels", "side")}
    sides = [int(side) for side in found["side"]]
    return found | {"filled": np.array([tiling(Gemm(1, side, side, side), sms).tiles / sms for side in sides])}


def _demand(values: Mapping[str, float], columns: Columns) -> tuple[Array, Array]:
    """Share of the device that a kernel asks for, and how many times over it would fill it."""
    wanted = values["held"] * columns["filled"]
    return np.minimum(1.0, np.maximum(wanted, 1.0 / values["limit"])), np.maximum(1.0, wanted)


def _time(values: Mapping[str, float], columns: Columns) -> Array:
    demand, waves = _demand(values, columns)
    alone = values["overhead"] + values["step"] * columns["side"] * waves
    return np.asarray(columns["kernels"] * alone * np.maximum(1.0, columns["streams"] * demand))


def _starts(data: Data) -> Sequence[Mapping[str, float]]:
    """From the readings of one stream; several shares and limits."""
    one = data.columns["streams"] == data.columns["streams"].min()
    alone = (data.measured / data.columns["kernels"])[one]
    side = data.columns["side"][one]
    step = float(np.ptp(alone) / max(np.ptp(side), 1.0)) or float(alone.min() / side.max())
    return [
        {"overhead": 0.7 * float(alone.min()), "step": step, "held": held, "limit": limit}
        for held in (0.1, 0.3, 1.0, 3.0)
        for limit in (3.0, 8.0, 32.0)
    ]


def streams_model(name: str = "streams") -> Model:
    """Kernels of each stream in order, all streams beside one another, as `simperf.engine.share` has it.

    A kernel of one wave takes ``overhead + step side``, since each tile runs through the whole sum; it asks for
    ``held`` of a multiprocessor for each tile, and for one over ``limit`` of the device at least. What all ask for
    beyond the device makes all of them longer.
    """
    constants = (
        Constant("overhead", 3e-6, low=1e-8, high=1e-2),
        Constant("step", 1e-8, low=1e-12, high=1e-4),
        Constant("held", 0.5, low=1e-3, high=16.0, unit="1"),
        Constant("limit", 16.0, low=1.0, high=_MOST, unit="1"),
    )
    columns = ("streams", "kernels", "side", "filled")
    return Model(name, "kernels on several streams", constants, _time, starts=_starts, columns=columns)
