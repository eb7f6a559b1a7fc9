"""`simperf calibrate kernels`: a GPU's products, attention and experts by shape, as a profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["kernels"]


def kernels(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of measured data (llm/kernels/index.json).")],
    gpu: Annotated[str, typer.Argument(metavar="GPU", help="Name in the catalog of a GPU that has a table there.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Profile to write, instead of showing it.")
    ] = None,
) -> None:
    """Correct the catalog's times of products, attention and experts by shape, from half of the measured tables."""
    from simperf.accuracy.lattice_profile import kernel_calls, kernel_profile
    from simperf.cli.outputs import verify_outputs
    from simperf.cli.terminal import note
    from simperf.files import write_text

    verify_outputs(profile=output)
    text = kernel_profile(list(kernel_calls(folder)), gpu)
    if output is None:
        typer.echo(text, nl=False)
        return
    write_text(output, text)
    note(f"wrote {output}")
