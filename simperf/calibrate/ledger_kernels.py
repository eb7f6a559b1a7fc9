"""Fits to published kernel times: half of the shapes of a GPU, and a GPU that no point of was seen.

Which form a kernel gets is decided by the information criterion on the points that are fitted, never by those that are
predicted. What belongs to the library and not to a GPU (when a row is read again, what loading it element by element
costs, what its call takes on the host) is fitted to the fitted halves of all GPUs that one source measured together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simperf.analysis.truth_roofline import GPUS, HARNESS, measured_ops
from simperf.calibrate.fit import Data, Fit, Model, fit
from simperf.calibrate.fit.kernels import pooled_row_model, row_columns, row_model, stream_model
from simperf.calibrate.fit.products import (
    CORNERS,
    LEAST,
    efficiency_models,
    limited_model,
    pooled_limited_model,
    power_limited,
    product_columns,
    product_models,
)
from simperf.calibrate.ledger_rows import FitRow, best_fit, row_of, two_constants
from simperf.cost import Roofline
from simperf.cost.rows import AGAIN
from simperf.hardware import Catalog, GpuPart
from simperf.workload.op import Gemm, Op

__all__ = ["kernel_rows", "left_out_rows"]

_HALF = "Kernels, half of the shapes of a GPU predicted"
_OUT = "Kernels of a GPU that was left out"
_GOAL_HALF, _GOAL_OUT = 0.10, 0.25
#: rate in which scaled work is counted: FLOP over peak and bytes over bandwidth, times this
_ONE = 1e12
_Row = tuple[str, Op, float]


def _cases(cases: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], str, list[_Row]]]:
    """Case, GPU and rows of every roofline case whose GPU is in the catalogue."""
    for case in cases:
        if case.get("kind") != "roofline":
            continue
        gpus = case["hardware"]["gpu"]
        for gpu in [gpus] if isinstance(gpus, str) else gpus:
            rows = measured_ops(case, gpu) if gpu in GPUS else []
            if rows:
                yield case, gpu, rows


def _data(rows: Sequence[_Row], part: GpuPart, *, scaled: bool = False, added: float = 0.0) -> Data:
    """Columns of operations; `scaled` by the part's peaks, and `added` [s] taken off the times."""
    roofline = Roofline(part)
    ops = [op for _, op, _ in rows]
    memory = part.memory_bandwidth / _ONE if scaled else 1.0
    columns: dict[str, Any] = {
        "flops": [op.flops / (roofline.peak(op.dtype, family=op.family) / _ONE if scaled else 1.0) for op in ops],
        "nbytes": [op.nbytes / memory for op in ops],
        **row_columns(ops, part),
        "cold": np.zeros(len(ops)),
        "peak": [roofline.peak(op.dtype, family=op.family) for op in ops],
        "bandwidth": np.full(len(ops), part.memory_bandwidth),
        "power": np.full(len(ops), part.power or np.inf),
        **product_columns([op.gemm or Gemm(1, 1, 1, 1) for op in ops], part),
    }
    times = np.array([time for _, _, time in rows]) - added
    return Data.table(np.maximum(times, 1e-7), **{key: np.array(value) for key, value in columns.items()})


def _groups(rows: Sequence[_Row]) -> dict[str, list[_Row]]:
    """Rows by operation; matrix products together."""
    found: dict[str, list[_Row]] = {}
    for row in rows:
        found.setdefault("product" if row[1].gemm is not None else row[1].kind, []).append(row)
    return found


def _added(case: Mapping[str, Any], op: Op) -> float:
    """Time that the measuring program adds [s]."""
    repo = str(case.get("source", {}).get("repo", ""))
    return HARNESS.get(f"{repo}:{op.kind}", HARNESS.get(repo, 0.0))


def _models(kind: str, group: Sequence[_Row], data: Data, part: GpuPart, known: float) -> list[Model]:
    """What may be fitted to an operation: few constants, and the same with what its shapes may show."""
    if kind == "product":
        return product_models(kind, kind, part, dtype=group[0][1].dtype, overhead=known)
    largest = float(data.columns["nbytes"].max())
    found = [stream_model(kind, kind), stream_model(kind, kind, cache=largest / 4)]
    if kind in AGAIN:
        found += [row_model(kind, kind, overhead=overhead) for overhead in (known, None)]
    return found


