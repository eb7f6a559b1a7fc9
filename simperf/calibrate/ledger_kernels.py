"""Fits to published kernel times: half of the shapes of a GPU, and a GPU that no point of was seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from simperf.analysis.truth_roofline import GPUS, HARNESS, measured_ops
from simperf.calibrate.fit import Data, Fit, Model
from simperf.calibrate.fit.kernels import matrix_model, row_model, stream_model
from simperf.calibrate.ledger_rows import FitRow, best_fit, row_of, two_constants
from simperf.cost import Roofline, tiling
from simperf.hardware import Catalog, GpuPart
from simperf.workload.op import Op

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
    columns: dict[str, list[float]] = {
        key: [] for key in ("flops", "nbytes", "m", "n", "k", "share", "columns", "cold")
    }
    for label, op, _ in rows:
        gemm = op.gemm
        peak = roofline.peak(op.dtype, family=op.family) / _ONE if scaled else 1.0
        columns["flops"].append(op.flops / peak)
        columns["nbytes"].append(op.nbytes / (part.memory_bandwidth / _ONE if scaled else 1.0))
        sizes = (gemm.m, gemm.n, gemm.k) if gemm is not None else (1, 1, 1)
        for key, size in zip("mnk", sizes, strict=True):
            columns[key].append(float(size))
        columns["share"].append(tiling(gemm, part.sms).efficiency if gemm is not None else 1.0)
        last = label.split()[1].rpartition("x")[2] if " " in label else "1"
        columns["columns"].append(float(last))
        columns["cold"].append(0.0)
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


def _models(kind: str, data: Data, *, memory: float, known: float) -> list[Model]:
    """What may be fitted to an operation: few constants, and the same with what its shapes may show."""
    if kind == "product":
        choices = (("", False), ("k", False), ("m", False), ("n", False), ("mnk", False), ("", True), ("k", True))
        return [
            matrix_model("product", kind, faces=faces, memory=memory, wide=wide, tiled=True) for faces, wide in choices
        ]
    if kind in ("softmax", "layernorm") and np.ptp(data.columns["columns"]) > 0 and len(data) < 8:
        return [row_model(kind, kind, overhead=known, long=long) for long in (False, True)]
    largest = float(data.columns["nbytes"].max())
    return [stream_model(kind, kind), stream_model(kind, kind, cache=largest / 4)]


def kernel_rows(cases: Sequence[Mapping[str, Any]]) -> Iterator[FitRow]:
    """Every case and GPU: fitted on every second shape, predicted on the others; then each GPU as a whole."""
    catalog = Catalog.load()
    found: dict[str, list[tuple[Fit, Data | None, float]]] = {}
    for case, gpu, rows in _cases(cases):
        part = catalog.gpu(GPUS[gpu])
        fits: list[tuple[Fit, Data | None]] = []
        plain: list[float] = []
        for kind, group in _groups(rows).items():
            every = _data(group, part)
            known, away = every.take(slice(0, None, 2)), every.take(slice(1, None, 2))
            fixed = _added(case, group[0][1]) + part.kernel_floor
            models = _models(kind, known, memory=part.memory_bandwidth, known=fixed)
            fits.append((best_fit(models, known, strict=kind == "product"), away))
            plain += list(np.abs(two_constants(known, away, column="flops" if kind == "product" else "nbytes")))
        mean = float(np.mean(plain))
        source = str(case["source"].get("repo", ""))
        yield row_of(
            _HALF, f"{case['id']}, {gpu}", "every second shape", fits, plain=mean, goal=_GOAL_HALF, source=source
        )
        found.setdefault(gpu, []).extend((one, away, mean) for one, away in fits)
    for gpu, rows_ in found.items():
        whole = [(one, away) for one, away, _ in rows_]
        counts = [len(away) if away is not None else 0 for _, away in whole]
        mean = float(np.average([plain_ for _, _, plain_ in rows_], weights=counts))
        yield row_of(_HALF, f"all of {gpu}", "every second shape", whole, plain=mean, goal=_GOAL_HALF)


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
        return [
            matrix_model("product", "efficiency", faces=faces, memory=_ONE, fit_memory=True, tiled=True, overhead=0.0)
            for faces in ("", "k", "mnk")
        ]
    return [row_model("rows", "efficiency", overhead=0.0, long=False)]


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
