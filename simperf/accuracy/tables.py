"""Sections of the accuracy page: every table of a folder of measured data, and every fit that its data allows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from simperf.accuracy.collectives import collective_table
from simperf.accuracy.fits.collectives import collective_rows
from simperf.accuracy.fits.copies import copy_rows
from simperf.accuracy.fits.kernels import kernel_rows
from simperf.accuracy.fits.left_out import left_out_rows
from simperf.accuracy.fits.rows import FitRow
from simperf.accuracy.kernels import kernel_table
from simperf.accuracy.large_cases import read_large_cases
from simperf.accuracy.large_table import large_rows
from simperf.accuracy.left_out_cases import sound_cases
from simperf.accuracy.ring_fit import ring_table
from simperf.accuracy.single_steps import single_step_table
from simperf.accuracy.timed_passes import passes_table
from simperf.accuracy.validation import Track, ValidationRow, untracked, validation_table
from simperf.errors import InputError, Problem
from simperf.scenario import shipped_scenarios

__all__ = ["QUOTED", "failures_counted", "fit_tables", "published_tables", "validation_sections"]

#: the section of figures that scenarios quote
QUOTED = "Figures that the scenarios quote"
_LARGE = "Large models"


def validation_sections(
    files: Sequence[str] = (), truth: str | os.PathLike[str] | None = None, *, track: Track = untracked
) -> dict[str, list[ValidationRow]]:
    """Validation tables of scenarios, and of a folder of measured data, by the title of their section.

    Parameters
    ----------
    files : sequence of str
        Scenarios; the shipped ones that were measured if there are none.
    truth : path, optional
        The folder; without it the stored table of large models counts, unless scenarios were chosen.
    track : callable
        Is given what is predicted, part by part, and passes its items on one by one.

    Raises
    ------
    InputError
        Nothing was measured, or the folder has nothing that can be read.
    """
    if truth is not None:  # before minutes of predictions, not after
        cases, _, large = _parts_of(Path(truth))
        if cases.exists():
            sound_cases(truth)
        if large.exists():
            read_large_cases(large)
    names = list(files) or [name for name in shipped_scenarios() if name.startswith("measured/")]
    sections = {QUOTED: validation_table(names, track=track)}
    if not files:
        sections["Training steps of one GPU, without its measured speed"] = single_step_table(track=track)
    if truth is not None:
        sections |= published_tables(truth, track=track)
    elif not files:
        sections |= {_LARGE: large_rows()[0]}
    if not any(sections.values()):
        expected = (
            "[measured] with a metric's figure and its source, as in `simperf scenarios copy measured/two-gpus-v100`"
        )
        raise InputError(Problem("nothing that was measured", file=", ".join(names), expected=expected))
    return sections


def published_tables(folder: str | os.PathLike[str], *, track: Track = untracked) -> dict[str, list[ValidationRow]]:
    """Every table of a folder of measured data that can be predicted, by the title of its section.

    The folder has any of ``cases.json``, ``nccl`` (tables of all-reduce), ``llm`` (files of large models) and
    ``llm/kernels``; cases of large models need not be known.

    Raises
    ------
    InputError
        It has none of these.
    """
    there = Path(folder)
    cases, tables, large = _parts_of(there)
    makers: dict[str, Callable[[], list[ValidationRow]]] = {}
    if cases.exists():
        known = sound_cases(folder)[0]
        makers["Kernels from the catalogue's peaks"] = lambda: kernel_table(known)
        makers["Collectives from the catalogue"] = lambda: collective_table(known)
        makers["Passes on one GPU"] = lambda: passes_table(known)
    if tables.exists():
        makers["All-reduce with two fitted constants"] = lambda: ring_table(there)
    if large.exists():
        makers[_LARGE] = lambda: large_rows(large)[0]
    sections = {title: makers[title]() for title in track(list(makers), "published tables")}
    return {title: rows for title, rows in sections.items() if rows}


def _parts_of(folder: Path) -> list[Path]:
    """What a folder of measured data may have, one of which it has."""
    parts = [folder / name for name in ("cases.json", "nccl", "llm")]
    if not any(part.exists() for part in parts):
        expected = "a folder of measured data, with cases.json, nccl or llm"
        raise InputError(Problem("no measured data", file=str(folder), expected=expected))
    return parts


def failures_counted(rows: Iterable[ValidationRow]) -> dict[tuple[str, str], int]:
    """Number of figures without a prediction, by their title and the reason; jobs that do not fit count together."""
    found = Counter[tuple[str, str]]()
    for row in rows:
        if row.failure:
            memory = "out of memory" in row.failure
            found[row.title, "out of memory, as far as its source prints the job" if memory else row.failure] += 1
    return dict(found)


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
