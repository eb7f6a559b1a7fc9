"""Places of a machine's nodes in a drawing: layers of networkx's multipartite layout, sockets first, GPUs last.

Places are (place within the layer, layer): pictures lay layers below each other, or beside each other where narrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import networkx as nx

from simperf.hardware import Edge, Fabric, Machine, Node, ServerSlot

__all__ = ["MachineLayout", "Place", "cluster_layout", "server_layout"]

#: servers of a cluster that are drawn
_SERVERS = 8
_ORDER = ("cpu", "switch", "pcie-switch", "gpu", "nic", "storage", "nvswitch")
Place = tuple[float, float]


@dataclass(slots=True)
class MachineLayout:
    """Layout of a drawing: boxes at places, and the links between them.

    Parameters
    ----------
    places : dict of str to pair of float
        By node: place within its layer, 1 apart where the layer is fullest, and the layer, from 0.
    nodes : dict of str to Node
    texts : dict of str to str
        What stands in a box, if that is not the node's name.
    links : list of (Edge, str)
        Each drawn as a ``"line"`` or an ``"arc"``.
    wide : set of str
        Nodes as long as the layer beside them.
    shares : dict of str to tuple of str
        Resources whose load a link shows, by the edge.
    remark : str
        What is left out.
    """

    places: dict[str, Place] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    links: list[tuple[Edge, str]] = field(default_factory=list)
    wide: set[str] = field(default_factory=set)
    shares: dict[str, tuple[str, ...]] = field(default_factory=dict)
    remark: str = ""


def _placed(layers: Mapping[int, Sequence[str]]) -> dict[str, Place]:
    """Places of nodes in layers, each spread over the length of the fullest."""
    graph = nx.Graph()
    graph.add_nodes_from(node for layer in layers.values() for node in layer)
    found = nx.multipartite_layout(graph, subset_key=layers, align="vertical", scale=1.0)
    most = max(len(layer) for layer in layers.values())
    step = next((abs(found[a][1] - found[b][1]) for a, b, *_ in (one for one in layers.values() if len(one) > 1)), 1.0)
    return {
        node: (float(found[node][1]) / step * most / len(layer), float(level))
        for level, layer in layers.items()
        for node in layer
    }


def server_layout(machine: Machine) -> MachineLayout:
    """Tree from the sockets down to the devices; NVLinks as arcs or an NVSwitch below the GPUs."""
    made = MachineLayout(nodes=dict(machine.nodes))
    once = [edge for edge in machine.edges.values() if f"{edge.dst}>{edge.src}" > edge.id]
    once = [
        edge if _rank(machine, edge.src) <= _rank(machine, edge.dst) else machine.edges[f"{edge.dst}>{edge.src}"]
        for edge in once
    ]
    down = nx.DiGraph()
    down.add_nodes_from(machine.nodes)
    down.add_edges_from(
        (edge.src, edge.dst)
        for edge in machine.edges.values()
        if edge.technology != "nvlink"
        and machine.nodes[edge.src].kind not in ("gpu", "nvswitch")
        and machine.nodes[edge.dst].kind != "nvswitch"
    )
    roots = list(machine.cpus) or [n.id for n in machine.nodes.values() if n.kind in ("switch", "pcie-switch")][:1]
    depth, paths = nx.multi_source_dijkstra(down, roots, weight=None) if roots else ({}, {})
    tree = nx.DiGraph()
    tree.add_nodes_from(machine.nodes)
    tree.add_edges_from((path[-2], node) for node, path in paths.items() if len(path) > 1)
    order = list(dict.fromkeys([*(n for root in roots for n in nx.dfs_preorder_nodes(tree, root)), *machine.nodes]))
    above = {n for n, d in depth.items() if d == 1 and machine.nodes[n].kind in ("nic", "storage")}
    above = {n for n in above if paths[n][0] in machine.cpus}
    bottom = max((depth[n] for n in depth if n not in above), default=0)
    levels: dict[int, list[str]] = {}
    for node in order:
        kind = machine.nodes[node].kind
        if kind == "nvswitch":
            made.wide.add(node)
            continue
        low = node not in above and (kind in ("gpu", "nic") or node not in depth)
        level = -1 if node in above else bottom if low else depth[node]
        levels.setdefault(level, []).append(node)
    top = min(levels)
    made.places = _placed({level - top: levels[level] for level in sorted(levels)})
    last = max(level for _, level in made.places.values())
    made.places |= dict.fromkeys(made.wide, (0.0, last + 1.2))
    for edge in once:
        flat = made.places[edge.src][1] == made.places[edge.dst][1]
        gpus = machine.nodes[edge.src].kind == machine.nodes[edge.dst].kind == "gpu"
        made.links.append((edge, "arc" if flat and gpus else "line"))
        made.shares[edge.id] = (edge.resource, machine.edges[f"{edge.dst}>{edge.src}"].resource)
    return made


def _rank(machine: Machine, node: str) -> int:
    return _ORDER.index(machine.nodes[node].kind)


def cluster_layout(machine: Machine) -> MachineLayout:
    """Switches above, the first servers below, one link for each kind of cable."""
    made = MachineLayout()
    fabric = machine.fabric or Fabric()
    shown = _some(machine)
    for slot in shown:
        counts = [(slot.blueprint.ids(kind), word) for kind, word in (("gpu", "GPUs"), ("nic", "NICs"))]
        lines = [f"{len(ids)} {word}" for ids, word in counts if ids]
        made.nodes[slot.name] = Node(slot.name, "server", None, slot.name)
        made.texts[slot.name] = "\n".join([slot.name, slot.blueprint.name, ", ".join(lines)])
    used = {port.switch for slot in shown for port in slot.ports}
    leaves = [name for name in fabric.nodes if name in used]
    spines = [name for name in fabric.nodes if not name.startswith(("leaf", "rail", "switch"))]
    made.nodes |= {name: machine.nodes[name] for name in (*leaves, *spines)}
    layers = [layer for layer in (spines, leaves, [slot.name for slot in shown]) if layer]
    made.places = _placed(dict(enumerate(layers)))
    for slot in shown:
        for name in dict.fromkeys(port.switch for port in slot.ports):
            cables = [machine.edges[f"{slot.name}/{port.local}>{name}"] for port in slot.ports if port.switch == name]
            first, edge = cables[0], f"{slot.name}>{name}"
            rate, count = sum(cable.bandwidth for cable in cables), sum(cable.count for cable in cables)
            route = slot.name, name, rate, first.latency, first.resource, first.part, count
            made.links.append((Edge(edge, *route, technology=first.technology), "line"))
            back = [machine.edges[f"{cable.dst}>{cable.src}"] for cable in cables]
            made.shares[edge] = tuple(cable.resource for cable in [*cables, *back])
    drawn = [edge for edge in fabric.edges.values() if edge.src in leaves and edge.dst in spines]
    made.links += [(edge, "line") for edge in drawn]
    made.shares |= {e.id: (e.resource, fabric.edges[f"{e.dst}>{e.src}"].resource) for e in drawn}
    hidden = len(machine.servers) - len(shown)
    if hidden:
        unseen = len(fabric.nodes) - len(leaves) - len(spines)
        made.remark = f"{hidden} more servers are connected in the same way and not drawn"
        if unseen:
            made.remark = f"{hidden} more servers and {unseen} switches are connected in the same way and not drawn"
    return made


def _some(machine: Machine) -> list[ServerSlot]:
    """Servers to draw: as many of each group of equally wired ones as there is room for."""
    groups: dict[tuple[str, ...], list[ServerSlot]] = {}
    for slot in machine.servers:
        groups.setdefault(tuple(port.switch for port in slot.ports), []).append(slot)
    if len(machine.servers) <= _SERVERS:
        return list(machine.servers)
    each = max(1, _SERVERS // len(groups))
    return [slot for group in groups.values() for slot in group[:each]][:_SERVERS]
