"""``simperf accuracy``: predictions beside published measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from simperf.cli.options import Plot

__all__ = ["accuracy"]


def accuracy(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE...", help="Scenarios with [measured] tables; without any, the shipped ones."),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(envvar="SIMPERF_TRUTH", help="Folder of measured data (cases.json, nccl, llm); adds its tables."),
    ] = None,
    form: Annotated[
        Literal["table", "csv", "json", "markdown", "rows", "data"],
        typer.Option("--format", help="How to write the result; rows, data: the page behind markdown, and its file."),
    ] = "table",
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file.")] = None,
    plot: Plot = None,
) -> None:
    """Compare predictions with published measurements: what to expect by question, then every figure."""
    from simperf.cli.outputs import verify_outputs
    from simperf.cli.terminal import note, track
    from simperf.files import write_text
    from simperf.report.accuracy_output import accuracy_output

    verify_outputs(text=output, plot=plot, reads=files or ())  # before minutes of predictions, not after
    text = accuracy_output(files or (), truth, form, plot=plot, track=track)
    if output is None:
        typer.echo(text)
    else:
        write_text(output, text + "\n")
        note(f"wrote {output}")
