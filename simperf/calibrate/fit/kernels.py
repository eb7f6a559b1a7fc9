"""Kernels by family: a smooth roofline whose rate falls for small sizes, as `simperf.cost.formulas` has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from simperf.calibrate.fit.model import Array, Columns, Constant, Data, Model
from simperf.cost.formulas import matrix_time, stream_time

__all__ = ["matrix_model", "row_model", "stream_model"]

#: half sizes of a matrix product that are searched [1]
_HALF = 4096.0


def _stream(values: Mapping[str, float], columns: Columns) -> Array:
    return np.asarray(stream_time(columns["nbytes"], cold=columns["cold"] > 0, **values))


def _matrix(values: Mapping[str, float], columns: Columns) -> Array:
    sizes: tuple[Any, ...] = tuple(columns[key] for key in ("flops", "nbytes", "m", "n", "k"))
    known = {key: value for key, value in values.items() if key != "tiled"}
    return np.asarray(matrix_time(*sizes, share=columns["share"], **known))


def _stream_starts(data: Data) -> Sequence[Mapping[str, float]]:
    """From the largest and smallest points: the rate that they reach, and several capacities of the cache."""
    nbytes, time = data.columns["nbytes"], data.measured
    rate = float(np.median((nbytes / time)[nbytes >= np.quantile(nbytes, 0.7)]))
    floor = float(time.min())
    found = [{"overhead": 0.8 * floor, "rate": rate, "cached": 1.2 * rate, "capacity": 1e6}]
    for capacity in np.quantile(nbytes, (0.3, 0.5, 0.7)):
        found.append({"overhead": 0.5 * floor, "rate": rate, "cached": 3.0 * rate, "capacity": float(capacity)})
    return found


def stream_model(name: str, title: str, *, cache: float = 0.0) -> Model:
    """Time over traffic: elementwise, reduction, normalisation, optimiser, copy.

    Parameters
    ----------
    name, title : str
    cache : float
        Above zero, also fit a faster rate for traffic that stays in a cache, and the size up to which it does, at most
        `cache` [B]: there must be points beyond it.
    """
    constants = [Constant("overhead", 5e-6, high=1.0), Constant("rate", 1e11, low=1e6, high=1e15, unit="B/s")]
    if cache > 0:
        constants += [
            Constant("cached", 3e11, low=1e6, high=1e15, unit="B/s"),
            Constant("capacity", min(4e6, cache), low=1e3, high=max(cache, 2e3), unit="B"),
        ]
    return Model(name, title, tuple(constants), _stream, starts=_stream_starts, columns=("nbytes", "cold"))


def _rows(values: Mapping[str, float], columns: Columns) -> Array:
    again = values.get("again", 0.0) / (1.0 + values.get("again_at", 1.0) / columns["columns"])
    return np.asarray(values["overhead"] + columns["nbytes"] / values["rate"] * (1.0 + again))


def row_model(name: str, title: str, *, overhead: float | None = None, long: bool = True) -> Model:
    """Time over traffic and length of a row: softmax and normalisation.

    A row that no multiprocessor can hold is read `again`; half of that has come at rows of `again_at` elements.

    Parameters
    ----------
    name, title : str
    overhead : float, optional
        A fixed time that is known [s].
    long : bool
        Fit what long rows cost.
    """
    constants = [Constant("rate", 1e11, low=1e6, high=1e15, unit="B/s")]
    if long:
        constants += [
            Constant("again", 0.5, high=4.0, unit="1"),
            Constant("again_at", 4096.0, low=128.0, high=131072.0, unit="1"),
        ]
    if overhead is None:
        constants.append(Constant("overhead", 5e-6, high=1.0))
    fixed = {} if overhead is None else {"overhead": overhead}

    def starts(data: Data) -> Sequence[Mapping[str, float]]:
        rate = float((data.columns["nbytes"] / data.measured).max())
        return [{"rate": rate, "again": again, "overhead": 0.5 * float(data.measured.min())} for again in (0.2, 1.0)]

    return Model(name, title, tuple(constants), _rows, fixed, starts, ("nbytes", "columns"))


def _matrix_starts(data: Data) -> Sequence[Mapping[str, float]]:
    rate = float(np.quantile(data.columns["flops"] / data.columns["share"] / data.measured, 0.9))
    floor = float(data.measured.min())
    return [
        {"rate": 1.1 * rate, "overhead": share * floor, "half_m": half, "half_n": half, "half_k": half, "wide": wide}
        for share, half, wide in ((0.3, 10.0, 0.5), (0.8, 100.0, 0.05))
    ]


def matrix_model(
    name: str,
    title: str,
    *,
    faces: str = "mnk",
    memory: float = 0.0,
    wide: bool = False,
    tiled: bool = False,
    fit_memory: bool = False,
    overhead: float | None = None,
) -> Model:
    """Time over work and shape: matrix product, convolution, attention.

    Parameters
    ----------
    name, title : str
    faces : str
        Dimensions whose smallness costs: any of ``"m"``, ``"n"``, ``"k"``.
    memory : float
        Rate of memory, if it is known [B/s]; zero leaves traffic out.
    fit_memory : bool
        Fit how much of `memory` is reached.
    wide : bool
        Also fit the loss of wide results.
    tiled : bool
        Tiles and waves are counted before (column `share`).
    overhead : float, optional
        A fixed time that is known, instead of a fitted one [s].
    """
    constants = [Constant("rate", 1e12, low=1e6, high=1e18, unit="FLOP/s")]
    if overhead is None:
        constants.append(Constant("overhead", 5e-6, high=1.0))
    constants += [Constant(f"half_{face}", 10.0, high=_HALF, unit="1") for face in faces]
    if wide:
        constants += [
            Constant("wide", 0.2, high=10.0, unit="1"),
            Constant("wide_at", 16384.0, low=2048.0, high=65536.0, unit="1"),
        ]
    fixed = {"tiled": 1.0} if tiled else {}
    if memory and fit_memory:
        constants.append(Constant("memory", 0.8 * memory, low=0.3 * memory, high=memory, unit="B/s"))
    elif memory:
        fixed["memory"] = memory
    fixed |= {} if overhead is None else {"overhead": overhead}
    columns = ("flops", "nbytes", "m", "n", "k", "share")
    return Model(name, title, tuple(constants), _matrix, fixed=fixed, starts=_matrix_starts, columns=columns)
