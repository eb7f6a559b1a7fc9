"""Output of `simperf accuracy`: for the terminal, as CSV and JSON, and the pages that docs/accuracy.md begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from simperf.accuracy.cases import read_cases
from simperf.accuracy.kernel_grades import kernel_grades, measured_kernels
from simperf.accuracy.overview import summarize_questions
from simperf.accuracy.product_tables import product_tables
from simperf.accuracy.products import product_grades
from simperf.accuracy.recordings import boxed_clusters, recorded
from simperf.accuracy.tables import fit_tables, validation_sections
from simperf.accuracy.validation import ValidationRow
from simperf.report.accuracy_overview import overview_text
from simperf.report.cluster import cluster_markdown
from simperf.report.fits import fits_markdown
from simperf.report.products import kernels_markdown, products_markdown
from simperf.report.validation import accuracy_page, rows_page, validation_csv, validation_json, validation_text

__all__ = ["accuracy_output"]


Form = Literal["table", "csv", "json", "markdown", "rows"]


def accuracy_output(files: Sequence[str], truth: Path | None, form: Form) -> str:
    """Predictions beside published measurements, as text.

    Parameters
    ----------
    files : sequence of str
        Scenarios; the shipped ones if there are none. Pages have fits and recordings only then.
    truth : Path, optional
        Folder of measured data.
    form : {"table", "csv", "json", "markdown", "rows"}
        A table has what to expect in front. The page is markdown, and rows are the page of all that stands behind it.

    Raises
    ------
    InputError
        Nothing was measured, or a file cannot be read.
    """
    sections = validation_sections(files, truth)
    if form == "markdown":
        return _front(sections, None if files else truth)
    if form == "rows":
        return _rows(sections, bool(files), truth)
    every = [row for section in sections.values() for row in section]
    if form == "table":
        return f"{overview_text(summarize_questions(every))}\n\n{validation_text(every)}".rstrip("\n")
    return (validation_csv if form == "csv" else validation_json)(every).rstrip("\n")


def _front(sections: Mapping[str, Sequence[ValidationRow]], truth: Path | None) -> str:
    """The page, with kernels by shape where their data are."""
    text = accuracy_page(sections).rstrip("\n")
    if truth is not None and (truth / "llm" / "kernels" / "index.json").is_file():
        text += "\n\n" + products_markdown(product_grades(product_tables(truth))).rstrip("\n")
        text += "\n\n" + kernels_markdown(kernel_grades(measured_kernels(truth))).rstrip("\n")
    return text


def _rows(sections: Mapping[str, Sequence[ValidationRow]], chosen: bool, truth: Path | None) -> str:
    """The rows behind the page, with fits and recordings unless scenarios were `chosen`."""
    text = rows_page(sections).rstrip("\n")
    if not chosen:
        fits = fit_tables(truth, read_cases(truth)) if truth is not None else []
        text += "\n\n" + fits_markdown(fits, dict(recorded()))
        for name, points in boxed_clusters():
            text += "\n" + cluster_markdown(points, title=f"A cluster in one box, {name}: prediction meets reality")
    return text.rstrip("\n")