@dataclass(frozen=True, slots=True)
class _Task:
    """An operation of a case on a GPU."""

    case: Mapping[str, Any]
    gpu: str
    part: GpuPart
    kind: str
    group: Sequence[_Row]
    known: Data
    away: Data
    fixed: float

    @property
    def source(self) -> str:
        return str(self.case["source"].get("repo", ""))


def _tasks(cases: Sequence[Mapping[str, Any]]) -> list[_Task]:
    """Every second shape to fit, the others to predict."""
    catalog, found = Catalog.load(), []
    for case, gpu, rows in _cases(cases):
        part = catalog.gpu(GPUS[gpu])
        for kind, group in _groups(rows).items():
            every = _data(group, part)
            halves = every.take(slice(0, None, 2)), every.take(slice(1, None, 2))
            found.append(_Task(case, gpu, part, kind, group, *halves, _added(case, group[0][1]) + part.kernel_floor))
    return found


_Key = tuple[str, str, str]


def _key(task: _Task) -> _Key:
    """What tasks share constants: rows of one source and precision; products of one case on boards of little power."""
    dtype = task.group[0][1].dtype
    if task.kind in AGAIN:
        return task.source, task.kind, dtype
    limited = task.kind == "product" and power_limited(task.part, dtype)
    return (str(task.case["id"]), "limited", dtype) if limited else ("", task.kind, dtype)


def _libraries(tasks: Sequence[_Task]) -> dict[_Key, tuple[Model, Mapping[str, float]]]:
    """Constants that GPUs share, from their fitted halves, with the model that they belong to."""
    groups: dict[_Key, list[_Task]] = {}
    for task in tasks:
        if _key(task)[0]:
            groups.setdefault(_key(task), []).append(task)
    found: dict[_Key, tuple[Model, Mapping[str, float]]] = {}
    for key, members in groups.items():
        if len(members) > 1:
            data = _joined([one.known for one in members])
            numbers = np.repeat(np.arange(len(members)), [len(one.known) for one in members])
            fixed = np.array([members[int(i)].fixed for i in numbers])
            data = Data({**data.columns, "gpu": numbers.astype(float), "fixed": fixed}, data.measured)
            limited = key[1] == "limited"
            models = (
                [
                    pooled_limited_model("product", "products", [one.part for one in members], least=least, sharpness=p)
                    for p in CORNERS
                    for least in LEAST
                ]
                if limited
                else [pooled_row_model(key[1], key[1], gpus=len(members), late=late) for late in (False, True)]
            )
            best = best_fit(models, data, strict=limited)
            found[key] = (best.model, best.values)
    return found


def _fitted(task: _Task, libraries: Mapping[_Key, tuple[Model, Mapping[str, float]]]) -> Fit:
    shared = libraries.get(_key(task))
    if shared is None:
        models = _models(task.kind, task.group, task.known, task.part, task.fixed)
        return best_fit(models, task.known, strict=task.kind == "product")
    pooled, values = shared
    if task.kind == "product":
        model = limited_model(
            task.kind,
            task.kind,
            task.part,
            least=(int(pooled.fixed["tile_m"]), int(pooled.fixed["tile_n"])),
            sharpness=pooled.fixed["sharpness"],
            overhead=task.fixed,
            byte_energy=values["byte_energy"],
            lag=values["lag"],
        )
    else:
        overhead = task.fixed + values.get("overhead", 0.0)
        model = row_model(task.kind, task.kind, overhead=overhead, kept=values["kept"], loose=values["loose"])
    return fit(model, task.known)


