"""The picture of scaling: time against a count beside its ideal, and the efficiency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simperf.analysis.scaling import ScalingCurve
from simperf.errors import InputError, Problem
from simperf.report.style import figure, heading, time_scale

__all__ = ["draw_scaling"]

_LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#777777")
_MARKS = "osv^Dxp"


def draw_scaling(lines: Sequence[ScalingCurve], *, title: str = "") -> Any:
    """Make the figure: on the left times, ideal ones dashed; on the right the efficiency.

    Raises
    ------
    InputError
        There is nothing to draw.
    """
    if not lines:
        raise InputError(Problem("no runs at several counts to draw", expected="two counts or more"))
    scale = time_scale(max(point.time for line in lines for point in line.points))

    def fill(made: Any) -> None:
        left, right = made.subplots(1, 2, width_ratios=[3, 2])
        if title:
            heading(made, title)
        for number, line in enumerate(lines):
            color, mark = _LINES[number % len(_LINES)], _MARKS[number % len(_MARKS)]
            counts = [point.count for point in line.points]
            style = {"color": color, "marker": mark, "markersize": 4, "linewidth": 1.2}
            label = line.label or ("as in the file" if len(lines) > 1 else "simulated")
            left.plot(counts, [point.time / scale.factor for point in line.points], label=label, **style)
            ideal = "ideal" if number == len(lines) - 1 else None
            left.plot(counts, [p.ideal / scale.factor for p in line.points], "--", lw=0.9, color=color, label=ideal)
            ends = [point.interval or (point.time, point.time) for point in line.points]
            if any(low != high for low, high in ends):
                bounds = [[end / scale.factor for end in side] for side in zip(*ends, strict=True)]
                left.fill_between(counts, *bounds, color=color, alpha=0.2, linewidth=0)
            right.plot(counts, [100 * point.efficiency for point in line.points], **style)
        right.axhline(100, ls="--", lw=0.9, color="#777777")
        for axes in (left, right):
            axes.set_xscale("log", base=2)
            _whole(axes, sorted({point.count for line in lines for point in line.points}))
            axes.set_xlabel(lines[0].key)
            axes.set_ylim(0, 1.08 * axes.get_ylim()[1])
        left.set_ylabel(f"{lines[0].what} ({scale.unit})")
        right.set_ylabel("efficiency (%)")
        left.legend(fontsize=7.5)

    return figure(fill, width=9.0, height=3.8)


def _whole(axes: Any, counts: Sequence[int]) -> None:
    """Ticks at the counts themselves, as many as have room."""
    step = -(-len(counts) // 9)
    axes.set_xticks(counts[::-1][::step], [str(count) for count in counts[::-1][::step]])
    axes.minorticks_off()
