"""Traced models as files: JSON or TOML, compressed if the name ends with ``.gz``; and transformers by their dimensions.

A traced model is the same document in both. To keep it small, operands are given as a tensor's number alone where
the whole tensor is meant, and amounts that do not grow with the batch as one number.
"""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from simperf.errors import InputError, Problem
from simperf.files import TomlFile, read_toml, write_bytes
from simperf.workload.model import TracedModel
from simperf.workload.op import FAMILIES
from simperf.workload.optimizers import OptimizerSteps, UpdateKernel
from simperf.workload.traced import (
    ROLES,
    Affine,
    GradientOrder,
    InputShape,
    Operand,
    ParameterTensor,
    Storage,
    TracedOp,
)

__all__ = ["FORMAT", "built_from", "check_model_name", "document", "from_document", "read_model", "write_model"]

FORMAT = "simperf-model-1"
#: weights of a model; the largest that were trained have 1e12 to 1e13
_MOST_PARAMETERS = 1e15
_SUFFIXES = (".json", ".json.gz", ".toml")


def _short(amount: Affine) -> Any:
    return list(amount) if amount.slope else amount.constant


def _amount(value: Any) -> Affine:
    return Affine(value[0], value[1]) if value.__class__ is list else Affine(value, 0)


def document(model: TracedModel) -> dict[str, Any]:
    """The model as plain data, the content of its file."""
    kinds = list(dict.fromkeys((op.kind, op.family) for op in model.ops))
    number = {kind: i for i, kind in enumerate(kinds)}

    def operand(item: Operand) -> Any:
        whole = model.storages[model.tensors[item.tensor]].elements
        if item.elements == whole and item.passes == 1:
            return item.tensor
        return [item.tensor, _short(item.elements), item.passes]

    return {
        "format": FORMAT,
        "name": model.name,
        "title": model.title,
        "source": model.source,
        "sample": model.sample,
        "notes": list(model.notes),
        "traced": dict(model.traced),
        "forward": model.forward,
        "optimizer": {
            "name": model.optimizer.name,
            "states": model.optimizer.states,
            "temporaries": model.optimizer.temporaries,
            "kernels": [list(kernel if kernel.matrices else kernel[:4]) for kernel in model.optimizer.kernels],
            **({"looped": True} if model.optimizer.looped else {}),
        },
        "inputs": [{"shape": list(each.shape), "dtype": each.dtype} for each in model.inputs],
        "parameters": [[p.name, list(p.shape), p.storage] for p in model.parameters],
        "gradients": [list(order) for order in model.gradients],
        "storages": [
            [_short(s.elements), s.width, ROLES.index(s.role), s.born, s.dies, *([s.name] if s.name else [])]
            for s in model.storages
        ],
        "tensors": list(model.tensors),
        "kinds": [list(kind) for kind in kinds],
        "ops": [
            [
                op.name,
                number[op.kind, op.family],
                _short(op.flops),
                [operand(item) for item in op.reads],
                [operand(item) for item in op.writes],
                *([[_short(size) for size in op.gemm]] if op.gemm else []),
            ]
            for op in model.ops
        ],
    }


def from_document(data: dict[str, Any], *, file: str | TomlFile = "") -> TracedModel:
    """Build a model from the content of its file, and check it.

    Parameters
    ----------
    data : mapping
    file : str or TomlFile
        It, or its name, for messages.

    Raises
    ------
    InputError
        Not a model of this format, or one that contradicts itself.
    """
    from simperf.workload.model_schema import check_document

    place = file if isinstance(file, TomlFile) else TomlFile(file, {}, "")
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, dict) else type(data).__name__
        expected = f"format = {FORMAT!r}; `simperf trace` writes it"
        raise InputError(place.problem(("format",), "not a traced model", value=found, expected=expected))
    check_document(data, place)
    problems = _references(data, place)
    if problems:
        raise InputError(problems[:20])
    model = built_from(data)
    problems = [place.problem(key, text) for key, text in _faults(model)]
    if problems:
        raise InputError(problems[:20])
    return model


