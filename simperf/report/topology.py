"""Pictures of machines: a server as a tree with its NVLinks below, a cluster as servers under switches.

Colours are those of Okabe and Ito, which people with any kind of colour vision tell apart; link
kinds differ in dash as well. Labels are bandwidths a direction in GB/s.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from simperf.errors import InputError, Problem
from simperf.hardware import Edge, Machine
from simperf.report.language import say, worded
from simperf.report.style import NARROW, figure, figure_width, folded, letters_on, save
from simperf.report.topology_layout import MachineLayout, Place, cluster_layout, server_layout

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


class _Sheet:
    """Places of a layout in inches: layers below each other, or beside each other on a narrow page.

    Parameters
    ----------
    layout : MachineLayout
    upright : bool
        Layers are columns.
    """

    def __init__(self, layout: MachineLayout, *, upright: bool) -> None:
        self.layout, self.upright = layout, upright
        self.large = any(node.kind == "server" for node in layout.nodes.values())
        self.half: Place = (0.98, 0.42) if self.large else (0.42, 0.2)
        small: Place = (0.42, 0.2)
        # distance of neighbours in a layer, and of layers
        wide, tall = 2 * self.half[0] + 0.44 * self.large + 0.18, 2 * self.half[1] + 0.1
        self.step: Place = (tall, self.half[0] + small[0] + 0.5) if upright else (wide, 2.2 if self.large else 1.25)
        self.places = {name: self._at(place) for name, place in layout.places.items()}

    def _at(self, place: Place) -> Place:
        along, level = place[0] * self.step[0], place[1] * self.step[1]
        return (level, -along) if self.upright else (along, -level)

    def size(self, name: str) -> Place:
        """Half the width and height of a node's box."""
        across, up = self.half if self.layout.nodes[name].kind == "server" else (0.42, 0.2)
        if name not in self.layout.wide:
            return across, up
        length = self._length()
        return (across, length + up) if self.upright else (length + across, up)

    def _length(self) -> float:
        return max(abs(y if self.upright else x) for x, y in self.places.values())

    def facing(self, wide: str, thin: str) -> Place:
        """The place on a long box that is nearest to another node."""
        (x, y), (across, up) = self.places[thin], self.places[wide]
        return (across, y) if self.upright else (x, up)

    def depth(self, one: str, other: str) -> float:
        """Depth of an arc between two nodes: how far it reaches beyond their layer."""
        span = abs(self.layout.places[one][0] - self.layout.places[other][0])
        return 0.55 + 0.2 * span if self.upright else 0.28 + 0.34 * span

    def between(self, src: str, dst: str, one: Place, other: Place) -> Place:
        """The middle of what is seen of a line between the boxes of two nodes."""
        share, axis = 0.5, 0 if self.upright else 1
        if one[axis] != other[axis]:
            halves = (self.size(src)[axis] - self.size(dst)[axis]) / abs(other[axis] - one[axis])
            share += halves / 2 if not self.layout.wide & {src, dst} else 0.0
        return one[0] + share * (other[0] - one[0]), one[1] + share * (other[1] - one[1])

    def beyond(self, place: Place, reach: float) -> Place:
        """A place as far beyond the last layer."""
        return (place[0] + reach, place[1]) if self.upright else (place[0], place[1] - reach)


