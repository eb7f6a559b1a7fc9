"""The Gantt chart: a row for each stream, thread and storage device, and the links below.

A run of many spans is drawn as density: time is cut into bins, and the height of a colour
is the share of the bin that went to it. The picture says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from simperf.engine.recorder import CATEGORIES, Category, Span
from simperf.report.lanes import TimelineRow, natural, rows
from simperf.report.language import named, say
from simperf.report.style import COLORS, HATCHES, columns, letters_on, note, time_scale, written
from simperf.results import Result

__all__ = ["DENSE", "draw_gantt", "gantt_rows", "link_rates", "occupancy"]

#: spans above which a run is drawn as density
DENSE = 4000
#: bins of time of a dense picture
_BINS = 800
#: rows that fit a picture; more are merged by owner, and then cut
_ROWS = 40
#: share of the time below which a bar is too narrow for an edge or a hatch
_NARROW = 0.004
_LINKS = 8
_HEIGHT = 0.8
Floats = npt.NDArray[np.float64]


def gantt_rows(result: Result) -> tuple[list[TimelineRow], str]:
    """Rows to draw, and what to say if they are not all."""
    found = rows(result)
    if len(found) <= _ROWS:
        return found, ""
    merged = []
    for owner, group in itertools.groupby(found, key=lambda row: row.owner):
        members = list(group)
        spans = sorted((span for row in members for span in row.spans), key=lambda span: span.start)
        merged.append(
            TimelineRow(
                owner, say("all {} rows").format(len(members)) if len(members) > 1 else members[0].name, 0, spans
            )
        )
    text = say("{} rows are merged into one per device or host.").format(len(found))
    if len(merged) > _ROWS:
        text += " " + say("The first {} of {} are shown.").format(_ROWS, len(merged))
    return merged[:_ROWS], text


def occupancy(spans: Sequence[Span], edges: Floats) -> Floats:
    """Share of each bin that spans take [1], added up where they overlap.

    Parameters
    ----------
    spans : sequence of Span
    edges : ndarray, shape (bins + 1,)
        Ends of the bins [s], rising.

    Returns
    -------
    ndarray, shape (bins,)
    """

    def elapsed(times: Floats) -> Floats:
        """Sum over `times` of the time since then, at each edge [s]."""
        ordered = np.sort(times)
        count = np.searchsorted(ordered, edges)
        return np.asarray(count * edges - np.concatenate([[0.0], np.cumsum(ordered)])[count])

    starts = np.array([span.start for span in spans], dtype=np.float64)
    ends = np.array([span.end for span in spans], dtype=np.float64)
    busy = np.diff(elapsed(starts) - elapsed(ends)) / np.diff(edges)
    return np.clip(busy, 0.0, None)


def link_rates(result: Result) -> list[tuple[str, Floats, Floats, float]]:
    """Links that moved something: name, times [s], share of the capacity [1] from each time on, mean share."""
    series: dict[str, tuple[list[float], list[float]]] = {}
    for track, name, time, value in result.samples:
        if track == "network" and name.startswith("rate "):
            listed, rates = series.setdefault(name.removeprefix("rate "), ([0.0], [0.0]))
            listed.append(time)
            rates.append(value)
    found: list[tuple[str, Floats, Floats, float]] = []
    for link, (listed, rates) in series.items():
        use = result.resources.get(link)
        capacity = use.capacity if use is not None and np.isfinite(use.capacity) else max(rates)
        times: Floats = np.array([*listed, max(result.time, listed[-1])])
        shares = np.array(rates) / capacity if capacity > 0 else np.zeros(len(rates))
        mean = float((np.diff(times) * shares).sum() / result.time) if result.time > 0 else 0.0
        if mean > 0:
            found.append((link, times, np.append(shares, shares[-1]), mean))
    return sorted(found, key=lambda row: (-row[3], natural(row[0])))


def draw_gantt(axes: Any, result: Result) -> None:
    """Draw the timeline of a result on `axes`, and the busiest links as rows."""
    from matplotlib.patches import Patch

    scale = time_scale(result.time)
    shown, text = gantt_rows(result)
    dense = bool(text) or sum(len(row.spans) for row in shown) > DENSE
    used: dict[Category, None] = {}
    for y, row in enumerate(shown):
        groups = {c: [span for span in row.spans if span.category == c] for c in CATEGORIES}
        used |= {c: None for c, members in groups.items() if members}
        draw = _density if dense else _bars
        draw(axes, y, {c: members for c, members in groups.items() if members}, result.time, scale.factor)
    if not dense:
        _names(axes, shown, result.time, scale.factor)
    labels = [f"{named(row.owner)}  {named(row.label)}" if row.name else named(row.label) for row in shown]
    moving = link_rates(result)
    for y, (link, times, shares, _) in enumerate(moving[:_LINKS], len(shown)):
        low = y + _HEIGHT / 2
        axes.fill_between(times / scale.factor, low - shares * _HEIGHT, low, step="post", color="#777777", linewidth=0)
        axes.axhline(low, color="#777777", linewidth=0.5)
        labels.append(say("link {}").format(link))
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_xlim(0, result.time / scale.factor if result.time > 0 else 1)
    axes.set_xlabel(say("time ({})").format(scale.unit))
    axes.grid(visible=False, axis="y")
    handles: list[Any] = [_patch(c) for c in CATEGORIES if c in used]
    if moving:
        handles.append(Patch(facecolor="#777777", label=say("link rate / capacity")))
    above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
    above |= {"handlelength": 1.5, "columnspacing": 1.2}  # six of them, right of long names of rows
    axes.legend(handles=handles, ncols=columns(axes, len(handles)), **above)
    if dense:
        width = written(result.time / _BINS, "s", digits=3)
        total = f"{len(result.spans):,}".replace(",", " ")
        told = say("{} spans are drawn in bins of {}: the height of a colour is its share of the bin.")
        text = f"{told.format(total, width)} {text}"
    if len(moving) > _LINKS:
        text += " " + say("The {} busiest of {} links are shown.").format(_LINKS, len(moving))
    if text:
        note(axes, text.strip())


def _patch(category: Category) -> Any:
    from matplotlib.patches import Patch

    hatch = HATCHES.get(category)
    return Patch(facecolor=COLORS[category], edgecolor="#777777", linewidth=0.5, hatch=hatch, label=say(category))


Groups = dict[Category, list[Span]]


def _bars(axes: Any, y: int, groups: Groups, time: float, factor: float) -> None:
    """Every span as a bar."""
    for category, spans in groups.items():
        color, hatch = COLORS[category], HATCHES.get(category)
        wide = [span for span in spans if span.end - span.start >= _NARROW * time]
        narrow = [span for span in spans if span.end - span.start < _NARROW * time]
        # an edge in the paper's colour tells neighbours apart, but would hide what is narrow
        for members, edge in ((wide, "#777777" if hatch else "white"), (narrow, "#BBBBBB" if hatch else color)):
            if members:
                bars = [(span.start / factor, (span.end - span.start) / factor) for span in members]
                style = {"facecolor": color, "edgecolor": edge, "linewidth": 0.4}
                axes.broken_barh(bars, (y - _HEIGHT / 2, _HEIGHT), hatch=hatch if members is wide else None, **style)


def _density(axes: Any, y: int, groups: Groups, time: float, factor: float) -> None:
    """Stacked shares of each bin, from the row's lower edge upwards."""
    edges = np.linspace(0.0, time, _BINS + 1)
    shares = {category: occupancy(spans, edges) for category, spans in groups.items()}
    full = max(1.0, float(sum(shares.values()).max())) if shares else 1.0  # type: ignore[union-attr]
    low = np.full(_BINS, y + _HEIGHT / 2)
    for category, share in shares.items():
        high = low - share * _HEIGHT / full
        axes.fill_between(
            edges / factor,
            np.append(low, low[-1]),
            np.append(high, high[-1]),
            step="post",
            facecolor=COLORS[category],
            edgecolor="#999999" if category == "wait" else "none",
            linewidth=0,
            hatch=HATCHES.get(category),
        )
        low = high


def _names(axes: Any, shown: Sequence[TimelineRow], time: float, factor: float) -> None:
    """Write the name into every span that has room for it."""
    if time <= 0:
        return
    letter = 0.07 / (axes.figure.get_figwidth() - 1.3)  # as a share of what is left beside the rows' labels
    for y, row in enumerate(shown):
        for span in row.spans:
            width, text = (span.end - span.start) / time, named(span.name)
            if width < letter * (len(text) + 0.6):
                continue
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8} if span.category == "wait" else None
            axes.text(
                (span.start + span.end) / 2 / factor,
                y,
                text,
                ha="center",
                va="center",
                fontsize=7.5,
                color=letters_on(COLORS[span.category]),
                bbox=box,
                clip_on=True,
            )
