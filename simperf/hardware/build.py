"""From a server's table to its blueprint: nodes and links are expanded, looked up and wired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, cast

from simperf.errors import InputError, Problem, UnknownNameError, nearest
from simperf.files import TomlFile, dotted
from simperf.hardware.blueprint import Blueprint, Edge, Node, forwarding_latency
from simperf.hardware.check import blueprint_problems
from simperf.hardware.devices import LinkPart, NicPart, SwitchPart
from simperf.hardware.netstack import Hosting, NetworkStackPart, Shaping
from simperf.hardware.part import Part
from simperf.hardware.part_catalog import PartCatalog

__all__ = ["blueprint_of", "server_blueprint"]

_SWITCHES = {"pcie": "pcie-switch", "nvlink": "nvswitch"}
_PARTS = ("gpu", "cpu", "nic", "storage", "switch")
Key = tuple[str | int, ...]


class Wire(NamedTuple):
    """A link's numbers, resolved: payload bandwidth of one, latency, name, sharing and flow limit."""

    bandwidth: float
    latency: float
    part: str
    shared: bool
    flow_limit: float
    technology: str = ""


def server_blueprint(name: str, catalog: PartCatalog) -> Blueprint:
    """Topology of the server `name` of the catalog.

    Raises
    ------
    UnknownNameError, InputError
        No such server; its file is wrong.
    """
    toml = catalog.file("server", name)
    return blueprint_of(name, toml.data, catalog, toml, ())


def blueprint_of(name: str, spec: Mapping[str, Any], catalog: PartCatalog, toml: TomlFile, at: Key) -> Blueprint:
    """Topology of the server that a table describes.

    Raises
    ------
    InputError
        All that is wrong with the table.
    """
    from simperf.hardware.schema import validate
    from simperf.hardware.wiring import ServerSpec

    model, problems = validate(ServerSpec, spec, toml, at=at)
    if model is None:
        raise InputError(problems)
    server = cast(ServerSpec, model)
    nodes = _nodes(server, catalog, toml, at, problems)
    edges = _edges(server, nodes, catalog, toml, at, problems)
    if server.price is None or server.price.on_demand is None:
        price, asked = None, ""
    else:
        price = server.price.on_demand
        asked = ", ".join(text for text in (server.price.source, server.price.region, server.price.date) if text)
    hosting = hosting_of(server, _shaped(server, edges), catalog, toml, at, problems)
    plan = Blueprint(name, nodes, edges, server.peer_access, server.gpu_direct, price, server.title, asked, hosting)
    if not problems:
        problems = [toml.problem((*at, "node"), message) for message in blueprint_problems(plan)]
    if problems:
        raise InputError(sorted(problems, key=lambda row: row.line))
    return plan


def hosting_of(
    spec: Any, shaped: Mapping[str, Shaping], catalog: PartCatalog, toml: TomlFile, at: Key, problems: list[Problem]
) -> Hosting:
    """Hosting that a server's or a cluster's table describes."""
    stack: NetworkStackPart | None = None
    if spec.network_stack is not None:
        said = spec.network_stack.model_dump(exclude_none=True)
        found = _part("network-stack", said.pop("use"), catalog, toml, (*at, "network_stack"), problems)
        stack = cast("NetworkStackPart | None", found)
        if stack is not None and said:
            stack = replace(stack, sources={**stack.sources, **dict.fromkeys(said, "the machine's table")}, **said)
    return Hosting(stack, spec.shared_cores, shaped)


def _shaped(spec: Any, edges: Mapping[str, Edge]) -> dict[str, Shaping]:
    """Token buckets by resource, at both ends of each shaped link."""
    from simperf.hardware.wiring import expand

    found: dict[str, Shaping] = {}
    for item in spec.link:
        if item.burst and item.peak:
            ends = [set(expand(item.a)), set(expand(item.b))]
            for one in edges.values():
                if any(one.src in near and one.dst in far for near, far in (ends, ends[::-1])):
                    found[one.resource] = Shaping(item.burst, item.peak)
    return found


