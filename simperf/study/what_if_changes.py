"""Changes of a large job that one word names: ``network=2x``, ``host1=0.8x``, ``precision=fp8``, ``batch=0.5x``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simperf.errors import InputError, Problem, nearest
from simperf.hardware import Catalog, GpuPart, Machine, NicPart
from simperf.hardware.server_fabric import fabric_of
from simperf.layout import Layout
from simperf.scenario import Scenario
from simperf.scenario.overrides import parse_assignment
from simperf.study.virtual import resources, speed_up
from simperf.workload.mixed import TRAINING_PRECISIONS
from simperf.workload.product_recipe import RECIPES

__all__ = ["NAMES", "WhatIfChange", "read_changes", "what_if_scenario"]

OPTION = "--what-if"
#: names of changes, for messages
NAMES = ("network", "nvlink", "domain", "hostN", "precision", "batch", "KEY")
_HOST = re.compile(r"host(\d{1,6})")
_FACTOR = re.compile(r"([0-9.]+(?:e[-+]?\d+)?)x")
#: recipe of ``precision=fp8`` by the stack's beginning; and of all other stacks
_FP8 = {"torch": "float8"}
#: what of a network follows from the cards of its servers
_OF_CARDS = ("link", "switch", "count", "bandwidth", "latency", "burst", "peak", "uplink")
_RECIPE = "fp8-current"
#: changes of one question at most: each is a run
_MOST = 32


@dataclass(frozen=True, slots=True)
class WhatIfChange:
    """A change of a scenario.

    Parameters
    ----------
    name : str
        As it was given.
    values : mapping of str to object
        Values of keys of the scenario.
    speeds : mapping of str to float
        How many times as fast resources are, by their names (`simperf.study.virtual.resources`) [1].
    remark : str
        What else it brings.
    """

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)
    speeds: Mapping[str, float] = field(default_factory=dict)
    remark: str = ""


def read_changes(scenario: Scenario, given: Sequence[str]) -> tuple[WhatIfChange, ...]:
    """Changes of a scenario by their words; a text may hold several, divided by commas.

    Raises
    ------
    InputError
        All words that are none, change nothing, or say the same twice.
    """
    words = [word.strip() for text in given for word in _divided(text)]
    problems: list[Problem] = []
    found: list[WhatIfChange] = []
    if not words or len(words) > _MOST:
        message, expected = f"{len(words)} changes", f"1 to {_MOST}, such as network=2x,host1=0.8x"
        raise InputError(Problem(message, file=OPTION, expected=expected))
    for word in words:
        try:
            found.append(_read(scenario, word))
        except InputError as error:
            problems += error.problems
    seen: dict[str, str] = {}
    for one in found:
        for key in (*one.values, *one.speeds):
            if key in seen and key != "program.speeds":
                message, expected = f"{key} is changed by {seen[key]}, too", "one of them"
                problems.append(Problem(message, file=OPTION, value=one.name, expected=expected))
            seen[key] = one.name
    if len({one.name.partition("=")[0] for one in found}) < len(found):
        problems.append(
            Problem("a change stands here twice", file=OPTION, value=", ".join(words), expected="each once")
        )
    if problems:
        raise InputError(problems)
    return tuple(found)


def what_if_scenario(
    scenario: Scenario, changes: Sequence[WhatIfChange], make: Callable[[Scenario, Mapping[str, Any]], Scenario]
) -> Scenario:
    """The scenario with changes; `make` gives keys their values."""
    values: dict[str, Any] = {}
    for one in changes:
        for key, value in one.values.items():
            values[key] = _both(values[key], value) if key == "program.speeds" and key in values else value
    changed = make(scenario, values) if values else scenario
    factors: dict[str, float] = {}
    for one in changes:
        known = {each.name for each in resources(changed)}  # another server has other links
        for name, factor in one.speeds.items():
            found = _now(name, one, changed, known)
            factors |= {found: factor} if found else {}
    return speed_up(changed, factors) if factors else changed


def _divided(text: str) -> list[str]:
    """Words of a text, divided by commas outside of brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [one for one in found if one.strip()]


