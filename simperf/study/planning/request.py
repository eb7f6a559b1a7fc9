"""Request for a plan: a model and how much of it, by when and for how much, on which machines."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os.path import isfile
from pathlib import Path
from typing import Any

from simperf.errors import InputError, Problem, UnknownNameError, nearest
from simperf.files import TomlFile, read_toml, refuse_format, refuse_other
from simperf.hardware import Catalog
from simperf.study.planning.precision import AUTO
from simperf.study.planning.prices import PriceList, read_prices
from simperf.study.planning.reader import RequestTable
from simperf.training.strategies import REPLICATED, STRATEGIES
from simperf.workload.mixed import TRAINING_PRECISIONS
from simperf.workload.model import TracedModel

__all__ = ["TABLES", "PlanFailures", "Request", "load_request", "make_request", "read_failures"]

#: tables of a plan's file, with their keys; `simperf.study.file_schemas` says what each holds
TABLES = {
    "plan": (
        "title", "model", "precision", "optimizer", "samples", "epochs", "tokens", "deadline", "budget", "objective",
        "force",
    ),
    "candidates": (
        "instances", "nodes", "strategies", "batch_per_gpu", "batch", "algorithm", "folder", "fabric", "frontend",
    ),
    "limits": ("nodes", "gpus", "batch", "memory", "price"),
    "prices": ("file", "kind", "own"),
    "failures": ("node_mtbf", "checkpoint", "restart", "repair", "interval", "runs"),
    "calibration": ("use",),
}  # fmt: skip
_OBJECTIVES = ("auto", "time", "cost")
#: nodes that are tried where the file names none
_NODES = (1, 2, 4, 8)
#: of one kind, and samples of a batch: more than anybody has
_MOST_NODES, _MOST_BATCH = 20_000, 1_000_000_000


@dataclass(frozen=True, slots=True)
class PlanFailures:
    """Failures that a plan allows for.

    Parameters
    ----------
    node_mtbf : float
        Mean time between failures of one node [s].
    bandwidth : float
        Of the store of checkpoints [B/s]; infinite if they cost nothing.
    restart : float
        From a failure to the first step, without reading the checkpoint [s].
    repair : float
        Until a broken node is replaced [s].
    interval : float
        Between checkpoints [s]; 0 takes Young's formula.
    runs : int
        Histories that are simulated.
    """

    node_mtbf: float
    bandwidth: float = math.inf
    restart: float = 0.0
    repair: float = 0.0
    interval: float = 0.0
    runs: int = 40


@dataclass(frozen=True, slots=True)
class Request:
    """A plan's file, read and checked.

    Parameters
    ----------
    title : str
    model : TracedModel
    use : str
        Its name or file.
    precision : str
        ``"auto"``: what frameworks compute products in on each candidate's GPU (`precision_of`).
    optimizer : str
    samples : float
        To be trained in all.
    deadline, budget : float
        [s] and [USD]; infinite if there is none.
    objective : str
        ``"time"`` or ``"cost"``: what the feasible candidates are ranked by.
    instances, nodes, strategies : tuple
        What candidates are made of.
    batches : tuple of int
        Samples a GPU, or of the whole step where `strong`.
    strong : bool
    algorithm, frontend : str
    fabric : mapping
        Of clusters, instead of what fits the instance's network card.
    limits : mapping of str to float
        The most of ``nodes``, ``gpus``, ``batch``, ``memory`` [B a GPU] and ``price`` [USD/h].
    prices : PriceList
    failures : PlanFailures or None
    catalog : Catalog
    toml : TomlFile
    calibration : str
        A profile's name or file.
    force : bool
        Simulate candidates however many events they have, and however many they are.
    """

    title: str
    model: TracedModel
    use: str
    precision: str
    optimizer: str
    samples: float
    deadline: float
    budget: float
    objective: str
    instances: tuple[str, ...]
    nodes: tuple[int, ...]
    strategies: tuple[str, ...]
    batches: tuple[int, ...]
    strong: bool
    algorithm: str
    frontend: str
    fabric: Mapping[str, Any]
    limits: Mapping[str, float]
    prices: PriceList
    failures: PlanFailures | None
    catalog: Catalog
    toml: TomlFile
    calibration: str = ""
    force: bool = False

    @property
    def folder(self) -> str:
        """Folder that paths of the file are relative to."""
        return self.toml.folder


def load_request(path: str | os.PathLike[str], *, force: bool = False) -> Request:
    """Read a plan's file, with ``plan.force`` if `force` says so.

    Raises
    ------
    InputError
        All that is wrong with it.
    """
    if not isinstance(path, str | os.PathLike):
        message = f"a plan is expected, not {type(path).__name__}"
        expected = 'the path of its file, or its tables: {"plan": {...}, "candidates": {...}}'
        raise InputError(Problem(message, value=repr(path), expected=expected))
    toml = read_toml(path)
    refuse_other(toml, "plan")
    refuse_format(toml)
    head = toml.data.get("plan", {})
    if force and isinstance(head, dict):
        toml = replace(toml, data={**toml.data, "plan": {**head, "force": True}})
    return _read(toml)


def make_request(data: Mapping[str, Any]) -> Request:
    """Make a request of plain data, which has the tables and keys of a file."""
    toml = TomlFile("", dict(data), "")
    refuse_format(toml)
    return _read(toml)


def _read(toml: TomlFile) -> Request:
    problems: list[Problem] = [
        toml.problem((name,), f"unknown table{nearest(name, TABLES)}")
        for name in toml.data
        if name not in ("format", *TABLES)
    ]
    head, candidates, limits, prices, failures, calibration = (
        RequestTable(toml, name, keys, problems) for name, keys in TABLES.items()
    )
    folder = Path(toml.path).parent if toml.path else Path()
    catalog = _catalog(candidates, folder, problems)
    model = _model(head, folder)
    deadline = head.quantity("deadline", "s", math.inf)
    instances = _instances(candidates, catalog)
    batches = _batches(candidates)
    most = _most(limits)
    nodes = _nodes(candidates, most["nodes"])
    listed = read_prices(prices, instances, catalog, folder, needed=_needs_prices(head, limits))
    _contradictions(limits, most, nodes, batches, instances, catalog, listed)
    fields: dict[str, Any] = {
        "title": head.text("title", Path(toml.path).stem if toml.path else "plan"),
        "use": head.text("model"),
        "precision": head.choice("precision", (AUTO, *TRAINING_PRECISIONS), AUTO),
        "optimizer": head.text("optimizer"),
        "samples": _samples(head, model),
        "deadline": deadline,
        "budget": head.quantity("budget", "USD", math.inf),
        "objective": _objective(head, deadline, all(name in listed for name in instances)),
        "force": head.flag("force"),
        "instances": instances,
        "nodes": nodes,
        "strategies": _strategies(candidates),
        "batches": batches,
        "strong": "batch" in candidates,
        "algorithm": candidates.text("algorithm", "nccl"),
        "frontend": candidates.text("frontend", "pytorch"),
        "fabric": dict(candidates.data.get("fabric", {})),
        "limits": most,
        "prices": listed,
        "failures": read_failures(failures),
        "calibration": calibration.text("use"),
    }
    if problems or model is None:
        raise InputError(sorted(dict.fromkeys(problems), key=lambda problem: (problem.file, problem.line)))
    return Request(model=model, catalog=catalog, toml=toml, **fields)


def _needs_prices(head: RequestTable, limits: RequestTable) -> str:
    """What cannot be without a price of each instance; empty if nothing is."""
    if "budget" in head:
        return "plan.budget"
    if "price" in limits:
        return "limits.price"
    return 'plan.objective = "cost"' if head.data.get("objective") == "cost" else ""


def _objective(head: RequestTable, deadline: float, priced: bool) -> str:
    """What feasible candidates are ranked by, unless the file says it.

    Cost where there is a deadline and all instances have a price, else time.
    """
    found = head.choice("objective", _OBJECTIVES, "auto")
    if found != "auto":
        return found
    return "cost" if deadline < math.inf and priced else "time"


def _strategies(candidates: RequestTable) -> tuple[str, ...]:
    """Strategies in which every GPU has the whole model."""
    found = candidates.texts("strategies", ("ddp",))
    for name in found:
        if name in STRATEGIES and name not in REPLICATED:
            message = "candidates have no layout and no servers: every GPU has the whole model"
            candidates.wrong(("strategies",), message, value=name, expected=", ".join(REPLICATED))
        elif name not in REPLICATED:
            candidates.wrong(("strategies",), str(UnknownNameError("strategy", name, REPLICATED)))
    return found


def _instances(candidates: RequestTable, catalog: Catalog) -> tuple[str, ...]:
    """The instances that the catalogue has."""
    found, known = candidates.texts("instances"), catalog.names("server")
    if not found and "instances" not in candidates:
        candidates.wrong((), "no instances are named", expected='instances = ["p3-16xlarge", "p4d-24xlarge"]')
    for name in found:
        if name not in known:
            candidates.wrong(("instances",), f"unknown instance {name!r}{nearest(name, known)}")
    return tuple(name for name in found if name in known)


def _batches(candidates: RequestTable) -> tuple[int, ...]:
    """Samples a GPU, or of the whole step where the file has `batch`."""
    strong = "batch" in candidates
    if strong == ("batch_per_gpu" in candidates):
        message = "batch and batch_per_gpu are both there" if strong else "the batch is missing"
        candidates.wrong(("batch",) if strong else (), message, expected="batch_per_gpu = [32, 64, 128]")
    return candidates.counts("batch" if strong else "batch_per_gpu", (32,), most=_MOST_BATCH)


def _most(limits: RequestTable) -> dict[str, float]:
    """The most of each limit; infinite where there is none."""
    return {
        **{name: limits.count(name) or math.inf for name in ("nodes", "gpus", "batch")},
        "memory": limits.quantity("memory", "B", math.inf),
        "price": limits.quantity("price", "USD/h", math.inf),
    }


def _nodes(candidates: RequestTable, most: float) -> tuple[int, ...]:
    """Nodes of candidates: the file's, or those of `_NODES` within the limit."""
    default = tuple(count for count in _NODES if count <= most) or (1,)
    return candidates.counts("nodes", default, most=_MOST_NODES)


