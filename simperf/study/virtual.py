"""Causal profiling: the same scenario on a machine of which one resource is so many times as fast.

What a run takes its time from are numbers with a time in their unit: rates of parts, latencies of links,
constants of the frontend, times among the program's parameters. A *resource* is the group of such numbers that one
thing brings. Making it x times as fast multiplies its rates by x and divides its times by x. When every
resource is made x times as fast at once, all of time passes x times as fast, so that the run takes exactly 1/x.

The idea of asking by experiment what would become faster is that of causal profiling (Curtsinger and
Berger, "Coz", SOSP 2015); here the machine is simulated and the experiment can be made directly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Annotated, Any, NamedTuple, get_args, get_origin

from simperf.collectives.settings import NCCL, default_algorithm
from simperf.errors import InputError, Problem, UnknownNameError
from simperf.hardware import Machine
from simperf.hardware.blueprint import Blueprint, Edge, Node
from simperf.hardware.fabric import Fabric, Port, ServerSlot
from simperf.hardware.netstack import Hosting
from simperf.hardware.part import Part
from simperf.hardware.processors import GpuPart
from simperf.scenario import CostSettings, Scenario
from simperf.training.servers.multi_machine import AROUND
from simperf.units import Unit

__all__ = ["PROTOCOLS", "Resource", "link_kind", "resources", "speed_up"]

#: exponent of time in a unit: rates go up, times go down
_POWER = {"s": -1, "s/B": -1, "B/s": 1, "FLOP/s": 1, "1/s": 1, "m/s": 1}
#: constants of NCCL's protocols, where a program asks for its tuner, or a machine adds up around its rings
PROTOCOLS = "nccl protocols"
_FRONTEND = "frontend"
#: constants that a profile gives for kernels, in place of the catalogue's
_FITTED = "fitted kernels"
_GPU_FIELDS = {"peak": "compute", "memory_bandwidth": "memory", "kernel_floor": "shortest kernel"}


class Resource(NamedTuple):
    """Something that may be made faster: its name, and what it is (``"device"``, ``"link"``, ``"program"`` ...)."""

    name: str
    kind: str


def resources(scenario: Scenario) -> list[Resource]:
    """Everything that a run of the scenario takes its time from, machine first, each once."""
    found: dict[str, str] = {}
    if scenario.machine is not None:
        for name, kind in _of_machine(scenario.machine):
            found.setdefault(name, kind)
    front = scenario.frontend
    if any(_moves(getattr(front, field)) for field in front.UNITS):
        found[_FRONTEND] = "frontend"
    if scenario.cost.kernels:
        found[_FITTED] = "device"
    for name, power in _timed(scenario).items():
        if power and _moves(scenario.parameters[name]):
            found[f"program.{name}"] = "program"
    if _plays_nccl(scenario):
        found[PROTOCOLS] = "protocol"
    return [Resource(name, kind) for name, kind in found.items()]


def _plays_nccl(scenario: Scenario) -> bool:
    """Whether a program may ask NCCL's tuner: by its name, where it is the default, or around rings in a machine."""
    given = scenario.parameters
    algorithm = given.get("algorithm")
    if algorithm == "" and scenario.machine is not None:
        algorithm = default_algorithm(scenario.machine, scenario.machine.gpus)
    return algorithm in NCCL or given.get("reduction") in AROUND


def speed_up(scenario: Scenario, factors: Mapping[str, float]) -> Scenario:
    """The scenario with resources made faster.

    Parameters
    ----------
    scenario : Scenario
    factors : mapping of str to float
        How many times as fast, by name of the resource; below 1 is slower [1].

    Raises
    ------
    UnknownNameError
        The scenario has no such resource.
    InputError
        A factor that is not above 0.
    """
    known = {resource.name for resource in resources(scenario)}
    for name, factor in factors.items():
        if name not in known:
            raise UnknownNameError("resource of the scenario", name, known)
        if not 0 < factor < math.inf:
            raise InputError(Problem("a resource is a factor above 0 as fast", key=name, value=f"{factor}"))
    changed = dict(scenario.parameters)
    for name, power in _timed(scenario).items():
        factor = factors.get(f"program.{name}", 1.0)
        if factor != 1.0:
            changed[name] = _scaled(changed[name], factor**power)
    machine, frontend = scenario.machine, scenario.frontend
    if _FRONTEND in factors:
        frontend = _part(frontend, lambda field: factors[_FRONTEND])
    if machine is not None:
        machine = _machine(machine, factors)
    cost = _cost(scenario, factors[_FITTED]) if _FITTED in factors else scenario.cost
    if cost.collectives.curves:
        cost = replace(cost, collectives=replace(cost.collectives, machine=scenario.machine))
    cost = replace(cost, protocols=cost.protocols * factors.get(PROTOCOLS, 1.0))
    return replace(scenario, parameters=changed, machine=machine, frontend=frontend, cost=cost)


