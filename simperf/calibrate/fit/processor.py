"""Operations of a CPU: threads, caches and the shapes of convolutions, as `simperf.cost.processor` has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from simperf.calibrate.dataset import Measurement
from simperf.calibrate.fit.model import Array, Columns, Data, FitConstant, Model
from simperf.calibrate.measure.conditions import op_of
from simperf.cost.cores import (
    ConvConstants,
    ProductConstants,
    SpreadConstants,
    attention_time,
    conv_time,
    late_time,
    product_time,
    spread_time,
)
from simperf.cost.processor import amount, attention_work, conv_shape, row_count
from simperf.workload.op import Op

__all__ = ["late_model", "memory_rate", "processor_models"]

Starts = Callable[[Data], list[dict[str, float]]]

_CONV = ("channels", "filters", "pixels", "side", "stride")
#: what tells a profile's readers that the constants are those of a CPU's forms
_MARK = {"processor": 1.0}
#: rate of the memory where no point is large enough to tell [B/s]
MEMORY = 2e10
#: what the cores' own caches hold where the machine does not say [B]
PRIVATE = 2e6
#: traffic that no cache holds [B]
_LARGE = 8e7
#: factor by which what the memory gives to one kind of operation may differ from what it gives to most
_APART = 2.5


def processor_models(
    name: str, points: Sequence[Measurement], *, memory: float = MEMORY, private: float = PRIVATE
) -> tuple[list[Model], Data]:
    """Models for operations that were timed on a CPU, the plainest last, and the points for them.

    Parameters
    ----------
    name : str
        ``family-precision`` or ``family-precision:kind``.
    points : sequence of Measurement
        Of ``op/...``.
    memory : float
        Of the machine, see `memory_rate` [B/s].
    private : float
        What the caches hold that each core has for itself, all together [B].
    """
    family = name.partition("-")[0]
    if family == "conv" and all("gemm_m" in point.at for point in points):
        return _conv(name, points)
    if family == "attention" and all("gemm_m" in point.at for point in points):
        return _attention(name, points)
    if all("gemm_m" in point.at for point in points):
        return _product(name, points)
    return _spread(name, points, memory, private)


def memory_rate(points: Sequence[Measurement]) -> float:
    """Rate of a CPU's memory for large operations on elements, and for copies: the upper quartile [B/s]."""
    streams = [one for one in points if one.series in ("op/elementwise", "op/copy") and one.at.get("cache") != "cold"]
    rates = [_traffic(one) / one.median for one in streams if _traffic(one) > _LARGE and one.median > 0]
    return float(np.quantile(rates, 0.75)) if rates else MEMORY


def _cold(point: Measurement) -> float:
    return float(point.at.get("cache") == "cold")


def _traffic(point: Measurement) -> float:
    return op_of(point).nbytes


def _unmarked(values: Mapping[str, float]) -> dict[str, float]:
    """Constants of a formula, without the mark of a CPU's."""
    return {key: value for key, value in values.items() if key not in _MARK}


# Elements and rows ---------------------------------------------------------------------


def _spread_time(values: Mapping[str, float], columns: Columns) -> Array:
    constants = SpreadConstants(**_unmarked(values))
    rows, cold = columns["rows"], columns["cold"] > 0
    return np.asarray(spread_time(constants, columns["nbytes"], columns["amount"], rows=rows, cold=cold))


def _spread_starts(data: Data, memory: float) -> list[dict[str, float]]:
    nbytes, time = data.columns["nbytes"], data.measured
    floor = 0.9 * float(time.min())
    rates = nbytes / np.maximum(time - floor, 0.05 * time)
    middle = float(np.median(rates))
    return [
        {
            "overhead": floor,
            "serial": serial,
            "near": cached,
            "cached": cached,
            "memory": memory,
            "capacity": 4e7,
            "fork": 3e-6,
        }
        for serial, cached in ((middle, middle), (0.5 * middle, 3.0 * middle), (2.0 * middle, 2.0 * middle))
    ]