def _catalog(candidates: RequestTable, folder: Path, problems: list[Problem]) -> Catalog:
    own = candidates.text("folder")
    try:
        return Catalog.load([folder / own] if own else [])
    except InputError as error:
        problems += error.problems
        return Catalog.load()


def _model(head: RequestTable, folder: Path) -> TracedModel | None:
    from simperf.workload.zoo import load

    name = head.text("model")
    if not name:
        if "model" not in head:
            head.wrong((), "the model is missing", expected='model = "resnet50" (see `simperf zoo list`)')
        return None
    try:
        model = load(str(folder / name) if isfile(folder / name) else name)
        if "optimizer" in head:
            model.update(head.text("optimizer"))
    except UnknownNameError as error:
        head.wrong(("optimizer" if "optimizer" in str(error) else "model",), str(error))
        return None
    except InputError as error:
        head.problems += error.problems
        return None
    return model


def _samples(head: RequestTable, model: TracedModel | None) -> float:
    """Samples in all, of epochs over a data set or of tokens."""
    tokens, data, epochs = head.number("tokens"), head.number("samples"), head.number("epochs", 1.0)
    if ("tokens" in head) == ("samples" in head):
        message = "samples and tokens are both there" if "tokens" in head else "how much is to be trained is missing"
        head.wrong(
            ("tokens",) if "tokens" in head else (),
            message,
            expected="samples = 1_281_167 and epochs = 90, or tokens = 300e9",
        )
        return 1.0
    if "tokens" not in head:
        return data * epochs
    if model is None:
        return 1.0
    first = model.inputs[0]
    if "int" not in first.dtype or len(first.shape) != 1:
        head.wrong(
            ("tokens",), f"a sample of {model.name} is one {model.sample}: it has no tokens", expected="samples = ..."
        )
        return 1.0
    return tokens * epochs / first.shape[0]


