"""Kernels bound by memory, as `simperf.cost.formulas` has them: in one pass, or over rows that are read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simperf.calibrate.fit.model import Array, Columns, Data, FitConstant, Model
from simperf.cost import GpuRates, pressure, row_launch
from simperf.cost.formulas import row_time, stream_time
from simperf.workload.op import Op
from simperf.workload.precision import element_size

__all__ = ["pooled_row_model", "row_columns", "row_model", "stream_model"]


def row_columns(ops: Sequence[Op], part: GpuRates) -> dict[str, Array]:
    """Columns of operations on rows for `row_model`: ``pressure``, ``again``, ``tail``."""
    launches = [row_launch(op.kind, int(op.row), element_size(op.dtype)) for op in ops]
    return {
        "pressure": np.array([pressure(op, part) for op in ops]),
        "again": np.array([launch.again for launch in launches]),
        "tail": np.array([launch.tail for launch in launches]),
    }


def _stream(values: Mapping[str, float], columns: Columns) -> Array:
    if "kept" in values:  # the form with rows is another choice for the same operations
        return _rows(values, columns)
    return np.asarray(stream_time(columns["nbytes"], cold=columns["cold"] > 0, **values))


def _stream_starts(data: Data) -> Sequence[Mapping[str, float]]:
    """From the largest and smallest points: the rate that they reach, and several capacities of the cache."""
    nbytes, time = data.columns["nbytes"], data.measured
    rate = float(np.median((nbytes / time)[nbytes >= np.quantile(nbytes, 0.7)]))
    floor = float(time.min())
    found = [{"overhead": 0.8 * floor, "rate": rate, "cached": 1.2 * rate, "capacity": 1e6}]
    for capacity in np.quantile(nbytes, (0.2, 0.35, 0.5, 0.65, 0.8)):
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
    constants = [FitConstant("overhead", 5e-6, high=1.0), FitConstant("rate", 1e11, low=1e6, high=1e15, unit="B/s")]
    if cache > 0:
        constants += [
            FitConstant("cached", 3e11, low=1e6, high=1e15, unit="B/s"),
            FitConstant("capacity", min(4e6, cache), low=1e3, high=max(cache, 2e3), unit="B"),
        ]
    return Model(name, title, tuple(constants), _stream, starts=_stream_starts, columns=("nbytes", "cold"))


def _rows(values: Mapping[str, float], columns: Columns) -> Array:
    where = tuple(columns[key] for key in ("nbytes", "pressure", "again", "tail"))
    return np.asarray(row_time(*where, **values))


def row_model(
    name: str,
    title: str,
    *,
    overhead: float | None = None,
    kept: float | None = None,
    loose: float | None = None,
) -> Model:
    """Time of softmax and normalisation, which pass over long rows more than once: `simperf.cost.formulas.row_time`.

    Parameters
    ----------
    name, title : str
    overhead, kept, loose : float, optional
        What is known and not fitted: the fixed time [s], the pressure at which half of the further reads go to memory,
        and what loading element by element costs [1].
    """
    constants = [FitConstant("rate", 1e11, low=1e6, high=1e15, unit="B/s")]
    fixed = {}
    for key, value, constant in (
        ("kept", kept, FitConstant("kept", 0.4, low=0.05, high=5.0, unit="1")),
        ("loose", loose, FitConstant("loose", 0.3, high=4.0, unit="1")),
        ("overhead", overhead, FitConstant("overhead", 5e-6, high=1.0)),
    ):
        if value is None:
            constants.append(constant)
        else:
            fixed[key] = value

    def starts(data: Data) -> Sequence[Mapping[str, float]]:
        rate, floor = float((data.columns["nbytes"] / data.measured).max()), float(data.measured.min())
        return [{"rate": rate, "kept": at, "overhead": 0.5 * floor} for at in (0.2, 0.4, 1.0)]

    return Model(name, title, tuple(constants), _rows, fixed, starts, ("nbytes", "pressure", "again", "tail"))


def pooled_row_model(name: str, title: str, *, gpus: int, late: bool) -> Model:
    """Softmax or normalisation on several GPUs: a rate for each, and what their library has in common.

    Parameters
    ----------
    name, title : str
    gpus : int
        Column ``gpu`` counts them from zero; column ``fixed`` is the time that is known [s].
    late : bool
        Also fit `overhead`, a time of the host that is not known and the same everywhere [s].
    """
    shared = [
        FitConstant("kept", 0.4, low=0.05, high=5.0, unit="1"),
        FitConstant("loose", 0.3, high=4.0, unit="1"),
        *([FitConstant("overhead", 5e-6, high=1e-3)] if late else []),
    ]
    rates = [FitConstant(f"rate_{i}", 1e11, low=1e6, high=1e15, unit="B/s") for i in range(gpus)]

    def every(values: Mapping[str, float], columns: Columns) -> Array:
        rate = np.array([values[one.name] for one in rates])[columns["gpu"].astype(int)]
        where = tuple(columns[key] for key in ("nbytes", "pressure", "again", "tail"))
        known = {one.name: values[one.name] for one in shared}
        return np.asarray(columns["fixed"] + row_time(*where, **{"overhead": 0.0, **known, "rate": rate}))

    def starts(data: Data) -> Sequence[Mapping[str, float]]:
        reached = data.columns["nbytes"] / data.measured
        best = {one.name: float(reached[data.columns["gpu"] == i].max()) for i, one in enumerate(rates)}
        return [{**best, "kept": kept} for kept in (0.2, 0.4, 1.0)]

    columns = ("nbytes", "pressure", "again", "tail", "gpu", "fixed")
    return Model(name, title, (*shared, *rates), every, starts=starts, columns=columns)
