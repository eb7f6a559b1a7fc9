"""`simperf show`: print a saved result, or draw it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simperf.cli.options import Format, Kind, Plot, Trace

__all__ = ["show"]


def show(
    file: Annotated[Path, typer.Argument(metavar="RESULT", help="What `simperf run --save` wrote.")],
    output: Format = "table",
    trace: Trace = None,
    plot: Plot = None,
    kind: Kind = "overview",
) -> None:
    """Print a saved result, and draw or trace it."""
    from simperf.cli.outputs import verify_outputs, write_outputs
    from simperf.report.tables import format_result
    from simperf.results import Result

    verify_outputs(trace=trace, plot=plot, kind=kind, reads=[file])
    result = Result.load(file)
    typer.echo(format_result(result, output))
    write_outputs(result, trace=trace, plot=plot, kind=kind)
