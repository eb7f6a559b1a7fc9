"""Output of `simperf sweep`, `limits` and `plan` in a terminal: rows of many runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from simperf.report.fitted_table import FittedTable
from simperf.report.terminal import to_text
from simperf.study.table import Table

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["format_table", "rows_view"]


def format_table(table: Table, output: str = "table") -> str:
    """A sweep's table as text: ``table`` for people, the best point first; ``json`` and ``csv`` in SI units."""
    if output in ("json", "csv"):
        return table.to_bytes(f".{output}").decode().rstrip("\n")
    from rich.console import Group
    from rich.text import Text

    headline = table.ranking.headline if len(table) > 1 else ""
    header, rows = table.shown()
    lead = [Text(headline), Text("")] if headline else []
    return to_text(Group(*lead, FittedTable(header, rows, heads=1 + len(table.keys))))


def rows_view(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[str] = ()) -> RenderableType:
    """Cells in columns: numbers to the right, texts and the columns `left` to the left."""
    return FittedTable(header, rows, left=left)