def _references(data: dict[str, Any], place: TomlFile) -> list[Problem]:
    """Rows that name a row which does not exist."""
    counts = {"storages": len(data["storages"]), "tensors": len(data["tensors"]), "kinds": len(data["kinds"])}
    found: list[tuple[tuple[str | int, ...], str]] = [
        (("tensors", index), f"there is no storage {storage}")
        for index, storage in enumerate(data["tensors"])
        if storage >= counts["storages"]
    ]
    found += [
        (("storages", index, 2), f"there is no role {row[2]}: 0 to {len(ROLES) - 1} are {', '.join(ROLES)}")
        for index, row in enumerate(data["storages"])
        if row[2] >= len(ROLES)
    ]
    for index, row in enumerate(data["ops"]):
        if row[1] >= counts["kinds"]:
            found.append((("ops", index, 1), f"{row[0]!r} has a kind that does not exist"))
        named = [item if isinstance(item, int) else item[0] for item in (*row[3], *row[4])]
        if any(tensor >= counts["tensors"] for tensor in named):
            found.append((("ops", index), f"{row[0]!r} names a tensor that does not exist"))
    return [place.problem(key, f"not a traced model: {text}") for key, text in found]


def built_from(data: dict[str, Any]) -> TracedModel:
    """The model of a file's content that has been checked already, such as that of a model that comes with simperf."""
    storages = tuple(
        Storage(_amount(row[0]), row[1], ROLES[row[2]], row[3], row[4], row[5] if len(row) > 5 else "")
        for row in data["storages"]
    )
    tensors = tuple(data["tensors"])
    whole = [Operand(i, storages[storage].elements) for i, storage in enumerate(tensors)]

    def operands(items: Any) -> tuple[Operand, ...]:
        return tuple(
            whole[item] if isinstance(item, int) else Operand(item[0], _amount(item[1]), item[2]) for item in items
        )

    kinds = [(str(kind), str(family)) for kind, family in data["kinds"]]
    ops = tuple(
        TracedOp(
            row[0],
            kinds[row[1]][0],
            kinds[row[1]][1],
            _amount(row[2]),
            operands(row[3]),
            operands(row[4]),
            tuple(_amount(size) for size in row[5]) if len(row) > 5 else (),
        )
        for row in data["ops"]
    )
    update = data["optimizer"]
    return TracedModel(
        name=data["name"],
        title=data["title"],
        source=data["source"],
        sample=data["sample"],
        inputs=tuple(InputShape(tuple(each["shape"]), each["dtype"]) for each in data["inputs"]),
        parameters=tuple(ParameterTensor(name, tuple(shape), storage) for name, shape, storage in data["parameters"]),
        storages=storages,
        tensors=tensors,
        ops=ops,
        forward=data["forward"],
        gradients=tuple(GradientOrder(*row) for row in data["gradients"]),
        optimizer=OptimizerSteps(
            update["name"],
            tuple(UpdateKernel(*row) for row in update["kernels"]),
            update["states"],
            update["temporaries"],
            bool(update.get("looped", False)),
        ),
        traced=dict(data["traced"]),
        notes=tuple(data["notes"]),
    )


