"""The machine among a report's inputs: its nodes and links, with the sources of their numbers."""

from __future__ import annotations

from collections.abc import Mapping

from simperf.errors import SimperfError
from simperf.hardware import Catalog, Machine
from simperf.hardware.part import Part
from simperf.hardware.view import link_rows, node_rows
from simperf.report.html.page import table
from simperf.units import format_quantity

__all__ = ["machine_part"]


def machine_part(machine: Machine | None) -> str:
    """Parts of the machine's nodes and links, equal ones once, each with its source; empty without a machine."""
    if machine is None or not machine.servers:
        return ""
    parts = _parts(machine)
    nodes: dict[tuple[str, str], list[str]] = {}
    for row in node_rows(machine):
        nodes.setdefault((row["kind"], row["part"]), []).append(f"{row['nodes']} ({row['in']})")
    cells = [
        (kind, part or "-", ", ".join(ids[:3]) + (" ..." if len(ids) > 3 else ""), _source(parts.get(part)))
        for (kind, part), ids in nodes.items()
    ]
    title = f"Machine {machine.name}: {len(machine.servers)} server{'s' if len(machine.servers) > 1 else ''}, "
    title += f"{len(machine.gpus)} GPU{'s' if len(machine.gpus) != 1 else ''}"
    found = table(("node", "part", "in each server", "source"), cells, caption=title, long=(3,))
    links: dict[tuple[str, float, float, int], int] = {}
    for row in link_rows(machine):
        key = row["part"], row["bandwidth"], row["latency_a_to_b"], row["count"]
        links[key] = links.get(key, 0) + 1
    lines = [
        (part, number, count, format_quantity(rate, "B/s"), format_quantity(latency, "s"), _source(_link(part)))
        for (part, rate, latency, count), number in links.items()
    ]
    if not lines:
        return found
    head = ("link", "pairs", "cables each", "bandwidth a direction", "latency", "source")
    return found + table(head, lines, caption="Links, after protocol overhead", numbers=(1, 2, 3, 4), long=(5,))


def _parts(machine: Machine) -> Mapping[str, Part]:
    nodes = [node for plan in dict.fromkeys(slot.blueprint for slot in machine.servers) for node in plan.nodes.values()]
    nodes += list(machine.fabric.nodes.values()) if machine.fabric is not None else []
    return {node.part.name: node.part for node in nodes if isinstance(node.part, Part)}


def _source(part: Part | None) -> str:
    """The source of a part's main number."""
    if part is None:
        return "the machine's own file"
    return next((text for key in ("peak", "rate", "bandwidth") if (text := part.source(key))), "")


def _link(name: str) -> Part | None:
    """The catalogue's link of that name; people's own are described by their files."""
    try:
        return Catalog.load().link(name)
    except SimperfError:
        return None
