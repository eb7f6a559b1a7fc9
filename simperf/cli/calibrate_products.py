"""`simperf calibrate products`: a GPU's matrix products by shape, as a profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["products"]


def products(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of measured data (llm/kernels/index.json).")],
    gpu: Annotated[str, typer.Argument(metavar="GPU", help="Name in the catalogue of a GPU that has a table there.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Profile to write, instead of showing it.")
    ] = None,
) -> None:
    """Correct the catalogue's times of matrix products by shape, from half of a measured table, as a profile."""
    from simperf.accuracy.product_profile import product_profile
    from simperf.accuracy.product_tables import product_tables
    from simperf.cli.outputs import verify_outputs
    from simperf.cli.terminal import note
    from simperf.files import write_text

    verify_outputs(profile=output)
    text = product_profile(product_tables(folder), gpu)
    if output is None:
        typer.echo(text, nl=False)
        return
    write_text(output, text)
    note(f"wrote {output}")
