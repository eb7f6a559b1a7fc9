"""Pictures of machines: a server as a tree with its NVLinks below, a cluster as servers under switches.

Colours are those of Okabe and Ito, which people with any kind of colour vision tell apart; link
kinds differ in dash as well. Labels are bandwidths a direction in GB/s.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from simperf.errors import InputError, Problem
from simperf.files import write_bytes
from simperf.hardware import Edge, Fabric, Machine, Node, ServerSlot
from simperf.report.style import letters_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_topology", "save_topology"]

NODE_COLORS = {
    "gpu": "#009E73",
    "cpu": "#0072B2",
    "nic": "#E69F00",
    "storage": "#BBBBBB",
    "pcie-switch": "#56B4E9",
    "nvswitch": "#CC79A7",
    "switch": "#D55E00",
    "server": "#F0F0F0",
}
#: width of a letter of the legend [inch]
_LETTER = 0.066
NODE_WORDS = {"gpu": "GPU", "cpu": "CPU", "nic": "NIC", "pcie-switch": "PCIe switch", "nvswitch": "NVSwitch"}
LINK_STYLES: Mapping[str, tuple[str, Any]] = {
    "pcie": ("#444444", "-"),
    "nvlink": ("#CC79A7", "-"),
    "qpi": ("#0072B2", (0, (6, 2))),
    "upi": ("#0072B2", (0, (6, 2))),
    "fabric": ("#0072B2", (0, (6, 2))),
    "ethernet": ("#D55E00", (0, (4, 1.5, 1, 1.5))),
    "infiniband": ("#D55E00", (0, (4, 1.5, 1, 1.5))),
}
OTHER_STYLE = ("#888888", (0, (1, 1.5)))
UNUSED = "#D0D0D0"
FORMATS = (".svg", ".png", ".pdf")
MOST_SERVERS = 8
Place = tuple[float, float]


@dataclass(slots=True)
class _Picture:
    """What is drawn: boxes at places, and the links between them."""

    places: dict[str, Place] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    links: list[tuple[Edge, str]] = field(default_factory=list)
    wide: set[str] = field(default_factory=set)
    shares: dict[str, tuple[str, ...]] = field(default_factory=dict)
    note: str = ""


def save_topology(
    machine: Machine, path: str | PathLike[str], *, load: Mapping[str, float] | None = None, subtitle: str = ""
) -> None:
    """Draw `machine` into a file, SVG, PNG or PDF by its name.

    Raises
    ------
    InputError
        Another kind of file, or it cannot be written.
    """
    kind = PurePath(fspath(path)).suffix.lower()
    if kind not in FORMATS:
        raise InputError(
            Problem("not a picture's name", file=fspath(path), expected="a name ending in .svg, .png or .pdf")
        )
    from matplotlib import rc_context

    stream = io.BytesIO()
    with rc_context({"svg.hashsalt": "simperf", "svg.fonttype": "none", "font.family": "DejaVu Sans"}):
        figure = draw_topology(machine, load=load, subtitle=subtitle)
        metadata = {"Date": None} if kind == ".svg" else {"CreationDate": None} if kind == ".pdf" else None
        figure.savefig(stream, format=kind[1:], dpi=140, metadata=metadata)
    write_bytes(path, stream.getvalue())


def draw_topology(machine: Machine, *, load: Mapping[str, float] | None = None, subtitle: str = "") -> Figure:
    """Draw `machine`.

    Parameters
    ----------
    machine : Machine
        A server is drawn node by node, a cluster server by server (eight of them).
    load : Mapping[str, float], optional
        Use of each resource, 0 to 1: that of the busier direction (and of the busiest of parallel
        cables) is written on the links in place of their bandwidth; links of no use are grey.
    subtitle : str
        A line below the machine's name, such as whose load it is.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure

    picture = _cluster(machine) if machine.fabric is not None else _server(machine)
    xs, ys = [x for x, _ in picture.places.values()], [y for _, y in picture.places.values()]
    arcs = [abs(picture.places[e.src][0] - picture.places[e.dst][0]) for e, how in picture.links if how == "arc"]
    low = min(ys) - (0.55 + _depth(max(arcs)) if arcs else 0.6)
    width = max(7.5, 1.02 * (max(xs) - min(xs) + 2))
    height = max(3.6, 1.15 * (max(ys) - low + 1.9))
    figure = Figure(figsize=(width, height), layout="constrained")
    axes: Axes = figure.add_subplot()
    axes.set_axis_off()
    margin = 1.2 if machine.fabric is not None else 0.7
    axes.set_xlim(min(xs) - margin, max(xs) + margin)
    axes.set_ylim(low, max(ys) + 0.75)
    for edge, how in picture.links:
        _draw_link(axes, picture, edge, how, load)
    for name, place in picture.places.items():
        _draw_node(axes, name, place, picture)
    axes.set_title("\n".join(filter(None, (_title(machine), subtitle))), fontsize=12, loc="left")
    _legend(figure, picture, load)
    return figure


