"""`simperf topo`: how the devices of a machine are connected, as a matrix and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = ["topo"]


def topo(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A server or cluster from `simperf catalog list`, or the file of one.")
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
    """Show how each two devices of a machine are connected, as `nvidia-smi topo -m` does."""
    from simperf.cli.work import verify_outputs
    from simperf.hardware import check_machine, connectivity
    from simperf.hardware.lookup import find_machine
    from simperf.hardware.matrix import LEGEND

    verify_outputs(plot=plot)
    machine = find_machine(name, folder or ())
    check_machine(machine)
    devices, rows = connectivity(machine)
    if output == "json":
        import json

        found = {"machine": name, "devices": devices, "connections": rows, "legend": LEGEND}
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
    elif output == "csv":
        typer.echo(
            "\n".join(",".join(row) for row in [["", *devices], *([a, *b] for a, b in zip(devices, rows, strict=True))])
        )
    else:
        _table(devices, rows)
        left = len(machine.gpus) + len(machine.ids("nic")) - len(devices)
        if left:
            typer.echo(f"({left} more devices in servers that are wired in the same way)")
        typer.echo("\n" + "\n".join(f"{word:4} {text}" for word, text in LEGEND.items()))
    if plot is not None:
        from simperf.report.topology import save_topology

        save_topology(machine, plot)
        typer.echo(f"wrote {plot}", err=True)


def _table(devices: list[str], rows: list[list[str]]) -> None:
    wide = max(len(device) for device in devices) + 1
    columns = [max(len(device), 4) + 1 for device in devices]
    typer.echo(" " * wide + "".join(device.rjust(size) for device, size in zip(devices, columns, strict=True)))
    for device, row in zip(devices, rows, strict=True):
        typer.echo(device.ljust(wide) + "".join(word.rjust(size) for word, size in zip(row, columns, strict=True)))
