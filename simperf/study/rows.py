"""Contents that a row of a study may have: those of journals and caches are files that anybody may have changed."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr, TypeAdapter, ValidationError

from simperf.analysis.regime import REGIMES
from simperf.errors import InputError, Problem
from simperf.file_bytes import decode
from simperf.file_problems import explain, key_of
from simperf.files import TomlFile, dotted
from simperf.json_file import parse_json
from simperf.study.journal import LONGEST_ROW, canonical

__all__ = ["read_row", "row_problem"]

_TOLERANCE = 1e-9  # of a time beside its floor [1]

#: names of resources, those of nodes in front; none, where nothing is busy
_RESOURCE = re.compile(r"\w|$")

_Finite = Annotated[StrictInt | StrictFloat, Field(allow_inf_nan=False)]
_Time = Annotated[float, Field(strict=True, ge=0.0, allow_inf_nan=False)]
_Amount = Annotated[StrictInt | StrictFloat, Field(ge=0, allow_inf_nan=False)]
#: of draws, which may give no number
_Number = StrictInt | StrictFloat


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Head(_Table):
    point: Annotated[int, Field(strict=True, ge=0)]
    set: dict[StrictStr, Any]
    seed: StrictInt


class _Failed(_Head):
    error: Annotated[StrictStr, Field(min_length=1)]


class _Unused(_Table):
    message: StrictStr
    file: StrictStr = ""
    line: StrictInt = 0
    key: StrictStr = ""
    value: StrictStr = ""
    expected: StrictStr = ""


class _Done(_Head):
    error: None
    time: _Time
    regime: StrictStr
    limited_by: StrictStr
    floor: _Time
    metrics: dict[StrictStr, tuple[_Finite | None, StrictStr]]
    work: dict[StrictStr, tuple[_Amount, StrictStr]]
    unused: dict[StrictStr, _Unused] = {}
    intervals: dict[StrictStr, tuple[_Number, _Number]] = {}
    draws: list[_Number] = []


_DONE, _FAILED = TypeAdapter(_Done), TypeAdapter(_Failed)


def row_problem(
    row: Mapping[str, Any], task: Mapping[str, Any], *, numbered: bool = True, needs: Collection[str] = ()
) -> str:
    """Problem that keeps `row` from being that of `task`, in words; empty if nothing does.

    Parameters
    ----------
    row : mapping
        As `read_row` gives it.
    task : mapping
    numbered : bool
        Whether the row is that of this point of this study; otherwise of a point with the same values.
    needs : collection of str
        Metrics above 0 without which a row is of no use.
    """
    try:
        (_DONE if row.get("error") is None else _FAILED).validate_python(row)
    except ValidationError as error:
        first = cast(Mapping[str, Any], error.errors(include_url=False)[0])
        place = key_of(first, "int", "float")
        found = explain(first, TomlFile("", {}, ""), place, list(_Done.model_fields))
        return f"{dotted(place)}: {found.message}" + (f": {found.expected}" if found.expected else "")
    for key in ("point", "set", "seed") if numbered else ("set", "seed"):
        if canonical(row[key]) != canonical(task[key]):
            return f"{key}: not that of the point"
    return _result_problem(row, task["samples"], needs) if row["error"] is None else ""


def _result_problem(row: Mapping[str, Any], samples: int, needs: Collection[str]) -> str:
    """What is wrong with the regime and the numbers of a point that gave a result."""
    if row["regime"] not in ("", *REGIMES):
        return f"regime: one of {', '.join(REGIMES)} is expected"
    if not _RESOURCE.match(row["limited_by"]):
        return "limited_by: the name of a resource is expected"
    if row["time"] < row["floor"] * (1.0 - _TOLERANCE):
        return "time: below its lower bound"
    if ("draws" in row) != bool(samples) or len(row.get("draws", ())) not in (0, samples):
        return f"draws: {samples} are expected"
    for name, (value, unit) in row["metrics"].items():
        if unit == "B" and value is None:
            return f"metrics.{name}: a number of bytes is expected"
        if unit != "1" and value is not None and value < 0.0:
            return f"metrics.{name}: {value:g} {unit}, and nothing with a unit is below 0"
    for name in needs:
        found = [row["metrics"].get(name, (None,))[0], *row.get("intervals", {}).get(name, ())]
        if not all(value is not None and 0.0 < value < math.inf for value in found):
            return f"metrics.{name}: a number above 0 is expected"
    return ""


def read_row(text: bytes) -> dict[str, Any]:
    """A row of its text.

    Raises
    ------
    InputError
        It is no table of JSON, or one that is too large or too deeply nested.
    """
    what = "no row"
    if len(text) > LONGEST_ROW:
        raise InputError(Problem(f"more than {LONGEST_ROW:,} B", expected="a row that simperf wrote"))
    row = parse_json(decode(text, "", what=what), "", what=what, finite=False).data
    if not isinstance(row, dict):
        raise InputError(Problem("a table is expected"))
    return row