def _spread(name: str, points: Sequence[Measurement], memory: float, private: float) -> tuple[list[Model], Data]:
    data = Data.of(
        points,
        (),
        nbytes=_traffic,
        amount=lambda point: amount(op_of(point)),
        rows=lambda point: row_count(op_of(point)),
        cold=_cold,
    )
    whole = [
        FitConstant("overhead", 3e-6, high=1e-2),
        FitConstant("fork", 3e-6, high=2e-5),
        FitConstant("capacity", 4e7, low=8e6, high=1.2e8, unit="B"),
        *(FitConstant(key, 2e10, low=1e7, high=1e13, unit="B/s") for key in ("serial", "near", "cached")),
        # one memory serves all kinds: a few points of one of them cannot make it another
        FitConstant("memory", memory, low=memory / _APART, high=memory * _APART, unit="B/s"),
    ]
    more: tuple[str, ...] = ()
    if data.columns["cold"].any():
        # two of three operands come from memory, the third stays where it is
        far = FitConstant("far", 1.5 * memory, low=1e7, high=1e13, unit="B/s")
        whole += [far, FitConstant("chill", 1e-6, high=1e-3)]
        more = ("far", "chill")
    each = FitConstant("row", 2e-8, high=1e-5)
    title = f"elements and rows on a CPU: {name}"

    def build(names: Sequence[str], **fixed: float) -> Model:
        chosen = tuple(one for one in (*whole, each) if one.name in names)

        def starts(given: Data) -> list[dict[str, float]]:
            return [{key: value for key, value in one.items() if key in names} for one in _spread_starts(given, memory)]

        columns = ("nbytes", "amount", "rows", "cold")
        return Model(f"kernel.{name}", title, chosen, _spread_time, {**_MARK, **fixed}, starts, columns)

    plain = [one.name for one in whole if one.name != "near"]
    models = [
        build(plain),
        build(("overhead", "serial", "cached", "memory", "fork", *more), capacity=4e7),
        build(("overhead", "serial", "cached", *more), capacity=4e7, memory=memory, fork=3e-6),
        build((*plain, "near"), near_at=private),
    ]
    if data.columns["rows"].all():
        models.append(build((*plain, "row")))
        models.append(build(("overhead", "serial", "cached", "memory", "fork", "row"), capacity=4e7))
        models.append(build(("overhead", "serial", "cached", "memory", "row"), capacity=4e7, fork=0.0))
    return models, data


# Calls -----------------------------------------------------------------------------------


def late_model(name: str, points: Sequence[Measurement]) -> tuple[Model, Data]:
    """Model of a call's cost by what went through the caches since the last one: points of ``frontend/mixed``."""
    data = Data.of(points, ("touched",))

    def function(values: Mapping[str, float], columns: Columns) -> Array:
        return np.asarray(
            values["hot"] + late_time(columns["touched"], late=values["late"], late_at=values["late_at"]), dtype=float
        )

    def starts(given: Data) -> list[dict[str, float]]:
        least, most = float(given.measured.min()), float(given.measured.max())
        return [{"hot": least, "late": max(most - least, 0.1 * least), "late_at": at} for at in (1e6, 1e7, 5e7)]

    constants = (
        FitConstant("hot", 1e-5, low=1e-9, high=1.0),
        FitConstant("late", 3e-5, high=1.0),
        FitConstant("late_at", 3e7, low=1e5, high=1e9, unit="B"),
    )
    title = "a call by what was touched since the last one"
    return Model(name, title, constants, function, starts=starts, columns=("touched",)), data


# Matrix products -----------------------------------------------------------------------


def _product(name: str, points: Sequence[Measurement]) -> tuple[list[Model], Data]:
    data = Data.of(
        points,
        ("flops",),
        m=lambda point: point.number("gemm_m"),
        n=lambda point: point.number("gemm_n"),
        k=lambda point: point.number("gemm_k"),
        read=lambda point: point.number("nbytes_read"),
        written=lambda point: point.number("nbytes_written"),
        nbytes=_traffic,  # by which shapes are held out
        cold=_cold,
    )

    def function(values: Mapping[str, float], columns: Columns) -> Array:
        constants = ProductConstants(**_unmarked(values))
        sizes = (columns[key] for key in ("flops", "m", "n", "k"))
        read, written, cold = columns["read"], columns["written"], columns["cold"] > 0
        return np.asarray(product_time(constants, *sizes, read=read, written=written, cold=cold))

    def starts(given: Data) -> list[dict[str, float]]:
        rate = float(np.quantile(given.columns["flops"] / given.measured, 0.9))
        floor = 0.5 * float(given.measured.min())
        halves = [dict.fromkeys(("half_m", "half_n", "half_k"), half) for half in (1.0, 20.0)]
        return [{"rate": 1.1 * rate, "overhead": floor, **half} for half in halves]

    plain: tuple[FitConstant, ...] = (
        FitConstant("rate", 1e11, low=1e8, high=1e15, unit="FLOP/s"),
        FitConstant("overhead", 5e-6, high=1e-2),
        *(FitConstant(f"half_{side}", 4.0, high=4096.0, unit="1") for side in "mnk"),
        FitConstant("odd", 0.1, high=3.0, unit="1"),
    )
    memory = FitConstant("memory", 3e10, low=1e9, high=1e13, unit="B/s")
    capacity = FitConstant("capacity", 1.6e7, low=2e6, high=1e8, unit="B")
    first = (memory,) if data.columns["cold"].any() else ()
    choices = [(*first, *plain), (*first, *plain[:-1]), (*first, *plain[:-4])]
    choices += [(memory, capacity, *plain), (memory, capacity, *plain[:-1])]
    title = f"matrix products on a CPU: {name}"
    columns = ("flops", "m", "n", "k", "read", "written", "cold")
    models = [
        Model(f"kernel.{name}", title, chosen, function, _MARK, _only(starts, chosen), columns) for chosen in choices
    ]
    return models, data


