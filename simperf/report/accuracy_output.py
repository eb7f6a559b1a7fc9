"""Output of `simperf accuracy`: validation tables for the terminal, as CSV and JSON, and the page docs/accuracy.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from simperf.accuracy.cases import read_cases
from simperf.accuracy.kernel_grades import kernel_grades, measured_kernels
from simperf.accuracy.product_tables import product_tables
from simperf.accuracy.products import product_grades
from simperf.accuracy.recordings import boxed_clusters, recorded
from simperf.accuracy.tables import fit_tables, validation_sections
from simperf.report.cluster import cluster_markdown
from simperf.report.fits import fits_markdown
from simperf.report.products import kernels_markdown, products_markdown
from simperf.report.validation import accuracy_page, validation_csv, validation_json, validation_text

__all__ = ["accuracy_output"]


def accuracy_output(files: Sequence[str], truth: Path | None, form: Literal["table", "csv", "json", "markdown"]) -> str:
    """Predictions beside published measurements, as text.

    Parameters
    ----------
    files : sequence of str
        Scenarios; the shipped ones if there are none. The page has fits and recordings only then.
    truth : Path, optional
        Folder of measured data.
    form : {"table", "csv", "json", "markdown"}
        The page is markdown.

    Raises
    ------
    InputError
        Nothing was measured, or a file cannot be read.
    """
    sections = validation_sections(files, truth)
    if form != "markdown":
        write = {"table": validation_text, "csv": validation_csv, "json": validation_json}[form]
        return write([row for section in sections.values() for row in section]).rstrip("\n")
    text = accuracy_page(sections).rstrip("\n")
    if not files:
        fits = fit_tables(truth, read_cases(truth)) if truth is not None else []
        if truth is not None and (truth / "llm" / "kernels" / "index.json").is_file():
            text += "\n\n" + products_markdown(product_grades(product_tables(truth))).rstrip("\n")
            text += "\n\n" + kernels_markdown(kernel_grades(measured_kernels(truth))).rstrip("\n")
        text += "\n\n" + fits_markdown(fits, dict(recorded()))
        for name, points in boxed_clusters():
            text += "\n" + cluster_markdown(points, title=f"A cluster in one box, {name}: prediction meets reality")
    return text.rstrip("\n")
