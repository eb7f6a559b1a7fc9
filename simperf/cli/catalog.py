"""`simperf catalog`: what parts, servers and clusters there are, with every number's unit and source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simperf.cli.completion import part_names
from simperf.cli.help import CommandApp
from simperf.cli.options import Format

__all__ = ["app"]

app = CommandApp("List and show parts, servers and clusters.")

Folder = Annotated[
    list[Path] | None,
    typer.Option(
        "--folder", metavar="FOLDER", help="A folder with parts of your own, beside the built-in ones; may be repeated."
    ),
]


@app.command("list")
def list_names(
    kind: Annotated[
        str, typer.Argument(metavar="[KIND]", help="gpu, cpu, link, ..., server or cluster; all if left out.")
    ] = "",
    folder: Folder = None,
    output: Format = "table",
) -> None:
    """List what the catalog holds."""
    from simperf.hardware import Catalog
    from simperf.report.catalog_text import catalog_names

    typer.echo(catalog_names(Catalog.load(folder or ()), kind, output))


@app.command("show")
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A name of `simperf catalog list`.",
            autocompletion=part_names,
        ),
    ],
    kind: Annotated[str, typer.Option("--kind", help="Which one, if several kinds have this name.")] = "",
    folder: Folder = None,
    output: Format = "table",
) -> None:
    """Show one part with the unit and source of every number, or one server or cluster with its links."""
    from simperf.hardware import Catalog
    from simperf.report.catalog_text import catalog_entry

    typer.echo(catalog_entry(Catalog.load(folder or ()), name, kind, output))
