"""The file of a finished plan, format 1: what was asked for, and each candidate with what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from simperf.errors import InputError, Problem
from simperf.files import TomlFile
from simperf.json_format import JsonTable, read_format

__all__ = ["CandidateRow", "PlanFile", "read_plan"]

Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(strict=True, ge=0)]
Ends = tuple[Number, Number]


class CandidateRow(JsonTable):
    """One way to train, and what came of it; a bound of its time and cost if it was not simulated."""

    number: Annotated[Count, Field(description="rank, from 1; 0 for one that was not simulated")]
    instance: str
    nodes: Count
    gpus: Count
    strategy: str
    batch: Count
    precision: Annotated[str, Field(description="that it trains in; empty in files that have the plan's, or fp32")] = ""
    precision_source: Annotated[str, Field(description="given, or assumed and by what")] = ""
    time: Annotated[Number | None, Field(description="of the whole job [s]; null if it never ends")] = None
    time_interval: Annotated[Ends | None, Field(description="90 % [s]")] = None
    time_interval_apart: Annotated[
        Ends | None, Field(description="90 % without the error that all candidates on its GPU share [s]")
    ] = None
    cost: Annotated[Number | None, Field(description="[USD]; null if it never ends, or has no price")] = None
    cost_interval: Annotated[Ends | None, Field(description="90 % [USD]")] = None
    interval_sources: Annotated[dict[str, str], Field(description="what the intervals are made of")] = Field(
        default_factory=dict
    )
    no_interval: Annotated[str, Field(description="why there are none; empty if there are")] = ""
    group: Annotated[
        Count,
        Field(description="number of the first that it cannot be distinguished from; 0 without a rank or an interval"),
    ] = 0
    samples_per_second: Annotated[Number | None, Field(description="while it trains [1/s]")] = None
    goodput: Annotated[Number, Field(description="share of the time that is training [1]")] = 1.0
    memory: Annotated[Number, Field(description="on each GPU [B]")] = 0.0
    limited_by: str | None = None
    feasible: bool = False
    best: Annotated[bool, Field(description="Pareto-optimal in time and cost")] = False
    reason: str = ""
    price: Annotated[Number | None, Field(description="of one instance [USD/h]; null if there is none")]
    price_source: Annotated[str, Field(description="who asked it, where and when; why there is none")]


class PlanFile(JsonTable):
    """A finished plan; every quantity is a number in its SI unit, prices are in USD."""

    format: Literal[1] = 1
    title: str
    samples: Annotated[Number, Field(description="to be trained in all")]
    deadline: Annotated[Number | None, Field(description="[s]; null if there is none")] = None
    budget: Annotated[Number | None, Field(description="[USD]; null if there is none")] = None
    objective: Literal["time", "cost"]
    request: Annotated[dict[str, Any], Field(description="the tables of the plan's file")]
    ranked: Annotated[tuple[CandidateRow, ...], Field(description="simulated, the feasible ones first")]
    pruned: Annotated[tuple[CandidateRow, ...], Field(description="ruled out by bounds, or failed")] = ()


def read_plan(data: Any, *, file: str | TomlFile = "") -> PlanFile:
    """A finished plan, checked.

    Parameters
    ----------
    data : object
        What the JSON says.
    file : str or TomlFile
        It, or its name, for messages.

    Raises
    ------
    InputError
        It is not a finished plan, or one of another format.
    """
    if isinstance(data, Mapping) and "ranked" in data and "format" not in data:
        message = "a finished plan from before format 1, which does not say what was asked for"
        name = file.path if isinstance(file, TomlFile) else file
        raise InputError(Problem(message, file=name, expected="what `TrainingPlan.save` writes: run the plan again"))
    return read_format(PlanFile, data, "not a finished plan", file=file, again="run the plan again")
