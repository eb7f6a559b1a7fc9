"""What `simperf sweep`, `limits` and `plan` show in a terminal: rows of many runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simperf.report.phrases import numbers
from simperf.report.terminal import to_text
from simperf.study.table import Table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["format_table", "grid_text", "rows_view"]

#: columns of a file or a pipe, where nothing is folded for the sake of a screen
_WIDE = 240


def format_table(table: Table, output: str = "table") -> str:
    """A sweep's table as text: ``table`` for people, the best point first; ``json`` and ``csv`` in SI units."""
    if output in ("json", "csv"):
        return table.to_bytes(f".{output}").decode().rstrip("\n")
    told = table.ranking.headline if len(table) > 1 else ""
    return (f"{told}\n\n" if told else "") + grid_text(*table.shown())


def grid_text(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lines of cells below a header, as wide as they need where nobody's screen is narrower."""
    return to_text(rows_view(header, rows), width=None if sys.stdout.isatty() else _WIDE)


def rows_view(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[str] = ()) -> RenderableType:
    """Cells in columns: numbers to the right, texts and the columns `left` to the left."""
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for index, name in enumerate(header):
        cells = [row[index] for row in rows]
        grid.add_column(name, justify="right" if name not in left and numbers(cells) else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(cell) for cell in row))
    return grid
