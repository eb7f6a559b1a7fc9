"""JSON Schema of every kind of file that simperf reads, for editors and other tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from inspect import getdoc
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import BaseModel, TypeAdapter

from simperf.errors import UnknownNameError
from simperf.execution import MODES
from simperf.formats import FORMAT
from simperf.hardware.kinds import MODELS
from simperf.layout import Layout
from simperf.programs import PROGRAMS, Parameter, ProgramSpec
from simperf.programs.adapters import adapter
from simperf.programs.parameters import parameter_docs
from simperf.result_file import ResultFile
from simperf.scenario.expectation import KINDS as EXPECTATION_KINDS
from simperf.scenario.schema import CalibrationTable, CostTable, ExecutionTable, HeadTable, RunTable, VariantTable
from simperf.units import DIMENSIONS
from simperf.workload import zoo
from simperf.workload.transformers import Transformer

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["json_schema"]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_EXAMPLES = {
    "s": ["5 us", "60 ms"],
    "B": ["160 MB", "1 GiB"],
    "B/s": ["16 GB/s", "100 Gbit/s"],
    "FLOP": ["6.4 TFLOP"],
    "FLOP/s": ["15.7 TFLOP/s"],
    "1/s": ["10000 rpm"],
    "m": ["10 m"],
    "m/s": ["200000 km/s"],
    "W": ["300 W"],
    "USD": ["10 USD"],
    "USD/h": ["3.06 USD/h"],
    "1": [0.8, "80 %"],
}
_NUMBER = r"\+?(\d[\d_,]*\.?\d*|\.\d+)([eE][+-]?\d+)?"
_DEPTH = {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "unlimited"}]}
Schema = dict[str, Any]


def json_schema(kind: str) -> Schema:
    """Schema of the files of one kind.

    Parameters
    ----------
    kind : str
        ``"scenario"``, ``"job"`` for the tables of a training job, ``"result"``, ``"model"``, ``"layout"``,
        ``"stack"``, ``"server"``, ``"cluster"``, or a kind of part such as ``"gpu"``.

    Raises
    ------
    UnknownNameError
        There is no such kind of file.
    """
    from simperf.hardware.wiring import ClusterSpec, ServerSpec

    if kind == "result":
        return {"$schema": _DRAFT, **ResultFile.model_json_schema(), "title": "simperf result"}
    if kind in ("model", "layout"):
        own = _model_schema() if kind == "model" else _layout_schema()
        return {"$schema": _DRAFT, "title": f"simperf {kind}", **own}
    if kind == "stack":
        return {"$schema": _DRAFT, "title": "simperf stack", **_with_units(_stack())}
    if kind == "scenario":
        return {"$schema": _DRAFT, "title": "simperf scenario", **_scenario()}
    if kind == "job":
        return {"$schema": _DRAFT, "title": "simperf job", **_job()}
    models: dict[str, type[BaseModel]] = {**MODELS, "server": ServerSpec, "cluster": ClusterSpec}
    if kind not in models:
        raise UnknownNameError("kind of file", kind, ["scenario", "job", "result", "model", "layout", "stack", *models])
    schema = models[kind].model_json_schema()
    schema["properties"]["kind"] = {"const": kind}
    if kind == "frontend":
        schema["properties"]["depth"] = _DEPTH
    return {"$schema": _DRAFT, **_with_units(schema), "title": f"simperf {kind}"}


def quantity(dimension: str) -> Schema:
    """Schema of a text with a unit of `dimension`; zero needs no unit, and a plain number has none."""
    units = "|".join(sorted(map(_escape, DIMENSIONS[dimension]), key=len, reverse=True))
    ratio = rf"(\s*/\s*{_NUMBER})?" if dimension == "1" else ""
    text = {"type": "string", "pattern": rf"^\s*{_NUMBER}{ratio}\s*[kKMGTPEmunpµμ]?i?({units})\s*$"}
    number: Schema = {"type": "number"} if dimension == "1" else {"const": 0}
    return {"description": f"quantity [{dimension}]", "anyOf": [text, number], "examples": _EXAMPLES[dimension]}


def _escape(unit: str) -> str:
    return unit.replace("/", r"\/")


def _with_units(schema: Any) -> Any:
    """`schema` with the pattern and examples of every quantity written out."""
    if isinstance(schema, list):
        return [_with_units(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    text = schema.get("description", "")
    if isinstance(text, str) and text.startswith("quantity ["):
        written = quantity(text.removeprefix("quantity [").removesuffix("]"))
        return {**written, **({"default": schema["default"]} if _finite(schema.get("default")) else {})}
    return {key: _with_units(value) for key, value in schema.items() if key != "default" or _finite(value)}


def _finite(value: Any) -> bool:
    return value is not None and value != float("inf")


def _table(properties: Mapping[str, Any], **more: Any) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": dict(properties), **more}


def _scenario() -> Schema:
    from simperf.hardware.wiring import ClusterSpec, ServerSpec

    definitions: Schema = {}
    tables: dict[str, type[BaseModel]] = {
        "scenario": HeadTable,
        "calibration": CalibrationTable,
        "execution": ExecutionTable,
        "cost": CostTable,
        "run": RunTable,
        "compare": VariantTable,
    }
    properties = {name: _inline(model.model_json_schema(), definitions) for name, model in tables.items()}
    properties["execution"]["properties"]["mode"] |= {"enum": list(MODES)}
    folder = {"folder": {"type": "string", "description": "folder with parts of your own, relative to this file"}}
    wired: tuple[type[BaseModel], ...] = (ServerSpec, ClusterSpec)
    own = [_inline(model.model_json_schema(), definitions) for model in wired]
    for schema in own:
        schema["properties"] |= folder
    named = _table({"use": {"type": "string", "examples": ["dgx-1v"]}, **folder}, required=["use"])
    frontend = _inline(MODELS["frontend"].model_json_schema(), definitions)
    numbers = {k: v for k, v in frontend["properties"].items() if k not in ("kind", "title", "source")}
    numbers["depth"] = _DEPTH
    expect, measured = _expect(), _expect(measured=True)
    properties |= {
        "machine": {"anyOf": [named, *own], "description": "a machine of the catalogue, or one that is wired here"},
        "model": _model_table_schema(),
        "layout": _layout_schema(),
        **_job_tables(),
        "frontend": _table({"use": {"type": "string", "examples": ["pytorch"]}, **numbers}),
        "program": {"oneOf": [*(_program(name, PROGRAMS[name]) for name in PROGRAMS), _python()]},
        "expect": expect,
        "measured": measured,
        "compare": {"type": "array", "items": properties["compare"]},
    }
    properties["compare"]["items"]["properties"] |= {"expect": expect, "measured": measured}
    return {**_with_units(_table(properties, required=["program"])), "$defs": _with_units(definitions)}


def _job() -> Schema:
    """The tables of a scenario that say a training job, and the programs that simulate one."""
    from simperf.programs.job_options import JobOptions
    from simperf.scenario.job_tables import JOB_TABLES

    whole = _scenario()
    tables = ("machine", "model", "layout", "strategy", *JOB_TABLES, "failures")
    properties = {name: whole["properties"][name] for name in tables}
    programs = [_program(name, PROGRAMS[name]) for name in PROGRAMS if isinstance(PROGRAMS[name].options, JobOptions)]
    properties["program"] = _with_units({"oneOf": programs})
    return {**_table(properties, required=["program"]), "$defs": whole["$defs"]}


def _inline(schema: Schema, definitions: Schema) -> Schema:
    """Move the definitions of a model to those of the file."""
    definitions |= schema.pop("$defs", {})
    return schema


def _program(name: str, spec: ProgramSpec) -> Schema:
    properties = {"use": {"const": name}} | {p.name: _parameter(p) for p in spec.parameters.values()}
    return _table(properties, title=name, description=spec.title, required=["use"])


def _job_tables() -> Schema:
    """``[strategy]`` of each kind, and the other tables of a job."""
    from simperf.programs.failure_options import FAILURES
    from simperf.scenario.job_tables import JOB_TABLES
    from simperf.training.strategies import STRATEGIES

    kinds = [_fields(kind, {"kind": {"const": name}, "format": {"const": 1}}) for name, kind in STRATEGIES.items()]
    for one in kinds:
        one["required"] = ["kind"]
    kinds[0].pop("required")  # that of `train` where none is named
    tables = {name: _fields(kind) for name, kind in JOB_TABLES.items()}
    failures = _table({name: _parameter(one) for name, one in FAILURES.parameters.items()}, title="Failures")
    return {"strategy": {"oneOf": kinds}, **tables, "failures": {**failures, "minProperties": 1}}


def _stack() -> Schema:
    """A file of a software stack."""
    from simperf.memory import ALLOCATORS
    from simperf.training.stack import ServerTransport, Serving, StackPace
    from simperf.workload.layer_kernels import LayerKernels
    from simperf.workload.optimizers import IMPLEMENTATIONS, OPTIMIZERS

    text: Schema = {"type": "string"}
    properties = {"format": {"const": 1}, "kind": {"const": "stack"}, "title": text, "frontend": text}
    properties |= {
        "strategy": _job_tables()["strategy"],
        "transport": _fields(ServerTransport),
        "serving": _fields(Serving),
    }
    properties["kernels"] = _fields(LayerKernels)
    about = "the optimizer, or the implementation of the model's"
    properties["optimizer"] = {"enum": [*OPTIMIZERS, *IMPLEMENTATIONS], "description": about}
    properties["allocator"] = {"enum": list(ALLOCATORS), "description": "of GPUs' memory, for model-parallel"}
    properties["pace"] = {"type": "array", "items": _fields(StackPace)}
    properties["base"] = {"type": "string", "description": "a stack that this one is, but for what it gives"}
    properties["source"] = {"type": "object", "additionalProperties": text, "description": "of each value"}
    schema = _table(properties, required=["format", "kind"])
    return {**schema, "anyOf": [{"required": ["strategy", "source"]}, {"required": ["base"]}]}


def _fields(kind: Any, more: Mapping[str, Schema] = MappingProxyType({})) -> Schema:
    """The table of a dataclass, with those of the dataclasses in it."""
    from simperf.programs.parameters import field_types
    from simperf.programs.typed_tables import table_type

    properties: Schema = dict(more)
    for name, hint in field_types(kind).items():
        inner = table_type(hint)
        if inner is None:
            properties[name] = _parameter(Parameter.of_field(kind, name))
        else:
            table = _fields(inner)
            properties[name] = table if inner is hint else {"type": "array", "items": table, "maxItems": 1}
    return _table(properties, title=kind.__name__, required=list(more))


def _parameter(parameter: Parameter) -> Schema:
    schema = adapter(parameter).json_schema()
    written = schema.get("description", "")
    if parameter.doc and not written:
        schema["description"] = parameter.doc
    return schema


def _python() -> Schema:
    return {
        "type": "object",
        "title": "a program of your own",
        "required": ["python"],
        "properties": {"python": {"type": "string", "pattern": r"^.+:[A-Za-z_]\w*$", "examples": ["train.py:step"]}},
        "not": {"required": ["use"]},
    }


def _expect(*, measured: bool = False) -> Schema:
    value = {"type": ["string", "number"], "description": "with a unit, unless it is a plain number"}
    fields: Schema = dict.fromkeys(("value", "min", "max", "atol"), value)
    origin: Schema = {"kind": {"enum": list(EXPECTATION_KINDS)}, "source": {"type": "string", "minLength": 1}}
    fields |= {"rtol": {"type": "number", "minimum": 0, "exclusiveMaximum": 1}, "source": origin["source"]}
    fields |= {} if measured else origin
    number = {"anyOf": [value, _table(fields, minProperties=1)]}
    group = {"type": "object", "additionalProperties": number}
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "time": number,
            "floor": {"anyOf": [number, group]},
            "regime": {"type": "string"},
            "error": {"type": "string"},
            **dict.fromkeys(("metrics", "breakdown", "utilisation", "compare"), group),
            **({} if measured else origin),
        },
        "patternProperties": {r"^(metrics|breakdown|floor|utilisation)\..+$": number},
    }


def _layout_schema() -> Schema:
    """Of a layout's file, and of ``[layout]``."""
    return _of(Layout, order={"type": "string", "examples": ["-".join(Layout().order)]})


