"""JSON Schema of every kind of file: those of scenarios, parts and results, and those of plans."""

from __future__ import annotations

from typing import Any

from simperf.errors import UnknownNameError
from simperf.scenario.json_schema import json_schema, quantity
from simperf.study.layouts.request import OF_SCENARIO, TABLES
from simperf.study.planning.plan_file import PlanFile
from simperf.training.strategies import REPLICATED
from simperf.workload.mixed import TRAINING_PRECISIONS

__all__ = ["file_schema", "schema_kinds"]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]
#: kinds beside those of scenarios and parts
_OWN = ("plan", "layouts", "finished-plan", "prices", "measurements")


def file_schema(kind: str) -> Schema:
    """Schema of the files of one kind.

    Parameters
    ----------
    kind : str
        ``"plan"`` is what `simperf plan` reads, ``"layouts"`` what it reads of a search of layouts, ``"finished-plan"``
        what `TrainingPlan.save` writes, ``"prices"`` the file that ``[prices]`` of a plan names, ``"measurements"``
        what `simperf calibrate measure` writes; all others as in `simperf.scenario.json_schema.json_schema`.

    Raises
    ------
    UnknownNameError
        There is no such kind of file.
    """
    if kind == "plan":
        return {"$schema": _DRAFT, "title": "simperf plan", **_plan()}
    if kind == "layouts":
        return {"$schema": _DRAFT, "title": "simperf layouts", **_layouts()}
    if kind == "prices":
        return {"$schema": _DRAFT, "title": "simperf prices", **_prices()}
    if kind == "measurements":
        return {"$schema": _DRAFT, "title": "simperf measurements", **_measurements()}
    if kind == "finished-plan":
        return {"$schema": _DRAFT, **PlanFile.model_json_schema(), "title": "simperf finished plan"}
    try:
        return json_schema(kind)
    except UnknownNameError as error:
        raise UnknownNameError(error.kind, kind, [*error.known, *_OWN]) from None


def schema_kinds() -> tuple[str, ...]:
    """Kinds of files that have a schema, by name."""
    try:
        file_schema("")
    except UnknownNameError as error:
        return tuple(sorted(error.known))
    raise AssertionError("a kind has no name")


def _table(properties: Schema, *, required: tuple[str, ...] = ()) -> Schema:
    table: Schema = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**table, "required": list(required)} if required else table


def _plan() -> Schema:
    text: Schema = {"type": "string"}
    count: Schema = {"type": "integer", "minimum": 1}
    number: Schema = {"type": "number", "exclusiveMinimum": 0}
    counts: Schema = {"anyOf": [count, {"type": "array", "items": count, "minItems": 1}]}
    head = {
        "title": text,
        "model": {**text, "description": "a name of `simperf zoo list`, or a traced model's file"},
        "precision": {"enum": ["auto", *TRAINING_PRECISIONS]},
        "optimizer": text,
        "samples": {**number, "description": "in an epoch"},
        "epochs": number,
        "tokens": {**number, "description": "in an epoch; instead of samples"},
        "deadline": quantity("s"),
        "budget": quantity("USD"),
        "objective": {"enum": ["auto", "time", "cost"]},
        "force": {"type": "boolean"},
    }
    candidates = {
        "instances": {"type": "array", "items": text, "minItems": 1},
        "nodes": counts,
        "strategies": {"type": "array", "items": {"enum": list(REPLICATED)}, "minItems": 1},
        "batch_per_gpu": counts,
        "batch": {**counts, "description": "of the whole step; instead of batch_per_gpu"},
        "algorithm": text,
        "folder": {**text, "description": "folder with parts of your own, relative to this file"},
        "fabric": {"type": "object", "description": "of the clusters, as in a scenario's [machine.fabric]"},
        "frontend": text,
    }
    limits = {
        "nodes": count,
        "gpus": count,
        "batch": count,
        "memory": quantity("B"),
        "price": quantity("USD/h"),
    }
    prices = {
        "file": text,
        "kind": {"enum": ["on_demand", "capacity_block"]},
        "own": {"type": "object", "additionalProperties": quantity("USD/h")},
    }
    failures = {
        "node_mtbf": quantity("s"),
        "checkpoint": {**quantity("B/s"), "description": "rate of the store [B/s]"},
        "restart": quantity("s"),
        "repair": quantity("s"),
        "interval": quantity("s"),
        "runs": count,
    }
    tables = {
        "format": {"const": 1},
        "plan": _table(head, required=("model",)),
        "candidates": _table(candidates, required=("instances",)),
        "limits": _table(limits),
        "prices": _table(prices),
        "failures": _table(failures, required=("node_mtbf",)),
        "calibration": _table({"use": text}),
    }
    return _table(tables, required=("plan", "candidates"))


