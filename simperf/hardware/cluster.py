"""Clusters: servers on a star, a two-tier fat tree, or rails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from simperf.errors import InputError, Problem, UnknownNameError
from simperf.files import TomlFile
from simperf.hardware.blueprint import Blueprint, Edge, Node, forwarding_latency
from simperf.hardware.build import Wire, hosting_of, pair_of_edges, resolve, server_blueprint
from simperf.hardware.devices import NicPart
from simperf.hardware.fabric import Fabric, Port, ServerSlot
from simperf.hardware.machine import Machine
from simperf.hardware.netstack import Shaping
from simperf.hardware.part_catalog import PartCatalog

__all__ = ["build_cluster", "cluster_of"]


def build_cluster(
    server: str | Sequence[tuple[str, int]],
    count: int = 1,
    *,
    catalog: PartCatalog | None = None,
    fabric: str = "star",
    name: str = "",
    cables: int = 1,
    **options: Any,
) -> Machine:
    """Build a cluster of catalog servers.

    Parameters
    ----------
    server : str or sequence of (str, int)
        Name of the server, or several with how many of each.
    count : int
        How many, if `server` is one name.
    catalog : Catalog or None
        The built-in one if None.
    fabric : {"star", "fat-tree", "rail"}
        One switch; leaf switches below a spine; NIC i of every server on rail switch i, rails joined by a spine.
    name : str
        Of the machine.
    cables : int
        Of each NIC: ``count`` of a cluster's ``[fabric]`` table.
    **options
        As in that table: ``link``, ``switch``, ``bandwidth``, ``latency``, ``length``, ``servers_per_leaf``,
        ``oversubscription``, ``uplink``, ``spines``, ``spine``.

    Raises
    ------
    InputError
        All that is wrong with the options.

    Examples
    --------
    >>> cluster = build_cluster("dgx-a100", 4, link="infiniband-hdr")
    >>> len(cluster.gpus), cluster.gpus[-1]
    (32, 'n3/gpu7')
    """
    spec: dict[str, Any] = {"kind": "cluster", "fabric": {"type": fabric, "count": cables, **options}}
    if isinstance(server, str):
        spec |= {"server": server, "count": count}
    else:
        spec["group"] = [{"server": each, "count": number} for each, number in server]
    label = name or (f"{count} x {server}" if isinstance(server, str) else "cluster")
    return cluster_of(spec, catalog or PartCatalog.load(), TomlFile("", {}, ""), name=label, at=())


def cluster_of(
    spec: Mapping[str, Any], catalog: PartCatalog, toml: TomlFile, *, name: str, at: tuple[str | int, ...]
) -> Machine:
    """Build the cluster that a table describes.

    Raises
    ------
    InputError
        All that is wrong with the table.
    """
    from simperf.hardware.schema import validate
    from simperf.hardware.wiring import ClusterSpec

    model, problems = validate(ClusterSpec, spec, toml, at=at)
    if model is None:
        raise InputError(problems)
    cluster = cast(ClusterSpec, model)
    groups = [(group.server, group.count) for group in cluster.group] or [(str(cluster.server), cluster.count)]
    plans: list[Blueprint] = []
    for row, (server, number) in enumerate(groups):
        key = (*at, "group", row, "server") if cluster.group else (*at, "server")
        try:
            plans += [server_blueprint(server, catalog)] * number
        except UnknownNameError as error:
            problems.append(toml.problem(key, str(error), value=server))
    where = (*at, "fabric")
    wire = resolve(cluster.fabric, catalog, toml, where, problems)
    up = wire
    switch = None
    try:
        if cluster.fabric.uplink is not None:
            part = catalog.link(cluster.fabric.uplink)
            up = Wire(part.bandwidth, part.latency, part.name, False, float("inf"), part.technology)
        switch = catalog.part("switch", cluster.fabric.switch) if cluster.fabric.switch is not None else None
    except UnknownNameError as error:
        problems.append(toml.problem((*where, "uplink" if error.kind == "link" else "switch"), str(error)))
    hosting = hosting_of(cluster, {}, catalog, toml, at, problems)
    doors = {plan: _doors(plan) for plan in dict.fromkeys(plans)}
    problems += [
        toml.problem(
            at, f"the server {plan.name!r} has no NIC to plug into the fabric", expected="a server with one NIC or more"
        )
        for plan, found in doors.items()
        if not found
    ]
    if problems or wire is None or up is None:
        raise InputError(_once(problems))
    build = {"star": _star, "fat-tree": _fat_tree, "rail": _rail}[cluster.fabric.type]
    fabric, leaf = build(cluster.fabric, plans, doors, wire, up, lambda label: Node(label, "switch", switch))
    slots = []
    made: dict[tuple[Any, ...], tuple[Port, ...]] = {}
    for index, plan in enumerate(plans):
        switches = tuple(leaf(index, rank) for rank in range(len(doors[plan])))
        if (plan, switches) not in made:
            made[plan, switches] = tuple(
                _port(plan, local, fabric.nodes[where], wire, cluster.fabric.count)
                for local, where in zip(doors[plan], switches, strict=True)
            )
        slots.append(ServerSlot(f"n{index}", plan, made[plan, switches]))
    if cluster.fabric.burst and cluster.fabric.peak:
        ends = [(f"{slot.name}/{port.local}", port.switch) for slot in slots for port in slot.ports]
        links = [f"{a}>{b}" for one, two in ends for a, b in ((one, two), (two, one))]
        hosting = replace(hosting, shaped=dict.fromkeys(links, Shaping(cluster.fabric.burst, cluster.fabric.peak)))
    return Machine(name, slots, fabric=fabric, hosting=hosting)


def _doors(plan: Blueprint) -> list[str]:
    """Nodes of a server that are plugged into the fabric: its NICs, or its GPUs if it is nothing else."""
    nics = plan.ids("nic")
    bare = all(node.kind == "gpu" for node in plan.nodes.values())
    return nics or (plan.ids("gpu") if bare else [])


def _port(plan: Blueprint, local: str, switch: Node, wire: Wire, count: int) -> Port:
    node = plan.nodes[local]
    limit = node.part.flow_limit if isinstance(node.part, NicPart) and node.part.flow_limit else float("inf")
    return Port(
        local,
        switch.id,
        wire.bandwidth * count,
        wire.latency + forwarding_latency(node),
        wire.latency + forwarding_latency(switch),
        wire.part,
        count,
        min(limit, wire.flow_limit),
        wire.technology,
    )


Leaf = Callable[[int, int], str]
Make = Callable[[str], Node]


def _star(
    spec: Any, plans: list[Blueprint], doors: dict[Blueprint, list[str]], wire: Wire, up: Wire, make: Make
) -> tuple[Fabric, Leaf]:
    return Fabric({"switch0": make("switch0")}), lambda server, rank: "switch0"


def _fat_tree(
    spec: Any, plans: list[Blueprint], doors: dict[Blueprint, list[str]], wire: Wire, up: Wire, make: Make
) -> tuple[Fabric, Leaf]:
    """Leaf switches with `servers_per_leaf` servers each below a spine.

    A leaf's links to the spine carry what its servers can send, divided by the oversubscription.
    """
    per = spec.servers_per_leaf
    leaves = -(-len(plans) // per)
    below = max(len(doors[plan]) for plan in plans) * min(per, len(plans)) * wire.bandwidth * spec.count
    fabric = _spined([f"leaf{index}" for index in range(leaves)], below, spec, up, make)
    return fabric, lambda server, rank: f"leaf{server // per}"


def _rail(
    spec: Any, plans: list[Blueprint], doors: dict[Blueprint, list[str]], wire: Wire, up: Wire, make: Make
) -> tuple[Fabric, Leaf]:
    """Rail switches, one for NIC i of every server, joined by a spine unless ``spine = false``."""
    rails = [f"rail{index}" for index in range(max(len(found) for found in doors.values()))]
    below = len(plans) * wire.bandwidth * spec.count
    fabric = _spined(rails, below, spec, up, make) if spec.spine else Fabric({rail: make(rail) for rail in rails})
    return fabric, lambda server, rank: f"rail{rank}"


def _spined(leaves: list[str], below: float, spec: Any, up: Wire, make: Make) -> Fabric:
    nodes = {leaf: make(leaf) for leaf in leaves}
    edges: dict[str, Edge] = {}
    spines = [f"spine{index}" for index in range(spec.spines or 1)] if len(leaves) > 1 else []
    capacity = below / spec.oversubscription / max(1, len(spines))
    cables = max(1, round(capacity / up.bandwidth))
    share = up._replace(bandwidth=capacity / cables)
    for spine in spines:
        nodes[spine] = make(spine)
        for leaf in leaves:
            edges |= pair_of_edges(nodes[leaf], nodes[spine], share, cables)
    lanes = {spine: index for index, spine in enumerate(spines)} if spec.spines else {}
    return Fabric(nodes, edges, lanes)


def _once(problems: list[Problem]) -> list[Problem]:
    return list(dict.fromkeys(problems))