def _title(machine: Machine) -> str:
    names = {slot.blueprint.title or slot.blueprint.name for slot in machine.servers}
    if machine.fabric is None:
        title = names.pop()
        return machine.name if title == machine.name else f"{machine.name}: {title}"
    return f"{machine.name}: {len(machine.servers)} servers, {len(machine.gpus)} GPUs"


def _server(machine: Machine) -> _Picture:
    """Tree from the sockets down to the devices; NVLinks as arcs or an NVSwitch below the GPUs."""
    picture = _Picture(nodes=dict(machine.nodes))
    once = [edge for edge in machine.edges.values() if f"{edge.dst}>{edge.src}" > edge.id]
    once = [
        edge if _rank(machine, edge.src) <= _rank(machine, edge.dst) else machine.edges[f"{edge.dst}>{edge.src}"]
        for edge in once
    ]
    tree = [
        edge for edge in once if edge.technology != "nvlink" and _rank(machine, edge.src) != _rank(machine, edge.dst)
    ]
    parents: dict[str, str] = {}
    roots = list(machine.cpus) or [n.id for n in machine.nodes.values() if n.kind in ("switch", "pcie-switch")][:1]
    depth = dict.fromkeys(roots, 0)
    front = list(roots)
    while front:
        node = front.pop(0)
        for edge in machine.edges.values():
            known = edge.dst in depth or machine.nodes[edge.dst].kind == "nvswitch"
            if edge.src == node and not known and edge.technology != "nvlink" and machine.nodes[node].kind != "gpu":
                depth[edge.dst], parents[edge.dst] = depth[node] + 1, node
                front.append(edge.dst)
    above = [n for n, p in parents.items() if p in machine.cpus and machine.nodes[n].kind in ("nic", "storage")]
    bottom = max([depth[n] for n in depth if n not in above], default=0)
    column = 0.0

    def place(node: str) -> float:
        nonlocal column
        children = [n for n, p in parents.items() if p == node and n not in above]
        spots = [place(child) for child in children]
        if not spots:
            spots = [column]
            column += 1.0
        level = -bottom if machine.nodes[node].kind in ("gpu", "nic") else -depth[node]
        picture.places[node] = (sum((spots[0], spots[-1])) / 2, 1.25 * level)
        return picture.places[node][0]

    for root in roots:
        place(root)
    for root in roots:
        mine = [n for n in above if parents[n] == root]
        for index, node in enumerate(mine):
            picture.places[node] = (picture.places[root][0] + 1.05 * (index - (len(mine) - 1) / 2), 1.25)
    for node in machine.nodes:
        if node not in picture.places and machine.nodes[node].kind != "nvswitch":
            picture.places[node] = (column, -1.25 * bottom)
            column += 1.0
    middle = (min(x for x, _ in picture.places.values()) + max(x for x, _ in picture.places.values())) / 2
    for node in machine.ids("nvswitch"):
        picture.places[node] = (middle, -1.25 * (bottom + 1.2))
        picture.wide.add(node)
    for edge in once:
        flat = picture.places[edge.src][1] == picture.places[edge.dst][1]
        gpus = machine.nodes[edge.src].kind == machine.nodes[edge.dst].kind == "gpu"
        picture.links.append((edge, "arc" if flat and gpus and edge not in tree else "line"))
        picture.shares[edge.id] = (edge.resource, machine.edges[f"{edge.dst}>{edge.src}"].resource)
    return picture


def _rank(machine: Machine, node: str) -> int:
    order = ("cpu", "switch", "pcie-switch", "gpu", "nic", "storage", "nvswitch")
    return order.index(machine.nodes[node].kind)