def _attention(name: str, points: Sequence[Measurement]) -> tuple[list[Model], Data]:
    work = {point.key: attention_work(op_of(point)) for point in points}

    def function(values: Mapping[str, float], columns: Columns) -> Array:
        sizes = (columns["scores"], columns["width"], columns["rows"])
        return np.asarray(attention_time(*sizes, **_unmarked(values)))

    def starts(given: Data) -> list[dict[str, float]]:
        rate = float(np.quantile(2.0 * given.columns["scores"] * given.columns["width"] / given.measured, 0.9))
        each = float(np.median(given.columns["scores"] / given.measured))
        return [{"rate": 2.0 * rate, "scored": each}, {"rate": 1.2 * rate, "scored": 5.0 * each}]

    plain = (
        FitConstant("rate", 1e11, low=1e8, high=1e15, unit="FLOP/s"),
        FitConstant("scored", 1e9, low=1e5, high=1e14, unit="1/s"),
        FitConstant("overhead", 2e-5, high=1e-2),
    )
    data = Data.of(
        points,
        ("flops",),
        scores=lambda point: work[point.key][0],
        rows=lambda point: work[point.key][1],
        width=lambda point: point.number("gemm_n"),
    )
    title, columns = f"attention on a CPU: {name}", ("scores", "width", "rows")
    choices: list[tuple[FitConstant, ...]] = [plain]
    if np.isfinite(data.columns["rows"]).any():
        choices.append((*plain, FitConstant("half_rows", 10.0, high=1e3, unit="1")))
    return [Model(f"kernel.{name}", title, chosen, function, _MARK, starts, columns) for chosen in choices], data


def _only(starts: Starts, constants: Sequence[FitConstant]) -> Starts:
    """Starting values of these constants alone."""
    names = {one.name for one in constants}

    def chosen(given: Data) -> list[dict[str, float]]:
        return [{key: value for key, value in one.items() if key in names} for one in starts(given)]

    return chosen


# Convolutions --------------------------------------------------------------------------


def _part(ops: Mapping[str, Op], index: int) -> Callable[[Measurement], float]:
    return lambda point: float(conv_shape(ops[point.key])[index])


def _conv(name: str, points: Sequence[Measurement]) -> tuple[list[Model], Data]:
    ops = {point.key: op_of(point) for point in points}
    data = Data.of(
        points,
        ("flops",),
        nbytes=_traffic,
        cold=_cold,
        **{key: _part(ops, index) for index, key in enumerate(_CONV)},
    )

    def function(values: Mapping[str, float], columns: Columns) -> Array:
        constants = ConvConstants(**_unmarked(values))
        sizes = (columns[key] for key in ("flops", "nbytes", *_CONV))
        return np.asarray(conv_time(constants, *sizes, cold=columns["cold"] > 0))

    def starts(given: Data) -> list[dict[str, float]]:
        rate = float(np.quantile(given.columns["flops"] / given.measured, 0.95))
        floor = 0.5 * float(given.measured.min())
        return [{"rate": 1.2 * rate, "overhead": floor, "capacity": at} for at in (4e6, 2e7)]

    whole: tuple[FitConstant, ...] = (
        FitConstant("rate", 2e11, low=1e8, high=1e15, unit="FLOP/s"),
        FitConstant("overhead", 3e-5, high=1e-2),
        FitConstant("cached", 3e10, low=1e9, high=1e13, unit="B/s"),
        FitConstant("memory", 8e9, low=1e9, high=1e13, unit="B/s"),
        FitConstant("capacity", 6e6, low=5e5, high=1e8, unit="B"),
        FitConstant("half_k", 20.0, high=1024.0, unit="1"),
        FitConstant("strided", 0.5, high=10.0, unit="1"),
        FitConstant("half_f", 1.0, high=1024.0, unit="1"),
        FitConstant("half_p", 50.0, high=1e5, unit="1"),
    )
    odd = FitConstant("odd", 0.05, high=3.0, unit="1")
    if data.columns["cold"].any():
        whole = (FitConstant("far", 3e10, low=1e9, high=1e13, unit="B/s"), *whole)
    title = f"convolutions on a CPU: {name}"
    columns = ("flops", "nbytes", "cold", *_CONV)
    choices = [whole[:count] for count in (len(whole), len(whole) - 2, len(whole) - 7)]
    models = [
        Model(f"kernel.{name}", title, chosen, function, _MARK, _only(starts, chosen), columns)
        for chosen in ((*choices[0], odd), *choices)
    ]
    return models, data
