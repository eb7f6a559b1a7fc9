"""The file of a saved result, format 1: what may stand in it, checked as it is read, and older files."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    ValidationError,
    WithJsonSchema,
)

from simperf.answer import Better
from simperf.engine.recorder import Category
from simperf.errors import InputError, Problem
from simperf.files import dotted

__all__ = ["FORMAT", "ResultFile", "problems_of", "read_result", "written"]

#: version of the file; raised when a key changes its meaning or goes
FORMAT = 1
#: how what is no number of JSON is written
_ODD = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
#: what pydantic calls a choice of types, which is no key
_CHOICE = re.compile(r"\[|^constrained-|^(int|float)$")
#: fields of many plain rows
_ROWS = {"spans", "samples", "arrows", "operations", "memory"}
#: problems that are told of one file
_MOST = 10


def _number(value: Any) -> Any:
    return _ODD.get(value, value) if isinstance(value, str) else value


# whole numbers stay whole, so that what is read is written as it was
Number = Annotated[
    StrictInt | StrictFloat,
    BeforeValidator(_number),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"enum": list(_ODD)}]}),
]
Time = Annotated[
    Annotated[int, Field(strict=True, ge=0)] | Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)],
    WithJsonSchema({"type": "number", "minimum": 0}),
]
Text = Annotated[str, Field(strict=True)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class _Metric(_Table):
    value: Number
    unit: Text
    origin: Literal["simulated", "measured", "fitted", "source"] = "simulated"
    low: Number | None = None
    high: Number | None = None


class _Answer(_Table):
    metric: Text
    better: Better


class _Resource(_Table):
    kind: Text
    capacity: Number
    work: Number


class _Problem(_Table):
    message: Text
    file: Text = ""
    line: int = 0
    key: Text = ""
    value: Text = ""
    expected: Text = ""


class _TimeUse(_Table):
    """Time that each of like ranks spent on an activity; `exposed` is the part in which the rank ran no kernel."""

    stage: Annotated[int, Field(strict=True, ge=0, description="of the pipeline; 0 without one")] = 0
    dimension: Annotated[Text, Field(description="of the layout along which the ranks communicate, such as dp")] = ""
    ranks: tuple[Text, ...]
    activity: Category
    time: Annotated[Time, Field(description="[s]")]
    exposed: Annotated[Time, Field(description="[s]")]


class _RankClass(_Table):
    """Ranks that one simulated rank stands for."""

    members: tuple[Text, ...]
    dimension: Text = ""
    stage: Annotated[int, Field(strict=True, ge=0)] = 0


class ResultFile(_Table):
    """A saved result; every quantity is a number in its SI unit."""

    format: Literal[1] = 1
    name: Text
    time: Annotated[Time, Field(description="how long the program took [s]")]
    question: Text = ""
    answer: Annotated[_Answer | None, Field(description="the number that answers the question; null: the time")] = None
    times: Annotated[tuple[_TimeUse, ...], Field(description="by stage, dimension and class of ranks")] = ()
    memory: Annotated[
        tuple[tuple[Text, Text, Time, Number], ...],
        Field(description="by kind over time: device, kind, time [s] from which so many bytes are held, bytes [B]"),
    ] = ()
    ranks: dict[str, _RankClass] = Field(default_factory=dict)
    floors: dict[str, Number] = Field(default_factory=dict)
    metrics: dict[str, _Metric] = Field(default_factory=dict)
    work: dict[str, _Metric] = Field(default_factory=dict)
    resources: dict[str, _Resource] = Field(default_factory=dict)
    spans: Annotated[
        tuple[tuple[Text, Text, Time, Time, Category], ...],
        Field(description="the timeline: track, name, start [s], end [s], category"),
    ] = ()
    samples: Annotated[
        tuple[tuple[Text, Text, Time, Number], ...], Field(description="counters: track, name, time [s], value")
    ] = ()
    arrows: Annotated[
        tuple[tuple[Text, Text, Time, Text, Time], ...],
        Field(description="causes: name, track and time [s] of the cause, track and time [s] of the effect"),
    ] = ()
    operations: Annotated[
        tuple[tuple[Text, Text, Text, int, Number, Number, Number, Text], ...],
        Field(description="name, device, precision, calls, and of one call: FLOP, bytes [B], time [s], regime"),
    ] = ()
    ceilings: Annotated[
        dict[str, tuple[Text, Number, dict[str, Number]]],
        Field(description="by device: its part, memory bandwidth [B/s], peak by precision [FLOP/s]"),
    ] = Field(default_factory=dict)
    intervals: dict[str, tuple[Number, Number]] = Field(default_factory=dict)
    draws: dict[str, tuple[Number, ...]] = Field(default_factory=dict)
    scenario: Annotated[dict[str, Any], Field(description="the inputs after all overrides")] = Field(
        default_factory=dict
    )
    seed: Annotated[int, Field(strict=True)] = 0
    version: Annotated[Text, Field(description="of simperf")] = ""
    modelled: tuple[Text, ...] = ()
    not_modelled: tuple[Text, ...] = ()
    sources: dict[str, Text] = Field(default_factory=dict)
    assumed: dict[str, Text] = Field(default_factory=dict)
    notes: tuple[Text, ...] = ()
    unused: dict[str, _Problem] = Field(default_factory=dict)


def read_result(data: Any, *, file: str = "") -> dict[str, Any]:
    """The fields of a saved result, checked; files from before format 1 are read too.

    Parameters
    ----------
    data : object
        What the JSON says.
    file : str
        Its name, for messages.

    Raises
    ------
    InputError
        It is no saved result, or one of another format.
    """
    if not isinstance(data, Mapping):
        raise InputError(Problem("no saved result: a table is expected", file=file))
    known = dict(data)
    if "format" not in known and known.get("schema") == 1:
        known["format"] = known.pop("schema")  # as it was written before formats had numbers: the same keys
    if "format" not in known:
        raise InputError(Problem("no saved result: the key `format` is missing", file=file, expected='"format": 1'))
    if known["format"] != FORMAT or isinstance(known["format"], bool):
        message = f"no saved result that this simperf reads: format {known['format']!r}"
        expected = f'"format": {FORMAT}; run it again with this simperf, or show it with the one that wrote it'
        raise InputError(Problem(message, file=file, expected=expected))
    try:
        found = ResultFile.model_validate(known)
        return {**found.model_dump(exclude=_ROWS), **{name: getattr(found, name) for name in _ROWS}}
    except ValidationError as error:
        raise InputError(problems_of(error, "no saved result", file)) from None


def problems_of(error: ValidationError, what: str, file: str) -> list[Problem]:
    """What pydantic found wrong with a file of JSON, a problem for each key."""
    told: dict[str, str] = {}
    for row in error.errors(include_url=False, include_input=False, include_context=False):
        loc = tuple(part for part in row["loc"] if isinstance(part, int) or not _CHOICE.search(part))
        told[dotted(loc)] = f"{row['msg'][:1].lower()}{row['msg'][1:]}"
    return [Problem(f"{what}: {key}: {message}", file=file) for key, message in list(told.items())[:_MOST]]


def written(value: Any) -> Any:
    """Numbers as JSON knows them: one that is infinite, or none, as a text."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {key: written(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [written(each) for each in value]
    return value