def _cluster(machine: Machine) -> _Picture:
    """Switches above, the first servers below, one link for each kind of cable."""
    picture = _Picture()
    fabric = machine.fabric or Fabric()
    shown = _some(machine)
    step = 2.4
    for index, slot in enumerate(shown):
        counts = [(slot.blueprint.ids(kind), word) for kind, word in (("gpu", "GPUs"), ("nic", "NICs"))]
        lines = [f"{len(ids)} {word}" for ids, word in counts if ids]
        picture.places[slot.name] = (index * step, 0.0)
        picture.nodes[slot.name] = Node(slot.name, "server", None, slot.name)
        picture.texts[slot.name] = "\n".join([slot.name, slot.blueprint.name, ", ".join(lines)])
    used = {port.switch for slot in shown for port in slot.ports}
    leaves = [name for name in fabric.nodes if name in used]
    spines = [name for name in fabric.nodes if not name.startswith(("leaf", "rail", "switch"))]
    span = max(step * (len(shown) - 1), 1.3 * (len(leaves) - 1))
    for row, names in ((1, leaves), (2, spines)):
        for index, name in enumerate(names):
            x = span * (index + 0.5) / len(names)
            picture.places[name] = (x, row * (2.6 if len(leaves) > 1 else 2.0))
            picture.nodes[name] = machine.nodes[name]
    offset = (span - step * (len(shown) - 1)) / 2
    for slot in shown:
        picture.places[slot.name] = (picture.places[slot.name][0] + offset, 0.0)
        for name in dict.fromkeys(port.switch for port in slot.ports):
            cables = [machine.edges[f"{slot.name}/{port.local}>{name}"] for port in slot.ports if port.switch == name]
            total = sum(cable.bandwidth for cable in cables)
            count = sum(cable.count for cable in cables)
            first = cables[0]
            edge = Edge(
                f"{slot.name}>{name}",
                slot.name,
                name,
                total,
                first.latency,
                first.resource,
                first.part,
                count,
                technology=first.technology,
            )
            picture.links.append((edge, "line"))
            back = [machine.edges[f"{cable.dst}>{cable.src}"] for cable in cables]
            picture.shares[edge.id] = tuple(cable.resource for cable in [*cables, *back])
    drawn = [edge for edge in fabric.edges.values() if edge.src in leaves and edge.dst in spines]
    picture.links += [(edge, "line") for edge in drawn]
    picture.shares |= {e.id: (e.resource, fabric.edges[f"{e.dst}>{e.src}"].resource) for e in drawn}
    hidden = len(machine.servers) - len(shown)
    if hidden:
        unseen = len(fabric.nodes) - len(leaves) - len(spines)
        more = f" and {unseen} switches" if unseen else ""
        picture.note = f"{hidden} more servers{more} are connected in the same way and not drawn"
    return picture