def _contradictions(
    limits: RequestTable,
    most: Mapping[str, float],
    nodes: tuple[int, ...],
    batches: tuple[int, ...],
    instances: tuple[str, ...],
    catalog: Catalog,
    prices: PriceList,
) -> None:
    """Limits that no candidate can meet, whatever it does."""

    def against(key: str, least: float, what: str) -> None:
        if least > most[key]:
            told = f"it leaves no candidate: {what}"
            limits.wrong((key,), told, value=limits.data.get(key, ""), expected="a higher limit, or other candidates")

    against("nodes", min(nodes), f"the fewest nodes are {min(nodes)}")
    sizes = {name: len(catalog.machine(name).gpus) for name in instances}
    if not sizes:
        return
    for name, gpus in sizes.items():
        if gpus == 0:
            limits.problems.append(
                limits.toml.problem(("candidates", "instances"), f"{name} has no GPU", expected="instances with GPUs")
            )
    against("gpus", min(nodes) * min(sizes.values()), f"the smallest has {min(nodes) * min(sizes.values())} GPUs")
    against("batch", min(batches), f"the smallest batch is {min(batches)}")
    asked = [prices.of(name) * min(nodes) for name in instances if name in prices]
    if asked:
        against("price", min(asked), f"the cheapest asks {min(asked):.2f} USD/h")


def read_failures(table: RequestTable) -> PlanFailures | None:
    """Failures of a plan's table; None without one. What is wrong is added to the table's problems."""
    if not table.data:
        return None
    if "node_mtbf" not in table:
        table.wrong((), "the time between failures of a node is missing", expected='node_mtbf = "1000 h"')
    return PlanFailures(
        table.quantity("node_mtbf", "s", 3.6e6),
        table.quantity("checkpoint", "B/s", math.inf),
        table.quantity("restart", "s", zero=True),
        table.quantity("repair", "s", zero=True),
        table.quantity("interval", "s"),
        table.count("runs", 40),
    )
