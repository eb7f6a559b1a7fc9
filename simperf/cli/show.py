"""`simperf show`: print a saved result, or draw it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from simperf.cli.options import Format, Kind, Plot, Trace, TraceRanks, Verbose, refuse_alone

__all__ = ["show"]


def show(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="RESULT", help="What `simperf run --save` wrote.")],
    output: Format = "table",
    verbose: Verbose = False,
    trace: Trace = None,
    trace_ranks: TraceRanks = "",
    plot: Plot = None,
    kind: Kind = "overview",
) -> None:
    """Print a saved result, and draw or trace it."""
    from simperf.cli.outputs import read_ranks, verify_outputs, write_outputs
    from simperf.report.tables import format_result
    from simperf.results import Result

    refuse_alone(context, {"trace_ranks": "trace"})
    ranks = read_ranks(trace_ranks)
    verify_outputs(trace=trace, plot=plot, kind=kind, reads=[file])
    result = Result.load(file)
    typer.echo(format_result(result, output, verbose=verbose))
    write_outputs(result, trace=trace, ranks=ranks, plot=plot, kind=kind)
