"""``simperf accuracy``: predictions beside published measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = ["accuracy"]


def accuracy(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="Scenarios with [measured] tables; without any, the shipped ones."),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(envvar="SIMPERF_TRUTH", help="Folder of measured data (cases.json); adds all its tables."),
    ] = None,
    form: Annotated[
        Literal["table", "csv", "json", "markdown"], typer.Option("--format", help="How to write the result.")
    ] = "table",
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file.")] = None,
) -> None:
    """Hold predictions against published measurements: every figure, with its signed error."""
    from simperf.accuracy.tables import published_tables
    from simperf.accuracy.validation import validation_table
    from simperf.cli.work import verify_outputs
    from simperf.errors import InputError, Problem
    from simperf.files import write_text
    from simperf.report.validation import accuracy_page, validation_csv, validation_json, validation_text
    from simperf.scenario import shipped_scenarios

    verify_outputs(text=output)  # before minutes of predictions, not after
    names = files or [name for name in shipped_scenarios() if name.startswith("measured/")]
    sections = {"Figures that the scenarios quote": validation_table(names)}
    if truth is not None:
        sections |= published_tables(truth)
    rows = [row for section in sections.values() for row in section]
    if not rows:
        expected = (
            "[measured] with a metric's figure and its source, as in `simperf scenarios copy measured/two-gpus-v100`"
        )
        raise InputError(Problem("nothing that was measured", file=", ".join(names), expected=expected))
    if form == "markdown":
        text = accuracy_page(sections).rstrip("\n")
        if not files:
            from simperf.accuracy.cases import read_cases
            from simperf.accuracy.recordings import boxed_clusters, recorded
            from simperf.accuracy.tables import fit_tables
            from simperf.report.cluster import cluster_markdown
            from simperf.report.fits import fits_markdown

            fits = fit_tables(truth, read_cases(truth)) if truth is not None else []
            text += "\n\n" + fits_markdown(fits, dict(recorded()))
            for name, points in boxed_clusters():
                text += "\n" + cluster_markdown(points, title=f"A cluster in one box, {name}: prediction meets reality")
    else:
        text = {"table": validation_text, "csv": validation_csv, "json": validation_json}[form](rows)
    if output is None:
        typer.echo(text.rstrip("\n"))
    else:
        write_text(output, text.rstrip("\n") + "\n")
        typer.echo(f"wrote {output}", err=True)