def kernel_rows(cases: Sequence[Mapping[str, Any]]) -> Iterator[FitRow]:
    """Every case and GPU: fitted on every second shape, predicted on the others; then each GPU as a whole."""
    tasks = _tasks(cases)
    libraries = _libraries(tasks)
    fitted: list[tuple[_Task, Fit, float]] = []
    for task in tasks:
        column = "flops" if task.kind == "product" else "nbytes"
        plain = float(np.abs(two_constants(task.known, task.away, column=column)).mean())
        fitted.append((task, _fitted(task, libraries), plain))
    rows: dict[str, list[tuple[_Task, Fit, float]]] = {}
    whole: dict[str, list[tuple[_Task, Fit, float]]] = {}
    for one in fitted:
        rows.setdefault(f"{one[0].case['id']}, {one[0].gpu}", []).append(one)
        whole.setdefault(f"all of {one[0].gpu}", []).append(one)
    for name, found in (*rows.items(), *whole.items()):
        yield row_of(
            _HALF,
            name,
            "every second shape",
            [(one, task.away) for task, one, _ in found],
            plain=float(np.average([plain for _, _, plain in found], weights=[len(task.away) for task, _, _ in found])),
            goal=_GOAL_HALF,
            source=found[0][0].source if name in rows else "",
        )


def left_out_rows(cases: Sequence[Mapping[str, Any]]) -> Iterator[FitRow]:
    """Each GPU from its data sheet and the efficiencies that the others' kernels reach.

    Work is counted in times that the peaks would take, so that a rate is an efficiency; one is fitted to each
    operation over all GPUs but the one that is predicted.
    """
    catalog = Catalog.load()
    groups: dict[str, dict[str, tuple[Mapping[str, Any], list[_Row]]]] = {}
    for case, gpu, rows in _cases(cases):
        for kind, group in _groups(rows).items():
            name = str(case["id"]).split("-")[1] if kind == "product" else kind
            dtype = group[0][1].dtype
            groups.setdefault(f"{name} {dtype}", {})[gpu] = (case, group)
    for name, tables in groups.items():
        if len(tables) < 3:
            continue
        data = {
            gpu: _data(rows, catalog.gpu(GPUS[gpu]), scaled=True, added=_floor(case, rows, catalog.gpu(GPUS[gpu])))
            for gpu, (case, rows) in tables.items()
        }
        for gpu in tables:
            others = _joined([data[each] for each in tables if each != gpu])
            product = next(iter(tables.values()))[1][0][1].gemm is not None
            found = best_fit(_scaled_models(product), others)
            floor = _floor(*tables[gpu], catalog.gpu(GPUS[gpu]))
            yield _told(name, gpu, found, data[gpu], floor)


def _floor(case: Mapping[str, Any], rows: Sequence[_Row], part: GpuPart) -> float:
    return _added(case, rows[0][1]) + part.kernel_floor


def _scaled_models(product: bool) -> list[Model]:
    if product:
        return efficiency_models("product", "efficiency", one=_ONE)
    return [row_model("rows", "efficiency", overhead=0.0, **known) for known in ({"kept": 1.0, "loose": 0.0}, {})]


def _joined(parts: Sequence[Data]) -> Data:
    columns = {key: np.concatenate([part.columns[key] for part in parts]) for key in parts[0].columns}
    return Data(columns, np.concatenate([part.measured for part in parts]))


def _told(name: str, gpu: str, found: Fit, here: Data, floor: float) -> FitRow:
    """The row of a GPU, with the times that measuring adds put back on both sides."""
    predicted, measured = found.predict(here) + floor, here.measured + floor
    low, high = found.interval(here)
    errors = predicted / measured - 1.0
    inside = (low + floor <= measured) & (measured <= high + floor)
    peak = (
        np.maximum(here.columns["flops"] * (here.columns["m"] > 1), here.columns["nbytes"]) / _ONE + floor
    ) / measured
    return FitRow(
        _OUT,
        f"{name}, {gpu}",
        "from its data sheet and the other GPUs",
        len(found.data),
        len(here),
        found.mape(),
        float(np.abs(errors).mean()),
        float(errors[np.abs(errors).argmax()]),
        float(inside.mean()),
        float(np.abs(peak - 1.0).mean()),
        _GOAL_OUT,
        ", ".join(f"{key} {value / _ONE if value > 1e9 else value:.3g}" for key, value in found.values.items()),
        "",
    )
