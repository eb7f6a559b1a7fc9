"""Names beside the points of a picture, each where it covers nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from simperf.report.language import say
from simperf.report.style import note

__all__ = ["name_points"]

#: half the size of a mark, and the distance of a name from its point [point]
_MARK, _APART = 4.0, 5.0
#: sides of a point on which its name may stand, best first: right or left, above or below
_SIDES = ((1, 1), (1, -1), (-1, 1), (-1, -1), (0, 1), (0, -1))


def name_points(
    axes: Any,
    names: Sequence[tuple[str, tuple[float, float]]],
    points: Sequence[tuple[float, float]],
    *,
    most: int = 12,
    size: float = 7.0,
) -> None:
    """Write names beside points where they cover no point, no other text, and stay on the axes.

    Call it last: the names are placed in the axes as they are then. What has no room is left out, which is said below.

    Parameters
    ----------
    axes : matplotlib axes
    names : sequence of (str, point)
        The most important first.
    points : sequence of point
        All points that are drawn.
    most : int
        Names that are tried.
    size : float
        Of the letters [point].
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.transforms import Bbox

    made = axes.figure
    canvas: Any = FigureCanvasAgg(made)
    renderer = canvas.get_renderer()
    made.draw_without_rendering()
    pixel, frame = made.dpi / 72, axes.get_window_extent(renderer)
    spots = axes.transData.transform(list(points) or [(0.0, 0.0)])
    half = _MARK * pixel
    taken = [Bbox.from_bounds(x - half, y - half, 2 * half, 2 * half) for x, y in spots]
    taken += [text.get_window_extent(renderer) for text in axes.texts if text.get_text()]
    if axes.get_legend() is not None:
        taken.append(axes.get_legend().get_window_extent(renderer))
    paper: Any = {"bbox": {"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.4}}
    dropped = 0
    for name, place in names[:most]:
        for kwargs in _places():
            text = axes.annotate(name, place, fontsize=size, textcoords="offset points", zorder=4, **kwargs, **paper)
            box = text.get_window_extent(renderer)
            inside = box.x0 >= frame.x0 and box.x1 <= frame.x1 and box.y0 >= frame.y0 and box.y1 <= frame.y1
            if inside and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                break
            text.remove()
        else:
            dropped += 1
    if dropped:
        note(axes, say("Names that have no room are left out: {}.").format(dropped))


def _places() -> Iterator[dict[str, Any]]:
    """Where a name may stand, from its point."""
    for across, up in _SIDES:
        yield {
            "xytext": (across * _APART, up * _APART * (1.0 if across else 1.4)),
            "ha": {1: "left", 0: "center", -1: "right"}[across],
            "va": "bottom" if up > 0 else "top",
        }
