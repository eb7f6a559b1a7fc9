"""Experts of a mixture by shape against tables of an inference library.

``python -m tests.truth.kernels moe`` prints, for each GPU and precision with balanced experts, the
median of the absolute errors of what a run plays on shapes that no constant was fitted to, of constants of the other
GPUs alone on all shapes, and of two baselines; after that experts loaded by a power law, to which nothing was fitted.
``--fit`` computes the constants. A checksum of the shape puts it into the half that is fitted or into the other one,
which is graded.

The tables (ai-dynamo/aiconfigurator, collector/trtllm/collect_moe.py) time the first rank of the group: all tokens of
the group go in, and the rank has its own experts alone. One layer is called again and again, six times in a captured
graph where experts are balanced, so that small layers stay in the L2; by a power law five draws follow one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simperf.accuracy.expert_tables import expert_ops, precision_tables, rows_fitted
from simperf.accuracy.lattice_profile import expert_calls, profile_model
from simperf.accuracy.shape_tables import ShapeTable
from simperf.cost import Roofline
from simperf.cost.experts import ELSEWHERE, EXPERTS, ExpertWork, expert_times, expert_units
from simperf.hardware import Catalog, GpuPart
from simperf.workload.expert_loads import EXPERT_PRECISIONS
from simperf.workload.op import Op
from tests.truth.error_lines import error_line

__all__ = ["Calls", "balanced", "errors", "fitted", "played", "report", "uneven"]

_line = partial(error_line, width=52)
Array = NDArray[np.float64]
#: fitted rows from which tables of one precision count the same, however long they are
_ROWS = 500.0
#: draws that the measuring program takes the mean of
DRAWS = 5
#: GPU whose table has one layer in one precision
_ONE_LAYER = "b200-sxm-180gb"
#: goals with balanced experts: own GPU's other shapes, and a GPU left out
GOALS = (0.10, 0.20)
#: constant -> least and largest value of a fit
BOUNDS: Mapping[str, tuple[float, float]] = {
    "fill": (1e-8, 1e-5),
    "corner": (1.5, 8.0),
    "cache": (5e9, 60e9),
    "block": (0.3, 2.0),
    "mixed": (0.3, 8.0),
    "memory": (0.3, 1.0),
    "stream": (0.2, 1.0),
    "fixed": (5e-6, 60e-6),
}
_RATE = (0.02, 0.95)
_OWN = ("memory", "stream", "fixed")


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Measured calls of one table in one precision, and as the formulas take them."""

    part: GpuPart
    precision: str
    ops: Sequence[Op]
    work: ExpertWork
    flops: Array
    nbytes: Array
    time: Array
    fitted: NDArray[np.bool_]

    def predicted(self, own: Mapping[str, float], constants: Mapping[str, float] = EXPERTS) -> Array:
        """Times by an architecture's constants and those of all GPUs [s]."""
        dtype = EXPERT_PRECISIONS[self.precision].dtype
        units = expert_units(self.part, self.precision, peak=self.part.peak[dtype], constants=own)
        return expert_times(self.work, units, constants)[0]


def balanced(folder: str) -> list[Calls]:
    """Calls with balanced experts, each table and precision."""
    catalog = Catalog.load()
    return [
        _calls(catalog.gpu(table.gpu), precision, expert_ops(table), table)
        for table, precision in precision_tables(folder, even=True)
    ]


def uneven(folder: str) -> list[Calls]:
    """Calls with experts loaded by a power law, every tenth, of GPUs whose tables have no balanced ones."""
    catalog, even = Catalog.load(), {table.gpu for table, _ in precision_tables(folder, even=True)}
    found = []
    for table, precision in precision_tables(folder, even=False):
        if table.gpu not in even:
            some = table.where(np.arange(len(table)) % 10 == 0)
            found.append(_calls(catalog.gpu(table.gpu), precision, expert_ops(some), some))
    return found