def _some(machine: Machine) -> list[ServerSlot]:
    """Servers to draw: as many of each group of equally wired ones as there is room for."""
    groups: dict[tuple[str, ...], list[ServerSlot]] = {}
    for slot in machine.servers:
        groups.setdefault(tuple(port.switch for port in slot.ports), []).append(slot)
    if len(machine.servers) <= MOST_SERVERS:
        return list(machine.servers)
    each = max(1, MOST_SERVERS // len(groups))
    return [slot for group in groups.values() for slot in group[:each]][:MOST_SERVERS]


def _depth(span: float) -> float:
    return 0.28 + 0.34 * span


def _rate(bandwidth: float) -> str:
    """Bandwidth in GB/s with three digits, whole from 100 on."""
    rate = bandwidth / 1e9
    return f"{rate:,.0f}" if rate >= 99.5 else f"{rate:.3g}"


def _draw_link(axes: Axes, picture: _Picture, edge: Edge, how: str, load: Mapping[str, float] | None) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    color, dash = LINK_STYLES.get(edge.technology, OTHER_STYLE)
    (x0, y0), (x1, y1) = picture.places[edge.src], picture.places[edge.dst]
    width = min(1.1 + 0.75 * (edge.count - 1), 4.5) if edge.technology == "nvlink" else 1.3
    busy = 0.0 if load is None else max(load.get(resource, 0.0) for resource in picture.shares[edge.id])
    text = _rate(edge.bandwidth) if load is None else f"{100 * busy:.0f} %"
    if load is not None and not busy:
        color = UNUSED
    if edge.src in picture.wide or edge.dst in picture.wide:
        wide, thin = (edge.src, edge.dst) if edge.src in picture.wide else (edge.dst, edge.src)
        x1, y1 = picture.places[thin]
        x0, y0 = x1, picture.places[wide][1]
    if how == "arc":
        drop = _depth(abs(x1 - x0))
        path = Path([(x0, y0), (x0, y0 - 4 / 3 * drop), (x1, y1 - 4 / 3 * drop), (x1, y1)], [1, 4, 4, 4])
        axes.add_patch(PathPatch(path, facecolor="none", edgecolor=color, linewidth=width, zorder=1))
        share = 0.5
        spot = ((x0 + x1) / 2, y0 - drop)
    else:
        axes.plot([x0, x1], [y0, y1], color=color, linestyle=dash, linewidth=width, zorder=1, solid_capstyle="butt")
        share = 0.5
        spot = (x0 + share * (x1 - x0), y0 + share * (y1 - y0))
    box = {"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.9}
    axes.text(*spot, text, fontsize=7, ha="center", va="center", color="#222222", bbox=box, zorder=2)


def _draw_node(axes: Axes, name: str, place: Place, picture: _Picture) -> None:
    from matplotlib.patches import FancyBboxPatch

    node = picture.nodes[name]
    text = picture.texts.get(name, name)
    half, tall = (0.98, 0.42) if node.kind == "server" else (0.42, 0.2)
    if name in picture.wide:
        spots = [x for x, _ in picture.places.values()]
        half = (max(spots) - min(spots)) / 2 + 0.42
    x, y = place
    box = FancyBboxPatch(
        (x - half, y - tall),
        2 * half,
        2 * tall,
        boxstyle="round,pad=0,rounding_size=0.08",
        facecolor=NODE_COLORS[node.kind],
        edgecolor="#222222",
        linewidth=0.8,
        zorder=3,
    )
    axes.add_patch(box)
    color = letters_on(NODE_COLORS[node.kind])
    axes.text(x, y, text, fontsize=8, ha="center", va="center", color=color, zorder=4)


def _legend(figure: Figure, picture: _Picture, load: Mapping[str, float] | None) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    for kind, color in NODE_COLORS.items():
        parts = dict.fromkeys(node.part.title for node in picture.nodes.values() if node.kind == kind and node.part)
        if parts or (kind != "server" and any(node.kind == kind for node in picture.nodes.values())):
            word = NODE_WORDS.get(kind, kind)
            handles.append(Patch(facecolor=color, edgecolor="#222222", label=_line(word, list(parts))))
    seen: dict[tuple[str, str], list[Edge]] = {}
    for edge, _ in picture.links:
        seen.setdefault((edge.technology, edge.part), []).append(edge)
    for (technology, part), edges in seen.items():
        color, dash = LINK_STYLES.get(technology, OTHER_STYLE)
        counts = sorted({edge.count for edge in edges})
        rates = sorted({f"{edge.bandwidth / edge.count / 1e9:.3g}" for edge in edges})
        each = f"{', '.join(rates)} GB/s" + (" a link" if counts != [1] else "")
        times = f", {' or '.join(map(str, counts))} in parallel" if counts != [1] else ""
        handles.append(Line2D([], [], color=color, linestyle=dash, label=f"{part or 'link'}: {each}{times}"))
    unit = (
        "numbers on links: GB/s a direction, payload"
        if load is None
        else "numbers on links: use of the capacity in the busier direction; grey: unused"
    )
    handles.append(Line2D([], [], linestyle="none", label=unit))
    if picture.note:
        handles.append(Line2D([], [], linestyle="none", label=picture.note))
    words = [str(handle.get_label()) for handle in handles]
    half = (len(words) + 1) // 2
    room = (figure.get_figwidth() - 1.3) / _LETTER  # beside the marks of two columns
    beside = max(map(len, words[:half])) + max(map(len, words[half:])) <= room
    for handle, text in zip(handles, words, strict=True):
        handle.set_label(text if beside else textwrap.fill(text, int(room)))
    figure.legend(handles=handles, loc="outside lower left", ncols=2 if beside else 1, fontsize=8, frameon=False)


def _line(word: str, parts: Sequence[str]) -> str:
    return f"{word}: {'; '.join(parts)}" if parts else word
