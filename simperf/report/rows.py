"""Rows of plain data as a table, JSON or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from simperf.json_format import json_text
from simperf.report.fitted_table import FittedTable
from simperf.report.terminal import to_text
from simperf.units import headed

__all__ = ["rows_text"]


def rows_text(rows: Sequence[Mapping[str, Any]], form: str, *, units: Mapping[str, str] | None = None) -> str:
    """Rows of the same keys as a table, JSON or CSV.

    Parameters
    ----------
    rows : sequence of mapping
    form : {"table", "json", "csv"}
    units : mapping of str to str
        SI units of columns, which the header of CSV names.
    """
    if form == "json":
        return json_text(list(rows))
    columns = list(rows[0]) if rows else []
    if form == "csv":
        stream = io.StringIO()
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writerow({name: headed(name, (units or {}).get(name, "")) for name in columns})
        writer.writerows(rows)
        return stream.getvalue().removesuffix("\n")
    names = [index for index, column in enumerate(columns) if index == 0 or column == "name"]
    cells = [[str(value) for value in row.values()] for row in rows]
    # what is copied from here stays in one piece
    return to_text(FittedTable(columns, cells, whole=names))
