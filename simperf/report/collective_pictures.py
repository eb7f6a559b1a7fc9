"""Pictures of collectives: bandwidth by size, the map of who wins where, and the load of a regular topology."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from simperf.collectives.bench import Row
from simperf.report.collectives import size_text
from simperf.report.language import say
from simperf.report.lines import PALETTE, legend, line_look, nest
from simperf.report.style import NARROW, figure, figure_width, heading, letters_on, note, written

if TYPE_CHECKING:
    from simperf.hardware import Topology

__all__ = ["crossover_map", "draw_bandwidths", "topology_picture"]

#: ratio of bandwidths below which the axis has too few powers of ten to be read by
_DECADE = 30.0
#: nodes of a topology that are drawn
_NODES = 16
_HATCHES = ("", "//", "..", "xx")


def draw_bandwidths(tables: Mapping[str, Sequence[Row]], *, title: str = "") -> Any:
    """Make a figure of bus bandwidth over message size, a line for each algorithm of `tables`."""
    from matplotlib.ticker import NullFormatter, NullLocator

    rates = [row.busbw for rows in tables.values() for row in rows if row.nbytes > 0 and row.busbw > 0]
    spread = max(rates, default=1.0) / min(rates, default=1.0)

    def draw(made: Any) -> None:
        axes = made.subplots()
        if title:
            heading(made, title)
        drawn = {}
        for number, (name, rows) in enumerate(tables.items()):
            sized = [row for row in rows if row.nbytes > 0]
            xs, ys = [row.nbytes for row in sized], [row.busbw / 1e9 for row in sized]
            label = say("{}, idealised").format(name) if rows[0].idealised else name
            (drawn[label],) = axes.plot(xs, ys, label=label, **line_look(number))
        axes.set(xscale="log", yscale="log", xlabel=say("message size (K, M, G are powers of 1024 B)"))
        axes.set_ylabel(say("bus bandwidth (GB/s)"))
        sizes = sorted({row.nbytes for rows in tables.values() for row in rows if row.nbytes > 0})
        shown = sizes[:: -(-len(sizes) // (9 if made.get_figwidth() >= NARROW else 5))]
        axes.set_xticks(shown, [size_text(size) for size in shown])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}" if spread < _DECADE else NullFormatter())
        nest(axes, drawn)
        legend(axes)

    return figure(draw, height=4.5 if figure_width() >= NARROW else 4.0 + 0.1 * len(tables))


def crossover_map(winners: Mapping[int, Sequence[Row]], *, title: str) -> Any:
    """Draw the fastest algorithm over numbers of ranks and sizes.

    Parameters
    ----------
    winners : mapping of int to sequence of Row
        For each number of ranks the fastest row of each size, the same sizes for all.
    title : str
        What was compared.

    Returns
    -------
    matplotlib.figure.Figure
        Each cell in the colour (and hatch) of its winner, with busbw in GB/s written in it.
    """
    counts = sorted(winners)
    sizes = [row.nbytes for row in winners[counts[0]]]
    names = sorted({row.algorithm for rows in winners.values() for row in rows})

    def draw(made: Any) -> None:
        from matplotlib.patches import Patch, Rectangle

        axes = made.add_subplot()
        hatches = [_HATCHES[index // len(PALETTE) % len(_HATCHES)] for index in range(len(names))]
        looks = {name: (PALETTE[index % len(PALETTE)], hatches[index]) for index, name in enumerate(names)}
        for row, count in enumerate(counts):
            for column, cell in enumerate(winners[count]):
                color, hatch = looks[cell.algorithm]
                box = Rectangle((column, row), 1, 1, facecolor=color, hatch=hatch, edgecolor="white", linewidth=1.0)
                axes.add_patch(box)
                style = {"ha": "center", "va": "center", "fontsize": 6, "color": letters_on(color)}
                axes.text(column + 0.5, row + 0.5, f"{cell.busbw / 1e9:.3g}", **style)
        axes.set_xlim(0, len(sizes))
        axes.set_ylim(0, len(counts))
        step = max(1, len(sizes) // 14)
        axes.set_xticks([index + 0.5 for index in range(0, len(sizes), step)], [size_text(s) for s in sizes[::step]])
        axes.set_yticks([index + 0.5 for index in range(len(counts))], [str(count) for count in counts])
        axes.grid(visible=False)
        axes.set_xlabel(say("size [B], K, M and G are powers of 1024"))
        axes.set_ylabel(say("ranks"))
        heading(made, title)
        legend(axes, [Patch(facecolor=c, hatch=h, edgecolor="white", label=name) for name, (c, h) in looks.items()])
        note(axes, say("In each cell: busbw of the fastest algorithm [GB/s]."))

    return figure(draw, width=3.4 + max(4.0, 0.42 * len(sizes)), height=1.8 + 0.42 * len(counts))


def topology_picture(topology: Topology, row: Row, *, title: str) -> Any:
    """Draw a regular topology with the load of every link.

    Parameters
    ----------
    topology : Topology
        A ring, star or full mesh; of more than 16 ranks the first 16 are drawn.
    row : Row
        Whose loads are shown.
    title : str
        What is running.

    Returns
    -------
    matplotlib.figure.Figure
        Links as arrows, wider and darker the busier they are, with the load in %.
    """
    import networkx as nx

    busy = {end for name in row.loads for end in name.split(">")}
    nodes = [*topology.ids("gpu"), *(node for node in topology.ids("cpu") if node in busy)]
    shown = nodes[:_NODES]
    # turned, so that the first is on top and the next to its right
    places = {node: (float(y), float(x)) for node, (x, y) in nx.circular_layout(shown).items()}
    if topology.kind == "star":
        places[""] = (0.0, 0.0)

    def draw(made: Any) -> None:
        axes = made.add_subplot()
        axes.set_axis_off()
        axes.set_aspect("equal")
        for name, load in sorted(row.loads.items(), key=lambda item: item[1]):
            src, dst = name.split(">")
            if src in places and dst in places:
                _arrow(axes, places[src], places[dst], load, many=topology.kind == "fully-connected" and len(shown) > 5)
        for node, (x, y) in places.items():
            text, color = (node, "#0072B2") if node else (say("switch"), "#D55E00")
            box = {"boxstyle": "round,pad=0.3", "facecolor": color, "edgecolor": "#222222"}
            axes.text(x, y, text, ha="center", va="center", fontsize=8, color=letters_on(color), bbox=box, zorder=5)
        axes.set_xlim(-1.3, 1.3)
        axes.set_ylim(-1.3, 1.3)
        heading(made, f"{title}: {written(row.time, 's')}")
        note(axes, say("On each link: part of the time for which it is busy."))
        if len(nodes) > len(shown):
            note(axes, say("{} more nodes are not drawn.").format(len(nodes) - len(shown)))

    width = min(7.0, figure_width())
    return figure(draw, width=width, height=width + 0.2)


def _arrow(axes: Any, src: tuple[float, float], dst: tuple[float, float], load: float, *, many: bool) -> None:
    """An arrow from src to dst, bent so that the two directions of a link stand apart."""
    shade = str(round(0.8 * (1.0 - min(load, 1.0)), 3))
    style = {"arrowstyle": "-|>", "color": shade, "linewidth": 0.6 + 2.4 * load, "connectionstyle": "arc3,rad=0.12"}
    axes.annotate("", xy=dst, xytext=src, arrowprops={**style, "shrinkA": 14, "shrinkB": 14}, zorder=1)
    if not many:
        # The bend of the arrow lies to the right of the way from src to dst.
        x, y = 0.62 * src[0] + 0.38 * dst[0], 0.62 * src[1] + 0.38 * dst[1]
        spot = (x + 0.06 * (dst[1] - src[1]), y + 0.06 * (src[0] - dst[0]))
        box = {"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
        style = {"fontsize": 6.5, "ha": "center", "va": "center", "color": "#222222", "bbox": box, "zorder": 3}
        axes.text(*spot, f"{100 * load:.0f} %", **style)
