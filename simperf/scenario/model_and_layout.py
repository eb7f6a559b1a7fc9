"""``[model]`` and ``[layout]`` of a scenario: what is trained and over which ranks, as parameters of its program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os.path import exists, isfile
from pathlib import Path
from typing import Any

from simperf.errors import InputError, Problem, UnknownNameError
from simperf.files import TomlFile
from simperf.formats import FORMAT, Key
from simperf.hardware import Machine
from simperf.layout import DIMENSIONS, Layout
from simperf.layout.layout import DIMENSION_WORDS
from simperf.layout.layout_file import parse_layout
from simperf.programs import ProgramSpec
from simperf.workload.transformers import Transformer, read_config
from simperf.workload.transformers.transformer_file import parse_transformer, transformer_table

__all__ = ["add_layout", "add_model", "name_model", "read_model_table"]

#: parameters of a program that plays the forward pass of a decoder -> fields of a transformer
_DECODER = {
    "layers": "layers",
    "width": "hidden",
    "heads": "heads",
    "kv_heads": "kv_heads",
    "hidden": "inner_width",
    "vocabulary": "vocabulary",
    "sequence": "sequence",
}
#: dimensions without which there is no transformer
_NEEDED = ("layers", "hidden", "heads", "vocabulary", "sequence")
_MODEL = 'name = "resnet50" (see `simperf zoo list`), config = "config.json", or layers, hidden, heads, ...'


def add_model(
    given: Any,
    spec: ProgramSpec,
    table: dict[str, Any],
    toml: TomlFile,
    folder: Path,
    problems: list[Problem],
    *,
    strategy: str = "",
) -> dict[str, Any]:
    """Take ``[model]`` into the ``[program]`` table; what cannot stand in a table is returned.

    Parameters
    ----------
    given : object
        The table ``[model]``.
    spec : ProgramSpec
    table : dict
        The program's own keys, which are added to.
    toml : TomlFile
    folder : Path
        Folder of the file, where models of its own are looked up.
    problems : list of Problem
        What is wrong is added.
    strategy : str
        Of the job, by the name that files give it.

    Returns
    -------
    dict
        Parameters that no table of a file can hold.
    """
    try:
        divided = strategy == "model-parallel"
        model = read_model_table(given, toml, folder, divided=divided)
        if "model" in spec.parameters:
            return _trained(model, table, toml, divided=divided)
        if all(key in spec.parameters for key in _DECODER):
            _forward(model, spec, table, toml)
            return {}
        expected = "a program with a model, such as train, parameter-server or decoder-forward"
        problems.append(toml.problem(("model",), f"the program {spec.name!r} has no model", expected=expected))
    except InputError as error:
        problems += error.problems
    return {}


def name_model(table: dict[str, Any], toml: TomlFile, folder: Path, problems: list[Problem]) -> dict[str, Any]:
    """Take the transformer out of the ``[program]`` table that its key ``model`` names, for a layout to divide.

    The parameters are those of `add_model`.

    Returns
    -------
    dict
        Parameters that no table of a file can hold.
    """
    key, name = ("program", "model"), table["model"]
    if not isinstance(name, str) or not name:
        return {}
    try:
        model = _named(name, toml, folder, divided=True, key=key)
    except InputError as error:
        problems += error.problems
        return {}
    if not isinstance(model, Transformer):
        problems.append(_undivided(model, toml, key))
        return {}
    del table["model"]
    return {"model": model}


def read_model_table(given: Any, toml: TomlFile, folder: Path, *, divided: bool = False) -> str | Transformer:
    """The model that ``[model]`` names or describes: a name of the zoo, a file of a traced model, or dimensions.

    Parameters
    ----------
    given : object
        The table ``[model]``.
    toml : TomlFile
    folder : Path
        Folder of the file, where models of its own are looked up.
    divided : bool
        Whether a layout divides it: a name that a traced model and dimensions have is that of the dimensions.

    Raises
    ------
    InputError
        All that is wrong with the table.
    """
    at = ("model",)
    data = dict(given) if isinstance(given, Mapping) else {}
    chosen = [key for key in ("name", "config") if key in data]
    dimensions = [key for key in data if key not in ("format", "name", "config", "sequence")]
    if not data or (not chosen and not dimensions):
        raise InputError(toml.problem(at, "no model is named or described", expected=_MODEL))
    for key in chosen:
        if not isinstance(data[key], str) or not data[key]:
            raise InputError(toml.problem((*at, key), "a text in quotes is expected", value=data[key], expected=_MODEL))
    if "config" in data:
        if dimensions or "name" in data:
            odd = dimensions[0] if dimensions else "name"
            message = "the configuration says it; sequence alone may be given beside"
            raise InputError(
                toml.problem((*at, odd), message, value=data[odd], expected="config alone, or beside sequence")
            )
        return _of_config(data, toml, folder)
    if dimensions:
        _refuse_half_of_a_model(data, toml, folder, dimensions[0])
        return parse_transformer(data, toml, at)
    if data.get("format", FORMAT) != FORMAT:
        data.pop("name")
        parse_transformer(data, toml, at)  # says what is wrong with the rest
    found = _named(data["name"], toml, folder, divided=divided)
    if "sequence" not in data:
        return found
    if not isinstance(found, Transformer):
        message, expected = "only a transformer by its dimensions has another length", "name alone"
        raise InputError(toml.problem((*at, "sequence"), message, value=data["sequence"], expected=expected))
    return parse_transformer({**transformer_table(found), **data}, toml, at)


def _refuse_half_of_a_model(data: Mapping[str, Any], toml: TomlFile, folder: Path, first: str) -> None:
    """Refuse some dimensions beside the name of a model that has its own: the name would be a label."""
    if all(key in data for key in _NEEDED) or "name" not in data:
        return
    try:
        _named(data["name"], toml, folder)
    except InputError:
        return
    message = f"{data['name']} has its own dimensions; a model of your own needs {', '.join(_NEEDED)}"
    expected = "the name alone, or beside sequence; or all dimensions"
    raise InputError(toml.problem(("model", first), message, value=data[first], expected=expected))


def _of_config(data: Mapping[str, Any], toml: TomlFile, folder: Path) -> Transformer:
    sequence, path = data.get("sequence", 0), folder / data["config"]
    problems = []
    if isinstance(sequence, bool) or not isinstance(sequence, int) or sequence < 0:
        problems.append(toml.problem(("model", "sequence"), "a whole number, 1 or more, is expected", value=sequence))
    if not exists(path):
        expected = "the path of a config.json, or of its folder, relative to this file"
        problems.append(toml.problem(("model", "config"), "no such file", value=data["config"], expected=expected))
    if problems:
        raise InputError(problems)
    return read_config(path, sequence=sequence)


def _named(
    name: str, toml: TomlFile, folder: Path, *, divided: bool = False, key: Key = ("model", "name")
) -> str | Transformer:
    """A name of the zoo, or a file beside the scenario: of a traced model, or of dimensions."""
    from simperf.files import read_toml
    from simperf.workload.transformers.shipped import shipped_transformers

    own = folder / name
    path = str(own) if isfile(own) else name
    if path.endswith(".toml"):
        found = read_toml(path)
        if not isinstance(found.data.get("format"), str):
            return parse_transformer(found.data, found)
        return path
    if path.endswith((".json", ".json.gz")):
        return path
    from simperf.workload import zoo

    shipped = shipped_transformers()
    if name in zoo.names() and not (divided and name in shipped):
        return name
    if name not in shipped:
        error = UnknownNameError("model", name, (*zoo.names(), *shipped))
        raise InputError(toml.problem(key, str(error), expected=_MODEL))
    return shipped[name]


def _undivided(name: str, toml: TomlFile, key: Key) -> Problem:
    """A traced model where a layout divides it."""
    message = "a layout divides a transformer by its dimensions, and this is a traced model"
    expected = "a transformer of `simperf zoo list`, such as llama3-8b, or layers, hidden, heads, ... in [model]"
    return toml.problem(key, message, value=name, expected=expected)


def _trained(model: str | Transformer, table: dict[str, Any], toml: TomlFile, *, divided: bool) -> dict[str, Any]:
    if "model" in table:
        message = "[model] says which model it is"
        raise InputError(toml.problem(("program", "model"), message, value=table["model"], expected="one of the two"))
    if divided and not isinstance(model, Transformer):
        raise InputError(_undivided(model, toml, ("model", "name")))
    if isinstance(model, Transformer):
        from simperf.workload.transformers.step import unknown_kernels

        problems = [
            replace(toml.problem(("model", one.key), one.message), value=one.value, expected=one.expected)
            for one in (() if divided else unknown_kernels(model))
        ]
        if problems:
            raise InputError(problems)
        return {"model": model}
    table["model"] = model
    return {}


def _forward(model: str | Transformer, spec: ProgramSpec, table: dict[str, Any], toml: TomlFile) -> None:
    """Take a transformer into a program that simulates the forward pass of a decoder."""
    if isinstance(model, str):
        message = f"the program {spec.name!r} simulates a transformer by its dimensions"
        raise InputError(toml.problem(("model", "name"), message, value=model, expected="layers, hidden, heads, ..."))
    plain = Transformer(layers=1, hidden=1, heads=1, vocabulary=1, sequence=1)
    unplayed = (
        "activation",
        "norm",
        "positions",
        "tied",
        "bias",
        "qkv_bias",
        "norm_bias",
        "qk_norm",
        "embed_norm",
        "sinks",
        "parallel_block",
        "window",
        "kv_rank",
        "dropout",
        "experts",
        "mtp",
        "head_dim",
    )
    for key in unplayed:
        value, usual = getattr(model, key), getattr(plain, key)
        if value != usual and not (key == "head_dim" and model.query_width == model.hidden):
            message = f"the program {spec.name!r} simulates no such model"
            raise InputError(toml.problem(("model", key), message, value=value, expected=str(usual).lower()))
    for key, field in _DECODER.items():
        if key in table:
            message = "[model] says it"
            raise InputError(toml.problem(("program", key), message, value=table[key], expected="one of the two"))
        table[key] = getattr(model, field) or model.heads


def add_layout(
    given: Any,
    spec: ProgramSpec,
    table: dict[str, Any],
    toml: TomlFile,
    machine: Machine | None,
    problems: list[Problem],
    *,
    strategy: str = "",
) -> dict[str, Any]:
    """Take ``[layout]`` into the ``[program]`` table; what cannot stand in a table is returned.

    Parameters
    ----------
    given : object
        The table ``[layout]``.
    spec : ProgramSpec
    table : dict
        The program's own keys, which are added to.
    toml : TomlFile
    machine : Machine or None
        Must have as many devices as the layout has ranks.
    problems : list of Problem
        What is wrong is added.
    strategy : str
        Of the job, by the name that files give it.

    Returns
    -------
    dict
        Parameters that no table of a file can hold.
    """
    at = ("layout",)
    if not isinstance(given, Mapping):
        return {}
    try:
        layout = parse_layout(given, toml, at)
    except InputError as error:
        problems += error.problems
        return {}
    if "gpus" not in spec.parameters:
        expected = "a program that trains on several GPUs, such as train"
        problems.append(toml.problem(at, f"the program {spec.name!r} has no layout", expected=expected))
        return {}
    divided = strategy == "model-parallel"
    problems += [] if divided else _unplayed(layout, toml)
    for key in ("gpus", "devices"):
        if key in table:
            message = "[layout] says how many devices take part"
            problems.append(toml.problem(("program", key), message, value=table[key], expected="one of the two"))
    there = len(machine.workers) if machine is not None else layout.ranks
    if divided:
        if layout.ranks > there:
            message = f"the layout has {layout.ranks} ranks, and the machine has {there} devices"
            problems.append(toml.problem(at, message, value=str(layout), expected=layout.fewer(there)))
        return {"layout": layout}
    if layout.replicated and layout.dp > there:
        message = f"the layout has {layout.dp} ranks, and the machine has {there} devices"
        problems.append(toml.problem((*at, "dp"), message, value=layout.dp, expected=f"at most {there}"))
    if layout.replicated:
        table["gpus"] = layout.dp
    return {}


def _unplayed(layout: Layout, toml: TomlFile) -> list[Problem]:
    """What a strategy that gives every device the whole model has no use for."""
    found = [
        toml.problem(
            ("layout", key),
            f"{DIMENSION_WORDS[key]} parallelism is of strategy model-parallel",
            value=size,
            expected=f'{key} = 1, or strategy = "model-parallel"',
        )
        for key in ("tp", "pp", "cp", "ep")
        if (size := getattr(layout, key)) > 1
    ]
    if layout.sharding != "none":
        message = "sharded data parallelism is of strategy model-parallel"
        found.append(toml.problem(("layout", "sharding"), message, value=layout.sharding, expected="none"))
    if layout.order != DIMENSIONS:
        message = "has no effect where data parallelism is the only dimension"
        expected = "no order, or a model that is divided"
        found.append(toml.problem(("layout", "order"), message, value="-".join(layout.order), expected=expected))
    return found