def _both(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Speeds of devices by two changes."""
    longest = max(len(first), len(second))
    pad = [*first, *[1.0] * (longest - len(first))], [*second, *[1.0] * (longest - len(second))]
    return [one * other for one, other in zip(*pad, strict=True)]


def _now(name: str, change: WhatIfChange, scenario: Scenario, known: set[str]) -> str:
    """Name of a resource of the changed machine: links that it lacks are others of the same place.

    It is empty where that place has none, as between servers of which one is left.
    """
    if name in known:
        return name
    place = change.name.partition("=")[0]
    if place not in ("network", "nvlink"):
        raise InputError(Problem("the machine has no such links", file=OPTION, value=name, expected="others"))
    found = _links(scenario.machine, place) if scenario.machine is not None else []
    return next((link for link in found if link in known), "")


def _read(scenario: Scenario, word: str) -> WhatIfChange:
    name, equals, value = word.partition("=")
    host = _HOST.fullmatch(name)
    if not equals or not value:
        raise InputError(Problem("a change is expected", file=OPTION, value=word, expected="such as network=2x"))
    if name in ("network", "nvlink"):
        return WhatIfChange(word, speeds=_faster(scenario, name, value))
    if name == "domain":
        return _domain(scenario, value)
    if host:
        return WhatIfChange(word, {"program.speeds": _host(scenario, int(host.group(1)), value)})
    if name == "precision":
        return WhatIfChange(word, _precision(scenario, value))
    if name == "batch":
        return _batch(scenario, value)
    if name.startswith("speed."):
        resource = name.removeprefix("speed.").strip('"')
        known = [one.name for one in resources(scenario)]
        if resource not in known:
            message = f"no such resource{nearest(resource, known)}"
            raise InputError(Problem(message, file=OPTION, value=word, expected="a name that `simperf limits` ranks"))
        return WhatIfChange(word, speeds={resource: _factor(word, value)})
    if "." in name:
        (one,) = [parse_assignment(word)]
        return WhatIfChange(word, {name: one.value})
    message = f"no such change{nearest(name, NAMES)}"
    raise InputError(Problem(message, file=OPTION, value=word, expected=", ".join(NAMES)))


def _factor(word: str, value: str) -> float:
    """A factor that changes something."""
    found = _FACTOR.fullmatch(value)
    try:
        factor = float(found.group(1)) if found else math.nan
    except ValueError:
        factor = math.nan
    if not 1e-6 <= factor <= 1e6:
        raise InputError(
            Problem(
                "a factor above 0 is expected, from 1e-6 to 1e6", file=OPTION, value=word, expected="such as 2x or 0.8x"
            )
        )
    if factor == 1.0:
        raise InputError(Problem("changes nothing", file=OPTION, value=word, expected="a factor other than 1"))
    return factor


def _links(machine: Machine, name: str) -> list[str]:
    """Names of the links between servers, or of those among GPUs of one."""
    if name == "network":
        wires: list[Any] = [port for slot in machine.servers for port in slot.ports]
        wires += list(machine.fabric.edges.values()) if machine.fabric else []
        return list(dict.fromkeys(wire.part or wire.technology for wire in wires))
    edges = [edge for slot in machine.servers for edge in slot.blueprint.edges.values()]
    return list(dict.fromkeys(edge.part or edge.technology for edge in edges if edge.technology in ("nvlink", "xgmi")))


def _faster(scenario: Scenario, name: str, value: str) -> dict[str, float]:
    factor = _factor(f"{name}={value}", value)
    links = _links(scenario.machine, name) if scenario.machine is not None else []
    if not links:
        message = "the machine has no network between servers" if name == "network" else "the machine has no NVLink"
        raise InputError(
            Problem(message, file=OPTION, value=f"{name}={value}", expected="a cluster, or another change")
        )
    return dict.fromkeys(links, factor)


def _host(scenario: Scenario, number: int, value: str) -> list[float]:
    """Speeds of all devices where those of a server are slower or faster."""
    factor, word = _factor(f"host{number}={value}", value), f"host{number}={value}"
    machine, layout = scenario.machine, scenario.parameters.get("layout")
    if machine is None or "speeds" not in scenario.program.parameters:
        message = "the program has no devices of different speed"
        raise InputError(Problem(message, file=OPTION, value=word, expected="a program such as train"))
    ranks = layout.ranks if isinstance(layout, Layout) else len(machine.gpus)
    places = [_server(name) for name in machine.gpus][:ranks]
    if number >= len(set(places)):
        expected = f"host0 to host{len(set(places)) - 1}"
        raise InputError(Problem("the job has no such server", file=OPTION, value=word, expected=expected))
    mine = list(dict.fromkeys(places))[number]
    before = [*scenario.parameters["speeds"]]
    before += [1.0] * (len(places) - len(before))
    return [speed * (factor if place == mine else 1.0) for speed, place in zip(before, places, strict=False)]


def _server(gpu: str) -> str:
    return gpu.rpartition("/")[0]


def _domain(scenario: Scenario, value: str) -> WhatIfChange:
    """The machine with servers of the catalogue whose NVLink joins so many GPUs."""
    word, machine = f"domain={value}", scenario.machine
    if not (value.isascii() and value.isdecimal()) or len(value) > 5:
        raise InputError(Problem("a number of GPUs is expected", file=OPTION, value=word, expected="such as domain=72"))
    if machine is None or machine.fabric is None:
        message = "the machine is one server, whose GPUs already share a domain"
        raise InputError(Problem(message, file=OPTION, value=word, expected="a cluster, or another change"))
    table = scenario.data.get("machine", {})
    gpus = len(machine.gpus)
    first = machine.nodes[machine.gpus[0]].part
    assert isinstance(first, GpuPart)
    catalog = Catalog.load()
    sizes: dict[int, str] = {}
    distances: dict[int, float] = {}
    others: list[str] = []  # of other architectures
    for name in catalog.names("server"):
        other = catalog.machine(name)
        parts = [other.nodes[each].part for each in other.gpus]
        same = all(isinstance(part, GpuPart) and part.architecture == first.architecture for part in parts)
        if parts and _links(other, "nvlink"):
            if same:
                distance = _distance(first, parts[0])
                if distance < distances.get(len(parts), math.inf):
                    sizes[len(parts)], distances[len(parts)] = name, distance
            elif len(parts) == int(value):
                others.append(name)
    inside = sum(isinstance(node.part, GpuPart) for node in machine.servers[0].blueprint.nodes.values())
    if int(value) == inside:
        raise InputError(Problem("changes nothing", file=OPTION, value=word, expected=f"other than {inside}"))
    if int(value) not in sizes:
        raise InputError(_no_domain(scenario, word, first.architecture, sizes.keys() - {inside}, others))
    server = sizes[int(value)]
    layout = scenario.parameters.get("layout")
    ranks = layout.ranks if isinstance(layout, Layout) else gpus
    count = -(-ranks // int(value))
    part = catalog.machine(server).nodes[catalog.machine(server).gpus[0]].part
    assert part is not None
    remark = f"server {server}" + (f", GPU {part.name} for {first.name}" if part.name != first.name else "")
    if count == 1:
        return WhatIfChange(word, {"machine": {"use": server}}, remark=remark)
    try:
        fabric = _fabric(table, catalog, machine, server)
    except InputError as error:
        told = [Problem(f"{server}: {one.message}", file=OPTION, value=word) for one in error.problems]
        raise InputError(told) from None
    table = {"kind": "cluster", "server": server, "count": count, "fabric": fabric}
    return WhatIfChange(word, {"machine": table}, remark=remark)


def _fabric(table: Mapping[str, Any], catalog: Catalog, machine: Machine, server: str) -> dict[str, Any]:
    """The network of a machine between other servers: its own, with the links and switches that their cards are for."""
    use = str(table.get("use", ""))
    of_cluster = catalog.file("cluster", use).data["fabric"] if use in catalog.names("cluster") else {}
    mine = {**table.get("fabric", of_cluster)}
    if _cards(catalog.machine(server)) == _cards(machine) and mine:
        return mine
    return fabric_of(catalog, server) | {key: value for key, value in mine.items() if key not in _OF_CARDS}


def _cards(machine: Machine) -> list[str]:
    """Names of the NICs of a machine's first server."""
    return sorted(
        {node.part.name for node in machine.servers[0].blueprint.nodes.values() if isinstance(node.part, NicPart)}
    )


def _distance(gpu: GpuPart, other: Any) -> float:
    """How far a GPU is from another one in its rate and memory, as logarithms; 0 of the same one."""
    if other.name == gpu.name:
        return 0.0
    rates = [part.peak.get("bf16", part.peak.get("fp16", part.peak["fp32"])) for part in (gpu, other)]
    return 1e-9 + abs(math.log(rates[1] / rates[0])) + abs(math.log(other.memory_capacity / gpu.memory_capacity))


def _no_domain(
    scenario: Scenario, word: str, architecture: str, sizes: Collection[int], others: Sequence[str]
) -> Problem:
    """No server has so many GPUs of the architecture on one NVLink: other sizes, and servers with other GPUs."""
    expected = [f"domain={size}" for size in sorted(sizes)]
    count = word.partition("=")[2]
    message = f"no server of the catalogue joins {count} {architecture} GPUs by NVLink"
    if others:
        message += f"; {' and '.join(others[:2])} join{'s' * (len(others) == 1)} {count} of another architecture"
        table, layout = scenario.data.get("machine", {}), scenario.parameters.get("layout")
        key = "server" if "server" in table else "use"
        servers = table.get("count", 1) if key == "server" else 1
        if isinstance(layout, Layout) and layout.ranks <= int(count) * servers:
            expected.append(f"machine.{key}={others[0]}, which changes the GPU, too")
    expected = expected or ["another change"]
    return Problem(message, file=OPTION, value=word, expected=", or ".join(expected))


def _precision(scenario: Scenario, value: str) -> dict[str, Any]:
    """Keys of a precision of training, of a recipe of products, or of products as wide as weights."""
    stack, word = str(scenario.parameters.get("stack", "")), f"precision={value}"
    key = "product_precision"
    if value == "fp8":
        value = next((recipe for start, recipe in _FP8.items() if stack.startswith(start)), _RECIPE)
    elif value == "bf16" and scenario.parameters.get(key) not in (None, "as-weights"):
        value = "as-weights"
    elif value in TRAINING_PRECISIONS:
        key = "precision"
    known = ("as-weights", *RECIPES, *TRAINING_PRECISIONS)
    if value not in known:
        message = f"no such precision{nearest(value, known)}"
        raise InputError(Problem(message, file=OPTION, value=word, expected=f"fp8, {', '.join(known)}"))
    if scenario.parameters.get(key) == value or (value == "bf16" and _is_bf16(scenario)):
        narrow = scenario.parameters.get("product_precision", "as-weights") not in ("as-weights", value)
        expected = "precision=as-weights for products as wide as weights" if narrow else "another one, such as fp8"
        raise InputError(Problem("changes nothing", file=OPTION, value=word, expected=expected))
    return {f"program.{key}": value}


def _is_bf16(scenario: Scenario) -> bool:
    """Whether products have bf16 already, by the weights' precision."""
    before = TRAINING_PRECISIONS.get(str(scenario.parameters.get("precision", "")))
    return before is not None and before.matrix == "bf16"


def _batch(scenario: Scenario, value: str) -> WhatIfChange:
    """Another batch: a number of samples, or a factor of today's, which may be that of a GPU."""
    word, key = f"batch={value}", "batch"
    number = value.isascii() and value.isdecimal() and len(value) < 10
    if scenario.parameters.get("batch_per_gpu"):
        key = "batch_per_gpu"
        if number:
            message, expected = "the job has the samples of a GPU", f"program.{key}={value}, or batch=0.5x"
            raise InputError(Problem(message, file=OPTION, value=word, expected=expected))
    before = scenario.parameters.get(key)
    if not isinstance(before, int):
        raise InputError(Problem("the program has no batch", file=OPTION, value=word, expected="a training job"))
    after = float(value) if number else before * _factor(word, value)
    if after < 1 or after != int(after) or int(after) == before:
        message = f"not another whole number of samples: {after:g}"
        raise InputError(Problem(message, file=OPTION, value=word, expected=f"a factor of {before}, or a number"))
    remark = f"{int(after)} samples a GPU for {before}" if key == "batch_per_gpu" else ""
    return WhatIfChange(word, {f"program.{key}": int(after)}, remark=remark)
