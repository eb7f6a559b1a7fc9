"""Published kernel times beside the catalogue's roofline: signed errors, row by row; nothing is fitted.

The prediction is `simperf.cost.Roofline` on the catalogue's part, plus the constant that the measuring program adds to
every row (`simperf.accuracy.kernel_tables.HARNESS`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from simperf.accuracy.cases import source_of
from simperf.accuracy.fitted_constants import constants_behind
from simperf.accuracy.kernel_tables import GPUS, added_time, kernel_reader
from simperf.accuracy.questions import KERNELS
from simperf.accuracy.validation import ValidationRow
from simperf.cost import GpuRates, Roofline
from simperf.errors import InputError, Problem
from simperf.hardware import Catalog

__all__ = ["KernelError", "kernel_table", "predict_roofline", "roofline_errors"]


@dataclass(frozen=True, slots=True)
class KernelError:
    """One measured operation and what the model says.

    Parameters
    ----------
    label : str
        Operation and sizes.
    measured, predicted : float
        [s]
    error : float
        predicted / measured - 1: positive is too slow
    regime : str
        What the model says the time goes to.
    """

    label: str
    measured: float
    predicted: float
    error: float
    regime: str


def predict_roofline(
    case: Mapping[str, Any],
    device: GpuRates,
    *,
    gpu: str = "",
    harness: float | None = None,
    model: Roofline | None = None,
) -> list[KernelError]:
    """Predict every row of a measured case on `device`.

    Parameters
    ----------
    case : mapping
        With ``measured.columns`` and ``measured.table``, ``workload`` and ``source``.
    device : GpuRates
        The GPU part that stands for the one measured.
    gpu : str
        Column of the GPU, where the table has one a GPU.
    harness : float, optional
        time that measuring adds to every row, instead of `HARNESS` [s]
    model : Roofline, optional
        Instead of the default one on `device`.

    Raises
    ------
    InputError
        The table is of no known form.
    """
    reader = kernel_reader(case)
    if reader is None:
        columns, op = list(case["measured"].get("columns") or ()), case["workload"].get("op", "")
        about = f"columns {columns}" + (f" of {op!r}" if op else "")
        raise InputError(
            Problem(
                f"no roofline can be compared with {about}",
                key=str(case.get("id")),
                expected="a table of products, convolutions or elementwise operations",
            )
        )
    roofline = model or Roofline(device)
    errors = []
    for label, op, measured in reader(case, gpu):
        cost = roofline.cost(op)
        added = added_time(case, op) if harness is None else harness
        predicted = cost.time + added
        errors.append(KernelError(label, measured, predicted, predicted / measured - 1.0, cost.regime))
    return errors


def roofline_errors(cases: Iterable[Mapping[str, Any]], gpu: Callable[[str], GpuRates]) -> dict[str, list[KernelError]]:
    """Hold every roofline case that can be predicted against the catalogue's parts.

    Parameters
    ----------
    cases : iterable of mapping
        Cases of any kind; those of other kinds, forms or GPUs are left out.
    gpu : callable
        From a name in the catalog to the part, such as ``Catalog.load().gpu``.

    Returns
    -------
    dict
        Case, with the GPU behind a space where a case has several, to its rows.
    """
    found: dict[str, list[KernelError]] = {}
    for case in cases:
        if case.get("kind") != "roofline" or kernel_reader(case) is None:
            continue
        measured_on = case["hardware"]["gpu"]
        for name in [measured_on] if isinstance(measured_on, str) else measured_on:
            if name in GPUS:
                key = case["id"] if name == measured_on else f"{case['id']} {name}"
                found[key] = predict_roofline(case, gpu(GPUS[name]), gpu=name)
    return found


def kernel_table(cases: list[dict[str, Any]]) -> list[ValidationRow]:
    """Every measured kernel that the catalogue's roofline can be compared with."""
    by_id = {case["id"]: case for case in cases}
    rows = []
    for name, errors in roofline_errors(cases, Catalog.load().gpu).items():
        case = by_id[name.split(":")[0].split(" ")[0]] if name not in by_id else by_id[name]
        for one in errors:
            rows.append(
                ValidationRow(
                    f"Kernels: {name}",
                    one.label,
                    "time",
                    "s",
                    one.measured,
                    one.measured,
                    one.predicted,
                    case=case["id"],
                    source=source_of(case),
                    fitted="one efficiency per kernel family and architecture; a fixed time of the measuring program",
                    kind="fitted" if constants_behind(case["id"]) else "predicted",
                    question=KERNELS,
                )
            )
    return rows
