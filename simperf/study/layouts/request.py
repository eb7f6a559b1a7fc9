"""Request for a search of layouts: a model, the machines that it may run on, and the layouts that are tried."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os.path import isdir
from pathlib import Path
from typing import Any, cast

from simperf.errors import InputError, Problem, UnknownNameError, nearest
from simperf.files import TomlFile, read_toml
from simperf.hardware import Catalog, Machine
from simperf.hardware.processors import GpuPart
from simperf.hardware.server_fabric import fabric_of
from simperf.layout import SHARDINGS
from simperf.scenario.model_and_layout import read_model_table
from simperf.schedules.registry import SCHEDULES
from simperf.study.layouts.axes import LayoutAxes
from simperf.study.planning.prices import other_price, own_prices
from simperf.study.planning.reader import RequestTable
from simperf.study.planning.request import PlanFailures, read_failures
from simperf.training.strategies import GRADIENT_BUCKET
from simperf.workload.mixed import TRAINING_PRECISIONS
from simperf.workload.transformers import Transformer
from simperf.workload.transformers.flops import RECOMPUTATIONS
from simperf.workload.transformers.transformer_file import transformer_table

__all__ = ["OF_SCENARIO", "STACK", "TABLES", "LayoutRequest", "TrainingMachine", "load_layouts", "make_layouts"]

#: tables of a file, with their keys; those of a scenario have the keys of a scenario
TABLES: Mapping[str, tuple[str, ...]] = {
    "plan": ("title", "tokens", "deadline", "budget", "force"),
    "layouts": (
        "model", "on", "gpus", "batch", "sequence", "folder", "top", "within", "time",
        "tp", "cp", "pp", "ep", "microbatch", "chunks", "sharding", "schedule", "recompute", "precision",
    ),
    "prices": ("own",),
    "failures": ("node_mtbf", "checkpoint", "restart", "repair", "interval", "runs"),
}  # fmt: skip
#: tables of a scenario that all layouts have alike
OF_SCENARIO = ("model", "program", "frontend", "cost", "calibration")
#: keys of ``[program]`` that the search sets
_SEARCHED = ("microbatch", "schedule", "chunks", "recompute", "precision", "stage_layers", "batch", "batch_per_gpu")
#: keys of ``[program]`` that make steps unequal, so that no bound holds
_UNEQUAL = (
    "jitter", "cv", "variation", "stragglers", "straggler_slowdown", "kernel_deviation", "launch_deviation",
    "interrupted_every", "interrupted_for", "noise_draws", "slow_link", "slow_share", "slow_from", "slow_until",
    "speeds", "total", "gpus", "devices", "alone",
)  # fmt: skip
_MOST_GPUS, _MOST_BATCH, _MOST_SIZE = 1_000_000, 1_000_000_000, 1_000_000
#: stack where none is named
STACK = "megatron-core"


@dataclass(frozen=True, slots=True)
class TrainingMachine:
    """A machine, and how many of its GPUs train.

    Parameters
    ----------
    name : str
        Of the server or cluster.
    gpus : int
    servers : int
        Servers that have these GPUs.
    table : mapping
        The scenario's ``[machine]``.
    domain : int
        GPUs of a server, which tensor parallelism stays within.
    server : str
        Name of a server.
    price : float or None
        Of all servers [USD/h]; None where no price is known.
    price_source : str
    other_price : str
        A price of another kind, where there is none.
    """

    name: str
    gpus: int
    servers: int
    table: Mapping[str, Any]
    domain: int
    server: str
    price: float | None = None
    price_source: str = ""
    other_price: str = ""


@dataclass(frozen=True, slots=True)
class LayoutRequest:
    """A search of layouts, read and checked.

    Parameters
    ----------
    title : str
    model : Transformer
    name : str
        The model's.
    machines : tuple of TrainingMachine
    axes : LayoutAxes
    batch : int
        Samples of a step on all GPUs together.
    assumed : tuple of str
        What was not given, in words.
    tokens : float
        To be trained in all; 0 where the time of a step is all that is asked for.
    deadline, budget : float
        [s] and [USD]; infinite if there is none.
    top : int
        How many of the fastest layouts of each machine are found.
    within : float
        By how much a layout that is not found may be faster than the fastest that is [1].
    limit : float
        Time after which no other simulation is begun [s].
    base : mapping
        Tables of a scenario that all layouts have.
    failures : PlanFailures or None
        On the way.
    toml : TomlFile
    force : bool
        Try layouts however many they are.
    """

    title: str
    model: Transformer
    name: str
    machines: tuple[TrainingMachine, ...]
    axes: LayoutAxes
    batch: int
    assumed: tuple[str, ...]
    tokens: float = 0.0
    deadline: float = math.inf
    budget: float = math.inf
    top: int = 1
    within: float = 0.0
    limit: float = math.inf
    base: Mapping[str, Any] = field(default_factory=dict)
    failures: PlanFailures | None = None
    toml: TomlFile = field(default_factory=lambda: TomlFile("", {}, ""))
    force: bool = False

    @property
    def folder(self) -> str:
        """Folder that paths of the file are relative to."""
        return self.toml.folder

    @property
    def steps(self) -> float:
        """Steps that train all tokens."""
        return math.ceil(self.tokens / (self.batch * self.model.sequence))


def load_layouts(path: str | os.PathLike[str]) -> LayoutRequest:
    """Read the file of a search.

    Raises
    ------
    InputError
        All that is wrong with it.
    """
    toml = read_toml(path)
    if "layouts" not in toml.data:
        raise InputError(toml.problem((), "no layouts are asked for", expected="a table [layouts]"))
    return _read(toml)


def make_layouts(data: Mapping[str, Any]) -> LayoutRequest:
    """A search of plain data, which has the tables and keys of a file.

    Raises
    ------
    InputError
        All that is wrong with it.

    Examples
    --------
    >>> asked = make_layouts({"layouts": {"model": "llama3-8b", "on": "dgx-h100", "batch": 64}})
    >>> asked.machines[0].gpus, asked.model.layers
    (8, 32)
    """
    return _read(TomlFile("", dict(data), ""))


def _read(toml: TomlFile) -> LayoutRequest:
    problems: list[Problem] = []
    for key in toml.data:
        if key not in (*TABLES, *OF_SCENARIO, "format"):
            known = (*TABLES, *OF_SCENARIO)
            problems.append(toml.problem((key,), f"unknown table{nearest(key, known)}"))
    head, table, prices, failing = (RequestTable(toml, name, keys, problems) for name, keys in TABLES.items())
    folder = Path(toml.folder)
    base = _base(toml, problems)
    assumed: list[str] = []
    name, model = _model(table, base, toml, folder, assumed)
    catalog = _catalog(table, folder)
    machines = _machines(table, prices, catalog, problems)
    axes = _axes(table)
    batch = table.count("batch")
    if batch > _MOST_BATCH:
        table.wrong(("batch",), f"a batch of at most {_MOST_BATCH:,} samples is expected", value=batch)
    if not batch and machines:
        batch = max(one.gpus for one in machines)
        assumed.append(f"a batch of {batch} samples, one for each GPU")
    if "stack" not in base.get("program", {}):
        assumed.append(f"the stack {STACK}")
    if "zero-2" in axes.sharding and "gradient_bucket" not in base.get("program", {}):
        assumed.append(f"gradients in buckets of {GRADIENT_BUCKET} with zero-2")
    deadline, budget = head.quantity("deadline", "s", math.inf), head.quantity("budget", "USD", math.inf)
    tokens, force = head.number("tokens"), head.flag("force")
    top, within = table.count("top", 1), table.quantity("within", "1", zero=True)
    if within > 1:
        expected = 'at most 1, such as "2 %"'
        table.wrong(
            ("within",), "a share of the fastest step is expected", value=table.data["within"], expected=expected
        )
    limit = table.quantity("time", "s", math.inf)
    for key in ("deadline", "budget"):
        if key in head and not tokens:
            head.wrong((key,), "needs a number of tokens that are trained", expected="tokens = 1e12")
    for one in machines if budget < math.inf else ():
        if one.price is None:
            expected = f'[prices] own = {{ {one.server} = "10 USD/h" }}'
            why = f"there is no price for {one.name!r}, which the budget needs"
            prices.wrong(("own",), f"{why}; {one.other_price}" if one.other_price else why, expected=expected)
    failures = read_failures(failing)
    if failures is not None and not tokens:
        failing.wrong((), "they need a number of tokens that are trained", expected="[plan] tokens = 1e12")
    if problems:
        raise InputError(problems)
    assert model is not None
    return LayoutRequest(
        head.text("title") or f"Layouts of {name}",
        model,
        name,
        tuple(machines),
        axes,
        batch,
        tuple(assumed),
        tokens,
        deadline,
        budget,
        top,
        within,
        limit,
        {**base, "model": transformer_table(model)},
        failures,
        toml,
        force,
    )


def _base(toml: TomlFile, problems: list[Problem]) -> dict[str, Any]:
    """Tables of a scenario that all layouts have."""
    found: dict[str, Any] = {}
    for key in OF_SCENARIO:
        given = toml.data.get(key, {})
        if not isinstance(given, Mapping):
            problems.append(toml.problem((key,), f"a table [{key}] is expected", value=given))
            continue
        if given:
            found[key] = dict(given)
    program = found.get("program", {})
    for key in program:
        if key in _SEARCHED:
            expected = f"[layouts] {key} = ..." if key not in ("stage_layers", "batch_per_gpu") else "no such key"
            problems.append(toml.problem(("program", key), "the search sets it", value=program[key], expected=expected))
        if key in _UNEQUAL:
            message = "layouts are searched by steps in which nothing varies, on all GPUs alike"
            problems.append(toml.problem(("program", key), message, value=program[key], expected="no such key"))
    for key, only in (("use", "train"), ("strategy", "model-parallel")):
        if program.get(key, only) != only:
            message = "layouts divide a model that is trained"
            problems.append(toml.problem(("program", key), message, value=program[key], expected=f'"{only}"'))
    return found


def _model(
    table: RequestTable, base: dict[str, Any], toml: TomlFile, folder: Path, assumed: list[str]
) -> tuple[str, Transformer | None]:
    """The model by its dimensions, and its name; a length of sequences that is not given is added to `assumed`."""
    given = base.pop("model", {})
    name = table.text("model")
    if bool(given) == bool(name):
        message = "one of the two says which model it is" if given else "no model is given"
        table.wrong(("model",), message, value=name, expected='model = "llama3-70b", or a table [model]')
        return name, None
    data = {**given} if given else {"config" if Path(name).name.endswith(".json") else "name": name}
    if "sequence" in table:
        data["sequence"] = table.count("sequence") or 1  # one that is wrong is told by its key alone
    try:
        found = read_model_table(data, toml, folder, divided=True)
    except InputError as error:
        at = ("layouts", "model")
        for one in error.problems:
            place = toml.problem(at, one.message, expected=one.expected) if name else one
            table.problems.append(place)
        return name, None
    if not isinstance(found, Transformer):
        expected = "a transformer of `simperf zoo list`, such as llama3-70b, or its dimensions"
        table.wrong(("model",), "a layout divides a transformer by its dimensions", value=name, expected=expected)
        return name, None
    if "sequence" not in data:
        told = f"sequences of {found.sequence:,} tokens, as the model's file has them"
        assumed.append(f"{told} (--sequence N, or layouts.sequence in a file, gives others)")
    return name or str(data.get("name", "a model of your own")), found


def _catalog(table: RequestTable, folder: Path) -> Catalog:
    name = table.text("folder")
    if name and not isdir(folder / name):
        table.wrong(("folder",), "no such folder", value=name, expected="a folder with parts of your own")
        return Catalog.load()
    try:
        return Catalog.load([folder / name] if name else [])
    except InputError as error:
        table.problems += error.problems
        return Catalog.load()


def _machines(
    table: RequestTable, prices: RequestTable, catalog: Catalog, problems: list[Problem]
) -> list[TrainingMachine]:
    """Each machine with each number of its GPUs."""
    names, counts = table.texts("on"), table.counts("gpus", most=_MOST_GPUS)
    if not names:
        table.wrong(("on",), "no machine is given", expected='on = "dgx-h100-x128", of `simperf catalog list cluster`')
    machines: dict[str, Machine] = {}
    for name in names:
        try:
            machines[name] = catalog.machine(name)
        except (UnknownNameError, InputError) as error:
            table.wrong(("on",), str(error), value=name, expected="a server or cluster of `simperf catalog list`")
    servers_of = sorted({one.servers[0].blueprint.name for one in machines.values()})
    own = own_prices(prices, servers_of) if machines else {}
    found = []
    for name, machine in machines.items():
        parts = {machine.nodes[gpu].part for gpu in machine.gpus}
        if len(parts) != 1 or not isinstance(next(iter(parts)), GpuPart):
            table.wrong(("on",), "a machine with GPUs of one kind is expected", value=name)
            continue
        each = len(machine.gpus) // max(1, len(machine.servers))
        single = name in catalog.names("server")
        for gpus in counts or (len(machine.gpus),):
            servers = math.ceil(gpus / each)
            if not single and gpus > len(machine.gpus):
                expected = (
                    f"at most {len(machine.gpus)}, or the name of a server, of which there are as many as it takes"
                )
                table.wrong(("gpus",), f"{name} has {len(machine.gpus)} GPUs", value=gpus, expected=expected)
                continue
            data: dict[str, Any] = {"folder": table.text("folder")} if table.text("folder") else {}
            if single and servers > 1:
                try:
                    fabric = fabric_of(catalog, name)
                except InputError as error:
                    for one in error.problems:
                        table.wrong(("on",), one.message, value=name, expected=one.expected)
                    break
                data |= {"kind": "cluster", "server": name, "count": servers, "fabric": fabric}
            else:
                data |= {"use": name}
            plan = machine.servers[0].blueprint
            price = own.get(plan.name, plan.price)
            source = "a price of your own" if plan.name in own else plan.price_source
            whole = None if price is None else price * servers
            other = other_price(catalog, plan.name) if whole is None else ""
            source = source if whole is not None else ""
            found.append(TrainingMachine(name, gpus, servers, data, each, plan.name, whole, source, other))
    return found


def _axes(table: RequestTable) -> LayoutAxes:
    """Values of each option that are tried."""
    usual = LayoutAxes()
    sizes = {key: table.counts(key, most=_MOST_SIZE) for key in ("tp", "cp", "pp", "ep", "microbatch", "chunks")}
    words: dict[str, Sequence[str]] = {
        "sharding": SHARDINGS,
        "schedule": tuple(SCHEDULES),
        "recompute": RECOMPUTATIONS,
        "precision": tuple(TRAINING_PRECISIONS),
    }
    chosen = {}
    for key, known in words.items():
        chosen[key] = table.texts(key, getattr(usual, key))
        for one in chosen[key]:
            if one not in known:
                table.wrong((key,), f"no such {key}{nearest(one, known)}", value=one, expected=", ".join(known))
    return LayoutAxes(**cast(dict[str, Any], {**sizes, **chosen}))
