"""`simperf calibrate leave-out`: how far predictions of unmeasured GPUs are off."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["leave_out"]


def leave_out(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", envvar="SIMPERF_TRUTH", help="Folder of measured data (cases.json).")
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Profile to write, instead of showing it.")
    ] = None,
) -> None:
    """Leave out each architecture's GPUs, predict their kernels and steps, and save the errors as a profile."""
    from simperf.accuracy.cases import read_cases
    from simperf.accuracy.leave_out.measured_steps import measured_steps
    from simperf.accuracy.leave_out.profile import unseen_text
    from simperf.cli.outputs import verify_outputs
    from simperf.cli.terminal import note
    from simperf.files import write_text

    verify_outputs(profile=output)
    text = unseen_text(read_cases(folder), list(measured_steps()))
    if output is None:
        typer.echo(text, nl=False)
        return
    write_text(output, text)
    note(f"wrote {output}")
