"""Models that a data set can be fitted with: each family of series names the models that read it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace

import numpy as np

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.fit.choice import ModelChoice, given, keys_of
from simperf.calibrate.fit.constants import constant_model
from simperf.calibrate.fit.device import read_overlap, read_streams
from simperf.calibrate.fit.kernels import row_columns, row_model, stream_model
from simperf.calibrate.fit.messages import alpha_beta, copy_model, piecewise, piecewise_model
from simperf.calibrate.fit.model import Data
from simperf.calibrate.fit.processor import PRIVATE, late_model, memory_rate, processor_models
from simperf.calibrate.fit.products import product_columns, product_models
from simperf.calibrate.fit.sizes import size_data, size_model
from simperf.calibrate.measure.conditions import op_of
from simperf.cost import GpuRates
from simperf.cost.rows import AGAIN
from simperf.workload.op import MATRIX_FAMILIES, Gemm

__all__ = ["BY_NCCL", "COLLECTIVES", "ModelChoice", "choose"]

#: collectives whose times are fitted by size
COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "broadcast",
    "reduce",
    "all-to-all",
    "send-recv",
    "send",
    "round-trip",
)
#: series of NCCL's that a run takes times from
BY_NCCL = frozenset(f"{name}/nccl" for name in ("all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce"))
#: series that no constant is fitted to
_HELD_OUT = {"step": "whole steps", "program": "whole programs"}
#: points that a kernel of its own constants needs; fewer go with their family
_OWN = 5


def choose(
    dataset: Dataset, *, part: GpuRates | None = None, known: Container[str] = frozenset()
) -> Iterator[ModelChoice]:
    """Models for every series of a data set, in its order.

    Parameters
    ----------
    dataset : Dataset
    part : GpuRates, optional
        The GPU that was measured, for its multiprocessors and memory.
    known : container of str
        Models that have constants already, so that a kind of operation needs no least number of points for its own.
    """
    done: set[str] = set()
    for series in dataset.series:
        head = series.partition("/")[0]
        points = dataset.select(series)
        units = {point.unit for point in points} - {"s", "launches"}
        if units and (head in _READERS or head in COLLECTIVES or head == "op"):
            reason = f"readings in {', '.join(sorted(units))}: the models are of times; import a column of times"
            yield ModelChoice(series, reason=reason, keys=keys_of(points))
        elif head == "op":
            yield from _kernels(series, points, part, dataset, known)
        elif head in _HELD_OUT:
            reason = f"{_HELD_OUT[head]} are held out: they say how right the rest is"
            yield ModelChoice(series, reason=reason, keys=keys_of(points))
        elif head in _READERS:
            if head not in done or head not in _TOGETHER:
                done.add(head)
                yield from _READERS[head](series, points, dataset)
        elif head in COLLECTIVES:
            yield from _collective(series, points)
        else:
            yield ModelChoice(series, reason="no model reads this series", keys=keys_of(points))


# Kernels -------------------------------------------------------------------------------


def _kernels(
    series: str, points: Sequence[Measurement], part: GpuRates | None, dataset: Dataset, known: Container[str]
) -> Iterator[ModelChoice]:
    memory = memory_rate(dataset.measurements)
    private = float(dataset.machine.get("l2", 0.0)) * float(dataset.machine.get("cores", 0.0)) or PRIVATE
    groups: dict[str, list[Measurement]] = {}
    warm = _warm(points)
    if warm:
        reason = "their operands are in the L2 cache, and those of a step are not: the cold ones are fitted"
        yield ModelChoice(series, reason=reason, keys=keys_of(warm))
        points = [point for point in points if point not in warm]
    for point in points:
        family, dtype = str(point.at.get("family", series.partition("/")[2])), str(point.at.get("dtype", "fp32"))
        groups.setdefault(f"{family}-{dtype}", []).append(point)
        groups.setdefault(f"{family}-{dtype}:{_kind(point)}", []).append(point)
    for name, found in groups.items():
        fresh = ":" in name and f"kernel.{name}" not in known
        if fresh and (len(found) < _OWN or len(found) == len(groups[name.partition(":")[0]])):
            continue  # the family's constants hold
        family = name.partition("-")[0]
        if all(point.at.get("device") == "cpu" for point in found):
            if fresh and family in MATRIX_FAMILIES and len(found) < 2 * _OWN:
                continue
            models, data = processor_models(name, found, memory=memory, private=private)
            yield given(series, models[0], found, data, *models[1:])
        elif family in MATRIX_FAMILIES and all("gemm_m" in point.at for point in found):
            yield _matrix(series, name, found, part)
        else:
            yield _stream(series, name, found, part)


def _warm(points: Sequence[Measurement]) -> list[Measurement]:
    """Products on a GPU whose operands a cache held, where those of the same precision are there without."""
    products = [one for one in points if one.at.get("device") == "cuda" and one.at.get("family") in MATRIX_FAMILIES]
    cold = {one.at.get("dtype") for one in products if one.at.get("cache") == "cold"}
    return [one for one in products if one.at.get("cache") == "warm" and one.at.get("dtype") in cold]


def _kind(point: Measurement) -> str:
    """Kind of operation; on a CPU, one in place is of its own: its result needs no cache and no memory beside."""
    kind = str(point.at.get("kind", "custom"))
    return f"{kind}:inplace" if point.at.get("device") == "cpu" and point.at.get("call") == f"{kind}_" else kind


def _matrix(series: str, name: str, points: Sequence[Measurement], part: GpuRates | None) -> ModelChoice:
    points = [point for point in points if point.median > 0]
    gemms = [Gemm(*(int(point.number(f"gemm_{key}")) for key in ("batch", "m", "n", "k"))) for point in points]
    data = Data.of(points, ("flops",), nbytes=_traffic)
    dtype = name.partition(":")[0].partition("-")[2]
    if name.startswith("conv-fp32") and part is not None and "tf32" in part.peak:
        # measured through torch, which lets cuDNN use matrix units for convolutions in fp32 (cudnn.allow_tf32)
        dtype = "tf32" if all(point.at.get("device") == "cuda" for point in points) else dtype
    data = replace(data, columns={**data.columns, **product_columns(gemms, part, dtype=dtype)})
    model, *others = product_models(f"kernel.{name}", f"matrix kernels: {name}", part, dtype=dtype)
    return replace(given(series, model, points, data, *others), strict=True)


def _traffic(point: Measurement) -> float:
    return point.number("nbytes_read") + point.number("nbytes_written")


def _stream(series: str, name: str, points: Sequence[Measurement], part: GpuRates | None) -> ModelChoice:
    data = Data.of(points, (), nbytes=_traffic, cold=lambda point: point.at.get("cache") == "cold")
    title = f"kernels bound by memory: {name}"
    largest = float(data.columns["nbytes"].max())
    model = stream_model(f"kernel.{name}", title)
    others = [stream_model(f"kernel.{name}", title, cache=largest / 4)]
    if part is not None and all(point.at.get("kind") in AGAIN and "columns" in point.at for point in points):
        ops = [replace(op_of(point), row=point.number("columns")) for point in points if point.median > 0]
        data = replace(data, columns={**data.columns, **row_columns(ops, part)})
        others.append(row_model(f"kernel.{name}", title))
    return given(series, model, points, data, *others)


# The host ------------------------------------------------------------------------------


def _same(name: str, constant: str, title: str, series: str, points: Sequence[Measurement]) -> ModelChoice:
    """One number: every reading of every point is a point of the fit."""
    readings = np.array([sample for point in points for sample in point.samples if sample > 0])
    if not len(readings):
        return ModelChoice(series, reason="no reading is above zero", keys=keys_of(points))
    if len(readings) > 400:
        readings = np.quantile(readings, (np.arange(400) + 0.5) / 400)
    data = Data({"one": np.ones(len(readings))}, readings, keys=keys_of(points))
    unit = points[0].unit if points[0].unit == "s" else "1"
    return ModelChoice(series, constant_model(name, constant, title, unit=unit), data, keys=data.keys)


def _frontend(series: str, points: Sequence[Measurement], dataset: Dataset) -> Iterator[ModelChoice]:
    plain = [p for p in dataset.select("frontend/") if p.at.get("pass") == "plain"]
    usual = [p for p in plain if p.series in ("frontend/add", "frontend/relu", "frontend/mul")] or plain
    if dataset.select("queue/launch"):
        usual = []  # measured behind a busy device, which is better
    if usual and usual[0].at.get("device") != "cpu":
        yield _same("frontend.launch", "launch", "time of the host for one operation (t1)", "frontend/", usual)
    kinds: dict[tuple[str, str], list[Measurement]] = {}
    for point in dataset.select("frontend/"):
        kinds.setdefault((point.series, str(point.at.get("pass", "plain"))), []).append(point)
    updates = kinds.pop(("frontend/optimizer", "plain"), [])
    for optimizer in dict.fromkeys(str(point.at["optimizer"]) for point in updates):
        found = [point for point in updates if point.at["optimizer"] == optimizer]
        data = Data.of(found, ("parameters",))
        data = Data({"nbytes": data.columns["parameters"]}, data.measured, data.samples, data.keys)
        title = f"one update by {optimizer}: alpha once, beta a parameter tensor"
        model = alpha_beta(f"update.{optimizer}", title, each="s")
        yield given("frontend/optimizer", model, found, data)
    for (name, mode), found in kinds.items():
        if name == "frontend/mixed" and found[0].at.get("device") != "cpu":
            title = f"time of the host a layer of a training step, {mode}"
            yield _same(f"call.step.{mode}", mode, title, name, found)
            continue
        if name == "frontend/mixed":
            model, data = late_model(f"call.mixed.{mode}", found)
            yield given(name, model, found, data)
            continue
        plain_name = name.removeprefix("frontend/")
        yield _same(f"call.{plain_name}.{mode}", mode, f"time of the host for {plain_name}, {mode}", name, found)


def _sync(series: str, points: Sequence[Measurement], dataset: Dataset) -> Iterator[ModelChoice]:
    # the same taken in two ways: after a pause, and again and again
    states = ("launch-to-return", "after-launch")
    after = [p for p in dataset.select("sync/synchronize") if p.at.get("state") in states]
    if after:
        title = "from a launch behind an idle queue until the host continues (t3, with t1 and a short kernel)"
        yield _same("wait.round", "round", title, "sync/synchronize", after)
    idle = [p for p in dataset.select("sync/synchronize") if p.at.get("state") == "idle"]
    if idle:
        yield _same("wait.idle", "idle", "synchronising an idle device", "sync/synchronize", idle)
    items = dataset.select("sync/item")
    if items:
        name, constant = ("frontend.result", "result") if items[0].at.get("device") != "cpu" else ("wait.item", "item")
        yield _same(name, constant, "fetching one number from the device (t3)", "sync/item", items)


def _queue(series: str, points: Sequence[Measurement], dataset: Dataset) -> Iterator[ModelChoice]:
    if dataset.select("queue/depth"):
        title = "launches outstanding before the host waits"
        yield _same("frontend.depth", "depth", title, "queue/depth", dataset.select("queue/depth"))
    if dataset.select("queue/launch"):
        title = "time of the host for one launch behind a busy device (t1)"
        yield _same("frontend.launch", "launch", title, "queue/launch", dataset.select("queue/launch"))


def _graph(series: str, points: Sequence[Measurement], dataset: Dataset) -> Iterator[ModelChoice]:
    return _by_mode(series, points, "graph", "nodes", "small kernels by number of nodes, {} (alpha once, beta a node)")


def _fused(series: str, points: Sequence[Measurement], dataset: Dataset) -> Iterator[ModelChoice]:
    title = "a chain of elementwise operations, {} (alpha once, beta an element)"
    return _by_mode(series, points, "chain", "elements", title)


def _by_mode(series: str, points: Sequence[Measurement], name: str, column: str, title: str) -> Iterator[ModelChoice]:
    """A line over a column for each mode, such as eager, scripted and compiled."""
    for mode in dict.fromkeys(str(point.at.get("mode", "")) for point in points):
        found = [point for point in points if point.at.get("mode") == mode]
        data = Data.of(found, (column,))
        data = Data({"nbytes": data.columns[column]}, data.measured, data.samples, data.keys)
        yield given(series, alpha_beta(f"{name}.{mode}", title.format(mode), each="s"), found, data)


# Bytes ---------------------------------------------------------------------------------


def _copy(series: str, points: Sequence[Measurement], dataset: Dataset) -> Iterator[ModelChoice]:
    kind = series.partition("/")[2]
    data = Data.of(points, ("nbytes",))
    limits = piecewise(data, most=3)
    yield given(series, copy_model(f"copy.{kind}", f"copies: {kind}"), points, data)
    if limits:
        model = piecewise_model(f"curve.{kind}", f"copies: {kind}, by regime", limits, data)
        yield given(series, model, points, data)


def _storage(series: str, points: Sequence[Measurement], dataset: Dataset) -> Iterator[ModelChoice]:
    """Files by size; what the system still has in memory is read at another rate."""
    what = series.partition("/")[2]
    for cached in dict.fromkeys(bool(point.at.get("cached")) for point in points):
        found = [point for point in points if bool(point.at.get("cached")) == cached]
        name = f"storage.{what}-cached" if cached else f"storage.{what}"
        model = copy_model(name, f"files: {what}, {'in memory' if cached else 'on the disk'}")
        yield given(series, model, found, Data.of(found, ("nbytes",)))


def _collective(series: str, points: Sequence[Measurement]) -> Iterator[ModelChoice]:
    if not all("nbytes" in point.at for point in points):
        yield ModelChoice(series, reason="the points have no nbytes", keys=keys_of(points))
        return
    empty = [point for point in points if not point.number("nbytes") > 0]
    if empty:
        yield ModelChoice(series, reason="size 0: nothing is sent, and no time by size is fitted", keys=keys_of(empty))
    points = [point for point in points if point.number("nbytes") > 0]
    if series in BY_NCCL:
        yield from _nccl(series, points)
        return
    name = series.replace("/", ".")
    groups: dict[tuple[float, ...], list[Measurement]] = {}
    uneven = [point for point in points if any(word.startswith("rate_of") for word in point.at)]
    if uneven:
        reason = "links of different rates: the simulator predicts them, no closed form does"
        yield ModelChoice(series, reason=reason, keys=keys_of(uneven))
        points = [point for point in points if point not in uneven]
    for point in points:
        key = tuple(float(str(point.at.get(word, 0.0) or 0.0)) for word in ("ranks", "rate"))
        groups.setdefault(key, []).append(point)
    for (ranks, rate), found in groups.items():
        data = Data.of(found, ("nbytes",))
        words = [name] + ([f"n{ranks:g}"] if ranks else []) + ([f"rate{rate:.4g}"] if rate else [])
        title = f"{series} of {ranks:g} ranks by message size" if ranks else f"{series} by message size"
        model = piecewise_model(".".join(words), title, piecewise(data), data)
        yield given(series, model, found, data)


def _nccl(series: str, points: Sequence[Measurement]) -> Iterator[ModelChoice]:
    """Times by size for each number of ranks, and of servers where it is known."""
    collective = series.partition("/")[0]
    groups: dict[tuple[int, int], list[Measurement]] = {}
    for point in points:
        ranks, servers = (int(float(str(point.at.get(word, 0) or 0))) for word in ("ranks", "servers"))
        groups.setdefault((ranks, servers), []).append(point)
    for (ranks, servers), found in groups.items():
        if ranks < 2:
            reason = "the points do not say among how many ranks: import with --ranks"
            yield ModelChoice(series, reason=reason, keys=keys_of(found))
            continue
        data = size_data(found)
        inside = f" in {servers} servers" if servers > 1 else " in one server" if servers else ""
        name = f"nccl.{collective}.n{ranks}" + (f".s{servers}" if servers else "")
        driven = {int(float(str(point.at.get("launches", 0) or 0))) for point in found}
        launches = driven.pop() if len(driven) == 1 else 0
        title = f"{collective} by NCCL among {ranks} ranks{inside}, by size"
        model = size_model(name, title, data, launches=launches)
        yield ModelChoice(series, model, data, keys=data.keys, whole=True)


_Reader = Callable[[str, Sequence[Measurement], Dataset], Iterator[ModelChoice]]
_READERS: dict[str, _Reader] = {
    "frontend": _frontend,
    "sync": _sync,
    "queue": _queue,
    "graph": _graph,
    "streams": read_streams,
    "overlap": read_overlap,
    "copy": _copy,
    "storage": _storage,
    "fused": _fused,
}
#: families whose series are read all at once
_TOGETHER = frozenset({"frontend", "sync", "queue"})
