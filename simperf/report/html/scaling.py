"""The part of a report that shows how work scales."""

from __future__ import annotations

from collections.abc import Sequence

from simperf.analysis.scaling import ScalingCurve
from simperf.report.html.page import paragraphs, table
from simperf.report.html.picture import on_page
from simperf.report.language import say
from simperf.report.scaling import draw_scaling
from simperf.units import format_quantity

__all__ = ["scaling_part"]


def scaling_part(lines: Sequence[ScalingCurve], *, remarks: Sequence[str] = ()) -> str:
    """Time and efficiency over a count with the ideal line, in a picture and in numbers; empty without lines.

    Parameters
    ----------
    lines : sequence of ScalingCurve
    remarks : sequence of str
        What was run for it, and what could not be.
    """
    if not lines:
        return paragraphs(remarks) if remarks else ""
    last = lines[0].points[-1]
    text = say("{} over {} beside the ideal, and the efficiency: {} % at {}.")
    what = say(lines[0].what)
    share = f"{last.efficiency * 100:.1f}"
    text = text.format(f"{what[:1].upper()}{what[1:]}", say(lines[0].key), share, last.count)
    rows = []
    for line in lines:
        for point in line.points:
            ends = " to ".join(format_quantity(end, "s") for end in point.interval) if point.interval else ""
            times = format_quantity(point.time, "s"), ends, format_quantity(point.ideal, "s")
            label = line.label or ("as in the file" if len(lines) > 1 else "")
            rows.append((label, point.count, *times, f"{point.efficiency * 100:.1f} %"))
    head = ("line", lines[0].key, lines[0].what, "90 % interval", "ideal", "efficiency")
    numbers = table(
        head, rows, caption=f"Scaling in numbers; ideal: {lines[0].ideal}", numbers=(1, 2, 4, 5), optional=(0, 3)
    )
    picture = on_page(lambda: draw_scaling(lines), name="scaling", text=text)
    return picture + numbers + (paragraphs(remarks) if remarks else "")
