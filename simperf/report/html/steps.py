"""Counters as rows of a report's timeline: launches in queue, memory held, staleness, whatever a run counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from simperf.engine.tracks import split_track
from simperf.report.counters import series
from simperf.report.lanes import natural
from simperf.report.pipelines import is_pass, stage_devices
from simperf.results import Result

__all__ = ["UNITS", "counter_rows"]

#: unit of each counter, "1" for a plain number
UNITS = {"memory held": "B", "capacity": "B/s"}
_SHORT = {"queue length": "queue", "memory held": "memory"}
#: rows of one counter; those that reach highest are shown
_ROWS = 8
#: values of a row above which the lowest and the highest of each part of the time are shown
_STEPS = 4000
_PARTS = 2000
Floats = npt.NDArray[np.float64]


def counter_rows(result: Result) -> tuple[dict[str, list[dict[str, Any]]], str]:
    """Rows by the node that they belong to, and what was put together or left out.

    Returns
    -------
    dict of str to list
        Owner to rows; each with its ``label``, ``unit``, ``top`` (the highest value), and flat ``steps``: time [s],
        lowest and highest value from then on until the next.
    str
        Empty if all is shown.
    """
    passes = bool(stage_devices(result))  # which have a picture of their own
    counted = (name for track, name, _, _ in result.samples if track != "network")
    names = dict.fromkeys(name for name in counted if not (passes and is_pass(name)))
    rows: dict[str, list[dict[str, Any]]] = {}
    remarks = []
    for name in names:
        lines = {track: line for track, line in series(result, name).items() if line[1].max() > 0}
        if not lines:
            continue
        highest = sorted(lines, key=lambda track: (-lines[track][1].max(), natural(track)))[:_ROWS]
        if len(lines) > _ROWS:
            remarks.append(f"{name}: the {_ROWS} highest of {len(lines)} rows are shown.")
        binned = False
        for track in (track for track in lines if track in highest):
            times, values = lines[track]
            if name == "capacity" and track in result.resources:  # a link is whole until it changes
                values[0] = result.resources[track].capacity
            low = values
            if len(times) > _STEPS:
                times, low, values, binned = *_binned(times, values), True
            flat = np.stack([times, low, values], axis=1).ravel()
            row = {
                "label": " ".join((*(part for part in split_track(track) if part), _SHORT.get(name, name))),
                "unit": UNITS.get(name, "1"),
                "top": float(values.max()),
                "steps": [float(f"{value:.7g}") for value in flat],
            }
            rows.setdefault(split_track(track)[0], []).append(row)
        if binned:
            remarks.append(f"{name}: from the lowest to the highest value within each {_PARTS:,}th of the time.")
    return rows, " ".join(remarks)


def _binned(times: Floats, values: Floats) -> tuple[Floats, Floats, Floats]:
    """Starts of equal parts of the time, and the lowest and highest value in each."""
    edges = np.linspace(times[0], times[-1], _PARTS + 1)
    first = np.searchsorted(times, edges[:-1], side="right") - 1  # the value that holds when a part begins
    low = np.minimum(np.minimum.reduceat(values, first), values[first])
    high = np.maximum(np.maximum.reduceat(values, first), values[first])
    return edges, np.append(low, low[-1]), np.append(high, high[-1])
