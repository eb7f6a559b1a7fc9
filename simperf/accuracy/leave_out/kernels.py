"""Errors of the catalogue's roofline on GPUs of an architecture that was left out, as a profile.

Every kernel that others published is predicted as if nobody had measured any GPU of its architecture: by its data
sheet, with the efficiencies that the other architectures' kernels reach (their median). What the catalogue says
of its own architecture has no part in it, so that this is the error of a new GPU. Its common and own parts are
separated by `simperf.calibrate.uncertainty.variance.gpu_spreads`, with architectures in the place of GPUs: three A100s
are one architecture.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from statistics import fmean, median
from typing import Any, Literal

import numpy as np

from simperf.accuracy.kernel_tables import GPUS, added_time, by_operation, kernel_cases
from simperf.analysis.chance import NORMAL
from simperf.calibrate.fit.model import Array
from simperf.calibrate.uncertainty.variance import gpu_spreads
from simperf.cost import Roofline, sort_of
from simperf.cost.seams import peak_share
from simperf.hardware import Catalog, GpuPart
from simperf.hardware.profile import FittedConstant, FittedModel
from simperf.workload.op import Op

__all__ = [
    "Misses",
    "alike_of",
    "catalogue_misses",
    "elsewhere",
    "kernel_parts",
    "unseen_models",
]

#: logarithms of measured over predicted time by sort and architecture: an array an operation and GPU
Misses = Mapping[str, Mapping[str, Sequence[Array]]]
#: which middle of the other architectures' efficiencies a GPU that is left out is given
MIDDLE: Literal["median", "mean"] = "median"
_MIDDLES: Mapping[str, Callable[[Sequence[float]], float]] = {"median": median, "mean": fmean}
#: precisions in which products run on matrix units
_UNITS = ("fp16", "bf16", "tf32", "fp8")
_TITLES = {
    "product": "matrix products, convolutions and attention with them",
    "rows": "kernels on rows: softmax, normalisation",
    "stream": "all other kernels, which stream through memory",
}


def catalogue_misses(cases: Sequence[Mapping[str, Any]], *, without: str = "") -> Misses:
    """Published kernel times over those that are predicted while their architecture is left out.

    Parameters
    ----------
    cases : sequence of mapping
        Of ``cases.json`` (CONTRIBUTING.md, "Measured data"); those of other kinds are left out.
    without : str
        An architecture that nothing is taken from.
    """
    parts = kernel_parts(cases, without=without)
    catalog = Catalog.load()
    found: dict[str, dict[str, list[Array]]] = {}
    for case, gpu, every in kernel_cases(cases):
        part = catalog.gpu(GPUS[gpu])
        if part.architecture == without:
            continue
        roofline = Roofline(part, efficiency=elsewhere(parts, part))
        for rows in by_operation(every).values():
            op = rows[0][1]
            added = added_time(case, op)
            row = np.log([time / (roofline.cost(each).time + added) for _, each, time in rows])
            found.setdefault(sort_of(op), {}).setdefault(part.architecture, []).append(row)
    return found


def kernel_parts(cases: Sequence[Mapping[str, Any]], *, without: str = "") -> dict[str, dict[str, GpuPart]]:
    """GPUs whose kernels were published, by sort of kernel and name; none of the architecture `without`."""
    catalog = Catalog.load()
    found: dict[str, dict[str, GpuPart]] = {}
    for _, gpu, every in kernel_cases(cases):
        part = catalog.gpu(GPUS[gpu])
        if part.architecture != without:
            for rows in by_operation(every).values():
                found.setdefault(sort_of(rows[0][1]), {})[part.name] = part
    return found


def elsewhere(parts: Mapping[str, Mapping[str, GpuPart]], part: GpuPart) -> dict[str, float]:
    """Efficiencies that GPUs of other architectures than `part`'s reach, by family and precision [1].

    Where the maker limits the matrix units of `part`, as its data sheet says, these shares are of their full rate.

    Parameters
    ----------
    parts : mapping
        Of `kernel_parts`.
    part : GpuPart
    """
    every = [part, *(one for known in parts.values() for one in known.values())]
    found = {}
    for key in dict.fromkeys(key for one in every for key in one.efficiency):
        family, _, precision = key.partition("-")
        known = parts.get(sort_of(Op(family, family=family)), {})
        others = [one for one in known.values() if one.architecture != part.architecture]
        if others:
            found[key] = _reached(family, precision, others)
    for family, precision in product(("gemm", "conv"), _UNITS if part.matrix_fraction < 1.0 else ()):
        key = f"{family}-{precision}"
        if precision in part.product and (key in found or family in found):
            found[key] = peak_share(found[key if key in found else family], part)
    return found


def _reached(family: str, dtype: str, parts: Sequence[GpuPart]) -> float:
    """Median over architectures of what the catalogue gives for a family and precision.

    A board whose power does not sustain its clock moves a mean, and not a median.

    Of an architecture whose attention is costed by its shape, it is what its kernels without that reach.
    """
    by: dict[str, list[float]] = {}
    for part in parts:
        value = next(
            part.efficiency[key] for key in (f"{family}-{dtype}", family, f"{family}-fp32") if key in part.efficiency
        )
        by.setdefault(part.architecture, []).append(math.log(value))
    return math.exp(_MIDDLES[MIDDLE]([float(np.mean(values)) for values in by.values()]))


def alike_of(misses: Misses) -> float:
    """Correlation of what two sorts miss on one architecture, 0 to 1."""
    middles = {
        sort: {name: float(np.mean([np.median(row) for row in rows])) for name, rows in boards.items()}
        for sort, boards in misses.items()
    }
    size = {sort: math.sqrt(float(np.mean([x**2 for x in known.values()]))) for sort, known in middles.items()}
    pairs = [
        (middles[one][name] * middles[other][name], size[one] * size[other])
        for one, other in combinations(sorted(middles), 2)
        for name in middles[one]
        if name in middles[other]
    ]
    return min(1.0, max(0.0, sum(both for both, _ in pairs) / sum(most for _, most in pairs))) if pairs else 0.0


def _told(misses: Misses, value: Callable[[Misses], float]) -> FittedConstant:
    """A number of the misses, with the standard error that leaving out one architecture after another gives."""
    names = sorted({name for boards in misses.values() for name in boards})
    without = [
        value({sort: {n: rows for n, rows in boards.items() if n != name} for sort, boards in misses.items()})
        for name in names
    ]
    best, stderr = value(misses), math.sqrt((len(names) - 1) * float(np.var(without)))
    low, high = max(0.0, best - NORMAL * stderr), best + NORMAL * stderr
    return FittedConstant(value=best, low=low, high=high, stderr=stderr)


def unseen_models(misses: Misses) -> dict[str, FittedModel]:
    """Models ``unseen.SORT`` with ``common`` and ``own``, and ``unseen.gpu`` with ``alike``.

    Parameters
    ----------
    misses : mapping
        Of `catalogue_misses`.
    """
    found = {}
    for sort, boards in sorted(misses.items()):
        every = np.concatenate([row for rows in boards.values() for row in rows])
        found[f"unseen.{sort}"] = FittedModel(
            title=_TITLES[sort],
            series=", ".join(sorted(boards)),
            points=len(every),
            error=float(np.abs(np.expm1(-every)).mean()),
            scatter=float(every.std()),
            constant={
                "common": _told(misses, lambda known, sort=sort: gpu_spreads(known)[sort].common),  # type: ignore[misc]
                "own": _told(misses, lambda known, sort=sort: gpu_spreads(known)[sort].own),  # type: ignore[misc]
            },
        )
    points = sum(model.points for model in found.values())
    title = "correlation of what two sorts miss on one GPU"
    found["unseen.gpu"] = FittedModel(
        title=title, points=points, error=0.0, scatter=0.0, constant={"alike": _told(misses, alike_of)}
    )
    return found
