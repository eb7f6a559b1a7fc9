"""`simperf topo`: how the devices of a machine are connected, as a matrix and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from simperf.cli.completion import machine_names

__all__ = ["topo"]


def topo(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A server or cluster of `simperf catalog list`, or the file of one.",
            autocompletion=machine_names,
        ),
    ],
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw it into this file: .svg, .png or .pdf.")
    ] = None,
    folder: Annotated[
        list[Path] | None,
        typer.Option("--folder", metavar="FOLDER", help="A folder with parts of your own; may be repeated."),
    ] = None,
    output: Annotated[
        Literal["table", "json", "csv"], typer.Option("--format", help="How to write the matrix.")
    ] = "table",
) -> None:
    """Show how each pair of devices of a machine is connected, as `nvidia-smi topo -m` does."""
    from simperf.cli.outputs import verify_outputs
    from simperf.hardware import check_machine
    from simperf.hardware.lookup import find_machine
    from simperf.report.connections import connections_text

    verify_outputs(plot=plot)
    machine = find_machine(name, folder or ())
    check_machine(machine)
    typer.echo(connections_text(machine, name, output))
    if plot is not None:
        from simperf.report.topology import save_topology

        save_topology(machine, plot)
        typer.echo(f"wrote {plot}", err=True)