def _calls(part: GpuPart, precision: str, found: Sequence[Op], table: ShapeTable) -> Calls:
    shapes = [op.experts for op in found if op.experts is not None]
    longest = max(len(shape.rows) for shape in shapes)
    rows, counts = np.zeros((len(shapes), longest)), np.zeros((len(shapes), longest))
    for i, shape in enumerate(shapes):
        for j, (row, count) in enumerate(shape.rows):
            rows[i, j], counts[i, j] = row, count
    columns: list[Any] = [
        np.array([float(getattr(shape, name)) for shape in shapes])
        for name in ("tokens", "experts", "hidden", "intermediate")
    ]
    inputs = np.array([2.0 if shape.gated else 1.0 for shape in shapes])
    work = ExpertWork(rows, counts, *columns, inputs, np.array([op.reuse for op in found]))
    flops, nbytes = (np.array([getattr(op, name) for op in found]) for name in ("flops", "nbytes"))
    return Calls(part, precision, found, work, flops, nbytes, table["latency"], rows_fitted(table))


def played(part: GpuPart, found: Iterable[Op]) -> Array:
    """Times of operations as a run on the GPU plays them [s]."""
    model = Roofline(part)
    return np.array([model.cost(op).time for op in found])


def errors(predicted: Array, calls: Calls) -> Array:
    """Errors on the half that is graded."""
    return (predicted / calls.time - 1.0)[~calls.fitted]


