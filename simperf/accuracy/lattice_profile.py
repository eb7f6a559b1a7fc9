"""Profiles of kernels by shape: lattices of corrections, made of measured tables' fitting halves."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simperf.accuracy.attention_tables import attention_tables
from simperf.accuracy.expert_tables import expert_tables
from simperf.accuracy.product_tables import ProductTable, layer_kernels, product_tables
from simperf.calibrate.dataset import Dataset
from simperf.calibrate.profile import models_text
from simperf.cost import FittedRoofline, Roofline
from simperf.cost.lattice import LATTICE, corrected, fit_lattice, lattice_kind, node_weights, op_sizes
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
        """Times of the calls as a run plays them [s]."""
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
    whole, at = around + kernel, table.fitted
    ratio, share = table.measured / whole, kernel / whole
    factors = fit_lattice(sizes[at], ratio[at], share=share[at], kind=kind)
    found = corrected(node_weights(sizes, kind), factors, kind)
    away = np.log((around + kernel * found) / table.measured)[at]
    rounded = {name: float(f"{factor:.4g}") for name, factor in factors.items()}
    return FittedModel(
        title=f"{table.title}: factors of the catalogue's time by shape",
        series=table.model.removeprefix("kernel."),
        points=int(at.sum()),
        error=float(np.abs(np.expm1(away)).mean()),
        scatter=float(1.4826 * np.median(np.abs(away - np.median(away)))),
        fixed={LATTICE: 1.0, **rounded},
    )


def profile_model(tables: Sequence[MeasuredCalls]) -> FittedRoofline:
    """What a run with the profile of these tables costs operations by."""
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
