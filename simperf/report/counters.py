"""Counters over time: the launches that wait in each queue, and the memory that each device holds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from simperf.report.lanes import natural
from simperf.report.language import named, say
from simperf.report.style import NARROW, byte_scale, columns, note, time_scale, written
from simperf.results import Result

__all__ = ["draw_memory", "draw_queue", "series"]

_LINES = 8
#: samples of a line above which its range in each bin of time is drawn
_MANY = 5000
_BINS = 800
#: times the highest value above which a capacity is written instead of drawn
_FAR = 4.0
Floats = npt.NDArray[np.float64]


def series(result: Result, name: str) -> dict[str, tuple[Floats, Floats]]:
    """Times [s] and values of every counter called `name`, by track; from 0 to the end of the run."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for track, counter, time, value in result.samples:
        if counter == name:
            times, values = found.setdefault(track, ([0.0], [0.0]))
            if times[-1] == time:  # within an instant the last value holds
                values[-1] = value
            else:
                times.append(time)
                values.append(value)
    lines = {}
    for track in sorted(found, key=natural):
        times, values = found[track]
        lines[track] = np.array([*times, max(result.time, times[-1])]), np.array([*values, values[-1]])
    return lines


def _draw(axes: Any, result: Result, lines: dict[str, tuple[Floats, Floats]], factor: float) -> None:
    scale = time_scale(result.time)
    highest = sorted(lines, key=lambda track: -lines[track][1].max())[:_LINES]
    binned = 0
    for order, track in enumerate(track for track in lines if track in highest):
        times, values = lines[track]
        if len(times) <= _MANY:
            thick = 1.5 if len(highest) == 1 else 3.0 - 2.2 * order / len(highest)  # equal lines stay visible
            axes.step(times / scale.factor, values / factor, where="post", label=named(track), linewidth=thick)
            continue
        binned += 1
        edges = np.linspace(0.0, max(result.time, times[-1]), _BINS + 1)
        first = np.searchsorted(times, edges[:-1], side="right") - 1  # the value that holds at the start of a bin
        high = np.maximum(np.maximum.reduceat(values, first), values[first])
        low = np.minimum(np.minimum.reduceat(values, first), values[first])
        ends = [np.append(limit, limit[-1]) / factor for limit in (low, high)]
        axes.fill_between(edges / scale.factor, *ends, step="post", label=named(track), linewidth=0.8, edgecolor="face")
    axes.set_xlim(0, result.time / scale.factor if result.time > 0 else 1)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(say("time ({})").format(scale.unit))
    if binned:
        width = written(result.time / _BINS, "s", digits=3)
        note(axes, say("{}: the range of values within bins of {} is shown.").format(axes.get_ylabel(), width))
    if len(lines) > _LINES:
        told = say("{}: the {} highest of {} lines are shown.")
        note(axes, told.format(axes.get_ylabel(), _LINES, len(lines)))


def _legend(axes: Any) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    if axes.figure.get_figwidth() < NARROW:
        above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": columns(axes, len(handles))}
        axes.legend(handles, labels, borderaxespad=0.2, **above)
    else:
        axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)


def draw_queue(axes: Any, result: Result) -> None:
    """Draw how many launches are submitted and not finished, a line a stream."""
    from matplotlib.ticker import MaxNLocator

    axes.set_ylabel(say("launches in queue"))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    _draw(axes, result, series(result, "queue length"), 1.0)
    _legend(axes)


def draw_memory(axes: Any, result: Result) -> None:
    """Draw what each device holds, with its capacity where that is known."""
    lines = series(result, "memory held")
    highest = max((float(values.max()) for _, values in lines.values()), default=0.0)
    uses = {track: result.resources.get(f"{track} memory") for track in lines}
    capacities = {track: use.capacity for track, use in uses.items() if use is not None}
    limits = sorted({limit for limit in capacities.values() if math.isfinite(limit)})
    near = [limit for limit in limits if limit <= _FAR * highest]
    scale = byte_scale(max([highest, *near]))
    axes.set_ylabel(say("memory held ({})").format(scale.unit))
    _draw(axes, result, lines, scale.factor)
    for limit in near:
        text = say("capacity {}").format(written(limit, "B", digits=3))
        axes.axhline(limit / scale.factor, color="#D55E00", linestyle="--", linewidth=1, label=text)
    far = [written(limit, "B", digits=3) for limit in limits if limit not in near]
    if near:
        axes.set_ylim(top=max(*near, highest) / scale.factor * 1.1)
    if far:
        axes.plot([], [], " ", label=say("capacity {}\n(above the picture)").format(", ".join(far)))
    _legend(axes)
