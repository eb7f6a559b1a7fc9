"""Rows of plain data as a table, JSON or CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

import typer

__all__ = ["write_rows"]


def write_rows(rows: Sequence[Mapping[str, Any]], output: str, *, units: Mapping[str, str] | None = None) -> None:
    """Write rows of the same keys to standard output; the header of CSV names the SI `units` of columns."""
    if output == "json":
        typer.echo(json.dumps(list(rows), indent=2, ensure_ascii=False))
        return
    columns = list(rows[0]) if rows else []
    if output == "csv":
        from simperf.units import headed

        stream = io.StringIO()
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writerow({name: headed(name, (units or {}).get(name, "")) for name in columns})
        writer.writerows(rows)
        typer.echo(stream.getvalue(), nl=False)
        return
    from rich.table import Table
    from rich.text import Text

    from simperf.report.terminal import to_text

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for index, column in enumerate(columns):
        numbers = all(isinstance(row[column], int | float) for row in rows)
        whole = index == 0 or column == "name"  # what is copied from here stays in one piece
        table.add_column(column, overflow="fold", no_wrap=whole, justify="right" if numbers else "left")
    for row in rows:
        table.add_row(*(Text(str(value)) for value in row.values()))
    typer.echo(to_text(table))
