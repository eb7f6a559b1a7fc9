"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = ["Force", "Format", "Kind", "Plot", "Report", "Seed", "Set", "Trace", "forced"]

Format = Annotated[
    Literal["table", "json", "csv"], typer.Option("--format", help="How to write the result; JSON and CSV in SI units.")
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help='Change a value of the file, as in program.nbytes="320 MB"; may be repeated.'
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Play what would be refused as too many events, points or draws.")]
Seed = Annotated[
    int | None, typer.Option("--seed", metavar="N", min=0, help="Seed of the random numbers, instead of the file's.")
]
Trace = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE", help="Write the timeline for ui.perfetto.dev: .json or .json.gz."),
]
Plot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw a picture: .png, .svg or .pdf.")]
Report = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write a page that needs no network: .html.")
]
Kind = Annotated[
    Literal["overview", "gantt", "queue", "memory", "roofline"], typer.Option("--plot-kind", help="What to draw.")
]
Vary = Annotated[
    list[str] | None,
    typer.Option(
        "--vary",
        metavar="KEY=VALUES",
        help='Values of a key: "program.gpus=8,16,32" or "program.nbytes=10..100 MB:5"; may be repeated.',
    ),
]
Engine = Annotated[
    str, typer.Option("--engine", metavar="ENGINE", help="Where points are run: serial, local[:N] or dask[:ADDRESS].")
]
Samples = Annotated[
    int,
    typer.Option("--samples", metavar="N", min=0, help="Draws of the calibration's constants, for intervals of 90 %."),
]


def forced(changes: list[str] | None, force: bool) -> list[str]:
    """The values of ``--set``, and what ``--force`` stands for."""
    return [*(changes or ()), *(["run.force=true"] if force else ())]
