"""`simperf catalog`: what parts, servers and clusters there are, with every number's unit and source."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from simperf.hardware import Catalog, Machine, Part

__all__ = ["app"]

app = typer.Typer(help="List and show parts, servers and clusters.", no_args_is_help=True)

Folder = Annotated[
    list[Path] | None,
    typer.Option(
        "--folder", metavar="FOLDER", help="A folder with parts of your own, beside the built-in ones; may be repeated."
    ),
]
#: sockets of a server of which a tree shows each
_MOST_SOCKETS = 8
Format = Annotated[Literal["table", "json", "csv"], typer.Option("--format", help="How to write the result.")]


@app.command("list")
def list_names(
    kind: Annotated[
        str, typer.Argument(metavar="[KIND]", help="gpu, cpu, link, ..., server or cluster; all if left out.")
    ] = "",
    folder: Folder = None,
    output: Format = "table",
) -> None:
    """List what the catalog holds."""
    from simperf.errors import UnknownNameError
    from simperf.hardware import KINDS, Catalog

    kind = kind[:-1] if kind.endswith("s") and kind[:-1] in KINDS else kind
    if kind and kind not in KINDS:
        raise UnknownNameError("kind", kind, KINDS)
    catalog = Catalog.load(folder or ())
    rows = [
        {"kind": each, "name": name, "title": str(catalog.file(each, name).data.get("title", ""))}
        for each in ([kind] if kind else KINDS)
        for name in catalog.names(each)
    ]
    _write(rows, output, title=f"{len(rows)} entries")


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from `simperf catalog list`.")],
    kind: Annotated[str, typer.Option("--kind", help="Which one, if several kinds have this name.")] = "",
    folder: Folder = None,
    output: Format = "table",
) -> None:
    """Show one part with the unit and source of every number, or one server or cluster with its wiring."""
    from simperf.errors import UnknownNameError
    from simperf.hardware import KINDS, PART_KINDS, Catalog

    if kind and kind not in KINDS:
        raise UnknownNameError("kind", kind, KINDS)
    catalog = Catalog.load(folder or ())
    kinds = [each for each in catalog.kinds_of(name) if not kind or each == kind]
    if not kinds:
        known = [each for one in ([kind] if kind else KINDS) for each in catalog.names(one)]
        raise UnknownNameError(kind or "name in the catalog", name, known, other=next(iter(catalog.kinds_of(name)), ""))
    for each in kinds:
        if each in PART_KINDS:
            _show_part(catalog.part(each, name), output)
        else:
            _show_machine(catalog, each, name, output)


def _show_part(part: Part, output: str) -> None:
    from simperf.hardware.view import part_rows, part_words

    rows = part_rows(part)
    if output == "json":
        _json({"kind": part.KIND, "name": part.name, **part_words(part), "numbers": rows})
        return
    head = f"{part.KIND} {part.name}: {part.title}"
    words = ", ".join(f"{key} {value}" for key, value in part_words(part).items() if key != "title")
    _write(
        rows if output == "csv" else [_readable(row) for row in rows],
        output,
        title=head + (f" ({words})" if words else ""),
    )


def _readable(row: dict[str, Any]) -> dict[str, Any]:
    return {"number": row["field"], "value": row["text"], "source": row["source"]}


def _readable_link(row: dict[str, Any]) -> dict[str, Any]:
    from simperf.units import format_quantity

    there, back = (format_quantity(row[key], "s", digits=3) for key in ("latency_a_to_b", "latency_b_to_a"))
    return {
        "link": f"{row['a']} - {row['b']}",
        "pairs": row["pairs"],
        "part": f"{row['count']} x {row['part']}" if row["count"] > 1 else row["part"],
        "bandwidth": format_quantity(row["bandwidth"], "B/s"),
        "latency": there if there == back else f"{there}, back {back}",
    }


def _show_machine(catalog: Catalog, kind: str, name: str, output: str) -> None:
    from textwrap import wrap

    from simperf.hardware.view import grouped_links, link_rows, machine_document, node_rows
    from simperf.report.terminal import columns

    machine = catalog.machine(name)
    spec = catalog.file(kind, name).data
    if output == "json":
        _json({"kind": kind, **machine_document(machine, spec)})
        return
    if output == "csv":
        from simperf.report.rows import rows_text

        units = {"bandwidth": "B/s", "latency_a_to_b": "s", "latency_b_to_a": "s"}
        typer.echo(rows_text(link_rows(machine), output, units=units))
        return
    typer.echo(f"{kind} {name}: {spec.get('title', '')}")
    for fact in _facts(machine, kind, spec):
        typer.echo("\n".join(wrap(fact, columns(), initial_indent="  ", subsequent_indent="    ")))
    _write(node_rows(machine), output, title="nodes" if kind == "server" else "nodes of each server")
    links = [_readable_link(row) for row in grouped_links(link_rows(machine))]
    _write(links, output, title="links (bandwidth a direction)")
    _tree(machine)


def _facts(machine: Machine, kind: str, spec: dict[str, Any]) -> list[str]:
    from simperf.hardware.view import price_facts

    facts = [f"cloud: {spec['cloud']}"] if spec.get("cloud") else []
    facts += [f"{key.replace('_', ' ')}: {value}" for key, value in spec.get("fabric", {}).items()]
    prices = price_facts(spec.get("price", {}))
    if kind == "server" and not prices:
        prices = ["price: none, as the catalogue has no dated source of one"]
    elif machine.price is not None and kind == "cluster":
        prices = [f"price: {machine.price:.2f} USD/h on demand for {len(machine.servers)} servers"]
    source = spec.get("source", {}).get("default", "")
    return [*facts, *prices, *([f"source: {source}"] if source else [])]


def _tree(machine: Machine) -> None:
    """The first server as a tree; sockets with the same below them as an earlier one are counted, if there are many."""
    from rich.tree import Tree

    from simperf.hardware.view import tree_rows
    from simperf.report.terminal import to_text

    tree, at = Tree(machine.servers[0].blueprint.name), {"": ""}
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
            branches[node] = branches[parent].add(label)
    more = sum(count - 1 for count in shapes.values()) if len(below) > _MOST_SOCKETS else 0
    typer.echo(to_text(tree) + (f"\n({more} more that are wired in the same way)" if more else ""))


def _write(rows: list[dict[str, Any]], output: str, *, title: str = "") -> None:
    if output == "json":
        _json(rows)
        return
    if output == "csv":
        import csv
        import io

        stream = io.StringIO()
        writer = csv.DictWriter(stream, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        typer.echo(stream.getvalue(), nl=False)
        return
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from simperf.report.terminal import to_text

    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(rows[0] if rows else ()):
        table.add_column(column, overflow="fold", no_wrap=index == 0)
    for row in rows:
        table.add_row(*(escape(str(value)) for value in row.values()))
    typer.echo(to_text(table))


def _json(data: Any) -> None:
    import json

    typer.echo(json.dumps(data, indent=2, sort_keys=False, ensure_ascii=False))