def _prices() -> Schema:
    text: Schema = {"type": "string"}
    date = {**text, "description": "of the prices, such as 2026-01 or 2026-01-31"}
    price = {"type": "object", "additionalProperties": quantity("USD/h"), "description": "an hour of each instance"}
    return _table({"date": date, "source": text, "price": price}, required=("date", "price"))


def _measurements() -> Schema:
    """A data set, as `simperf.calibrate.Dataset` saves it; its numbers are in SI units."""
    text: Schema = {"type": "string"}
    facts: Schema = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
    numbers: Schema = {"type": "array", "items": {"type": "number", "minimum": 0}, "minItems": 1}
    point = {
        "series": {**text, "description": "what was done, such as op/gemm or all-reduce/nccl"},
        "at": {**facts, "description": "its conditions: shapes, nbytes [B], ranks, dtype"},
        "samples": {**numbers, "description": "readings in the order in which they were taken, in `unit`"},
        "unit": {**text, "description": "s unless said otherwise"},
        "warnings": {"type": "array", "items": text},
        "stolen": {"type": "number", "minimum": 0, "maximum": 1, "description": "of the time, by the machine's host"},
        "sensors": {"type": "object", "additionalProperties": {"type": "number"}},
    }
    tables: Schema = {
        "schema": {"const": "simperf-dataset/1"},
        "title": text,
        **dict.fromkeys(("machine", "versions", "made"), facts),
        "notes": {"type": "array", "items": text},
        "measurements": {"type": "array", "items": _table(point, required=("series", "samples"))},
    }
    return _table(tables, required=("schema",))


def _layouts() -> Schema:
    """A search of layouts: its own tables; those of a scenario are checked by the scenario."""
    text: Schema = {"type": "string"}
    count: Schema = {"type": "integer", "minimum": 1}
    several: Schema = {"anyOf": [count, text, {"type": "array", "items": {"anyOf": [count, text]}, "minItems": 1}]}
    share: Schema = {"anyOf": [{"type": "number", "minimum": 0}, text]}
    head = {
        "title": text,
        "tokens": {"type": "number", "exclusiveMinimum": 0},
        "deadline": quantity("s"),
        "budget": quantity("USD"),
        "force": {"type": "boolean"},
    }
    single = {"model": text, "batch": count, "sequence": count, "folder": text, "top": count, "within": share}
    search = dict.fromkeys(TABLES["layouts"], several) | single | {"time": quantity("s")}
    prices = {"own": {"type": "object", "additionalProperties": quantity("USD/h")}}
    times = ("node_mtbf", "restart", "repair", "interval")
    failures = {**{key: quantity("s") for key in times}, "checkpoint": quantity("B/s"), "runs": count}
    tables: Schema = {
        "format": {"const": 1},
        "plan": _table(head),
        "layouts": _table(search, required=("model", "on")),
        "prices": _table(prices),
        "failures": _table(failures, required=("node_mtbf",)),
        **{name: {"type": "object"} for name in OF_SCENARIO},
    }
    return _table(tables, required=("layouts",))
