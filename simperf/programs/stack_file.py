"""Files of software stacks, shipped ones and people's own: ``stack = "byteps"``.

A stack that is another one but for some values names that as its ``base``, and gives what differs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from simperf.errors import InputError, Problem, UnknownNameError, nearest
from simperf.files import TomlFile, dotted, read_toml, refuse_format
from simperf.hardware.part_catalog import PartCatalog
from simperf.memory import ALLOCATORS
from simperf.programs.parameters import field_value
from simperf.programs.typed_tables import FieldValue, field_values
from simperf.training.stack import ServerTransport, Serving, Stack, StackOption, StackPace
from simperf.training.strategies import STRATEGIES, ModelParallel, Servers
from simperf.workload.layer_kernels import LayerKernels
from simperf.workload.optimizers import IMPLEMENTATIONS, OPTIMIZERS

__all__ = ["load_stack", "stack_path", "stacks"]

_FOLDER = Path(__file__).parent / "stacks"
_KEYS = (
    *("format", "kind", "title", "base", "frontend", "optimizer", "allocator"),
    *("strategy", "kernels", "transport", "serving", "pace", "source"),
)


def stacks() -> dict[str, Path]:
    """Files of the shipped stacks by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.toml"))}


def stack_path(name: str, folder: str | os.PathLike[str] = ".") -> Path:
    """File of a shipped stack, or one of people's own, relative to `folder`.

    Raises
    ------
    InputError
        Neither a name nor a path.
    UnknownNameError
        There is no shipped stack of this name.
    """
    if not isinstance(name, str):
        message = f"a stack is expected, not {type(name).__name__}"
        expected = 'its name, such as "byteps", or the path of its file'
        raise InputError(Problem(message, key="stack", value=repr(name), expected=expected))
    if name.endswith(".toml"):
        return Path(folder) / name
    if name not in stacks():
        raise UnknownNameError("stack", name, stacks())
    return stacks()[name]


def load_stack(name: str, folder: str | os.PathLike[str] = ".") -> Stack:
    """The stack of a name, or of a file.

    Parameters
    ----------
    name : str
        Of a shipped stack, or a path that ends in ``.toml``.
    folder : path
        Where such a path begins.

    Raises
    ------
    UnknownNameError
        There is no such stack.
    InputError
        All that is wrong with the file.

    Examples
    --------
    >>> load_stack("apex-ddp").strategy_with(overlap=False).bucket
    40000000.0
    """
    path = stack_path(name, folder)
    return _read(path) if name.endswith(".toml") else _shipped(path)


@cache
def _shipped(path: Path) -> Stack:
    """A shipped stack, whose file does not change; one of people's own is read again each time."""
    return _read(path)


