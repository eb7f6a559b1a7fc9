"""Parts and machines as plain rows, for a table, JSON or CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from simperf.hardware.machine import Machine
from simperf.hardware.part import Part
from simperf.hardware.processors import CpuPart, MemoryPart
from simperf.units import format_quantity

__all__ = [
    "grouped_links",
    "link_rows",
    "machine_document",
    "node_rows",
    "part_rows",
    "part_words",
    "price_facts",
    "tree_rows",
]

#: connections that one row stands for, at least
_GROUP = 3


def part_rows(part: Part) -> list[dict[str, Any]]:
    """One row a number of a part: field, SI value, unit, readable text and source."""
    rows = [_row(key, value, unit, part.source(key)) for key, (value, unit) in part.numbers().items()]
    if part.KIND == "link":
        derived = "rate x lanes x encoding x payload / (payload + overhead) x protocol efficiency"
        rows.append(_row("bandwidth", getattr(part, "bandwidth"), "B/s", derived))  # noqa: B009
    if isinstance(part, CpuPart):
        for cache in part.caches:
            source = part.source("cache")
            rows.append(_row(f"{cache.level}.capacity", cache.capacity, "B", source))
            rows.append(_row(f"{cache.level}.latency", cache.latency, "s", source))
            rows.append(_row(f"{cache.level}.bandwidth", cache.bandwidth, "B/s", source))
            rows.append(_row(f"{cache.level}.shared", cache.shared, "1", source))
    return rows


def part_words(part: Part) -> dict[str, str]:
    """Words of a part: title, technology, architecture, memory."""
    words = {}
    for item in fields(part):
        value = getattr(part, item.name)
        if isinstance(value, MemoryPart):
            value = value.name
        if isinstance(value, str) and item.name != "name":
            words[item.name] = value
    return words


def _row(key: str, value: float, unit: str, source: str) -> dict[str, Any]:
    whole = isinstance(value, int)
    text = str(value) if whole else f"{value:g}" if unit == "1" else _text(value, unit)
    return {"field": key, "value": value, "unit": "" if unit == "1" else unit, "text": text, "source": source}


def _text(value: float, unit: str) -> str:
    """Readable quantity; sizes that are whole in binary units as they are sold: 16 GiB, but 120 GB."""
    if unit == "B":
        for name, factor in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
            if factor <= value < 4096 * factor and value % (factor / 4) == 0:
                return f"{value / factor:g} {name}"
    return format_quantity(value, unit)


def node_rows(machine: Machine) -> list[dict[str, Any]]:
    """Nodes of the first server of each kind and of the fabric, equal ones on one row."""
    rows: dict[tuple[str, str, str, str], list[str]] = {}
    places = {plan.name: plan.nodes for plan in dict.fromkeys(slot.blueprint for slot in machine.servers)}
    if machine.fabric is not None:
        places["fabric"] = machine.fabric.nodes
    for where, nodes in places.items():
        for node in nodes.values():
            key = where, node.kind, node.part.name if node.part else "", _stem(node.id)
            rows.setdefault(key, []).append(node.id)
    return [
        {"nodes": _span(ids), "count": len(ids), "kind": kind, "part": part, "in": where}
        for (where, kind, part, _), ids in rows.items()
    ]


def link_rows(machine: Machine) -> list[dict[str, Any]]:
    """Connections of the first server of each kind and of the first port of each kind on the fabric."""
    rows = []
    for plan in dict.fromkeys(slot.blueprint for slot in machine.servers):
        seen: set[frozenset[str]] = set()
        for edge in plan.edges.values():
            ends = frozenset((edge.src, edge.dst))
            if ends not in seen:
                seen.add(ends)
                back = plan.edges[f"{edge.dst}>{edge.src}"].latency
                rows.append(_link(edge.src, edge.dst, edge.part, edge.count, edge.bandwidth, edge.latency, back))
    if machine.fabric is not None and machine.servers:
        first = machine.servers[0]
        rows += [
            _link(f"{first.name}/{port.local}", port.switch, port.part, port.count, port.bandwidth, port.up, port.down)
            for port in first.ports
        ]
        ups = [edge for edge in machine.fabric.edges.values() if f"{edge.dst}>{edge.src}" > edge.id]
        rows += [
            _link(edge.src, edge.dst, edge.part, edge.count, edge.bandwidth, edge.latency, edge.latency) for edge in ups
        ]
    return rows


def grouped_links(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Connections of `link_rows`, equal ones that follow one another on one row, whose ends are ranges.

    Either side counts up by one, or one of them stays. Each row has the number of its connections as ``pairs``.
    """
    runs: list[list[Mapping[str, Any]]] = []
    first = 0  # step of the first side in the last run
    for row in rows:
        step = _step(runs[-1][-1], row) if runs else None
        if step is not None and (len(runs[-1]) == 1 or step[0] == first):
            runs[-1].append(row)
            first = step[0]
        else:
            runs.append([row])
    found: list[dict[str, Any]] = []
    for run in runs:
        if len(run) < _GROUP:
            found += [{**row, "pairs": 1} for row in run]
        else:
            ends = {side: _range(list(dict.fromkeys(row[side] for row in run))) for side in "ab"}
            found.append({**run[0], **ends, "pairs": len(run)})
    return found


