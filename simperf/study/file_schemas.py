"""JSON Schema of every kind of file: those of scenarios, parts and results, and those of plans."""

from __future__ import annotations

from typing import Any

from simperf.errors import UnknownNameError
from simperf.scenario.json_schema import json_schema, quantity
from simperf.study.planning.plan_file import PlanFile
from simperf.training.strategies import REPLICATED
from simperf.workload.mixed import TRAINING_PRECISIONS

__all__ = ["file_schema"]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]


def file_schema(kind: str) -> Schema:
    """Schema of the files of one kind.

    Parameters
    ----------
    kind : str
        ``"plan"`` is what `simperf plan` reads, ``"finished-plan"`` what `TrainingPlan.save` writes; all others as in
        `simperf.scenario.json_schema.json_schema`.

    Raises
    ------
    UnknownNameError
        There is no such kind of file.
    """
    if kind == "plan":
        return {"$schema": _DRAFT, "title": "simperf plan", **_plan()}
    if kind == "finished-plan":
        return {"$schema": _DRAFT, **PlanFile.model_json_schema(), "title": "simperf finished plan"}
    try:
        return json_schema(kind)
    except UnknownNameError as error:
        raise UnknownNameError(error.kind, kind, [*error.known, "plan", "finished-plan"]) from None


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
