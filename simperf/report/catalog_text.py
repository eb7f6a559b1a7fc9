"""Output of `simperf catalog`: names, a part with the source of every number, a machine with its links and tree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from simperf.errors import UnknownNameError
from simperf.hardware import KINDS, PART_KINDS, Catalog
from simperf.json_format import json_text
from simperf.report.fitted_table import FittedTable
from simperf.report.rows import rows_text
from simperf.report.terminal import titled, to_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from simperf.hardware import Machine, Part

__all__ = ["catalog_entry", "catalog_names"]

Form = Literal["table", "json", "csv"]
#: sockets of a server of which a tree shows each
_MOST_SOCKETS = 8


def catalog_names(catalog: Catalog, kind: str, form: Form) -> str:
    """Names and titles of one kind, or of all.

    Parameters
    ----------
    catalog : Catalog
    kind : str
        Its plural will do; empty for all.
    form : {"table", "json", "csv"}

    Raises
    ------
    UnknownNameError
        There is no such kind.
    """
    kind = kind[:-1] if kind.endswith("s") and kind[:-1] in KINDS else kind
    if kind and kind not in KINDS:
        raise UnknownNameError("kind", kind, KINDS)
    rows = [
        {"kind": each, "name": name, "title": str(catalog.file(each, name).data.get("title", ""))}
        for each in ([kind] if kind else KINDS)
        for name in catalog.names(each)
    ]
    return rows_text(rows, form) + (f"\n\n{len(rows)} entries" if form == "table" else "")


def catalog_entry(catalog: Catalog, name: str, kind: str, form: Form) -> str:
    """One part with the unit and source of every number, or one server or cluster with its links.

    Parameters
    ----------
    catalog : Catalog
    name : str
    kind : str
        Which one, if several kinds have the name; empty for all of them.
    form : {"table", "json", "csv"}

    Raises
    ------
    UnknownNameError
        There is no such kind or name.
    """
    if kind and kind not in KINDS:
        raise UnknownNameError("kind", kind, KINDS)
    kinds = [each for each in catalog.kinds_of(name) if not kind or each == kind]
    if not kinds:
        known = [each for one in ([kind] if kind else KINDS) for each in catalog.names(one)]
        raise UnknownNameError(kind or "name in the catalog", name, known, other=next(iter(catalog.kinds_of(name)), ""))
    return "\n".join(
        _part(catalog.part(each, name), form) if each in PART_KINDS else _machine(catalog, each, name, form)
        for each in kinds
    )


def _part(part: Part, form: Form) -> str:
    from simperf.hardware.view import part_rows, part_words

    rows, words = part_rows(part), part_words(part)
    if form == "json":
        return json_text({"kind": part.KIND, "name": part.name, **words, "numbers": rows})
    if form == "csv":
        return rows_text(rows, form)
    from rich.console import Group
    from rich.text import Text

    told = ", ".join(f"{key} {value}" for key, value in words.items() if key != "title")
    parts: list[RenderableType] = [Text(f"{part.KIND} {part.name}: {part.title}", style="bold")]
    parts += [Text(told)] if told else []
    places = {source: f"[{count}]" for count, source in enumerate(dict.fromkeys(row["source"] for row in rows), 1)}
    numbers = [[row["field"], row["text"], places[row["source"]]] for row in rows]
    parts += [Text(""), FittedTable(("number", "value", "source"), numbers, left=("value",))]
    parts += titled("Sources", FittedTable((), [[place, source] for source, place in places.items()]))
    return to_text(Group(*parts))


def _machine(catalog: Catalog, kind: str, name: str, form: Form) -> str:
    from simperf.hardware.view import grouped_links, link_rows, machine_document, node_rows

    machine = catalog.machine(name)
    spec = catalog.file(kind, name).data
    if form == "json":
        return json_text({"kind": kind, **machine_document(machine, spec)})
    if form == "csv":
        units = {"bandwidth": "B/s", "latency_a_to_b": "s", "latency_b_to_a": "s"}
        return rows_text(link_rows(machine), form, units=units)
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = [Text(f"{kind} {name}: {spec.get('title', '')}", style="bold")]
    parts += [Padding(Text(fact), (0, 0, 0, 2)) for fact in _facts(machine, kind, spec)]
    parts += titled("Nodes" if kind == "server" else "Nodes of each server", _cells(node_rows(machine)))
    links = [_readable_link(row) for row in grouped_links(link_rows(machine))]
    parts += titled("Links, bandwidth in each direction", _cells(links))
    return to_text(Group(*parts, Text(""), *_tree(machine)))


def _cells(rows: Sequence[Mapping[str, Any]]) -> FittedTable:
    header = list(rows[0]) if rows else []
    cells = [[str(value) for value in row.values()] for row in rows]
    return FittedTable(header, cells, left=("bandwidth", "latency"), whole=(0,))


def _readable_link(row: Mapping[str, Any]) -> dict[str, Any]:
    from simperf.units import format_quantity

    there, back = (format_quantity(row[key], "s", digits=3) for key in ("latency_a_to_b", "latency_b_to_a"))
    return {
        "link": f"{row['a']} - {row['b']}",
        "pairs": row["pairs"],
        "part": f"{row['count']} x {row['part']}" if row["count"] > 1 else row["part"],
        "bandwidth": format_quantity(row["bandwidth"], "B/s"),
        "latency": there if there == back else f"{there}, back {back}",
    }


def _facts(machine: Machine, kind: str, spec: Mapping[str, Any]) -> list[str]:
    from simperf.hardware.view import price_facts

    facts = [f"cloud: {spec['cloud']}"] if spec.get("cloud") else []
    facts += [f"{key}: {value}" for key, value in spec.get("fabric", {}).items()]
    prices = price_facts(spec.get("price", {}))
    if kind == "server" and not prices:
        prices = ["price: none, as the catalogue has no dated source of one"]
    elif machine.price is not None and kind == "cluster":
        prices = [f"price: {machine.price:.2f} USD/h on demand for {len(machine.servers)} servers"]
    source = spec.get("source", {}).get("default", "")
    return [*facts, *prices, *([f"source: {source}"] if source else [])]


def _tree(machine: Machine) -> list[RenderableType]:
    """The first server as a tree; sockets with the same below them as an earlier one are counted, if there are many."""
    from rich.text import Text
    from rich.tree import Tree

    from simperf.hardware.view import tree_rows

    tree, at = Tree(Text(machine.servers[0].blueprint.name, style="bold")), {"": ""}
    below: dict[str, list[tuple[str, str, str]]] = {}
    for parent, node, label in tree_rows(machine):
        at[node] = at[parent] or node
        below.setdefault(at[node], []).append((parent, node, label))
    shapes: dict[tuple[str, ...], int] = {}
    for rows in below.values():
        shape = tuple(re.sub(r"^(\D+)\d+:", r"\1:", label) for _, _, label in rows)
        shapes[shape] = shapes.get(shape, 0) + 1
        if len(below) > _MOST_SOCKETS and shapes[shape] > 1:
            continue
        branches = {rows[0][0]: tree}
        for parent, node, label in rows:
            branches[node] = branches[parent].add(Text(label))
    more = sum(count - 1 for count in shapes.values()) if len(below) > _MOST_SOCKETS else 0
    return [tree, *([Text(f"({more} more that are connected in the same way)")] if more else [])]