def _step(row: Mapping[str, Any], following: Mapping[str, Any]) -> tuple[int, int] | None:
    """By how much both ends of a connection count up to the next one, which is equal else; None if that is no range."""
    steps = []
    for key, value in row.items():
        if key not in ("a", "b"):
            if value != following[key]:
                return None
            continue
        stem, number = _stem(value), value[len(_stem(value)) :]
        other = following[key][len(stem) :]
        if _stem(following[key]) != stem or bool(number) != bool(other):
            return None
        steps.append(int(other or 0) - int(number or 0))
    step = (steps[0], steps[1])
    return step if step in ((1, 1), (1, 0), (0, 1)) else None


def _range(names: Sequence[str]) -> str:
    """Names that differ in their number, as a server's file writes them: ``gpu{0..7}``."""
    stem = _stem(names[0])
    return names[0] if len(names) == 1 else f"{stem}{{{names[0][len(stem) :]}..{names[-1][len(stem) :]}}}"


def _stem(name: str) -> str:
    """The name of a node without its number."""
    return name.rstrip("0123456789")


def price_facts(quoted: Mapping[str, Any]) -> list[str]:
    """Prices of an hour of an instance: a line a kind of price, with its date and who asked it."""
    facts = []
    for kind in ("on_demand", "capacity_block"):
        if quoted.get(kind) is not None:
            asked = (quoted.get(f"{kind}_{key}") or quoted.get(key) for key in ("region", "date", "source"))
            told = ", ".join(str(value) for value in asked if value)
            facts.append(f"price: {quoted[kind]} {kind.replace('_', ' ')} ({told})")
    return facts


def _link(a: str, b: str, part: str, count: int, bandwidth: float, there: float, back: float) -> dict[str, Any]:
    return {
        "a": a,
        "b": b,
        "part": part,
        "count": count,
        "bandwidth": bandwidth,
        "latency_a_to_b": there,
        "latency_b_to_a": back,
    }


def machine_document(machine: Machine, spec: Mapping[str, Any]) -> dict[str, Any]:
    """A machine as one JSON value, quantities as SI numbers."""
    whole = machine if machine.fabric is None else None
    nodes = whole.nodes.values() if whole else [n for s in machine.servers[:1] for n in s.blueprint.nodes.values()]
    edges = whole.edges.values() if whole else [e for s in machine.servers[:1] for e in s.blueprint.edges.values()]
    return {
        "name": machine.name,
        "title": spec.get("title", ""),
        "servers": len(machine.servers),
        "gpus": len(machine.gpus),
        "price": machine.price,
        "price_as_quoted": spec.get("price"),
        "source": spec.get("source", {}),
        "fabric": spec.get("fabric"),
        "nodes": [{"id": n.id, "kind": n.kind, "part": n.part.name if n.part else None} for n in nodes],
        "edges": [
            {
                "id": edge.id,
                "src": edge.src,
                "dst": edge.dst,
                "bandwidth": edge.bandwidth,
                "latency": edge.latency,
                "resource": edge.resource,
                "part": edge.part,
                "count": edge.count,
            }
            for edge in edges
        ],
    }


def tree_rows(machine: Machine) -> list[tuple[str, str, str]]:
    """The first server as a tree from its sockets: (parent or "", node, label), parents first."""
    plan = machine.servers[0].blueprint
    roots = plan.ids("cpu") or list(plan.nodes)[:1]
    rows: list[tuple[str, str, str]] = []
    seen = set(roots)
    ahead = [("", root, _label(plan.nodes[root], "")) for root in reversed(roots)]
    while ahead:
        parent, node, label = ahead.pop()
        rows.append((parent, node, label))
        below = []
        for edge in plan.out[node]:
            if edge.dst not in seen and edge.technology != "nvlink" and plan.nodes[node].kind != "gpu":
                seen.add(edge.dst)
                below.append((node, edge.dst, _label(plan.nodes[edge.dst], edge.part)))
        ahead += reversed(below)
    rest = [node for node in plan.nodes if node not in seen]
    return rows + [("", node, _label(plan.nodes[node], "")) for node in rest]


def _label(node: Any, link: str) -> str:
    what = node.part.title if node.part else node.kind
    return f"{node.id}: {what}" + (f" over {link}" if link else "")


def _span(ids: list[str]) -> str:
    return ids[0] if len(ids) == 1 else f"{ids[0]} .. {ids[-1]}"
