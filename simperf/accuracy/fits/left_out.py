"""Kernels of a GPU that no point of was seen, predicted from its data sheet and the other GPUs' fits.

The interval of a prediction is what the method misses elsewhere: of the other GPUs each is left out in turn as well,
and how far their tables then lie from what is predicted, as wholes and point by point, is how far this one's may
(`simperf.calibrate.uncertainty.variance`). Its own readings have no part in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simperf.accuracy.fits.datasheet import efficiency_models, held_clock
from simperf.accuracy.fits.kernel_data import ONE, kernel_data
from simperf.accuracy.fits.library import joined
from simperf.accuracy.fits.rows import FitRow, best_fit
from simperf.accuracy.kernel_tables import GPUS, MeasuredOp, added_time, by_operation, kernel_cases
from simperf.calibrate.fit import Data, Fit, Model
from simperf.calibrate.fit.kernels import row_model
from simperf.calibrate.fit.model import Array
from simperf.calibrate.uncertainty.variance import ErrorSpread, gpu_spreads, half_width
from simperf.cost.rows import AGAIN
from simperf.hardware import Catalog

__all__ = ["left_out_rows"]

_SECTION = "Kernels of a GPU that was left out"
_GOAL = 0.25
#: an operation needs so many GPUs, so that two are left when two are left out of three
_FEWEST = 3
#: share of its clock below which a board's readings depend on what ran before: T4, L4 and H100 are held below it (0.3
#: to 0.8), the others keep 0.98 and more
_HELD = 0.9


class _Tables:
    """Operations by GPU, in times that the peaks take, and fits to all GPUs but some.

    Parameters
    ----------
    cases : sequence of mapping
    """

    def __init__(self, cases: Sequence[Mapping[str, Any]]) -> None:
        catalog = Catalog.load()
        rows: dict[str, dict[str, tuple[Mapping[str, Any], list[MeasuredOp]]]] = {}
        for case, gpu, every in kernel_cases(cases):
            for kind, group in by_operation(every).items():
                name = str(case["id"]).split("-")[1] if kind == "product" else kind
                rows.setdefault(f"{name} {group[0][1].dtype}", {})[gpu] = (case, group)
        rows = {name: tables for name, tables in rows.items() if len(tables) >= _FEWEST}
        self.data: dict[str, dict[str, Data]] = {}
        self.floor: dict[tuple[str, str], float] = {}
        self._pools: dict[str, list[str]] = {}
        self._pool: dict[str, str] = {}
        self._sort: dict[str, str] = {}
        self._fits: dict[tuple[str, frozenset[str]], Fit] = {}
        for name, tables in rows.items():
            op = next(iter(tables.values()))[1][0][1]
            # all products of a precision go together: what arithmetic reaches, and its energy, is the same in each
            self._pool[name] = name if op.gemm is None else f"products {op.dtype}"
            self._sort[name] = name if op.gemm is not None or op.kind in AGAIN else f"one pass {op.dtype}"
            self._pools.setdefault(self._pool[name], []).append(name)
            for gpu, (case, group) in tables.items():
                part = catalog.gpu(GPUS[gpu])
                floor = added_time(case, group[0][1]) + part.kernel_floor
                self.floor[name, gpu] = floor
                self.data.setdefault(name, {})[gpu] = kernel_data(group, part, scaled=True, added=floor)

    def fit(self, name: str, without: Collection[str]) -> Fit:
        """Fit of an operation on all GPUs but some."""
        pool = self._pool[name]
        every = [(gpu, one) for each in self._pools[pool] for gpu, one in self.data[each].items()]
        key = pool, frozenset(without).intersection(gpu for gpu, _ in every)
        if key not in self._fits:
            others = joined([one for gpu, one in every if gpu not in key[1]])
            self._fits[key] = best_fit(_models(pool != name), others, draws=0)
        return self._fits[key]

    def missed(self, name: str, gpu: str, without: Collection[str] = ()) -> Array:
        """Logarithms of what a GPU reads over what is predicted without it, and without some others."""
        here, floor = self.data[name][gpu], self.floor[name, gpu]
        found = self.fit(name, {gpu, *without})
        return np.asarray(np.log((here.measured + floor) / (found.predict(here) + floor)))

    def spread(self, name: str, gpu: str) -> ErrorSpread:
        """Spread of a GPU around what is predicted for it, by what the others miss while it is left out."""
        misses: dict[str, dict[str, list[Array]]] = {}
        for each, tables in self.data.items():
            for other in tables:
                if other != gpu:
                    boards = misses.setdefault(self._sort[each], {})
                    boards.setdefault(other, []).append(self.missed(each, other, {gpu}))
        values = self.fit(name, {gpu}).values
        held = {
            other: bool(held_clock(values, data.columns)[0] < _HELD)
            for each in self._pools[self._pool[name]]
            for other, data in self.data[each].items()
        }
        alike = {other for other, one in held.items() if one == held[gpu] and other != gpu}
        return gpu_spreads(misses, alike=alike)[self._sort[name]]


def left_out_rows(cases: Sequence[Mapping[str, Any]]) -> Iterator[FitRow]:
    """Each GPU from its data sheet and the efficiencies that the others' kernels reach.

    Work is counted in times that the peaks would take, so that a rate is an efficiency; one is fitted to each
    operation over all GPUs but the one that is predicted.
    """
    tables = _Tables(cases)
    for name, gpus in tables.data.items():
        for gpu, here in gpus.items():
            yield _told(name, gpu, tables.fit(name, {gpu}), here, tables)


def _models(product: bool) -> list[Model]:
    if product:
        return efficiency_models("product", "efficiency", one=ONE)
    return [row_model("rows", "efficiency", overhead=0.0, **known) for known in ({"kept": 1.0, "loose": 0.0}, {})]


def _told(name: str, gpu: str, found: Fit, here: Data, tables: _Tables) -> FitRow:
    """The row of a GPU, with the times that measuring adds put back on both sides."""
    floor = tables.floor[name, gpu]
    predicted, measured = found.predict(here) + floor, here.measured + floor
    errors = predicted / measured - 1.0
    width = half_width(tables.spread(name, gpu))
    peak = (
        np.maximum(here.columns["flops"] * (here.columns["m"] > 1), here.columns["nbytes"]) / ONE + floor
    ) / measured
    return FitRow(
        _SECTION,
        f"{name}, {gpu}",
        "from its data sheet and the other GPUs",
        len(found.data),
        len(here),
        found.mape(),
        float(np.abs(errors).mean()),
        float(errors[np.abs(errors).argmax()]),
        float((np.abs(tables.missed(name, gpu)) <= width).mean()),
        float(np.abs(peak - 1.0).mean()),
        _GOAL,
        ", ".join(f"{key} {value / ONE if value > 1e9 else value:.3g}" for key, value in found.values.items()),
        "",
        width=float(np.expm1(width)),
    )
