"""Output of `simperf accuracy`: for the terminal, as CSV and JSON, and the pages that docs/accuracy.md begins."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

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
from simperf.report.style import save
from simperf.report.validation import (
    accuracy_page,
    left_out_markdown,
    left_out_text,
    validation_csv,
    validation_json,
    validation_text,
)

if TYPE_CHECKING:
    from simperf.accuracy.kernel_grades import KernelGrade
    from simperf.accuracy.products import ProductGrade

__all__ = ["accuracy_output", "kernels_markdown", "product_lines"]


Form = Literal["table", "csv", "json", "markdown", "rows", "data"]


#: type of a table's layer in words
_LAYER_TITLES: Mapping[str, str] = {"bfloat16": "bf16", "fp8": "fp8, one factor", "fp8_block": "fp8, blocks"}
_HEAD = (
    "## Matrix products by shape\n\n"
    "Median absolute errors on the half of a GPU's shapes that nothing was fitted to: by the catalogue's constants, "
    "with the GPU's profile, by one rate, and by the larger of arithmetic and traffic with three constants of its own. "
    "*Left out*: by constants that were fitted without the GPU, on all of its shapes, with the median signed error."
)
_KERNELS_HEAD = (
    "## Attention and experts by shape\n\n"
    "Median absolute errors on the half of a GPU's shapes that nothing was fitted to, by the catalogue's constants and "
    "with the GPU's profile, and in brackets the 90th percentile. GPUs that were left out, "
    "and published figures: [attention](explanation/attention.md), [experts](explanation/experts.md)."
)


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
        text += "\n\n" + _products_markdown(product_grades(product_tables(truth))).rstrip("\n")
        text += "\n\n" + kernels_markdown(kernel_grades(measured_kernels(truth))).rstrip("\n")
    if not chosen:
        known = truth is not None and (truth / "cases.json").is_file()
        fits = fit_tables(truth, sound_cases(truth)[0]) if truth is not None and known else []
        text += "\n\n" + fits_markdown(fits, dict(recorded()))
        for name, points in boxed_clusters():
            title = f"A cluster in one box, {name}: prediction meets reality"
            text += "\n" + cluster_markdown(points, title=title, points=False)
    return text.rstrip("\n")


def product_lines(grades: Iterable[ProductGrade]) -> Iterator[str]:
    """A table of grades, line by line."""
    yield "| GPU | layer | M | shapes | catalogue | with profile | left out | one rate | three constants |"
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|"
    for one in grades:
        size = "1,024 and more" if one.large else "fewer"
        errors = (one.catalogue, one.profile, one.left_out, one.bias, one.constant, one.roofline)
        text = "{:.1f} % | {:.1f} % | {:.1f} % ({:+.1f}) | {:.0f} % | {:.1f} %".format(*(100 * each for each in errors))
        yield f"| {one.gpu} | {_LAYER_TITLES[one.layer]} | {size} | {one.graded} | {text} |"


def _products_markdown(grades: Iterable[ProductGrade]) -> str:
    """The section of the page of accuracy."""
    return "\n".join([_HEAD, "", *product_lines(grades)]) + "\n"


def _kernel_lines(grades: Iterable[KernelGrade]) -> Iterator[str]:
    """A table of grades of attention and experts, line by line."""
    yield "| GPU | kernels | shapes | catalogue | with profile |"
    yield "|---|---|--:|--:|--:|"
    for one in grades:
        errors = (one.catalogue, one.catalogue_most, one.profile, one.profile_most)
        text = "{:.1f} % ({:.0f}) | {:.1f} % ({:.0f})".format(*(100 * each for each in errors))
        yield f"| {one.gpu} | {one.title} | {one.graded} | {text} |"


def kernels_markdown(grades: Iterable[KernelGrade]) -> str:
    """The section of the page of accuracy on attention and experts."""
    return "\n".join([_KERNELS_HEAD, "", *_kernel_lines(grades)]) + "\n"
