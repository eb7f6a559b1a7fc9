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

__all__ = ["FORMAT", "check_name", "document", "from_document", "read_model", "write_model"]

FORMAT = "simperf-model-1"
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
            "kernels": [list(kernel) for kernel in model.optimizer.kernels],
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


def from_document(data: dict[str, Any], *, file: str = "") -> TracedModel:
    """Build a model from the content of its file, and check it.

    Raises
    ------
    InputError
        Not a model of this format, or one that contradicts itself.
    """
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = repr(data.get("format")) if isinstance(data, dict) else type(data).__name__
        expected = f"format = {FORMAT!r}; `simperf trace` writes it"
        raise InputError(Problem("not a traced model", file=file, key="format", value=found, expected=expected))
    try:
        model = _build(data)
    except KeyError as error:
        raise InputError(Problem("is missing", file=file, key=str(error).strip("'\""))) from None
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise InputError(Problem(f"not a traced model: {error}", file=file)) from None
    problems = [Problem(text, file=file, key=key) for key, text in _faults(model)]
    if problems:
        raise InputError(problems[:20])
    return model


def _build(data: dict[str, Any]) -> TracedModel:
    storages = tuple(
        Storage(_amount(row[0]), row[1], ROLES[row[2]], row[3], row[4], row[5] if len(row) > 5 else "")
        for row in data["storages"]
    )
    tensors = tuple(data["tensors"])
    for storage in tensors:
        if not 0 <= storage < len(storages):
            raise ValueError(f"there is no storage {storage}")
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
        ),
        traced=dict(data["traced"]),
        notes=tuple(data["notes"]),
    )


def _faults(model: TracedModel) -> list[tuple[str, str]]:
    """What cannot be: numbers out of range, negative amounts, families that nobody knows."""
    found: list[tuple[str, str]] = []
    storages, tensors, count = len(model.storages), len(model.tensors), len(model.ops)
    if not 0 <= model.forward <= count:
        found.append(("forward", f"{model.forward} of {count} operations cannot be the forward pass"))
    for i, piece in enumerate(model.storages):
        if min(piece.elements) < 0 or piece.width not in (0, 1, 2, 4, 8, 16):
            found.append((f"storages[{i}]", "a negative size, or a width that no number has"))
    for i, op in enumerate(model.ops):
        if op.family not in FAMILIES:
            found.append((f"ops[{i}]", f"no kernel family {op.family!r}; known: {', '.join(FAMILIES)}"))
        if min(op.flops) < 0 or any(min(o.elements) < 0 or o.passes < 0 for o in (*op.reads, *op.writes)):
            found.append((f"ops[{i}]", f"a negative amount in {op.name!r}"))
        if any(not 0 <= o.tensor < tensors for o in (*op.reads, *op.writes)):
            found.append((f"ops[{i}]", f"{op.name!r} names a tensor that does not exist"))
        if len(op.gemm) not in (0, 4):
            found.append((f"ops[{i}]", f"the matrix product of {op.name!r} has {len(op.gemm)} sizes; 4 are expected"))
    for i, order in enumerate(model.gradients):
        inside = 0 <= order.parameter < len(model.parameters) and 0 <= order.tensor < tensors
        if not inside or not 0 <= order.after < count:
            found.append((f"gradients[{i}]", "names a parameter, tensor or operation that does not exist"))
    for i, parameter in enumerate(model.parameters):
        if not 0 <= parameter.storage < storages:
            found.append((f"parameters[{i}]", f"{parameter.name!r} lies in a storage that does not exist"))
    return found


def _format(path: str) -> Literal["json", "json.gz", "toml"]:
    for suffix in _SUFFIXES:
        if path.lower().endswith(suffix):
            return suffix[1:]  # type: ignore[return-value]
    raise InputError(Problem("a model is a .json, .json.gz or .toml file", file=path, expected="model.json"))


def check_name(path: str | os.PathLike[str]) -> None:
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
        raise InputError(Problem(f"there is no folder {str(target.parent)!r}", file=str(path)))


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


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no amount")


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
            return from_document(toml.data, file=name)
        return _by_dimensions(toml)
    try:
        raw = Path(name).read_bytes()
        text = gzip.decompress(raw) if kind == "json.gz" else raw
        return from_document(json.loads(text, parse_constant=_no_number), file=name)
    except FileNotFoundError:
        raise InputError(Problem("no such file", file=name)) from None
    except json.JSONDecodeError as error:
        raise InputError(Problem(f"not valid JSON: {error.msg}", file=name, line=error.lineno)) from None
    except (gzip.BadGzipFile, EOFError, UnicodeDecodeError, ValueError) as error:
        raise InputError(Problem(f"not a compressed JSON file: {error}", file=name)) from None
    except OSError as error:
        raise InputError(Problem(f"cannot be read: {error.strerror}", file=name)) from None
