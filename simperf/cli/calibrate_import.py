"""`simperf calibrate import`: measurements that are already there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from simperf.cli.options import Format

__all__ = ["import_"]


def import_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Logs, traces or tables; .gz too.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Data set to write: .json or .json.gz.")
    ] = None,
    kind: Annotated[Literal["auto", "nccl-tests", "kineto", "csv"], typer.Option(help="What the files are.")] = "auto",
    collective: Annotated[str, typer.Option(help="Of a log that does not say, or of a table: all-reduce, ...")] = "",
    ranks: Annotated[int, typer.Option(min=0, help="Of a log or a table that does not say; 0: as it says.")] = 0,
    series: Annotated[str, typer.Option(help="Of a table without a column of that name.")] = "",
    table: Format = "table",
) -> None:
    """Read logs of nccl-tests (text, JSON), traces of torch's profiler, and tables with units, into one data set."""
    from simperf.calibrate.importers import import_files
    from simperf.calibrate.importers.imported import MOST_NAMED
    from simperf.cli.outputs import verify_outputs
    from simperf.cli.terminal import note
    from simperf.report.rows import rows_text

    verify_outputs(output=output, reads=files)
    found = import_files(files, kind="" if kind == "auto" else kind, collective=collective, ranks=ranks, series=series)
    data = found.dataset
    rows = []
    for name in data.series:
        points = data.select(name)
        readings = sum(len(point.samples) for point in points)
        total = float(f"{sum(sum(point.samples) for point in points):.9g}")
        rows.append({"series": name, "points": len(points), "readings": readings, "sum": total, "unit": points[0].unit})
    typer.echo(rows_text(rows, table))
    for problem in found.problems[:MOST_NAMED]:
        note(f"not read: {problem}" if "not read" not in problem.message else str(problem))
    if len(found.problems) > MOST_NAMED:
        note(f"and {len(found.problems) - MOST_NAMED} problems more")
    if output is not None:
        data.save(output)
        note(f"wrote {output}: {len(data)} points; next: simperf calibrate fit {output} -o profile.toml")
    else:
        note("next: the same with -o data.json, then simperf calibrate fit data.json -o profile.toml")
    if found.unread:
        note(f"nothing was read of {', '.join(found.unread)}: the data set is made of the other files")
        raise typer.Exit(2)