def _cost(scenario: Scenario, factor: float) -> CostSettings:
    """The costs with fitted constants made faster, each by the unit that a profile gives to its name."""
    units = {
        name: constant.unit
        for profile in scenario.profiles
        for key, model in profile.model.items()
        if key.startswith(("kernel.", "call.mixed."))
        for name, constant in model.constant.items()
    }
    kernels = {
        family: {
            name: _scaled(value, factor ** _POWER.get(units.get(name, ""), 0)) for name, value in constants.items()
        }
        for family, constants in scenario.cost.kernels.items()
    }
    calls = scenario.cost.calls
    update = {name: (once / factor, each / factor) for name, (once, each) in calls.update.items()}
    quicker = {name: getattr(calls, name) / factor for name in ("forward", "backward", "late")}
    return replace(scenario.cost, kernels=kernels, calls=replace(calls, update=update, **quicker))


# -- what there is ---------------------------------------------------------------------------


def _of_machine(machine: Machine) -> Iterator[tuple[str, str]]:
    plans = dict.fromkeys(slot.blueprint for slot in machine.servers)
    nodes = [node for plan in plans for node in plan.nodes.values()]
    nodes += list(machine.fabric.nodes.values()) if machine.fabric else []
    parts = {node.part.name: (node.kind, node.part) for node in nodes if node.part is not None}
    for name, (kind, part) in parts.items():
        if isinstance(part, GpuPart):
            yield from ((f"{name} {word}", "device") for word in _GPU_FIELDS.values())
        elif kind not in ("nic", "pcie-switch", "switch", "nvswitch") or getattr(part, "backplane", None):
            yield name, kind
    if machine.hosting.stack is not None:
        yield machine.hosting.stack.name, "host"
    wires: list[Edge | Port] = [edge for plan in plans for edge in plan.edges.values()]
    wires += [port for slot in machine.servers for port in slot.ports]
    wires += list(machine.fabric.edges.values()) if machine.fabric else []
    yield from dict.fromkeys((link_kind(wire), "link") for wire in wires)


def link_kind(wire: Edge | Port) -> str:
    """Name of the kind of link that a wire is."""
    return wire.part or wire.technology or "links"


def _timed(scenario: Scenario) -> dict[str, int]:
    """Parameters of the program that have a time in their unit and some effect, with its exponent."""
    found = {}
    idle = scenario.program.idle(scenario.parameters)
    for name, parameter in scenario.program.parameters.items():
        if name in idle:
            continue
        annotation = parameter.annotation
        if get_origin(annotation) in (list, dict):
            annotation = get_args(annotation)[-1]
        unit = None
        if get_origin(annotation) is Annotated:
            unit = next((item for item in get_args(annotation)[1:] if isinstance(item, Unit)), None)
        if unit is not None and unit.dimension in _POWER and name in scenario.parameters:
            found[name] = _POWER[unit.dimension]
    return found


def _moves(value: Any) -> bool:
    """Whether scaling a value changes it."""
    if isinstance(value, list | tuple):
        return any(_moves(item) for item in value)
    if isinstance(value, Mapping):
        return any(_moves(item) for item in value.values())
    return isinstance(value, int | float) and value != 0 and math.isfinite(value)


# -- making it faster ------------------------------------------------------------------------


def _scaled(value: Any, factor: float) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_scaled(item, factor) for item in value)
    if isinstance(value, Mapping):
        return {key: _scaled(item, factor) for key, item in value.items()}
    return value if value is None else value * factor


