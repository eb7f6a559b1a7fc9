"""Output of `simperf run --what-if`: contributions that add up, and the critical path of each run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from simperf.json_format import json_text
from simperf.report.fitted_table import FittedTable
from simperf.report.rows import rows_text
from simperf.report.terminal import titled, to_text
from simperf.study.what_if import WhatIf

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["what_if_output"]


def what_if_output(found: WhatIf, form: Literal["table", "json", "csv"]) -> str:
    """A what-if question as a table, JSON, or CSV with a row a run."""
    if form == "json":
        return json_text(found.to_dict())
    if form == "csv":
        rows = [
            {"name": one.name, "value": one.value, "change": one.change, "time": one.time}
            | {f"path: {name}": one.path.get(name, 0.0) for each in found.runs for name in each.path}
            for one in found.runs
        ]
        units = {key: "s" for key in rows[0] if key.startswith("path: ")}
        return rows_text(rows, "csv", units={"value": found.unit, "change": found.unit, "time": "s", **units})
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [Text(found.result.name, style="bold")]
    header, rows_of = found.rows()
    parts += titled("What if", FittedTable(header, rows_of))
    header, paths = found.path_rows()
    parts += titled("Critical path of each run", FittedTable(header, paths))
    reasons = "\n".join(f"{one.name}: {found.reason(one)}" for one in found.runs[1:])
    parts += titled("Why: what changed most on the critical path of the whole run", Text(reasons))
    return to_text(Group(*parts))
