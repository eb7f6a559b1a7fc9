"""JSON Schema of models by their dimensions and of layouts, from the dataclasses that read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from inspect import getdoc
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import TypeAdapter

from simperf.formats import FORMAT
from simperf.layout import DIMENSIONS, Layout
from simperf.programs.parameters import parameter_docs
from simperf.workload import zoo
from simperf.workload.transformers import Transformer

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["layout_schema", "model_schema", "model_table_schema"]

_ORDER = {"type": "string", "examples": ["-".join(DIMENSIONS)]}
Schema = dict[str, Any]


def layout_schema() -> Schema:
    """Of a layout's file, and of ``[layout]``."""
    return _of(Layout, order=_ORDER)


def model_schema() -> Schema:
    """Of a model's file that says its dimensions."""
    return _of(Transformer)


def model_table_schema() -> Schema:
    """Of ``[model]``: a name, a configuration, or dimensions."""
    text = {"type": "string", "minLength": 1}
    shared = {"format": {"const": FORMAT}}
    files = "of `simperf zoo list`, or a traced model's file"
    named = {**shared, "name": {**text, "description": files, "examples": list(zoo.names())[:3]}}
    config = {**text, "description": "config.json of Hugging Face, or its folder", "examples": ["config.json"]}
    named["sequence"] = {"type": "integer", "minimum": 1, "description": "of a model by its dimensions"}
    configured = {**shared, "config": config, "sequence": {"type": "integer", "minimum": 1}}
    return {"anyOf": [_table(named, ["name"]), _table(configured, ["config"]), model_schema()]}


def _of(kind: type[DataclassInstance], **instead: Mapping[str, Any]) -> Schema:
    """Schema of the table of a dataclass."""
    docs, hints = parameter_docs(getdoc(kind) or ""), get_type_hints(kind)
    properties: Schema = {"format": {"const": FORMAT}}
    for one in fields(kind):
        found = dict(instead.get(one.name) or TypeAdapter(hints[one.name]).json_schema())
        found |= {"minimum": 1 if one.default in (MISSING, 1) else 0} if hints[one.name] is int else {}
        found |= {"default": one.default} if isinstance(one.default, bool | int | str) else {}
        properties[one.name] = {**found, "description": docs.get(one.name, "")}
    return _table(properties, [one.name for one in fields(kind) if one.default is MISSING])


def _table(properties: Schema, required: list[str]) -> Schema:
    table: Schema = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**table, "required": required} if required else table
