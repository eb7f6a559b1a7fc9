"""Fits to published kernel times: half of the shapes of a GPU, and a GPU that no point of was seen.

Which form a kernel gets is decided by the information criterion on the points that are fitted, never by those that are
predicted. What belongs to the library and not to a GPU is fitted to the fitted halves of all GPUs that share it
(`simperf.calibrate.ledger_library`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simperf.analysis.truth_roofline import GPUS, HARNESS, measured_ops
from simperf.calibrate.fit import Data, Fit, Model
from simperf.calibrate.fit.datasheet import efficiency_models, energy_scale
from simperf.calibrate.fit.kernels import row_columns, row_model
from simperf.calibrate.fit.products import CUTS, product_columns
from simperf.calibrate.ledger_library import Library, Row, Task, joined, known_cut
from simperf.calibrate.ledger_rows import FitRow, best_fit, row_of, two_constants
from simperf.cost import Roofline
from simperf.cost.longsums import row_seconds
from simperf.cost.tiles import tile_speed
from simperf.hardware import Catalog, GpuPart
from simperf.workload.op import Gemm, Op

__all__ = ["kernel_rows", "left_out_rows"]

_HALF = "Kernels, half of the shapes of a GPU predicted"
_OUT = "Kernels of a GPU that was left out"
_GOAL_HALF, _GOAL_OUT = 0.10, 0.25
#: rate in which scaled work is counted: FLOP over peak and bytes over bandwidth, times this
_ONE = 1e12


def _cases(cases: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], str, list[Row]]]:
    """Case, GPU and rows of every roofline case whose GPU is in the catalogue."""
    for case in cases:
        if case.get("kind") != "roofline":
            continue
        gpus = case["hardware"]["gpu"]
        for gpu in [gpus] if isinstance(gpus, str) else gpus:
            rows = measured_ops(case, gpu) if gpu in GPUS else []
            if rows:
                yield case, gpu, rows


def _data(rows: Sequence[Row], part: GpuPart, *, scaled: bool = False, added: float = 0.0) -> Data:
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
        **product_columns([op.gemm or Gemm(1, 1, 1, 1) for op in ops], part, dtype=ops[0].dtype),
    }
    columns |= _products(ops, part, columns)
    columns["scale"] = np.full(len(ops), energy_scale(part))
    times = np.array([time for _, _, time in rows]) - added
    return Data.table(np.maximum(times, 1e-7), **{key: np.array(value) for key, value in columns.items()})


def _products(ops: Sequence[Op], part: GpuPart, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns that products on any GPU need beside: what a known tile leaves of the rate that the largest reaches.

    Layers follow one another without rest (`simperf.calibrate.fit.datasheet`) and may wait for their long rows.
    """
    cut = known_cut(ops[0], part)
    found = {"known": columns[(cut or CUTS[0]).column], "late": np.zeros(len(ops))}
    if cut is not None:
        found["known"] = tile_speed(cut.height, cut.width) * np.array(found["known"])
        if ops[0].kind == "linear":
            tile = cut.height, cut.width
            found["late"] = np.array([row_seconds(op.gemm, tile, part) for op in ops if op.gemm is not None])
    return found | {"rested": np.full(len(ops), float(ops[0].kind != "linear"))}


def _groups(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by operation; matrix products together."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault("product" if row[1].gemm is not None else row[1].kind, []).append(row)
    return found


def _added(case: Mapping[str, Any], op: Op) -> float:
    """Time that the measuring program adds [s]."""
    repo = str(case.get("source", {}).get("repo", ""))
    return HARNESS.get(f"{repo}:{op.kind}", HARNESS.get(repo, 0.0))


def _tasks(cases: Sequence[Mapping[str, Any]]) -> list[Task]:
    """Every second shape to fit, the others to predict."""
    catalog, found = Catalog.load(), []
    for case, gpu, rows in _cases(cases):
        part = catalog.gpu(GPUS[gpu])
        for kind, group in _groups(rows).items():
            every = _data(group, part)
            halves = every.take(slice(0, None, 2)), every.take(slice(1, None, 2))
            found.append(Task(case, gpu, part, kind, group, *halves, _added(case, group[0][1]) + part.kernel_floor))
    return found


def kernel_rows(cases: Sequence[Mapping[str, Any]]) -> Iterator[FitRow]:
    """Every case and GPU: fitted on every second shape, predicted on the others; then each GPU as a whole."""
    tasks = _tasks(cases)
    library = Library(tasks)
    fitted: list[tuple[Task, Fit, float]] = []
    for task in tasks:
        column = "flops" if task.kind == "product" else "nbytes"
        plain = float(np.abs(two_constants(task.known, task.away, column=column)).mean())
        fitted.append((task, library.fit(task), plain))
    rows: dict[str, list[tuple[Task, Fit, float]]] = {}
    whole: dict[str, list[tuple[Task, Fit, float]]] = {}
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
    operation over all GPUs but the one that is predicted. All products of a precision go together: what arithmetic
    reaches, and the energy that it takes, is the same in a layer and in a batch.
    """
    catalog = Catalog.load()
    groups: dict[str, dict[str, tuple[Mapping[str, Any], list[Row]]]] = {}
    pools: dict[str, list[str]] = {}
    for case, gpu, rows in _cases(cases):
        for kind, group in _groups(rows).items():
            name = str(case["id"]).split("-")[1] if kind == "product" else kind
            groups.setdefault(f"{name} {group[0][1].dtype}", {})[gpu] = (case, group)
    groups = {name: tables for name, tables in groups.items() if len(tables) >= 3}
    floors = {
        (name, gpu): _added(case, rows[0][1]) + catalog.gpu(GPUS[gpu]).kernel_floor
        for name, tables in groups.items()
        for gpu, (case, rows) in tables.items()
    }
    data = {
        (name, gpu): _data(groups[name][gpu][1], catalog.gpu(GPUS[gpu]), scaled=True, added=floor)
        for (name, gpu), floor in floors.items()
    }
    for name, tables in groups.items():
        pools.setdefault(_pool(name, tables), []).append(name)
    fits: dict[tuple[str, str], Fit] = {}
    for (name, gpu), here in data.items():
        pool = _pool(name, groups[name])
        if (pool, gpu) not in fits:
            others = joined([one for (each, there), one in data.items() if each in pools[pool] and there != gpu])
            fits[pool, gpu] = best_fit(_scaled_models(pool != name), others)
        yield _told(name, gpu, fits[pool, gpu], here, floors[name, gpu])


def _pool(name: str, tables: Mapping[str, tuple[Mapping[str, Any], list[Row]]]) -> str:
    """What an operation is fitted with: all products of a precision, or itself."""
    op = next(iter(tables.values()))[1][0][1]
    return name if op.gemm is None else f"products {op.dtype}"


def _scaled_models(product: bool) -> list[Model]:
    if product:
        return efficiency_models("product", "efficiency", one=_ONE)
    return [row_model("rows", "efficiency", overhead=0.0, **known) for known in ({"kept": 1.0, "loose": 0.0}, {})]


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