def fitted(
    every: Sequence[Calls], *, shared: Mapping[str, float] | None = None, apart: bool = True
) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Constants of all GPUs and of each architecture, with the least robust error on the fitted halves.

    Parameters
    ----------
    every : sequence of Calls
    shared : mapping of str to float, optional
        Those of all GPUs, if they are not to be fitted.
    apart : bool
        Whether architectures have constants of their own; otherwise there is one set, under ``""``.
    """
    from scipy.optimize import least_squares

    homes = [calls.part.architecture if apart else "" for calls in every]
    own = {(f"{home}:", key) for home, calls in zip(homes, every, strict=True) for key in (*_OWN, calls.precision)}
    names = [("", name) for name in EXPERTS if shared is None] + sorted(own)
    start = np.log([{**ELSEWHERE, **EXPERTS}[name] for _, name in names])
    low, high = (np.log([BOUNDS.get(name, _RATE)[side] for _, name in names]) for side in (0, 1))

    def constants(at: Array, home: str) -> dict[str, float]:
        return {name: float(np.exp(x)) for (place, name), x in zip(names, at, strict=True) if place == home}

    def residuals(at: Array) -> Array:
        common = {**EXPERTS, **(shared or {}), **constants(at, "")}
        found = []
        for home, calls in zip(homes, every, strict=True):
            weight = min(1.0, _ROWS / calls.fitted.sum()) ** 0.5
            predicted = calls.predicted(constants(at, f"{home}:"), common)
            found.append(np.log(predicted / calls.time)[calls.fitted] * weight)
        return np.concatenate(found)

    inside = np.clip(start, low + 1e-6, high - 1e-6)
    best = least_squares(residuals, inside, bounds=(low, high), loss="soft_l1", f_scale=0.1, max_nfev=60).x
    rounded = np.log([float(f"{np.exp(x):.3g}") for x in best])
    apart_found = {home: constants(rounded, f"{home}:") for home in dict.fromkeys(homes)}
    return {**EXPERTS, **(shared or {}), **constants(rounded, "")}, apart_found


def _baselines(calls: Calls) -> tuple[Array, Array]:
    """Errors of constant FLOP/s, and of max(F / (p peak), B / (q bandwidth)) + t0, fitted to the same half."""
    from scipy.optimize import least_squares

    half, peak = calls.fitted, calls.part.peak[EXPERT_PRECISIONS[calls.precision].dtype]
    constant = calls.flops / np.median((calls.flops / calls.time)[half])

    def roofline(at: Array) -> Array:
        p, q, t0 = np.exp(at)
        found: Array = np.maximum(calls.flops / (p * peak), calls.nbytes / (q * calls.part.memory_bandwidth)) + t0
        return found

    def residuals(at: Array) -> Array:
        return np.log(roofline(at) / calls.time)[half]

    best = least_squares(residuals, np.log([0.5, 0.8, 2e-5]), loss="soft_l1", f_scale=0.1).x
    return errors(constant, calls), errors(roofline(best), calls)


def _left_out(label: str, own: Sequence[Calls], others: Sequence[Calls]) -> Iterator[str]:
    """Lines of all shapes of a GPU by the constants of others."""
    shared, apart = fitted(others, apart=False)
    # 4-bit weights beside 8-bit activations are multiplied as 8-bit numbers
    constants = {"mxfp4-mxfp8": apart[""]["fp8"], **apart[""]}
    for calls in own:
        yield _line(label % calls.precision, calls.predicted(constants, shared) / calls.time - 1.0)


def report(folder: str) -> Iterator[str]:
    """Lines of the table."""
    every, by_gpu = balanced(folder), {}
    yield f"{'balanced (goals 10 % own, 20 % left out)':52} {'rows':>5}  {'bias':>7} {'median':>7} {'p90':>7}"
    measured = zip(precision_tables(folder, even=True), expert_calls(folder), every, strict=True)
    for (table, precision), layers, calls in measured:
        by_gpu.setdefault(table.gpu, []).append(calls)
        name = f"{table.gpu} {precision}"
        yield _line(f"{name}: own other shapes", errors(played(calls.part, expert_ops(table)), calls))
        refined = layers.times(profile_model([layers]))
        yield _line(f"{name}: own other shapes, with the profile", errors(refined, calls))
        constant, roofline = _baselines(calls)
        yield _line(f"{name}: roofline of three numbers (baseline)", roofline)
        yield _line(f"{name}: constant FLOP/s (baseline)", constant)
    # one layer on one GPU says nothing about others
    large = [calls for calls in every if calls.part.name != _ONE_LAYER]
    for gpu, own in by_gpu.items():
        others = [calls for calls in large if calls.part.name != gpu]
        yield from _left_out(f"{gpu} %s: left out", own, others)
        home = own[0].part.architecture
        strangers = [calls for calls in others if calls.part.architecture != home]
        if len(strangers) < len(others):
            known = {calls.precision for calls in strangers}
            some = [calls for calls in own if calls.precision in known]
            yield from _left_out(f"{gpu} %s: {home} left out", some, strangers)
    yield "power law (no goal; nothing was fitted to it but on A100, whose other shapes these are)"
    catalog = Catalog.load()
    for table, precision in precision_tables(folder, even=False):
        part = catalog.gpu(table.gpu)
        for load in sorted(set(table["distribution"])):
            rows = table.where(table["distribution"] == load)
            time = np.mean([played(part, expert_ops(rows, draw)) for draw in range(DRAWS)], axis=0)
            found = time / rows["latency"] - 1.0
            if table.gpu not in by_gpu:
                found = found[~rows_fitted(rows)]
            yield _line(f"{table.gpu} {precision}: {load}", found)


def _constants(home: str, found: Mapping[str, float]) -> str:
    return f"{home}: " + ", ".join(f"{name} = {value:.3g}" for name, value in found.items())


def fits(folder: str) -> Iterator[str]:
    """Constants of all GPUs, of each architecture, and of one that has none."""
    every = balanced(folder)
    large = [calls for calls in every if calls.part.name != _ONE_LAYER]
    shared, apart = fitted(large)
    yield _constants("all GPUs", shared)
    for home, found in apart.items():
        yield _constants(home, found)
    rest = [calls for calls in every if calls not in large]
    if rest:
        yield _constants("blackwell", fitted(rest, shared=shared)[1]["blackwell"])
    for calls in uneven(folder):
        yield _constants(calls.part.architecture, fitted([calls], shared=shared)[1][calls.part.architecture])
    yield _constants("elsewhere", fitted(large, shared=shared, apart=False)[1][""])