def _model_schema() -> Schema:
    """Of a model's file that says its dimensions."""
    return _of(Transformer)


def _model_table_schema() -> Schema:
    """Of ``[model]``: a name, a configuration, or dimensions."""
    text = {"type": "string", "minLength": 1}
    shared = {"format": {"const": FORMAT}}
    files = "of `simperf zoo list`, or a traced model's file"
    named = {**shared, "name": {**text, "description": files, "examples": list(zoo.names())[:3]}}
    config = {**text, "description": "config.json of Hugging Face, or its folder", "examples": ["config.json"]}
    named["sequence"] = {"type": "integer", "minimum": 1, "description": "of a model by its dimensions"}
    configured = {**shared, "config": config, "sequence": {"type": "integer", "minimum": 1}}
    return {"anyOf": [_table(named, required=["name"]), _table(configured, required=["config"]), _model_schema()]}


def _of(kind: type[DataclassInstance], **instead: Mapping[str, Any]) -> Schema:
    """Schema of the table of a dataclass."""
    docs, hints = parameter_docs(getdoc(kind) or ""), get_type_hints(kind)
    properties: Schema = {"format": {"const": FORMAT}}
    for one in fields(kind):
        found = dict(instead.get(one.name) or TypeAdapter(hints[one.name]).json_schema())
        found |= {"minimum": 1 if one.default in (MISSING, 1) else 0} if hints[one.name] is int else {}
        found |= {"default": one.default} if isinstance(one.default, bool | int | str) else {}
        properties[one.name] = {**found, "description": docs.get(one.name, "")}
    needed = [one.name for one in fields(kind) if one.default is MISSING]
    return _table(properties, **({"required": needed} if needed else {}))
