"""The picture of scaling: time against a count beside its ideal, and the efficiency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simperf.analysis.scaling import ScalingCurve
from simperf.errors import InputError, Problem
from simperf.report.language import named, say
from simperf.report.lines import legend, line_look, nest, panels
from simperf.report.style import NARROW, figure, figure_width, time_scale

__all__ = ["draw_scaling"]


def draw_scaling(lines: Sequence[ScalingCurve]) -> Any:
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
        left, right = panels(made, (1, 1))
        drawn: dict[str, tuple[Any, Any]] = {}
        for number, line in enumerate(lines):
            look, counts = line_look(number), [point.count for point in line.points]
            label = line.label or say("as in the file" if len(lines) > 1 else "simulated")
            (time,) = left.plot(
                counts, [point.time / scale.factor for point in line.points], label=named(label), **look
            )
            ideal = say("ideal") if number == len(lines) - 1 else None
            style = {"ls": "--", "lw": 0.9, "color": look["color"], "label": ideal}
            left.plot(counts, [point.ideal / scale.factor for point in line.points], **style)
            ends = [point.interval or (point.time, point.time) for point in line.points]
            if any(low != high for low, high in ends):
                bounds = [[end / scale.factor for end in side] for side in zip(*ends, strict=True)]
                left.fill_between(counts, *bounds, color=look["color"], alpha=0.2, linewidth=0)
            (efficiency,) = right.plot(counts, [100 * point.efficiency for point in line.points], **look)
            drawn[label] = time, efficiency
        right.axhline(100, ls="--", lw=0.9, color="#777777")
        for axes in (left, right):
            axes.set_xscale("log", base=2)
            _whole(axes, sorted({point.count for line in lines for point in line.points}))
            axes.set_xlabel(lines[0].key)
            axes.set_ylim(0, 1.08 * axes.get_ylim()[1])
        left.set_ylabel(f"{say(lines[0].what)} ({scale.unit})")
        right.set_ylabel(say("efficiency (%)"))
        for axes, place in ((left, 0), (right, 1)):
            nest(axes, {label: pair[place] for label, pair in drawn.items()})
        legend(right, left.get_legend_handles_labels()[0])

    return figure(fill, height=3.8 if figure_width() >= NARROW else 5.6 + 0.2 * len(lines))


def _whole(axes: Any, counts: Sequence[int]) -> None:
    """Ticks at the counts themselves, as many as have room."""
    step = -(-len(counts) // 9)
    axes.set_xticks(counts[::-1][::step], [str(count) for count in counts[::-1][::step]])
    axes.minorticks_off()
