"""`simperf init`: a commented file to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

__all__ = ["init"]


def init(
    kind: Annotated[
        Literal["scenario", "server", "plan"], typer.Argument(metavar="KIND", help="scenario, server or plan.")
    ],
    target: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A new file, or a folder; default: KIND.toml here.")
    ] = None,
) -> None:
    """Write a commented scenario, server or plan to start from; an existing file is never overwritten."""
    from simperf.cli.terminal import note
    from simperf.study.starting_files import write_start

    written, schema = write_start(kind, target or "")
    typer.echo(str(written))
    if schema is not None:
        note(f"wrote {schema}, by which editors complete and check the file")
    note({"scenario": "simperf run", "server": "simperf topo", "plan": "simperf plan"}[kind] + f" {written}")
