"""Checks of what cannot be: unwired nodes, more links than ports, devices that no route joins."""

from __future__ import annotations

from collections.abc import Mapping

from simperf.errors import MachineError
from simperf.hardware.blueprint import Blueprint, Edge
from simperf.hardware.devices import SwitchPart
from simperf.hardware.machine import Machine
from simperf.hardware.processors import GpuPart

__all__ = ["blueprint_problems", "check_machine"]


def check_machine(machine: Machine) -> None:
    """Refuse a machine that cannot exist.

    Every device is wired, no device or switch has more links than ports, and any two devices that
    belong together (all those of a cluster, all those of a server) reach each other.

    Raises
    ------
    MachineError
        All that is wrong, a line each.
    """
    problems: list[str] = []
    for plan in dict.fromkeys(slot.blueprint for slot in machine.servers):
        ports = {port.local for slot in machine.servers if slot.blueprint is plan for port in slot.ports}
        problems += [f"{plan.name}: {text}" for text in blueprint_problems(plan, plugged=ports)]
    if machine.fabric is not None:
        for slot in machine.servers:
            if not slot.ports and len(machine.servers) > 1:
                problems.append(f"the server {slot.name} has no port on the fabric")
        for node, others in _degrees(machine.fabric.edges).items():
            if not others and node in machine.fabric.nodes:
                problems.append(f"the switch {node} is not wired")
        first = [f"{slot.name}/{slot.ports[0].local}" for slot in machine.servers if slot.ports]
        for other in first[1:]:
            try:
                machine.route(first[0], other)
            except MachineError as error:
                problems.append(str(error))
    if problems:
        raise MachineError("\n".join(problems))


def blueprint_problems(plan: Blueprint, *, plugged: set[str] | None = None) -> list[str]:
    """Say what is wrong with the topology of one server; `plugged` nodes have a port on a fabric."""
    problems = []
    degrees = _degrees(plan.edges)
    plugged = plugged or set()
    for node in plan.nodes.values():
        if node.id not in degrees and len(plan.nodes) > 1 and node.id not in plugged:
            problems.append(f"the {node.kind} {node.id!r} is not wired to anything: add a link to it")
        used = sum(edge.count for edge in plan.out[node.id] if edge.technology == "nvlink")
        if isinstance(node.part, GpuPart) and used > node.part.nvlinks:
            problems.append(f"{node.id} uses {used} NVLinks, but a {node.part.title} has {node.part.nvlinks}")
        if isinstance(node.part, SwitchPart) and len(plan.out[node.id]) > node.part.ports:
            problems.append(
                f"{node.id} joins {len(plan.out[node.id])} links, but a {node.part.title} has {node.part.ports} ports"
            )
    problems += _islands(plan) if not problems else []
    return problems


def _degrees(edges: Mapping[str, Edge]) -> dict[str, int]:
    degrees: dict[str, int] = {}
    for edge in edges.values():
        degrees[edge.src] = degrees.get(edge.src, 0) + edge.count
    return degrees


def _islands(plan: Blueprint) -> list[str]:
    """Name the devices that the first one cannot reach."""
    if not plan.nodes:
        return ["the machine has no nodes"]
    start = next(iter(plan.nodes))
    seen, front = {start}, [start]
    while front:
        for edge in plan.out[front.pop()]:
            if edge.dst not in seen:
                seen.add(edge.dst)
                front.append(edge.dst)
    lost = [node for node in plan.nodes if node not in seen]
    return [f"no link joins {', '.join(lost)} to {start}: each node needs a way to every other one"] if lost else []