def _nodes(spec: Any, catalog: PartCatalog, toml: TomlFile, at: Key, problems: list[Problem]) -> dict[str, Node]:
    from simperf.hardware.wiring import expand

    nodes: dict[str, Node] = {}
    for row, item in enumerate(spec.node):
        key = (*at, "node", row)
        try:
            names = expand(item.id)
        except ValueError as error:
            problems.append(toml.problem((*key, "id"), str(error), value=item.id))
            continue
        kind, part = item.kind, None
        for field in _PARTS:
            wanted = getattr(item, field)
            if wanted is not None:
                kind = field
                part = _part(field, wanted, catalog, toml, (*key, field), problems)
        if isinstance(part, SwitchPart):
            kind = _SWITCHES.get(part.technology, "switch")
        for name in names:
            if name in nodes:
                old = nodes[name].part
                both = (
                    ""
                    if old == part
                    else f", as {old.name if old else 'no part'} and as {part.name if part else 'no part'}"
                )
                problems.append(toml.problem((*key, "id"), f"the node {name!r} is defined twice{both}", value=item.id))
            nodes[name] = Node(name, kind, part, item.server)
    return nodes


def _edges(
    spec: Any, nodes: dict[str, Node], catalog: PartCatalog, toml: TomlFile, at: Key, problems: list[Problem]
) -> dict[str, Edge]:
    from simperf.hardware.wiring import expand, zipped

    edges: dict[str, Edge] = {}
    for row, item in enumerate(spec.link):
        key = (*at, "link", row)
        wire = resolve(item, catalog, toml, key, problems)
        try:
            pairs = zipped(expand(item.a), expand(item.b))
        except ValueError as error:
            problems.append(toml.problem(key, str(error), value=f"{item.a} - {item.b}"))
            continue
        unknown = [(side, end) for pair in pairs for side, end in zip("ab", pair, strict=True) if end not in nodes]
        for side, end in dict.fromkeys(unknown):
            message = f"the link leads to {end!r}, which is no node{nearest(end, nodes)}"
            problems.append(toml.problem((*key, side), message))
        for a, b in pairs:
            if a == b:
                message = f"both ends of the link are {a!r}"
                problems.append(toml.problem(key, message, expected="two different nodes, as a and b"))
            elif f"{a}>{b}" in edges:
                message = f"{a!r} and {b!r} are linked twice: use count = ... for parallel links"
                problems.append(toml.problem(key, message))
            elif a in nodes and b in nodes and wire is not None:
                edges |= pair_of_edges(nodes[a], nodes[b], wire, item.count)
    return edges


def pair_of_edges(a: Node, b: Node, wire: Wire, count: int) -> dict[str, Edge]:
    """Both directions of a connection, by id."""
    found = {}
    for one, two in ((a, b), (b, a)):
        name = f"{one.id}>{two.id}"
        found[name] = Edge(
            name,
            one.id,
            two.id,
            wire.bandwidth * count,
            wire.latency + forwarding_latency(one),
            f"{a.id}={b.id}" if wire.shared else name,
            wire.part,
            count,
            min([wire.flow_limit, *(_limit(node) for node in (a, b))]),
            wire.technology,
        )
    return found


def _limit(node: Node) -> float:
    limited = isinstance(node.part, NicPart) and node.part.flow_limit is not None
    return cast(float, cast(NicPart, node.part).flow_limit) if limited else float("inf")


def resolve(item: Any, catalog: PartCatalog, toml: TomlFile, key: Key, problems: list[Problem]) -> Wire | None:
    """Numbers of a link's table: those of its part, replaced by what the table says itself."""
    name = getattr(item, "link", None) if hasattr(item, "link") else item.part
    part: LinkPart | None = None
    if name is not None:
        field = "link" if hasattr(item, "link") else "part"
        part = cast("LinkPart | None", _part("link", name, catalog, toml, (*key, field), problems))
        if part is None:
            return None
    latency = item.latency if item.latency is not None else part.latency if part else 0.0
    if item.length:
        if part is None or part.velocity is None:
            problems.append(
                toml.problem(
                    (*key, "length"),
                    "this link has no velocity, so that a length says nothing",
                    expected="no length, or velocity in the file of the link",
                )
            )
        else:
            latency += item.length / part.velocity
    bandwidth = item.bandwidth if item.bandwidth is not None else part.bandwidth if part else 0.0
    said = getattr(item, "shared", None)
    shared = said if said is not None else part.shared if part else False
    limit = part.flow_limit if part and part.flow_limit is not None else float("inf")
    return Wire(bandwidth, latency, part.name if part else "", shared, limit, part.technology if part else "")


def _part(kind: str, name: str, catalog: PartCatalog, toml: TomlFile, key: Key, problems: list[Problem]) -> Part | None:
    try:
        return catalog.part(kind, name)
    except UnknownNameError as error:
        problems.append(toml.problem(key, str(error), value=name))
    except InputError as error:
        problems += error.problems
        problems.append(
            toml.problem(
                key,
                f"the {kind} {name!r} that {dotted(key)} names is wrong (see its file)",
                expected="a part without errors: `simperf check` tells them",
            )
        )
    return None
