"""Sections of the accuracy page: every table of a folder of measured data, and every fit that its data allows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simperf.accuracy.cases import read_cases
from simperf.accuracy.collectives import collective_table
from simperf.accuracy.fits.collectives import collective_rows
from simperf.accuracy.fits.copies import copy_rows
from simperf.accuracy.fits.kernels import kernel_rows
from simperf.accuracy.fits.left_out import left_out_rows
from simperf.accuracy.fits.rows import FitRow
from simperf.accuracy.kernels import kernel_table
from simperf.accuracy.ring_fit import ring_table
from simperf.accuracy.single_steps import single_step_table
from simperf.accuracy.validation import ValidationRow, validation_table
from simperf.errors import InputError, Problem
from simperf.scenario import shipped_scenarios

__all__ = ["QUOTED", "fit_tables", "published_tables", "validation_sections"]

#: the section of figures that scenarios quote
QUOTED = "Figures that the scenarios quote"


def validation_sections(
    files: Sequence[str] = (), truth: str | os.PathLike[str] | None = None
) -> dict[str, list[ValidationRow]]:
    """Validation tables of scenarios, and of a folder of measured data, by the title of their section.

    Parameters
    ----------
    files : sequence of str
        Scenarios; the shipped ones that were measured if there are none.
    truth : path, optional
        The folder.

    Raises
    ------
    InputError
        Nothing was measured.
    """
    names = list(files) or [name for name in shipped_scenarios() if name.startswith("measured/")]
    sections = {QUOTED: validation_table(names)}
    if not files:
        sections["Training steps of one GPU, without its measured speed"] = single_step_table()
    if truth is not None:
        sections |= published_tables(truth)
    if not any(sections.values()):
        expected = (
            "[measured] with a metric's figure and its source, as in `simperf scenarios copy measured/two-gpus-v100`"
        )
        raise InputError(Problem("nothing that was measured", file=", ".join(names), expected=expected))
    return sections


def published_tables(folder: str | os.PathLike[str]) -> dict[str, list[ValidationRow]]:
    """Every table of a folder of measured data that can be predicted, by the title of its section."""
    cases = read_cases(folder)
    sections = {
        "Kernels from the catalogue's peaks": kernel_table(cases),
        "Collectives from the catalogue": collective_table(cases),
        "All-reduce with two fitted constants": ring_table(Path(folder)),
    }
    return {title: rows for title, rows in sections.items() if rows}


def fit_tables(folder: Path, cases: Sequence[Mapping[str, Any]]) -> list[FitRow]:
    """Every fit to the tables and cases of a folder of measured data.

    Parameters
    ----------
    folder : Path
        With ``nccl/*.csv``.
    cases : sequence of mapping
        Of its ``cases.json``.
    """
    return [*collective_rows(folder, cases), *kernel_rows(cases), *left_out_rows(cases), *copy_rows(cases)]
