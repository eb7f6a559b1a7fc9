"""Grades of the prediction of matrix products by shape: other shapes of a GPU, and GPUs that were left out.

Every figure is of shapes that no constant was fitted to: the half that `ProductTable.fitted` leaves out, or, of a GPU
that was left out, all of its shapes. Beside them stand two simple models, fitted to the same half of the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simperf.accuracy.fits.products import ProductFit, fit_products, of_architecture, predicted_times
from simperf.accuracy.lattice_profile import product_calls, profile_model
from simperf.accuracy.product_tables import LARGE, Array, ProductTable, layer_kernels
from simperf.cost import OpModel, Roofline

__all__ = ["SHOWN_ONLY", "ProductGrade", "kernel_times", "left_out_constants", "product_grades"]

#: GPUs that are graded and shown, and that constants of all GPUs are not fitted to: their products come from the L2
SHOWN_ONLY = ("l40s",)


@dataclass(frozen=True, slots=True)
class ProductGrade:
    """Median absolute errors of one GPU's products of one layer type and size [1].

    Parameters
    ----------
    gpu, layer : str
    large : bool
        Whether the rows of activations are `LARGE` and more, or fewer.
    graded : int
        Shapes of the half that is graded.
    catalogue : float
        By the constants of the architecture.
    profile : float
        By these and the GPU's lattice.
    left_out : float
        By constants that were fitted without the GPU, on all of its shapes.
    bias : float
        Median signed error of the last.
    constant : float
        By one rate of arithmetic.
    roofline : float
        By the larger of a share of the peak and of the bandwidth, and a fixed time.
    """

    gpu: str
    layer: str
    large: bool
    graded: int
    catalogue: float
    profile: float
    left_out: float
    bias: float
    constant: float
    roofline: float


def kernel_times(table: ProductTable, model: OpModel) -> Array:
    """Times of a table's rows as operations that `model` costs, as a run plays them one after the other [s]."""
    calls = (layer_kernels(table.layer, *shape, part=table.part) for shape in table.shapes)
    return np.array([sum(model.cost(op).time for op in ops) for ops in calls])


def left_out_constants(tables: Sequence[ProductTable], gpu: str) -> ProductFit:
    """Constants for a GPU that were fitted without it: of its architecture's other GPUs, or of all architectures."""
    others = [one for one in tables if one.part.name != gpu and one.part.name not in SHOWN_ONLY]
    architecture = next(one.part.architecture for one in tables if one.part.name == gpu)
    return of_architecture(fit_products(others), architecture)


def product_grades(tables: Sequence[ProductTable], *, gpus: Sequence[str] = ()) -> Iterator[ProductGrade]:
    """Grade every table, its large and its other products apart.

    Parameters
    ----------
    tables : sequence of ProductTable
    gpus : sequence of str
        Those that are graded; all if there are none.
    """
    for gpu in gpus or dict.fromkeys(one.part.name for one in tables):
        constants = left_out_constants(tables, gpu)
        mine = [one for one in tables if one.part.name == gpu]
        refined = profile_model([product_calls(table) for table in mine])
        for table in mine:
            roofline = Roofline(table.part)
            every = {
                "catalogue": kernel_times(table, roofline),
                "profile": kernel_times(table, refined),
                "left_out": predicted_times(table, constants),
            }
            for large in (True, False):
                yield _grade(table, every, large=large)


def _grade(table: ProductTable, every: Mapping[str, Array], *, large: bool) -> ProductGrade:
    rows = (table.m >= LARGE) == large
    graded, fitted = rows & ~table.fitted, rows & table.fitted
    away = {name: times / table.measured - 1.0 for name, times in every.items()}
    simple = {
        "constant": _one_rate(table, fitted) / table.measured - 1.0,
        "roofline": _three_constants(table, fitted) / table.measured - 1.0,
    }
    return ProductGrade(
        gpu=table.part.name,
        layer=table.layer,
        large=large,
        graded=int(graded.sum()),
        left_out=_median(away["left_out"][rows]),
        bias=float(np.median(away["left_out"][rows])),
        **{name: _median(values[graded]) for name, values in {**away, **simple}.items() if name != "left_out"},
    )


def _median(errors: Array) -> float:
    return float(np.median(np.abs(errors)))


def _amounts(table: ProductTable) -> tuple[Array, Array, float]:
    """Arithmetic [FLOP], traffic [B] of products, and the peak [FLOP/s]."""
    ops = [layer_kernels(table.layer, *shape, part=table.part)[-1] for shape in table.shapes]
    peak = table.part.peak[ops[0].dtype]
    return np.array([op.flops for op in ops]), np.array([op.nbytes for op in ops]), peak


def _one_rate(table: ProductTable, fitted: Any) -> Array:
    flops, _, _ = _amounts(table)
    found: Array = flops / np.median(flops[fitted] / table.measured[fitted])
    return found


def _three_constants(table: ProductTable, fitted: Any) -> Array:
    """The larger of F / (p peak) and B / (q bandwidth), and t0: p, q and t0 of least robust squares."""
    from scipy.optimize import least_squares

    flops, nbytes, peak = _amounts(table)

    def times(at: Array) -> Array:
        p, q, fixed = np.exp(at)
        return np.asarray(np.maximum(flops / (p * peak), nbytes / (q * table.part.memory_bandwidth)) + fixed)

    def residuals(at: Array) -> Array:
        return np.asarray(np.log(times(at)[fitted] / table.measured[fitted]))

    begin = np.log([0.7, 0.7, 3e-6])
    return times(least_squares(residuals, begin, loss="soft_l1", f_scale=0.1, diff_step=1e-3).x)
