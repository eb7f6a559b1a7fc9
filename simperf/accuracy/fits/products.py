"""Constants of matrix products by shape, fitted to the fitting halves of measured tables.

Constants that all GPUs share and those of each architecture are fitted together to products in 16 bits; the shares of
the peak in 8 bits afterwards, with the kernels around the product as the catalogue has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from simperf.accuracy.product_tables import Array, ProductTable, layer_kernels
from simperf.cost import Roofline
from simperf.cost.products import SHARED, MatrixUnits, product_times
from simperf.cost.roofline import SCALING_KINDS
from simperf.hardware import GpuPart

__all__ = ["ProductFit", "fit_products", "of_architecture", "predicted_times"]

#: constants of all GPUs that are not fitted with the others
_GIVEN = ("cache",)
#: constants of an architecture that products in 16 bits give, with where the search begins
_OWN: Mapping[str, float] = {"bf16": 0.8, "memory": 0.8, "fixed": 1.8e-6, "fill": 0.9e-6, "waves": 0.1}
#: those that products in 8 bits give, the rates apart
_SCALED: Mapping[str, float] = {"scaling": 0.7, "scaling-fixed": 2.5e-6}
#: those that are shares, and cannot exceed 1
_SHARES = ("bf16", "fp8", "fp8-block", "memory", "waves", "scaling")
#: precision's constant of a table's layers
_RATES = {"bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8-block"}
#: every so many rows are fitted: more change no constant by more than the fit's own uncertainty
_THIN = 4
#: weight of where the search begins, against a logarithm of a time over its scale
_PRIOR = 0.02


@dataclass(frozen=True, slots=True)
class ProductFit:
    """Constants of all GPUs (`simperf.cost.products.SHARED`) and of each architecture (`GpuPart.product`)."""

    shared: Mapping[str, float] = field(default_factory=lambda: SHARED)
    own: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


class _Rows:
    """A table's rows as arrays: shapes, traffic, reuse, and the time of the kernels around the product [s]."""

    def __init__(self, table: ProductTable, *, chosen: Any) -> None:
        shapes = [shape for shape, take in zip(table.shapes, chosen, strict=True) if take]
        calls = [layer_kernels(table.layer, *shape, part=table.part) for shape in shapes]
        roofline = Roofline(table.part)
        self.part, self.key = table.part, _RATES[table.layer]
        self.dtype = calls[0][-1].dtype if calls else "bf16"
        self.shape: Array = np.array([(1, *shape) for shape in shapes], dtype=float).reshape(-1, 4)
        self.nbytes: Array = np.array([ops[-1].nbytes for ops in calls])
        self.reuse: Array = np.array([ops[-1].reuse for ops in calls])
        around = [[op for op in ops[:-1] if op.kind not in SCALING_KINDS] for ops in calls]
        scaling = [[op for op in ops if op.kind in SCALING_KINDS] for ops in calls]
        self.around: Array = np.array([sum(roofline.cost(op).time for op in ops) for ops in around])
        self.scaled: Array = np.array([sum(op.nbytes for op in ops) for ops in scaling])
        self.scalings: Array = np.array([float(len(ops)) for ops in scaling])
        self.measured: Array = table.measured[chosen]

    def times(self, shared: Mapping[str, float], own: Mapping[str, float]) -> Array:
        part = self.part
        units = MatrixUnits(
            rate=own[self.key] * part.peak[self.dtype],
            sms=part.sms,
            fixed=own["fixed"],
            fill=own["fill"],
            waves=own["waves"],
            memory=own["memory"] * part.memory_bandwidth,
            bandwidth=part.memory_bandwidth,
            l2=part.l2,
            block=self.key == "fp8-block",
        )
        found, _, _ = product_times(self.shape, self.nbytes, self.reuse, units=units, shared=shared)
        least = 2.0 * self.shape.prod(axis=1) / part.peak[self.dtype] + own["fixed"]
        around = self.around
        if self.scalings.any():
            around = around + self.scalings * own["scaling-fixed"]
            around = around + self.scaled / (own["scaling"] * part.memory_bandwidth)
        return np.asarray(around + np.maximum(found, least))