def _read(path: Path, above: tuple[Path, ...] = ()) -> Stack:
    """The stack of a file; `above`: files whose base it is."""
    toml = read_toml(path)
    refuse_format(toml)
    problems = list(_problems_of_head(toml))
    data, base = toml.data, Stack()
    try:
        base = _base(toml, above)
    except InputError as error:
        problems += error.problems
    strategy = dict(data["strategy"]) if isinstance(data.get("strategy"), Mapping) else {}
    name = strategy.pop("kind", base.strategy)
    if name == "" and problems and "base" in data:  # whose strategy is not known
        list(field_values(LayerKernels, data.get("kernels", {}), toml, ("kernels",), problems))
        list(_allocator(toml, ModelParallel, problems) if "allocator" in data else ())
        raise InputError(problems)
    if not isinstance(name, str) or name not in STRATEGIES:
        message = (
            f"no such strategy{nearest(str(name), STRATEGIES)}" if name != "" else "the stack's strategy is missing"
        )
        expected = "one of " + ", ".join(STRATEGIES)
        problems.append(toml.problem(("strategy", "kind"), message, value=name, expected=expected))
        list(field_values(LayerKernels, data.get("kernels", {}), toml, ("kernels",), problems))
        raise InputError(problems)
    if base.strategy not in ("", name):
        message, expected = f"its base is of strategy {base.strategy}", f'"{base.strategy}", or another base'
        problems.append(toml.problem(("strategy", "kind"), message, value=name, expected=expected))
    found = list(field_values(STRATEGIES[name], strategy, toml, ("strategy",), problems))
    for section, kind in (("transport", ServerTransport), ("serving", Serving)):
        if section in data and STRATEGIES[name] is not Servers:
            problems.append(
                toml.problem(
                    (section,),
                    f"strategy {name} has no servers: it has no use for it",
                    expected=f'no [{section}], or kind = "servers" in [strategy]',
                )
            )
        elif section in data:
            found += field_values(kind, data[section], toml, (section,), problems)
    if "kernels" in data:
        found += field_values(LayerKernels, data["kernels"], toml, ("kernels",), problems)
    if "optimizer" in data:
        found += _optimizer(toml, STRATEGIES[name], problems)
    if "allocator" in data:
        found += _allocator(toml, STRATEGIES[name], problems)
    paces = _paces(toml, STRATEGIES[name], problems)
    sources = data.get("source", {})
    problems += _problems_of_sources(toml, found, sources if isinstance(sources, Mapping) else {})
    if problems:
        raise InputError(problems)
    own = {
        (one.kind, one.field): StackOption(
            one.kind, one.field, field_value(one.kind, one.field, one.value), sources[one.field]
        )
        for one in found
    }
    before = {(one.kind, one.field): one for one in base.options}
    problems += _problems_of_repeats(toml, found, [before[key] for key in own if before.get(key) == own[key]])
    if problems:
        raise InputError(problems)
    about = {"title": str(data.get("title", "")), "frontend": str(data.get("frontend", base.frontend))}
    source = str(sources["frontend"]) if "frontend" in sources else base.frontend_source
    try:
        options, owned = tuple({**before, **own}.values()), {(one.architecture, one.gpus) for one in paces}
        kept = (one for one in base.paces if (one.architecture, one.gpus) not in owned)
        return Stack.of(path.stem, name, options, **about, frontend_source=source, paces=(*kept, *paces))
    except InputError as error:
        places = {one.field: one.at for one in found}
        raise InputError([_placed(one, toml, places) for one in error.problems]) from None


def _base(toml: TomlFile, above: tuple[Path, ...]) -> Stack:
    """The stack that a file names as its base; one without options if it names none."""
    if "base" not in toml.data:
        return Stack()
    name, own = toml.data["base"], Path(toml.path)
    if not isinstance(name, str):
        message, expected = "the name or path of a stack is expected", 'such as "megatron-core"'
        raise InputError(toml.problem(("base",), message, value=name, expected=expected))
    try:
        path = stack_path(name, own.parent)
        if path.resolve() in {one.resolve() for one in (*above, own)}:
            message, expected = "a stack is no base of itself", "another stack"
            raise InputError(toml.problem(("base",), message, value=name, expected=expected))
        return _read(path, (*above, own))
    except UnknownNameError as error:
        raise InputError(toml.problem(("base",), str(error), value=name)) from None


def _problems_of_repeats(toml: TomlFile, found: list[FieldValue], repeated: list[StackOption]) -> Iterator[Problem]:
    """Values that the base has, from the same source."""
    same = {(one.kind, one.field) for one in repeated}
    for one in found:
        if (one.kind, one.field) in same:
            message = "has no effect: the base has it, from the same source"
            yield toml.problem(one.at, message, value=one.written, expected="what differs from the base")


def _placed(problem: Problem, toml: TomlFile, places: Mapping[str, tuple[str | int, ...]]) -> Problem:
    """A problem of an option where the file gives it."""
    at = places.get(problem.key, ())
    return replace(problem, file=toml.path, line=toml.line(at), key=dotted(at) if at else problem.key)


def _optimizer(toml: TomlFile, strategy: type[Any], problems: list[Problem]) -> Iterator[FieldValue]:
    """The optimizer that the file names, or its implementation."""
    given, at, known = toml.data["optimizer"], ("optimizer",), (*IMPLEMENTATIONS, *OPTIMIZERS)
    if strategy is Servers:
        problems.append(
            toml.problem(
                at, "strategy servers has no use for it", value=given, expected="no optimizer, or another strategy"
            )
        )
    elif not isinstance(given, str) or given not in known:
        message = f"no such optimizer{nearest(str(given), known)}"
        problems.append(toml.problem(at, message, value=given, expected="one of " + ", ".join(known)))
    else:
        yield FieldValue(Stack, "optimizer", given, given, at)