def _faults(model: TracedModel) -> list[tuple[tuple[str | int, ...], str]]:
    """What cannot be: widths that no number has, families that nobody knows, rows that do not exist."""
    found: list[tuple[tuple[str | int, ...], str]] = []
    storages, tensors, count = len(model.storages), len(model.tensors), len(model.ops)
    if model.forward > count:
        found.append((("forward",), f"{model.forward} of {count} operations cannot be the forward pass"))
    for i, piece in enumerate(model.storages):
        if piece.width not in (0, 1, 2, 4, 8, 16):
            found.append((("storages", i), f"a width of {piece.width} B, which no number has"))
    for i, op in enumerate(model.ops):
        if op.family not in FAMILIES:
            found.append((("ops", i), f"no kernel family {op.family!r}; known: {', '.join(FAMILIES)}"))
        if len(op.gemm) not in (0, 4):
            found.append((("ops", i), f"the matrix product of {op.name!r} has {len(op.gemm)} sizes; 4 are expected"))
    for i, order in enumerate(model.gradients):
        if order.parameter >= len(model.parameters) or order.tensor >= tensors or order.after >= count:
            known = f"known: {len(model.parameters)} parameters, {tensors} tensors and {count} operations, from 0"
            found.append((("gradients", i), f"names a parameter, tensor or operation that does not exist; {known}"))
    for i, parameter in enumerate(model.parameters):
        if parameter.storage >= storages:
            found.append((("parameters", i), f"{parameter.name!r} lies in none of the {storages} storages"))
    if model.parameter_count > _MOST_PARAMETERS:
        found.append((("parameters",), f"{model.parameter_count:.3g} weights; at most {_MOST_PARAMETERS:g} are read"))
    return found


def _format(path: str) -> Literal["json", "json.gz", "toml"]:
    for suffix in _SUFFIXES:
        if path.lower().endswith(suffix):
            return suffix[1:]  # type: ignore[return-value]
    raise InputError(Problem("a model is a .json, .json.gz or .toml file", file=path, expected="model.json"))


def check_model_name(path: str | os.PathLike[str]) -> None:
    """Refuse, before any work is done, a name that a model cannot be written to.

    Raises
    ------
    InputError
        Neither .json, .json.gz nor .toml, a directory, or in a folder that does not exist.
    """
    target = Path(path)
    _format(os.fspath(path))
    if target.is_dir():
        raise InputError(Problem("this is a directory, a file is expected", file=str(path)))
    if not target.absolute().parent.is_dir():
        message = f"there is no folder {str(target.parent)!r}"
        raise InputError(Problem(message, file=str(path), expected="an existing folder"))


def write_model(model: TracedModel, path: str | os.PathLike[str]) -> None:
    """Write a model; the same model gives the same bytes.

    Raises
    ------
    InputError
        A name that is neither .json, .json.gz nor .toml, or a folder that cannot be written.
    """
    kind = _format(os.fspath(path))
    data = document(model)
    if kind == "toml":
        import tomli_w

        write_bytes(path, tomli_w.dumps(data).encode("utf-8"))
        return
    text = "{\n" + ",\n".join(f"{json.dumps(key)}:{_lines(value)}" for key, value in data.items()) + "\n}\n"
    raw = text.encode("utf-8")
    write_bytes(path, gzip.compress(raw, 9, mtime=0) if kind == "json.gz" else raw)


def _lines(value: Any) -> str:
    """Compact JSON, with one line a row in tables."""
    compact = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
    if isinstance(value, list) and value and isinstance(value[0], list):
        return "[\n" + ",\n".join(compact(row) for row in value) + "\n]"
    return compact(value)


def _by_dimensions(toml: TomlFile) -> TracedModel:
    """The model of a file that says its dimensions."""
    from simperf.workload.transformers.step import training_model
    from simperf.workload.transformers.transformer_file import parse_transformer

    model = parse_transformer(toml.data, toml)
    try:
        return training_model(model)
    except InputError as error:
        found = [
            replace(toml.problem((one.key,), one.message), value=one.value, expected=one.expected)
            for one in error.problems
        ]
        raise InputError(found) from None


def read_model(path: str | os.PathLike[str]) -> TracedModel:
    """Read a model.

    Raises
    ------
    InputError
        No such file, not JSON or TOML, or not a model; all that is wrong with it.
    """
    name = os.fspath(path)
    kind = _format(name)
    if kind == "toml":
        toml = read_toml(name)
        if isinstance(toml.data.get("format", 0), str):
            return from_document(toml.data, file=toml)
        return _by_dimensions(toml)
    from simperf.json_file import read_json

    file = read_json(name, what="not a traced model", expected="what `simperf trace` writes")
    return from_document(file.data, file=file)
