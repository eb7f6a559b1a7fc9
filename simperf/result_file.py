"""The file of a saved result, format 1: what may stand in it, checked as it is read, and older files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictFloat, StrictInt, WithJsonSchema

from simperf.answer import Better
from simperf.engine.recorder import Category
from simperf.errors import InputError, Problem
from simperf.files import TomlFile
from simperf.json_format import FORMAT, JsonTable, read_format

__all__ = ["ResultFile", "read_result", "written"]

#: a result may undercut its floor by rounding only [1]; no moment of a timeline is later [s]
_ROUNDING, _LATEST = 1e-9, 1e12
#: how what is no number of JSON is written
_ODD = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
#: fields of many plain rows
_ROWS = {"spans", "samples", "arrows", "operations", "memory"}


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


class _Metric(JsonTable):
    value: Number
    unit: Text
    origin: Literal["simulated", "measured", "fitted", "source"] = "simulated"
    low: Number | None = None
    high: Number | None = None


class _Answer(JsonTable):
    metric: Text
    better: Better


class _Resource(JsonTable):
    kind: Literal["device", "host", "link", "memory"]
    capacity: Number
    work: Number


class _Problem(JsonTable):
    message: Text
    file: Text = ""
    line: int = 0
    key: Text = ""
    value: Text = ""
    expected: Text = ""


class _TimeUse(JsonTable):
    """Time that each of like ranks spent on an activity; `exposed` is the part in which the rank ran no kernel."""

    stage: Annotated[int, Field(strict=True, ge=0, description="of the pipeline; 0 without one")] = 0
    dimension: Annotated[Text, Field(description="of the layout along which the ranks communicate, such as dp")] = ""
    ranks: tuple[Text, ...]
    activity: Category
    time: Annotated[Time, Field(description="[s]")]
    exposed: Annotated[Time, Field(description="[s]")]


class _RankClass(JsonTable):
    """Ranks that one simulated rank stands for."""

    members: tuple[Text, ...]
    dimension: Text = ""
    stage: Annotated[int, Field(strict=True, ge=0)] = 0
    streams: Annotated[
        tuple[tuple[Text, Text], ...], Field(description="stream, and the dimension along which it communicates")
    ] = ()
    numbers: Annotated[
        tuple[Annotated[int, Field(strict=True, ge=0)], ...], Field(description="of the members, as ranks")
    ] = ()
    mesh: Annotated[
        tuple[tuple[Text, Annotated[int, Field(strict=True, ge=1)]], ...],
        Field(description="dimension of the layout and its size, that of neighbouring ranks first"),
    ] = ()


class ResultFile(JsonTable):
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
    interval_sources: Annotated[dict[str, Text], Field(description="what the intervals are made of")] = Field(
        default_factory=dict
    )
    no_interval: Annotated[Text, Field(description="why published figures give none")] = ""
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


def read_result(data: Any, *, file: str | TomlFile = "") -> dict[str, Any]:
    """The fields of a saved result, checked; files from before format 1 are read too.

    Parameters
    ----------
    data : object
        What the JSON says.
    file : str or TomlFile
        It, or its name, for messages.

    Raises
    ------
    InputError
        It is not a saved result, or one of another format.
    """
    if isinstance(data, Mapping) and "format" not in data and data.get("schema") == 1:
        # as it was written before formats had numbers: the same keys
        data = {"format": FORMAT, **{key: value for key, value in data.items() if key != "schema"}}
    again = "run it again with this simperf, or show it with the one that wrote it"
    found = read_format(ResultFile, data, "not a saved result", file=file, again=again)
    if problems := list(_contradictions(found, file if isinstance(file, TomlFile) else TomlFile(file, {}, ""))):
        raise InputError(problems)
    return {**found.model_dump(exclude=_ROWS), **{name: getattr(found, name) for name in _ROWS}}


def _contradictions(found: ResultFile, file: TomlFile) -> Iterator[Problem]:
    """What no run gives: a time below a lower bound, an amount below 0, a span that ends before it begins."""
    name, floor = max(found.floors.items(), key=lambda item: item[1], default=("", 0.0))
    if not found.time >= floor * (1 - _ROUNDING):
        message = f"not a saved result: below the lower bound of {floor:g} s that {name} sets"
        yield file.problem(("time",), message, value=found.time, expected=f"{floor:g} s or more")
    if found.time > _LATEST:
        yield file.problem(
            ("time",), "not a saved result: too long", value=found.time, expected=f"{_LATEST:g} s at most"
        )
    for name, floor in found.floors.items():
        if floor < 0:
            yield file.problem(("floors", name), f"not a saved result: {floor:g} s", expected="0 or more")
    for key in ("metrics", "work"):
        for name, metric in getattr(found, key).items():
            if metric.unit != "1" and metric.value < 0:
                message = f"not a saved result: {metric.value:g} {metric.unit}"
                yield file.problem((key, name, "value"), message, expected="0 or more")
    end = min(found.time * (1 + _ROUNDING), _LATEST)
    odd = next((index for index, span in enumerate(found.spans) if not span[2] <= span[3] <= end), None)
    if odd is not None:
        begin, late = found.spans[odd][2:4]
        message = f"not a saved result: a span from {begin:g} s to {late:g} s"
        expected = f"an end after the beginning, and no later than the result's {found.time:g} s"
        yield file.problem(("spans", odd), message, expected=expected)
    for key, place in (("samples", 2), ("arrows", 2), ("arrows", 4), ("memory", 2)):
        rows = getattr(found, key)
        odd = next((index for index, row in enumerate(rows) if row[place] > end), None)
        if odd is not None:
            message = f"not a saved result: at {rows[odd][place]:g} s"
            yield file.problem((key, odd, place), message, expected=f"no later than the result's {found.time:g} s")


def written(value: Any) -> Any:
    """Numbers as JSON knows them: one that is infinite, or none, as a text."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {key: written(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [written(each) for each in value]
    return value