def _allocator(toml: TomlFile, strategy: type[Any], problems: list[Problem]) -> Iterator[FieldValue]:
    """The allocator that the file names."""
    given, at = toml.data["allocator"], ("allocator",)
    if strategy is not ModelParallel:
        message, expected = "reserved memory of divided models alone is reported", "no allocator, or model-parallel"
        problems.append(toml.problem(at, message, value=given, expected=expected))
    elif not isinstance(given, str) or given not in ALLOCATORS:
        message = f"no such allocator{nearest(str(given), ALLOCATORS)}"
        problems.append(toml.problem(at, message, value=given, expected="one of " + ", ".join(ALLOCATORS)))
    else:
        yield FieldValue(Stack, "allocator", given, given, at)


def _paces(toml: TomlFile, strategy: type[Any], problems: list[Problem]) -> list[StackPace]:
    """Paces of kernels that the file gives, one a generation of GPUs."""
    given, found = toml.data.get("pace", []), list[StackPace]()
    if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in given):
        problems.append(toml.problem(("pace",), "a list of tables is expected", expected="[[pace]]"))
        return []
    if given and strategy is not ModelParallel:
        message, expected = "only divided models are simulated at it", "no [[pace]], or model-parallel"
        problems.append(toml.problem(("pace",), message, expected=expected))
    catalog = PartCatalog.beside(toml.path)
    known = catalog.names("architecture") if given else ()
    for index, table in enumerate(given):
        at: tuple[str | int, ...] = ("pace", index)
        before = len(problems)
        values = {one.field: one.value for one in field_values(StackPace, table, toml, at, problems)}
        name = table.get("architecture", "")
        if len(problems) > before:
            continue
        if name not in known:
            message = f"no such architecture{nearest(str(name), known)}"
            problems.append(toml.problem((*at, "architecture"), message, value=name, expected=", ".join(known)))
        elif wrong := _gpus_problem(table.get("gpus", ()), name, found, catalog):
            key, message, value, expected = wrong
            problems.append(toml.problem((*at, key), message, value=value, expected=expected))
        elif not table.get("source"):
            problems.append(toml.problem(at, "a value needs a source", expected='source = "..."'))
        else:
            try:
                found.append(StackPace(**{key: field_value(StackPace, key, value) for key, value in values.items()}))
            except InputError as error:
                problems += [_placed(one, toml, {"share": (*at, "share")}) for one in error.problems]
    return found


def _gpus_problem(
    gpus: Sequence[str], architecture: str, found: Sequence[StackPace], catalog: PartCatalog
) -> tuple[str, str, str, str] | None:
    """Key, message, value and what is expected, where a pace's GPUs have one already or are of no such architecture."""
    own, once = [one for one in found if one.architecture == architecture], "one [[pace]] a GPU, and one for all others"
    if not gpus and any(not one.gpus for one in own):
        return "architecture", "stands here twice", architecture, once
    for gpu in gpus:
        if any(gpu in one.gpus for one in own):
            return "gpus", "stands here twice", gpu, once
        if gpu not in catalog.names("gpu") or catalog.gpu(gpu).architecture != architecture:
            message = f"no such GPU of {architecture}{nearest(gpu, catalog.names('gpu'))}"
            return "gpus", message, gpu, "parts of the architecture"
    return None


def _problems_of_head(toml: TomlFile) -> Iterator[Problem]:
    if toml.data.get("kind") != "stack":
        yield toml.problem(("kind",), "this is no file of a stack", value=toml.data.get("kind", ""), expected='"stack"')
    for key in toml.data:
        if key not in _KEYS:
            yield toml.problem((key,), f"unknown key{nearest(key, _KEYS)}")
    for key in ("title", "frontend"):
        if not isinstance(toml.data.get(key, ""), str):
            yield toml.problem((key,), "a text in quotes is expected", value=toml.data[key])


def _problems_of_sources(toml: TomlFile, found: list[FieldValue], sources: Mapping[str, Any]) -> Iterator[Problem]:
    """Every value has a source, and every source a value."""
    given = {one.field: one.at for one in found} | ({"frontend": ("frontend",)} if "frontend" in toml.data else {})
    for name, at in given.items():
        if not isinstance(sources.get(name), str) or not sources[name]:
            yield toml.problem(at, "a value needs a source", expected=f'[source] {name} = "..."')
    for name in sources:
        if name not in given:
            yield toml.problem(("source", name), f"the source of nothing{nearest(name, given)}")