def _part(part: Any, factor: Any) -> Any:
    """A part with each of its numbers that have a time in their unit scaled; `factor` is asked by field."""
    changed = {}
    for field in fields(part):
        value, power = getattr(part, field.name), _POWER.get(part.UNITS.get(field.name, ""), 0)
        x = factor(field.name)
        if isinstance(value, Part):  # the memory of a CPU
            changed[field.name] = _part(value, factor)
        elif field.name == "caches":
            changed[field.name] = tuple(replace(c, latency=c.latency / x, bandwidth=c.bandwidth * x) for c in value)
        elif power and x != 1.0:
            changed[field.name] = _scaled(value, x**power)
    return replace(part, **changed)


class _Parts:
    """Parts made faster, each once: nodes that had one part in common still do, which makes them alike."""

    def __init__(self, factors: Mapping[str, float]) -> None:
        self.factors = factors
        self._made: dict[int, tuple[Any, Any]] = {}

    def node(self, node: Node) -> Node:
        """The node with its part."""
        part: Any = node.part
        if part is None:
            return node
        if id(part) not in self._made:
            self._made[id(part)] = part, self._faster(part)
        made = self._made[id(part)][1]
        return node if made is part else replace(node, part=made)

    def _faster(self, part: Any) -> Any:
        if isinstance(part, GpuPart):
            names = {field: f"{part.name} {word}" for field, word in _GPU_FIELDS.items()}
            if not any(name in self.factors for name in names.values()):
                return part
            made = _part(part, lambda field: self.factors.get(names.get(field, ""), 1.0))
            pace = self.factors.get(names["kernel_floor"], 1.0)  # of all fixed times of products and experts by shape
            if pace == 1.0:
                return made
            product = {**part.product, "pace": pace} if part.product else part.product
            return replace(made, product=product, experts={**part.experts, "pace": pace})
        x = self.factors.get(part.name, 1.0)
        return part if x == 1.0 else _part(part, lambda field: x)


def _edge(edge: Edge, factors: Mapping[str, float]) -> Edge:
    x = factors.get(link_kind(edge), 1.0)
    if x == 1.0:
        return edge
    return replace(edge, bandwidth=edge.bandwidth * x, latency=edge.latency / x, flow_limit=edge.flow_limit * x)


def _port(port: Port, factors: Mapping[str, float]) -> Port:
    x = factors.get(link_kind(port), 1.0)
    if x == 1.0:
        return port
    up, down = port.up / x, port.down / x
    return replace(port, bandwidth=port.bandwidth * x, flow_limit=port.flow_limit * x, up=up, down=down)


def _machine(machine: Machine, factors: Mapping[str, float]) -> Machine:
    """A machine whose servers still share blueprints and ports where they did."""
    parts = _Parts(factors)
    plans: dict[int, Blueprint] = {}
    ports: dict[int, tuple[Port, ...]] = {}
    slots = []
    for slot in machine.servers:
        plan = slot.blueprint
        if id(plan) not in plans:
            plans[id(plan)] = replace(
                plan,
                nodes={key: parts.node(node) for key, node in plan.nodes.items()},
                edges={key: _edge(edge, factors) for key, edge in plan.edges.items()},
            )
        if id(slot.ports) not in ports:
            ports[id(slot.ports)] = tuple(_port(port, factors) for port in slot.ports)
        slots.append(ServerSlot(slot.name, plans[id(plan)], ports[id(slot.ports)]))
    fabric = None
    if machine.fabric is not None:
        inner = machine.fabric
        fabric = Fabric(
            {key: parts.node(node) for key, node in inner.nodes.items()},
            {key: _edge(edge, factors) for key, edge in inner.edges.items()},
            inner.lanes,
        )
    return Machine(machine.name, slots, fabric=fabric, hosting=_hosting(machine, factors))


def _hosting(machine: Machine, factors: Mapping[str, float]) -> Hosting:
    """Network stack and token buckets made faster; the size of a bucket stays."""
    said = machine.hosting
    stack = said.stack
    if stack is not None and stack.name in factors:
        x = factors[stack.name]
        stack = _part(stack, lambda field: x)
    shaped = dict(said.shaped)
    for edge in machine.edges.values() if shaped else ():
        bucket = said.shaped.get(edge.resource)
        if bucket is not None:
            shaped[edge.resource] = replace(bucket, peak=bucket.peak * factors.get(link_kind(edge), 1.0))
    return replace(said, stack=stack, shaped=shaped)