def save_topology(
    machine: Machine, path: str | PathLike[str], *, load: Mapping[str, float] | None = None, subtitle: str = ""
) -> None:
    """Draw `machine` into a file, SVG, PNG or PDF by its name.

    Raises
    ------
    InputError
        Another kind of file, or it cannot be written.
    """
    if PurePath(fspath(path)).suffix.lower() not in FORMATS:
        raise InputError(
            Problem("not a picture's name", file=fspath(path), expected="a name ending in .svg, .png or .pdf")
        )
    save(draw_topology(machine, load=load, subtitle=subtitle), path, letters=True)


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
        Layers of nodes below each other; beside each other where `simperf.report.style.sized` says that it is narrow.
    """
    layout = cluster_layout(machine) if machine.fabric is not None else server_layout(machine)
    upright = figure_width() < NARROW
    sheet = _Sheet(layout, upright=upright)
    boxes = [(*place, *sheet.size(name)) for name, place in sheet.places.items()]
    arcs = [sheet.depth(edge.src, edge.dst) + 0.12 for edge, how in layout.links if how == "arc"]
    left, right = min(x - w for x, _, w, _ in boxes), max(x + w for x, _, w, _ in boxes)
    low, high = min(y - h for _, y, _, h in boxes), max(y + h for _, y, _, h in boxes)
    if arcs and upright:
        right = max(right, max(x for x, *_ in boxes) + max(arcs))
    elif arcs:
        low = min(low, min(y for _, y, *_ in boxes) - max(arcs))
    across, up = right - left + 0.3, high - low + 0.3
    width = figure_width() if upright else max(7.5, 1.02 * across)
    title = "\n".join(filter(None, (_title(machine), subtitle)))

    def fill(made: Any) -> None:
        axes: Axes = made.add_subplot()
        axes.set_axis_off()
        axes.set_xlim(left - 0.15, right + 0.15)
        axes.set_ylim(low - 0.15, high + 0.15)
        for edge, how in layout.links:
            _draw_link(axes, sheet, edge, how, load)
        for name in sheet.places:
            _draw_node(axes, name, sheet)
        made.suptitle("\n".join(folded(line, made, 9) for line in title.split("\n")), fontsize=12, x=0.01, ha="left")
        _legend(made, layout, load)

    rows = 7 + 5 * upright  # of the title and the legend, about
    scale = min(1.0, (width - 0.2) / across) if upright else 1.0
    drawn: Figure = figure(fill, width=width, height=max(2.5, up * max(scale, 0.75) + 0.17 * rows))
    return drawn


def _title(machine: Machine) -> str:
    names = {slot.blueprint.title or slot.blueprint.name for slot in machine.servers}
    if machine.fabric is None:
        title = names.pop()
        return machine.name if title == machine.name else f"{machine.name}: {title}"
    return f"{machine.name}: {len(machine.servers)} servers, {len(machine.gpus)} GPUs"


def _rate(bandwidth: float) -> str:
    """Bandwidth in GB/s with three digits, whole from 100 on."""
    rate = bandwidth / 1e9
    return f"{rate:,.0f}" if rate >= 99.5 else f"{rate:.3g}"


def _draw_link(axes: Axes, sheet: _Sheet, edge: Edge, how: str, load: Mapping[str, float] | None) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    layout = sheet.layout
    color, dash = LINK_STYLES.get(edge.technology, OTHER_STYLE)
    one, other = sheet.places[edge.src], sheet.places[edge.dst]
    width = min(1.1 + 0.75 * (edge.count - 1), 4.5) if edge.technology == "nvlink" else 1.3
    busy = 0.0 if load is None else max(load.get(resource, 0.0) for resource in layout.shares[edge.id])
    text = _rate(edge.bandwidth) if load is None else f"{100 * busy:.0f} %"
    if load is not None and not busy:
        color = UNUSED
    for wide, thin in ((edge.src, edge.dst), (edge.dst, edge.src)):
        if wide in layout.wide:
            one, other = sheet.facing(wide, thin), sheet.places[thin]
    spot = sheet.between(edge.src, edge.dst, one, other)
    if how == "arc":
        reach = sheet.depth(edge.src, edge.dst)
        bend = [sheet.beyond(place, 4 / 3 * reach) for place in (one, other)]
        path = Path([one, *bend, other], [1, 4, 4, 4])
        axes.add_patch(PathPatch(path, facecolor="none", edgecolor=color, linewidth=width, zorder=1))
        spot = sheet.beyond(spot, reach)
    else:
        ends = zip(one, other, strict=True)
        axes.plot(*ends, color=color, linestyle=dash, linewidth=width, zorder=1, solid_capstyle="butt")
    box = {"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.9}
    axes.text(*spot, text, fontsize=7, ha="center", va="center", color="#222222", bbox=box, zorder=2)


def _draw_node(axes: Axes, name: str, sheet: _Sheet) -> None:
    from matplotlib.patches import FancyBboxPatch

    color = NODE_COLORS[sheet.layout.nodes[name].kind]
    (x, y), (half, tall) = sheet.places[name], sheet.size(name)
    style: dict[str, Any] = {
        "boxstyle": "round,pad=0,rounding_size=0.08",
        "facecolor": color,
        "edgecolor": "#222222",
        "zorder": 3,
    }
    axes.add_patch(FancyBboxPatch((x - half, y - tall), 2 * half, 2 * tall, linewidth=0.8, **style))
    turned: dict[str, Any] = {"rotation": 90} if sheet.upright and name in sheet.layout.wide else {}
    text = sheet.layout.texts.get(name, name)
    axes.text(x, y, text, fontsize=8, ha="center", va="center", color=letters_on(color), zorder=4, **turned)


def _legend(made: Figure, layout: MachineLayout, load: Mapping[str, float] | None) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    for kind, color in NODE_COLORS.items():
        parts = dict.fromkeys(node.part.title for node in layout.nodes.values() if node.kind == kind and node.part)
        if parts or (kind != "server" and any(node.kind == kind for node in layout.nodes.values())):
            word = NODE_WORDS.get(kind, kind)
            handles.append(Patch(facecolor=color, edgecolor="#222222", label=_line(word, list(parts))))
    seen: dict[tuple[str, str], list[Edge]] = {}
    for edge, _ in layout.links:
        seen.setdefault((edge.technology, edge.part), []).append(edge)
    for (technology, part), edges in seen.items():
        color, dash = LINK_STYLES.get(technology, OTHER_STYLE)
        counts = sorted({edge.count for edge in edges})
        rates = sorted({f"{edge.bandwidth / edge.count / 1e9:.3g}" for edge in edges})
        each = f"{', '.join(rates)} GB/s" + (" a link" if counts != [1] else "")
        times = f", {' or '.join(map(str, counts))} in parallel" if counts != [1] else ""
        handles.append(Line2D([], [], color=color, linestyle=dash, label=f"{part or 'link'}: {each}{times}"))
    unit = (
        say("numbers on links: GB/s a direction, payload")
        if load is None
        else say("numbers on links: use of the capacity in the busier direction; grey: unused")
    )
    handles.append(Line2D([], [], linestyle="none", label=unit))
    if layout.remark:
        handles.append(Line2D([], [], linestyle="none", label=worded(layout.remark)))
    words = [str(handle.get_label()) for handle in handles]
    half = (len(words) + 1) // 2
    room = (made.get_figwidth() - 1.3) / _LETTER  # beside the marks of two columns
    beside = max(map(len, words[:half])) + max(map(len, words[half:])) <= room
    for handle, text in zip(handles, words, strict=True):
        handle.set_label(text if beside else textwrap.fill(text, int(room + 0.4 / _LETTER)))
    made.legend(handles=handles, loc="outside lower left", ncols=2 if beside else 1, fontsize=8, frameon=False)


def _line(word: str, parts: Sequence[str]) -> str:
    return f"{word}: {'; '.join(parts)}" if parts else word
