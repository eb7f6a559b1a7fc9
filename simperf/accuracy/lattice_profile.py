"""Profiles of kernels by shape: lattices of corrections and spreads, made of measured tables' fitting halves."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simperf.accuracy.attention_tables import attention_tables
from simperf.accuracy.expert_tables import expert_tables
from simperf.accuracy.fits.lattice import LatticeFit, fit_lattice, fit_spread
from simperf.accuracy.product_tables import ProductTable, layer_kernels, product_tables
from simperf.calibrate.dataset import Dataset
from simperf.calibrate.profile import models_text
from simperf.cost import FittedRoofline, Roofline
from simperf.cost.lattice import LATTICE, corrected, lattice_kind, node_weights, op_sizes
from simperf.errors import InputError, Problem
from simperf.hardware import GpuPart
from simperf.hardware.profile import FittedModel
from simperf.workload.op import Op

__all__ = [
    "MODELS",
    "MeasuredCalls",
    "attention_calls",
    "expert_calls",
    "kernel_calls",
    "kernel_profile",
    "lattice_models",
    "product_calls",
    "profile_model",
]

#: type of a table's layer -> name of the model of its product
MODELS: Mapping[str, str] = {
    "bfloat16": "kernel.gemm-bf16",
    "fp8": "kernel.gemm-fp8",
    "fp8_block": "kernel.gemm-fp8:block_scaled_matmul",
}
#: rows to fit below which a table has too few for a lattice
_FEWEST = 10
#: factor either way that a table's median may lie from the catalogue's times
_MOST_MEDIAN = 8.0
#: factor of a measured shape from which a profile says so
_SLOW = 3.0

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredCalls:
    """Measured calls of one kind of kernel in one precision on one GPU.

    Parameters
    ----------
    part : GpuPart
        Of the catalogue.
    model : str
        Name of the lattice's model, such as ``"kernel.gemm-bf16"``.
    title : str
        What the kernels are.
    ops : sequence of tuple of Op
        Kernels of each call, as the measuring program times it; the last one is corrected.
    measured : ndarray
        [s]
    fitted : ndarray
        Rows that constants may be fitted to; the others are for grading.
    source : str
    """

    part: GpuPart
    model: str
    title: str
    ops: Sequence[tuple[Op, ...]]
    measured: Array
    fitted: NDArray[np.bool_]
    source: str

    def times(self, model: Roofline | FittedRoofline) -> Array:
        """Times of the calls as a run simulates them [s]."""
        return np.array([sum(model.cost(op).time for op in call) for call in self.ops])


def product_calls(table: ProductTable) -> MeasuredCalls:
    """A table of products as calls."""
    return MeasuredCalls(
        table.part,
        MODELS[table.layer],
        f"matrix products ({table.layer})",
        [layer_kernels(table.layer, *shape, part=table.part) for shape in table.shapes],
        table.measured,
        table.fitted,
        table.source,
    )


def kernel_calls(folder: str | os.PathLike[str]) -> Iterator[MeasuredCalls]:
    """Calls of every table of products, attention and experts on a GPU of the catalogue.

    Raises
    ------
    InputError
        The folder has no index of tables, or a table cannot be read.
    """
    yield from map(product_calls, product_tables(folder))
    yield from attention_calls(folder)
    yield from expert_calls(folder)


def attention_calls(folder: str | os.PathLike[str]) -> Iterator[MeasuredCalls]:
    """Calls of every table of attention, by precision."""
    for one in attention_tables(folder):
        name = f"kernel.attention-{one.dtype}:{one.library}"
        title = f"attention of {one.library} ({one.dtype}) with many queries"
        ops = [(op,) for op in one.ops]
        yield MeasuredCalls(one.part, name, title, ops, one.measured, one.fitted, one.source)


def expert_calls(folder: str | os.PathLike[str]) -> Iterator[MeasuredCalls]:
    """Calls of every table of balanced experts, by precision."""
    for one in expert_tables(folder):
        name, title = f"kernel.moe-{one.precision}", f"experts ({one.precision}), balanced"
        ops = [(op,) for op in one.ops]
        yield MeasuredCalls(one.part, name, title, ops, one.measured, one.fitted, one.source)


def lattice_models(tables: Sequence[MeasuredCalls]) -> dict[str, FittedModel]:
    """A lattice for each table of one GPU with enough rows, fitted to its fitting half.

    Kernels around the last one of a call are predicted by the catalogue.
    """
    return {table.model: _lattice(table) for table in tables if table.fitted.sum() >= _FEWEST}


def _lattice(table: MeasuredCalls) -> FittedModel:
    roofline, kind = Roofline(table.part), lattice_kind(table.model.removeprefix("kernel."))
    kernel = np.array([roofline.cost(call[-1]).time for call in table.ops])
    around = np.array([sum(roofline.cost(op).time for op in call[:-1]) for call in table.ops])
    sizes = np.array([op_sizes(call[-1]) for call in table.ops], dtype=float)
    least = np.array([call[-1].flops / roofline.peak(call[-1].dtype, family=call[-1].family) for call in table.ops])
    whole, at = around + kernel, table.fitted
    ratio, share = table.measured / whole, kernel / whole
    _verify_ratio(table, ratio[at])
    fit = fit_lattice(sizes[at], ratio[at], share=share[at], least=(least / kernel)[at], kind=kind)
    found = corrected(node_weights(sizes, kind), fit.factors, kind)
    now = around + kernel * found
    away = np.log(now / table.measured)[at]
    spread = fit_spread(sizes[at], fit.away, (kernel * found / now)[at], kind=kind)
    rounded = {name: float(f"{value:.4g}") for name, value in {**fit.factors, **spread}.items()}
    return FittedModel(
        title=f"{table.title}: factors of the catalogue's time by shape",
        series=table.model.removeprefix("kernel."),
        points=int(at.sum()),
        error=float(np.abs(np.expm1(away)).mean()),
        scatter=float(1.4826 * np.median(np.abs(away - np.median(away)))),
        fixed={LATTICE: 1.0, **rounded},
        note=_note(fit, found[at]),
    )


def _verify_ratio(table: MeasuredCalls, ratio: Array) -> None:
    """Refuse a table whose times are so far from the catalogue's that factors would make another kernel of it.

    Raises
    ------
    InputError
        With the table's GPU and model.
    """
    middle = float(np.median(ratio))
    if not 1.0 / _MOST_MEDIAN <= middle <= _MOST_MEDIAN:
        message = "the median time of these kernels is too far from the catalogue's for factors by shape"
        expected = f"1/{_MOST_MEDIAN:g} to {_MOST_MEDIAN:g} times as long: look at the table's unit and kind"
        key = f"{table.part.name}: {table.model}"
        raise InputError(Problem(message, key=key, value=f"{middle:.3g} times", expected=expected))


def _note(fit: LatticeFit, found: Array) -> str:
    """Why the factors should be doubted; empty if nothing is odd about them."""
    slow, told = int((found > _SLOW).sum()), []
    if slow:
        told.append(f"{slow} measured shapes take {_SLOW:g} to {found.max():.3g} times as long as the catalogue says")
    if fit.held:
        told.append(f"{len(fit.held)} of {len(fit.factors)} factors are held at the limit that the device's peak sets")
    return "; ".join(told)


def profile_model(tables: Sequence[MeasuredCalls]) -> FittedRoofline:
    """Costs of operations in a run with the profile of these tables."""
    part = tables[0].part
    kernels = {name.removeprefix("kernel."): model.at() for name, model in lattice_models(tables).items()}
    return FittedRoofline(part, kernels, other=Roofline(part))


def kernel_profile(tables: Sequence[MeasuredCalls], gpu: str) -> str:
    """The file of a GPU's profile.

    Parameters
    ----------
    tables : sequence of MeasuredCalls
    gpu : str
        Name in the catalogue.

    Raises
    ------
    InputError
        There is no table of that GPU, or too few rows in each.
    """
    mine = [one for one in tables if one.part.name == gpu]
    if not mine:
        known = ", ".join(dict.fromkeys(one.part.name for one in tables)) or "none"
        raise InputError(Problem("no table of kernels of this GPU", key="gpu", value=repr(gpu), expected=known))
    models = lattice_models(mine)
    if not models:
        most, expected = max(int(one.fitted.sum()) for one in mine), f"{_FEWEST} or more of one kind and precision"
        raise InputError(Problem("too few shapes to fit factors to", key=gpu, value=str(most), expected=expected))
    data = Dataset(
        f"every second shape (by checksum) of kernels of {mine[0].part.title}",
        made={"sources": "; ".join(dict.fromkeys(one.source for one in mine))},
    )
    command = "simperf calibrate kernels"
    points = sum(model.points for model in models.values())
    return models_text(
        data, models, points=points, gpu=gpu, made={"command": f"{command} FOLDER {gpu}"}, command=command
    )