def predicted_times(table: ProductTable, constants: ProductFit) -> Array:
    """Times of a table's rows by `constants`, which must have the part's architecture [s]."""
    rows = _Rows(table, chosen=np.ones(len(table.m), dtype=bool))
    return rows.times(constants.shared, constants.own[table.part.architecture])


def of_architecture(constants: ProductFit, architecture: str) -> ProductFit:
    """Constants with those of an architecture: its own, or the geometric mean of all others' where it has none."""
    own = dict(constants.own)
    known = own.get(architecture, {})
    keys = {key for other in own.values() for key in other}
    means = {
        key: float(np.exp(np.mean([np.log(max(other[key], 1e-9)) for other in own.values() if key in other])))
        for key in keys
    }
    return replace(constants, own={**own, architecture: {**means, **known}})


def fit_products(
    tables: Sequence[ProductTable], *, shared: Mapping[str, float] | None = None, thin: int = _THIN
) -> ProductFit:
    """Fit constants to the fitting halves of `tables`.

    Parameters
    ----------
    tables : sequence of ProductTable
    shared : mapping of str to float, optional
        Constants of all GPUs, instead of fitting them.
    thin : int
        Every so many rows of a half are taken.
    """
    rows = {}
    for number, table in enumerate(tables):
        chosen = table.fitted.copy()
        chosen[np.flatnonzero(chosen)[np.arange(chosen.sum()) % thin != 0]] = False
        rows[number] = _Rows(table, chosen=chosen)
    half = [found for found in rows.values() if found.key == "bf16"]
    architectures = sorted({found.part.architecture for found in half})
    fit_shared = shared is None
    start = {("", key): value for key, value in SHARED.items() if key not in _GIVEN} if fit_shared else {}
    start |= {(name, key): value for name in architectures for key, value in _OWN.items()}
    base = dict(SHARED if shared is None else shared)

    def both(values: Mapping[tuple[str, str], float], part: GpuPart) -> tuple[Mapping[str, float], Mapping[str, float]]:
        own = {key: value for (name, key), value in values.items() if name == part.architecture}
        return {**base, **{key: value for (name, key), value in values.items() if not name}}, own

    def miss(values: Mapping[tuple[str, str], float]) -> Array:
        return np.concatenate([np.log(one.times(*both(values, one.part)) / one.measured) for one in half])

    found = _least(miss, start)
    own = {name: {key: found[name, key] for key in _OWN} for name in architectures}
    common = {**base, **{key: value for (name, key), value in found.items() if not name}}
    scaled = [one for one in rows.values() if one.key != "bf16"]
    if scaled:
        _scaled(scaled, common, own)
    return ProductFit(common, own)


def _scaled(rows: Sequence[_Rows], shared: Mapping[str, float], own: dict[str, dict[str, float]]) -> None:
    """Put the constants of products in 8 bits into `own`."""
    pairs = sorted({(one.part.architecture, one.key) for one in rows})
    start = dict.fromkeys(pairs, 0.7)
    start |= {(name, key): value for name, _ in pairs for key, value in _SCALED.items()}

    def miss(values: Mapping[tuple[str, str], float]) -> Array:
        found = []
        for one in rows:
            mine = {key: value for (name, key), value in values.items() if name == one.part.architecture}
            found.append(np.log(one.times(shared, {**own[one.part.architecture], **mine}) / one.measured))
        return np.concatenate(found)

    for (name, key), value in _least(miss, start).items():
        own[name][key] = value


def _least(
    miss: Callable[[Mapping[tuple[str, str], float]], Array], start: Mapping[tuple[str, str], float]
) -> dict[tuple[str, str], float]:
    """Constants of least robust squares of `miss`, in their logarithms."""
    from scipy.optimize import least_squares

    names = list(start)
    begin = np.log([start[name] for name in names])

    def values(at: Array) -> dict[tuple[str, str], float]:
        read = dict(zip(names, np.exp(at).tolist(), strict=True))
        return {name: min(value, 1.0) if name[1] in _SHARES else value for name, value in read.items()}

    def residuals(at: Array) -> Array:
        return np.concatenate([miss(values(at)), _PRIOR * (at - begin)])

    solved = least_squares(residuals, begin, loss="soft_l1", f_scale=0.1, diff_step=1e-2, max_nfev=15)
    return values(solved.x)
