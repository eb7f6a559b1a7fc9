"""Grades of the prediction of attention and experts by shape: other shapes of a GPU, without and with its profile.

Every figure is of the half of a table that nothing was fitted to, as a run simulates its rows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from simperf.accuracy.lattice_profile import MeasuredCalls, attention_calls, expert_calls, profile_model
from simperf.cost import Roofline

__all__ = ["KernelGrade", "kernel_grades", "measured_kernels"]


@dataclass(frozen=True, slots=True)
class KernelGrade:
    """Errors of one kind of kernel in one precision on one GPU [1].

    Parameters
    ----------
    gpu, title : str
        Name in the catalogue; what the kernels are.
    graded : int
        Rows of the half that is graded.
    catalogue, profile : float
        Median absolute errors by the architecture's constants, and with the GPU's lattice.
    catalogue_most, profile_most : float
        90th percentile of the absolute error.
    """

    gpu: str
    title: str
    graded: int
    catalogue: float
    profile: float
    catalogue_most: float
    profile_most: float


def measured_kernels(folder: str | os.PathLike[str]) -> Iterator[MeasuredCalls]:
    """Calls of every table of attention and experts."""
    yield from attention_calls(folder)
    yield from expert_calls(folder)


def kernel_grades(tables: Iterable[MeasuredCalls]) -> Iterator[KernelGrade]:
    """Grade every table that has rows to fit and rows to grade."""
    for table in tables:
        graded = ~table.fitted
        if not graded.any() or not table.fitted.any():
            continue
        bare, refined = (
            np.abs(table.times(model) / table.measured - 1.0)[graded]
            for model in (Roofline(table.part), profile_model([table]))
        )
        yield KernelGrade(
            table.part.name,
            table.title,
            int(graded.sum()),
            catalogue=float(np.median(bare)),
            profile=float(np.median(refined)),
            catalogue_most=float(np.quantile(bare, 0.9)),
            profile_most=float(np.quantile(refined, 0.9)),
        )
