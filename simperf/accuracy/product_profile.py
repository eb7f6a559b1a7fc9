"""Profiles of matrix products: lattices of corrections by shape, made of measured tables' fitting halves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simperf.accuracy.product_tables import ProductTable, layer_kernels
from simperf.calibrate.dataset import Dataset
from simperf.calibrate.profile import models_text
from simperf.cost import Roofline
from simperf.cost.lattice import LATTICE, corrected, fit_lattice, node_weights
from simperf.errors import InputError, Problem
from simperf.hardware.profile import FittedModel

__all__ = ["MODELS", "lattice_models", "product_profile"]

#: type of a table's layer -> name of the model of its product
MODELS: Mapping[str, str] = {
    "bfloat16": "kernel.gemm-bf16",
    "fp8": "kernel.gemm-fp8",
    "fp8_block": "kernel.gemm-fp8:block_scaled_matmul",
}


def lattice_models(tables: Sequence[ProductTable]) -> dict[str, FittedModel]:
    """A lattice for each table of one GPU, fitted to its fitting half.

    Kernels around a product are predicted by the catalogue; the product alone is corrected.
    """
    found = {}
    for table in tables:
        roofline = Roofline(table.part)
        calls = [layer_kernels(table.layer, *shape, part=table.part) for shape in table.shapes]
        product = np.array([roofline.cost(ops[-1]).time for ops in calls])
        around = np.array([sum(roofline.cost(op).time for op in ops[:-1]) for ops in calls])
        whole, at, weights = around + product, table.fitted, node_weights(table.m, table.n, table.k)
        ratio, share = table.measured / whole, product / whole
        factors = fit_lattice(table.m[at], table.n[at], table.k[at], ratio[at], share=share[at])
        away = np.log((around + product * corrected(weights, factors)) / table.measured)[at]
        rounded = {name: float(f"{factor:.4g}") for name, factor in factors.items()}
        found[MODELS[table.layer]] = FittedModel(
            title=f"matrix products ({table.layer}): factors of the catalogue's time by shape",
            series=table.layer,
            points=int(at.sum()),
            error=float(np.abs(np.expm1(away)).mean()),
            scatter=float(1.4826 * np.median(np.abs(away - np.median(away)))),
            fixed={LATTICE: 1.0, **rounded},
        )
    return found


def product_profile(tables: Sequence[ProductTable], gpu: str) -> str:
    """The file of a GPU's profile.

    Parameters
    ----------
    tables : sequence of ProductTable
    gpu : str
        Name in the catalogue.

    Raises
    ------
    InputError
        There is no table of that GPU.
    """
    mine = [one for one in tables if one.part.name == gpu]
    if not mine:
        known = ", ".join(dict.fromkeys(one.part.name for one in tables)) or "none"
        raise InputError(Problem("no table of products of this GPU", key="gpu", value=repr(gpu), expected=known))
    models = lattice_models(mine)
    data = Dataset(
        f"every second shape (by checksum) of the products of {mine[0].part.title}",
        made={"sources": "; ".join(dict.fromkeys(one.source for one in mine))},
    )
    command = "simperf calibrate products"
    points = sum(model.points for model in models.values())
    return models_text(
        data, models, points=points, gpu=gpu, made={"command": f"{command} FOLDER {gpu}"}, command=command
    )
