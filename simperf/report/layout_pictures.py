"""The picture of a search for layouts: the time of a step and the memory of a GPU of each that was simulated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simperf.report.labels import name_points
from simperf.report.language import say
from simperf.report.lines import legend, line_look
from simperf.report.style import byte_scale, figure, heading, note, time_scale, written

if TYPE_CHECKING:
    from simperf.study.layouts.plan import LayoutPlan

__all__ = ["draw_layouts"]


def draw_layouts(found: LayoutPlan) -> Any:
    """Make a figure of memory over time of a step, a mark for each machine; the first layouts have their names."""
    ranked = found.ranked
    time, size = time_scale(max(one.step for one in ranked)), byte_scale(max(one.memory for one in ranked))
    places = [(one.step / time.factor, one.memory / size.factor) for one in ranked]
    machines = list(dict.fromkeys(one.machine.name for one in ranked))

    def fill(made: Any) -> None:
        axes = made.subplots()
        first = found.winner
        told = say("{}: {}, {} per step").format(found.request.title, first.choice.name, written(first.step, "s"))
        heading(made, told)
        for number, machine in enumerate(machines):
            own = [place for place, one in zip(places, ranked, strict=True) if one.machine.name == machine]
            look = line_look(number) | {"linestyle": "none", "markersize": 5}
            axes.plot(*zip(*own, strict=True), label=machine, **look)
        for place, one in zip(places, ranked, strict=True):
            if one.interval is not None:
                ends = [end / time.factor for end in one.interval]
                axes.plot(ends, [place[1]] * 2, color="#BBBBBB", lw=0.8, zorder=1)
        axes.set_xlabel(say("time per step [{}]").format(time.unit))
        axes.set_ylabel(say("memory of a GPU [{}]").format(size.unit))
        axes.set_ylim(bottom=0)
        reach = [place[0] for place in places]
        axes.set_xlim(max(0.0, min(reach) - 0.3 * max(reach)), 1.4 * max(reach))
        if any(one.interval is not None for one in ranked):
            note(axes, say("Grey: intervals of 90 %, which may go beyond the picture."))
        legend(axes)
        named = [(f"{one.number}: {one.choice.name}", place) for one, place in zip(ranked, places, strict=True)]
        name_points(axes, named, places, most=5)

    return figure(fill)
