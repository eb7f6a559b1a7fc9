"""Output of `simperf accuracy`: for the terminal, as CSV and JSON, and the pages that docs/accuracy.md begins."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from simperf.accuracy.goal_figures import goal_figures
from simperf.accuracy.goals import grade_goals
from simperf.accuracy.kernel_figures import kernel_figures
from simperf.accuracy.kernel_grades import kernel_grades, measured_kernels
from simperf.accuracy.left_out_cases import left_out_cases, sound_cases
from simperf.accuracy.overview import summarize_questions
from simperf.accuracy.plotted_points import plotted_points
from simperf.accuracy.product_tables import product_tables
from simperf.accuracy.products import product_grades
from simperf.accuracy.recordings import boxed_clusters, recorded
from simperf.accuracy.tables import failures_counted, fit_tables, validation_sections
from simperf.accuracy.validation import Track, ValidationRow, untracked
from simperf.report.accuracy_overview import overview_text
from simperf.report.accuracy_plot import draw_accuracy
from simperf.report.accuracy_rows import rows_csv, rows_page
from simperf.report.cluster import cluster_markdown
from simperf.report.fits import fits_markdown
from simperf.report.products import kernels_markdown, products_markdown
from simperf.report.style import save
from simperf.report.validation import (
    accuracy_page,
    left_out_markdown,
    left_out_text,
    validation_csv,
    validation_json,
    validation_text,
)

__all__ = ["accuracy_output"]


Form = Literal["table", "csv", "json", "markdown", "rows", "data"]


def accuracy_output(
    files: Sequence[str],
    truth: Path | None,
    form: Form,
    *,
    plot: str | os.PathLike[str] | None = None,
    track: Track = untracked,
) -> str:
    """Predictions beside published measurements, as text.

    Parameters
    ----------
    files : sequence of str
        Scenarios; the shipped ones if there are none. Pages have fits and recordings only then.
    truth : Path, optional
        Folder of measured data.
    form : {"table", "csv", "json", "markdown", "rows", "data"}
        A table has what to expect in front. The page is markdown; rows are the page behind it, and data the file of
        every row that this page is about.
    plot : path, optional
        Picture to write beside.
    track : callable
        As of `simperf.accuracy.tables.validation_sections`.

    Raises
    ------
    InputError
        Nothing was measured, or a file cannot be read or written.
    """
    sections = validation_sections(files, truth, track=track)
    every = [row for section in sections.values() for row in section]
    folder = None if files else truth
    kernels = kernel_figures(folder) if folder is not None and (plot or form in ("table", "markdown")) else []
    if plot:
        save(draw_accuracy(plotted_points(every, kernels)), plot)
    if form == "markdown":
        goals = [] if files else grade_goals(goal_figures(summarize_questions(every), truth))
        return accuracy_page(sections, kernels, goals).rstrip("\n")
    if form == "rows":
        return _rows(sections, bool(files), truth)
    if form == "data":
        return rows_csv(sections, () if files else boxed_clusters()).rstrip("\n")
    if form == "table":
        told = [overview_text(summarize_questions(every, kernels)), validation_text(every)]
        if truth is not None:
            told.append(left_out_text(left_out_cases(truth, {row.case for row in every})))
        return "\n\n".join(told).rstrip("\n")
    return (validation_csv if form == "csv" else validation_json)(every).rstrip("\n")


def _rows(sections: Mapping[str, Sequence[ValidationRow]], chosen: bool, truth: Path | None) -> str:
    """The page behind the front page, with kernels by shape, fits and recordings unless scenarios were `chosen`."""
    text = rows_page(sections).rstrip("\n")
    if truth is not None:
        every = [row for rows in sections.values() for row in rows]
        left = left_out_cases(truth, {row.case for row in every})
        text += "\n\n" + left_out_markdown({**left, **failures_counted(every)})
    if truth is not None and not chosen and (truth / "llm" / "kernels" / "index.json").is_file():
        text += "\n\n" + products_markdown(product_grades(product_tables(truth))).rstrip("\n")
        text += "\n\n" + kernels_markdown(kernel_grades(measured_kernels(truth))).rstrip("\n")
    if not chosen:
        known = truth is not None and (truth / "cases.json").is_file()
        fits = fit_tables(truth, sound_cases(truth)[0]) if truth is not None and known else []
        text += "\n\n" + fits_markdown(fits, dict(recorded()))
        for name, points in boxed_clusters():
            title = f"A cluster in one box, {name}: prediction meets reality"
            text += "\n" + cluster_markdown(points, title=title, points=False)
    return text.rstrip("\n")
