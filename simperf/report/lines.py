"""Lines of a picture that are distinguished: by colour, mark and dash, and by width where they coincide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from simperf.report.language import say
from simperf.report.style import NARROW, note

__all__ = ["PALETTE", "coinciding", "legend", "line_look", "nest", "panels"]

#: colours of lines in their order: the first seven are those of Okabe and Ito; any two of the thirteen differ by 16 at
#: least in CIE Lab, for people with normal colour vision and without red, green or blue cones
PALETTE = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#932AFC",
    "#690069",
    "#000093",
    "#7E1500",
    "#93BD69",
    "#543F3F",
)
_MARKS = "osv^Dxp<>*hPd"
_DASHES = ("-", "--", ":", "-.")
#: relative difference up to which two lines cannot be told apart [1]
_SAME = 0.01
#: width of a line, and of what a line around it is wider [point]
_WIDTH, _AROUND = 1.3, 2.6


def line_look(number: int) -> dict[str, Any]:
    """Colour, mark and dash of a picture's line by its number from 0: thirteen colours, then the same with dashes."""
    color, mark = PALETTE[number % len(PALETTE)], _MARKS[number % len(_MARKS)]
    dash = _DASHES[number // len(PALETTE) % len(_DASHES)]
    return {"color": color, "marker": mark, "markersize": 4, "linewidth": _WIDTH, "linestyle": dash}


def coinciding(lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> list[list[str]]:
    """Names of lines that lie on each other: the same places, and values that differ by less than a hundredth.

    Parameters
    ----------
    lines : mapping of str to two sequences of float
        Places and values of each line.

    Returns
    -------
    list of list of str
        Groups of two names or more.

    Examples
    --------
    >>> coinciding({"a": ([1, 2], [5.0, 9.0]), "b": ([1, 2], [5.0, 9.01]), "c": ([1, 2], [5.0, 7.0])})
    [['a', 'b']]
    """
    groups: list[list[str]] = []
    for name, (xs, ys) in lines.items():
        for group in groups:
            first, values = lines[group[0]]
            if list(first) == list(xs) and np.allclose(ys, values, rtol=_SAME, atol=0.0):
                group.append(name)
                break
        else:
            groups.append([name])
    return [group for group in groups if len(group) > 1]


def nest(axes: Any, drawn: Mapping[str, Any]) -> None:
    """Draw lines that coincide inside one another, the first one widest, and say so below the picture.

    Parameters
    ----------
    axes : matplotlib axes
    drawn : mapping of str to Line2D
        The lines by the names that the legend has.
    """
    found = coinciding({name: (list(line.get_xdata()), list(line.get_ydata())) for name, line in drawn.items()})
    for group in found:
        for depth, name in enumerate(reversed(group)):
            wider = _AROUND * depth
            drawn[name].set(linewidth=_WIDTH + wider, markersize=4 + wider, zorder=3 - 0.1 * depth)
        told = say("Lines that coincide are drawn inside one another: {}.").format(", ".join(group))
        if " ".join(told.split()) not in " ".join(axes.figure.get_supxlabel().split()):
            note(axes, told)


def panels(made: Any, ratios: Sequence[float]) -> Any:
    """Axes beside each other with these ratios of widths, or below each other where the figure is narrow."""
    if made.get_figwidth() < NARROW:
        return made.subplots(len(ratios), 1)
    return made.subplots(1, len(ratios), width_ratios=ratios)


def legend(axes: Any, handles: Sequence[Any] = (), **more: Any) -> None:
    """A legend beside the axes, or above the first ones where the figure is narrow; none where no line has a name."""
    shown = list(handles) or axes.get_legend_handles_labels()[0]
    if not shown:
        return
    made = axes.figure
    if made.get_figwidth() < NARROW:
        longest = max(len(str(one.get_label())) for one in shown)
        ncols = max(1, min(len(shown), int(made.get_figwidth() * 13 / (longest + 6))))
        above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2, "columnspacing": 1.0}
        made.axes[0].legend(handles=shown, ncols=ncols, **above, **more)
    else:
        axes.legend(handles=shown, loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2, **more)
