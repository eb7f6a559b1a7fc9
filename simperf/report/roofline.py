"""The roofline picture: what a device can do at most, and where the run's operations lie below that.

After S. Williams, A. Waterman and D. Patterson, "Roofline", CACM 52(4), 2009.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from simperf.errors import UnknownNameError
from simperf.report.labels import name_points
from simperf.report.language import say
from simperf.report.lines import legend
from simperf.report.style import NARROW, note
from simperf.results import Ceiling, OperationUse, Result
from simperf.units import format_quantity

__all__ = ["draw_roofline"]

_MARKERS = {"compute": ("o", "#009E73"), "memory": ("s", "#56B4E9"), "overhead": ("^", "#D55E00")}
_NAMED = 8
#: share of the axes that the legend at the lower right may take
_LEGEND = 0.34


def draw_roofline(axes: Any, result: Result, *, part: str = "") -> None:
    """Draw the ceilings of one kind of device and the operations that ran on it.

    Parameters
    ----------
    axes : matplotlib axes
    result : Result
        With `operations` and `ceilings`.
    part : str
        Kind of device; default: the one with most of the operations' time.
    """
    weights: dict[str, float] = {ceiling.part: 0.0 for ceiling in result.ceilings.values()}
    for row in result.operations:
        if row.device in result.ceilings:
            weights[result.ceilings[row.device].part] += row.calls * row.time
    chosen = part or max(weights, key=lambda name: weights[name])
    if chosen not in weights:
        raise UnknownNameError("part of the run", part, weights)
    ceiling = next(ceiling for ceiling in result.ceilings.values() if ceiling.part == chosen)
    mine = [row for row in result.operations if _on(result, row, chosen)]
    points = [row for row in mine if row.flops > 0 and row.nbytes > 0 and row.time > 0]
    low, high = _range(points, ceiling)
    used = {row.dtype for row in points} & set(ceiling.peak) or {_main(ceiling)}
    bottom = min([row.flops / row.time for row in points] + [low * ceiling.memory_bandwidth]) / 3
    top = max(ceiling.peak.values()) * 4
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(bottom, top))
    axes.set_xlabel(say("arithmetic intensity (FLOP per byte of memory traffic)"))
    axes.set_ylabel(say("arithmetic rate (FLOP/s)"))
    _format(axes)
    main = max(used, key=lambda name: ceiling.peak[name])
    _areas(axes, ceiling, ceiling.peak[main], main, (low, high), top)
    _ceilings(axes, ceiling, used, (low, high))
    _points(axes, points)
    rate = format_quantity(ceiling.memory_bandwidth, "B/s")
    text = say("Ceilings: {}, {} of memory bandwidth.").format(chosen, rate)
    if len(points) < len(mine):
        told = say("Not shown, since they do no arithmetic: {} of {} operations.")
        text += " " + told.format(len(mine) - len(points), len(mine))
    if len(weights) > 1:
        others = ", ".join(sorted(set(weights) - {chosen}))
        text += " " + say("Devices of other kinds are left out: {}.").format(others)
    note(axes, text)
    _name(axes, points)


def _on(result: Result, row: OperationUse, part: str) -> bool:
    return row.device in result.ceilings and result.ceilings[row.device].part == part


def _main(ceiling: Ceiling) -> str:
    return "fp32" if "fp32" in ceiling.peak else next(iter(ceiling.peak))


def _range(points: Sequence[OperationUse], ceiling: Ceiling) -> tuple[float, float]:
    """Intensities that hold all points and all ridges."""
    ridges = [rate / ceiling.memory_bandwidth for rate in ceiling.peak.values()]
    seen = [row.flops / row.nbytes for row in points]
    return min([0.1, *(x / 3 for x in seen)]), max(*ridges, *seen, 1.0) * 6


def _format(axes: Any) -> None:
    from matplotlib.ticker import EngFormatter, FuncFormatter

    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))


def _areas(axes: Any, ceiling: Ceiling, peak: float, precision: str, ends: tuple[float, float], top: float) -> None:
    """Shade and name the two regimes left and right of the ridge."""
    ridge = peak / ceiling.memory_bandwidth
    axes.axvspan(ends[0], ridge, color="#56B4E9", alpha=0.10, linewidth=0)
    axes.axvspan(ridge, ends[1], color="#009E73", alpha=0.10, linewidth=0)
    style = {"ha": "center", "va": "top", "fontsize": 9, "style": "italic", "color": "#333333"}
    axes.text(math.sqrt(ends[0] * ridge), top * 0.75, say("memory-bound"), **style)
    axes.text(math.sqrt(ridge * ends[1]), top * 0.75, say("compute-bound"), **style)
    axes.axvline(ridge, color="#777777", linestyle=":", linewidth=0.8)
    text = say("ridge ({}): {}").format(precision, f"{ridge:.3g} FLOP/B")
    beside = ridge  # left of the line, and of the legend at the lower right where the line runs through it
    if axes.figure.get_figwidth() >= NARROW:
        beside = min(ridge, ends[0] * (ends[1] / ends[0]) ** (1 - _LEGEND))
    axes.text(beside, axes.get_ylim()[0] * 1.3, f"{text} ", ha="right", va="bottom", fontsize=7.5, color="#555555")


def _ceilings(axes: Any, ceiling: Ceiling, used: set[str], ends: tuple[float, float]) -> None:
    """The slope of memory, and a flat line for each precision; those in use are strong. Equal peaks share a line."""
    rates: dict[float, list[str]] = {}
    for name, rate in ceiling.peak.items():
        rates.setdefault(rate, []).append(name)
    highest = max(rates)
    axes.plot([ends[0], highest / ceiling.memory_bandwidth], [ends[0] * ceiling.memory_bandwidth, highest], "k-")
    slope = format_quantity(ceiling.memory_bandwidth, "B/s", digits=3)
    middle = math.sqrt(ends[0] * min(rates) / ceiling.memory_bandwidth)
    narrow = axes.figure.get_figwidth() < NARROW
    room = 0.36 if narrow else 0.22
    middle = max(middle, ends[0] * (ends[1] / ends[0]) ** room)  # the words end here and must not cross the axis
    style = {"ha": "right", "va": "bottom", "fontsize": 7.5}
    axes.text(middle / 1.15, middle * ceiling.memory_bandwidth * 1.1, say("memory: {}").format(slope), **style)
    below = 0.0
    for rate, names in sorted(rates.items()):
        strong = bool(used & set(names))
        line = {"color": "black", "linewidth": 1.6} if strong else {"color": "#999999", "linewidth": 0.9}
        axes.plot([rate / ceiling.memory_bandwidth, ends[1]], [rate, rate], linestyle="-" if strong else "--", **line)
        text = f"{', '.join(names)}: {format_quantity(rate, 'FLOP/s', digits=3)}"
        if narrow and strong:
            axes.text(ends[1], rate * 1.05, text, ha="right", va="bottom", fontsize=7.5)
        elif not narrow and (strong or rate > 1.5 * below):
            color = "black" if strong else "#555555"
            axes.text(ends[1], rate, f" {text}", ha="left", va="center", fontsize=7.5, color=color)
            below = rate


def _points(axes: Any, points: Sequence[OperationUse]) -> None:
    """One mark an operation, as large as its share of the time; the longest are named."""
    total = sum(row.calls * row.time for row in points)
    for regime, (marker, color) in _MARKERS.items():
        mine = [row for row in points if row.regime == regime]
        if mine:
            sizes = [30 + 250 * row.calls * row.time / total for row in mine]
            xs, ys = [row.flops / row.nbytes for row in mine], [row.flops / row.time for row in mine]
            style = {"marker": marker, "color": color, "edgecolors": "black", "linewidths": 0.6, "zorder": 3}
            axes.scatter(xs, ys, s=sizes, label=say("{}-bound operation").format(say(regime)), **style)
    if points:
        if axes.figure.get_figwidth() < NARROW:
            legend(axes)
            note(axes, say("larger: more of the time").capitalize() + ".")
        else:
            axes.legend(loc="lower right", title=say("larger: more of the time"), title_fontsize=7.5)


def _name(axes: Any, points: Sequence[OperationUse]) -> None:
    """Name the operations of the longest time, with their shares of it."""
    total = sum(row.calls * row.time for row in points)
    own: dict[str, float] = {}
    for row in points:
        own[row.name] = own.get(row.name, 0.0) + row.calls * row.time / total
    places = {row.name: (row.flops / row.nbytes, row.flops / row.time) for row in points}
    longest = sorted(own, key=lambda name: -own[name])[:_NAMED]
    names = [(f"{name} ({share})", places[name]) for name in longest if (share := _percent(own[name]))]
    name_points(axes, names, [(row.flops / row.nbytes, row.flops / row.time) for row in points], size=7.5)


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %" if share >= 0.005 else "< 1 %"
