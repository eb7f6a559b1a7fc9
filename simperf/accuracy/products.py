"""Grades of the prediction of matrix products by shape: other shapes of a GPU, and GPUs that were left out.

Every figure is of shapes that no constant was fitted to: the half that `ProductTable.fitted` leaves out, or, of a GPU
that was left out, all of its shapes. Beside them stand two simple models, fitted to the same half of the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from simperf.accuracy.fits.products import ProductFit, fit_products, of_architecture, predicted_times
from simperf.accuracy.lattice_profile import product_calls, profile_model
from simperf.accuracy.product_tables import LARGE, Array, ProductTable, layer_kernels
from simperf.accuracy.simple_kernels import amounts_of, one_rate, three_constants
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
    """Times of a table's rows as operations that `model` costs, as a run simulates them one after the other [s]."""
    calls = (layer_kernels(table.layer, *shape, part=table.part) for shape in table.shapes)
    return np.array([sum(model.cost(op).time for op in ops) for ops in calls])


def left_out_constants(tables: Sequence[ProductTable], gpu: str) -> ProductFit:
    """Constants for a GPU that were fitted without it: of its architecture's other GPUs, or of all architectures."""
    others = tuple(one for one in tables if one.part.name != gpu and one.part.name not in SHOWN_ONLY)
    architecture = next(one.part.architecture for one in tables if one.part.name == gpu)
    return of_architecture(_fit(others), architecture)


@lru_cache(maxsize=16)
def _fit(tables: tuple[ProductTable, ...]) -> ProductFit:
    return fit_products(tables)


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
    last = [layer_kernels(table.layer, *shape, part=table.part)[-1] for shape in table.shapes]
    some = amounts_of(table.part, [op for op, take in zip(last, fitted, strict=True) if take])
    whole, given = amounts_of(table.part, last), table.measured[fitted]
    simple = {
        "constant": one_rate(some, given, whole) / table.measured - 1.0,
        "roofline": three_constants(some, given, whole) / table.measured - 1.0,
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
