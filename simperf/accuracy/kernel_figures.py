"""Kernels by shape as figures that need a prediction: other shapes of measured GPUs, and GPUs that were left out.

Constants of the catalogue were fitted to half of the shapes of each GPU's table; the other half is graded. Products of
a GPU are graded once more with constants that were fitted without it. Beside them stand two simple models that were
fitted to the same shapes as the constants: one share of the peak, and a roofline with three constants.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from simperf.accuracy.fits.products import predicted_times
from simperf.accuracy.kernel_grades import measured_kernels
from simperf.accuracy.lattice_profile import MeasuredCalls, product_calls
from simperf.accuracy.product_tables import Array, ProductTable, product_tables
from simperf.accuracy.products import SHOWN_ONLY, left_out_constants
from simperf.accuracy.simple_kernels import Amounts, amounts_of, one_rate, three_constants
from simperf.cost import Roofline

__all__ = ["LEFT_OUT", "KernelFigures", "kernel_figures", "left_out_figures", "other_shapes"]

#: group of products on GPUs that were left out of the constants
LEFT_OUT = "products, GPU left out"


@dataclass(frozen=True, slots=True, eq=False)
class KernelFigures:
    """Signed errors of the times of one kind of kernel on one GPU, all of shapes that nothing was fitted to [1].

    Parameters
    ----------
    group : str
        What is asked of which shapes.
    gpu, title : str
        Name in the catalogue; what the kernels are.
    measured : ndarray
        [s]
    error, one_rate, roofline : ndarray
        Of the prediction, of one share of the peak, and of a roofline with three constants.
    """

    group: str
    gpu: str
    title: str
    measured: Array
    error: Array
    one_rate: Array
    roofline: Array


def kernel_figures(folder: str | os.PathLike[str]) -> list[KernelFigures]:
    """Figures of every table of kernels of a folder of measured data; none if it has no tables.

    Parameters
    ----------
    folder : path
        With ``llm/kernels/index.json``.
    """
    if not os.path.isfile(os.path.join(folder, "llm", "kernels", "index.json")):
        return []
    products = product_tables(folder)
    calls = [*map(product_calls, products), *measured_kernels(folder)]
    return [*other_shapes(calls), *left_out_figures(products)]


def other_shapes(tables: Iterable[MeasuredCalls]) -> Iterator[KernelFigures]:
    """Figures of the half of each table that nothing was fitted to, by the catalogue's constants."""
    for table in tables:
        graded, fitted = ~table.fitted, table.fitted
        if not graded.any() or not fitted.any():
            continue
        last = [call[-1] for call in table.ops]
        some, asked = (
            amounts_of(table.part, [op for op, take in zip(last, rows, strict=True) if take])
            for rows in (fitted, graded)
        )
        given, measured = table.measured[fitted], table.measured[graded]
        kind = table.title.partition(" ")[0].replace("matrix", "products")
        yield KernelFigures(
            f"{kind}, other shapes",
            table.part.name,
            table.title,
            measured,
            table.times(Roofline(table.part))[graded] / measured - 1.0,
            one_rate(some, given, asked) / measured - 1.0,
            three_constants(some, given, asked) / measured - 1.0,
        )


def left_out_figures(tables: Sequence[ProductTable]) -> Iterator[KernelFigures]:
    """Figures of products on each GPU by what was fitted to the other GPUs, all of its shapes.

    GPUs that no constants of others are fitted to (`simperf.accuracy.products.SHOWN_ONLY`) are graded as well.
    """
    for gpu in dict.fromkeys(one.part.name for one in tables):
        constants = left_out_constants(tables, gpu)
        for table in tables:
            others = [
                one
                for one in tables
                if one.layer == table.layer and one.part.name != gpu and one.part.name not in SHOWN_ONLY
            ]
            if table.part.name != gpu or not others:
                continue
            some, asked = _joined(others), _amounts(table)
            given = np.concatenate([one.measured[one.fitted] for one in others])
            yield KernelFigures(
                LEFT_OUT,
                gpu,
                f"matrix products ({table.layer})",
                table.measured,
                predicted_times(table, constants) / table.measured - 1.0,
                one_rate(some, given, asked) / table.measured - 1.0,
                three_constants(some, given, asked) / table.measured - 1.0,
            )


def _amounts(table: ProductTable) -> Amounts:
    return amounts_of(table.part, [call[-1] for call in product_calls(table).ops])


def _joined(tables: Sequence[ProductTable]) -> Amounts:
    """Amounts of the fitted shapes of several tables."""
    each = [(_amounts(one), one.fitted) for one in tables]
    return Amounts(
        *(
            np.concatenate([getattr(amounts, name)[fitted] for amounts, fitted in each])
            for name in ("flops", "nbytes", "peak", "bandwidth")
        )
    )
