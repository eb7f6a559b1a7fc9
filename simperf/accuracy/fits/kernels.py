"""Fits to published kernel times: half of the shapes of a GPU predicted from the other half.

Which form a kernel gets is decided by the information criterion on the points that are fitted, never by those that are
predicted. What belongs to the library and not to a GPU is fitted to the fitted halves of all GPUs that share it
(`simperf.accuracy.fits.library`); how readings scatter is drawn towards what is usual among all tables of one sort
of kernel (`simperf.calibrate.uncertainty.variance`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simperf.accuracy.fits.kernel_data import kernel_data
from simperf.accuracy.fits.library import Library, OperationTable
from simperf.accuracy.fits.rows import FitRow, row_of, two_constants
from simperf.accuracy.kernel_tables import GPUS, added_time, by_operation, kernel_cases
from simperf.calibrate.fit import Fit
from simperf.calibrate.uncertainty.variance import with_pooled_scatter
from simperf.cost.rows import AGAIN
from simperf.hardware import Catalog

__all__ = ["kernel_rows"]

_SECTION = "Kernels, half of the shapes of a GPU predicted"
_GOAL = 0.10


def _tasks(cases: Sequence[Mapping[str, Any]]) -> list[OperationTable]:
    """Every second shape to fit, the others to predict."""
    catalog, found = Catalog.load(), []
    for case, gpu, rows in kernel_cases(cases):
        part = catalog.gpu(GPUS[gpu])
        for kind, group in by_operation(rows).items():
            every = kernel_data(group, part)
            halves = every.take(slice(0, None, 2)), every.take(slice(1, None, 2))
            fixed = added_time(case, group[0][1]) + part.kernel_floor
            found.append(OperationTable(case, gpu, part, kind, group, *halves, fixed))
    return found


def _sort(task: OperationTable) -> str:
    """Kernels whose readings scatter alike: products of one kind and precision, rows that are read again, one pass."""
    if task.kind == "product":
        return f"{task.op.kind} {task.op.dtype}"
    return "rows" if task.kind in AGAIN else "one pass"


def _fits(tasks: Sequence[OperationTable]) -> list[Fit]:
    """A fit for each task, with the scatter that its sort is told to have."""
    library = Library(tasks)
    alone = [library.fit(task) for task in tasks]
    sorts: dict[str, list[int]] = {}
    for index, task in enumerate(tasks):
        sorts.setdefault(_sort(task), []).append(index)
    found: dict[int, Fit] = {}
    for members in sorts.values():
        found |= dict(zip(members, with_pooled_scatter([alone[index] for index in members]), strict=True))
    return [found[index] for index in range(len(tasks))]


def kernel_rows(cases: Sequence[Mapping[str, Any]]) -> Iterator[FitRow]:
    """Every case and GPU: fitted on every second shape, predicted on the others; then each GPU as a whole."""
    tasks = _tasks(cases)
    fitted: list[tuple[OperationTable, Fit, float]] = []
    for task, one in zip(tasks, _fits(tasks), strict=True):
        column = "flops" if task.kind == "product" else "nbytes"
        fitted.append((task, one, float(np.abs(two_constants(task.known, task.away, column=column)).mean())))
    rows: dict[str, list[tuple[OperationTable, Fit, float]]] = {}
    whole: dict[str, list[tuple[OperationTable, Fit, float]]] = {}
    for each in fitted:
        rows.setdefault(f"{each[0].case['id']}, {each[0].gpu}", []).append(each)
        whole.setdefault(f"all of {each[0].gpu}", []).append(each)
    for name, found in (*rows.items(), *whole.items()):
        yield row_of(
            _SECTION,
            name,
            "every second shape",
            [(one, task.away) for task, one, _ in found],
            plain=float(np.average([plain for _, _, plain in found], weights=[len(task.away) for task, _, _ in found])),
            goal=_GOAL,
            source=found[0][0].source if name in rows else "",
        )
