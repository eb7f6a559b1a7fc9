"""Output of calibration: fits and validations as text and as pictures."""

from __future__ import annotations

import json
import os
import re
from math import ceil, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from simperf.json_format import json_text
from simperf.report.fitted_table import FittedTable
from simperf.report.terminal import to_text
from simperf.workload.op import MATRIX_FAMILIES

if TYPE_CHECKING:
    from rich.console import RenderableType

    from simperf.calibrate.fit import Data, FitSet, Model, SeriesFit
    from simperf.calibrate.validate import Validation

__all__ = ["calibration_csv", "calibration_json", "calibration_text", "draw_fit", "draw_validation", "plot_fits"]


#: error up to which the axis of a picture stays linear; where one is larger, it goes by logarithms beyond 1 [1]
_FAR = 3.0


def calibration_text(found: Validation, *, points: bool = False) -> str:
    """A table of errors by series, fitted and held out apart; with `points`, a line a point as well."""
    from rich.console import Group
    from rich.text import Text

    from simperf.calibrate.fit.model import quantity

    views: list[RenderableType] = []
    if points:
        rows = [
            [
                row.key,
                "fitted" if row.fitted else "held out",
                quantity(row.measured, row.unit),
                quantity(row.predicted, row.unit),
                f"{row.error:+.1%}",
                "outside" if row.inside is False else "",
            ]
            for row in found.points
        ]
        views += [FittedTable(("point", "state", "measured", "predicted", "error", "90 % interval"), rows), Text("")]
    summaries = found.summaries()
    beside = any(one.plain is not None for one in summaries)
    header = ["series", "points", "n", "MAPE", "median", "worst", "bias", "in 90 %", *(["two constants"] * beside)]
    rows = []
    for one in summaries:
        cells = [one.name, "fitted" if one.fitted else "held out", str(one.points), f"{one.mape:.1%}"]
        cells += [f"{one.median:.1%}", f"{one.worst:+.1%}", f"{one.bias:+.1%}"]
        cells.append("not known" if one.coverage is None else f"{one.coverage:.0%}")
        rows.append([*cells, *(["" if one.plain is None else f"{one.plain:.1%}"] * beside)])
    views.append(FittedTable(header, rows, heads=2))
    notes = [f"not predicted: {series}: {reason}" for series, reason in found.skipped.items()]
    if beside:
        notes.insert(0, "two constants: the MAPE of a fixed time and one rate for each model; of steps, of a roofline")
    return to_text(Group(*views, *map(Text, notes)))


def _rows(found: Validation) -> list[dict[str, Any]]:
    return [
        {
            "series": row.series,
            "model": row.model,
            "point": row.key.partition(" ")[2],
            "fitted": row.fitted,
            "unit": row.unit,
            "measured": row.measured,
            "predicted": row.predicted,
            "low": row.low,
            "high": row.high,
            "error": row.error,
            "two_constants": row.plain,
        }
        for row in found.points
    ]


def calibration_json(found: Validation) -> str:
    """Every point as JSON."""
    return json_text(_rows(found), indent=1)


def calibration_csv(found: Validation) -> str:
    """Every point as CSV."""
    import csv
    import io

    rows = _rows(found)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _abscissa(model: Model, data: Data) -> tuple[str, str]:
    """Column of the model that a fit is drawn over, and how its axis is called.

    Models of a line read any amount as ``nbytes``; the points' own conditions say what it is.
    """
    name = next((key for key in ("nbytes", "flops", "launches") if key in data.columns), "")
    if "flops" in data.columns and model.name.removeprefix("kernel.").partition("-")[0] in MATRIX_FAMILIES:
        name = "flops"
    if name == "nbytes" and len(data.keys) == len(data):
        found = [json.loads(key.partition(" ")[2]) for key in data.keys]
        for word in ("nbytes", "parameters", "nodes", "elements"):
            if all(at.get(word) == size for at, size in zip(found, data.columns[name], strict=True)):
                return name, {"nbytes": "size [B]", "parameters": "parameter tensors"}.get(word, word)
        return name, "bytes read and written [B]"
    return name, {"nbytes": "size [B]", "flops": "work [FLOP]", "launches": "launches"}.get(name, "reading, in order")


def draw_fit(one: SeriesFit) -> Any:
    """Data with their spread, the fit with its interval, and the residuals below (a matplotlib figure)."""
    from simperf.report.style import figure

    fit = one.fit
    name, title = _abscissa(fit.model, fit.data)
    (constant, *others) = fit.model.constants
    reading = "time [s]" if others or constant.unit == "s" else f"{constant.name} [1]"

    def draw(picture: Any) -> None:
        top, bottom = picture.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        for data, mark, color, label in (
            (fit.data, "o", "#0072B2", "fitted"),
            (one.held_out, "D", "#D55E00", "held out"),
        ):
            if data is None:
                continue
            x = data.columns[name] if name else np.arange(1.0, len(data) + 1)
            low, high = fit.interval(data)
            top.plot(x, data.measured, mark, ms=4, color=color, label=f"measured, {label}")
            top.vlines(x, low, high, color=color, alpha=0.35, lw=2)
            top.plot(x, fit.predict(data), "_", ms=9, color="black", label=None if label != "fitted" else "fit, 90 %")
            bottom.plot(x, 100 * fit.errors(data), mark, ms=3, color=color)
        bottom.axhline(0.0, color="black", lw=0.8)
        for axes in (top, bottom):
            if name:
                axes.set_xscale("log")
        top.set_yscale("log")
        top.set_ylabel(reading)
        bottom.set_ylabel("error [%]")
        bottom.set_xlabel(title)
        top.set_title(f"{fit.model.name}: mean error {fit.mape():.1%}")
        top.legend(frameon=False)

    return figure(draw, height=6.0)


def plot_fits(found: FitSet, folder: str | os.PathLike[str]) -> list[Path]:
    """Write a picture of each fit into `folder`; gives the files."""
    from simperf.report.style import save

    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for one in found.fits:
        path = place / (re.sub(r"[^A-Za-z0-9_.-]+", "-", one.fit.model.name) + ".svg")
        save(draw_fit(one), path)
        written.append(path)
    return written


def draw_validation(found: Validation) -> Any:
    """Predicted over measured against measured, fitted and held-out points apart (a matplotlib figure)."""
    from simperf.report.style import figure

    def draw(picture: Any) -> None:
        axes = picture.subplots()
        for fitted, mark, color, label in ((True, "o", "#0072B2", "fitted"), (False, "D", "#D55E00", "held out")):
            rows = [row for row in found.points if row.fitted == fitted]
            if rows:
                axes.plot(
                    [row.measured for row in rows],
                    [100 * row.error for row in rows],
                    mark,
                    ms=4,
                    color=color,
                    label=f"{label} ({len(rows)})",
                )
        axes.axhline(0.0, color="black", lw=0.8)
        axes.set_xscale("log")
        if any(abs(row.error) > _FAR for row in found.points):  # a point that is far off leaves the others room
            axes.set_yscale("symlog", linthresh=100)
            most = max(abs(row.error) for row in found.points)
            beyond = [number * 10.0**power for power in range(2, 3 + ceil(log10(most))) for number in (1, 2, 5)]
            ticks = [-100, -50, 0, 50, *(tick for tick in beyond if tick <= 100 * most)]
            axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        units = dict.fromkeys(row.unit for row in found.points)
        axes.set_xlabel(f"measured [{', '.join(units)}]")
        axes.set_ylabel("predicted against measured [%]")
        axes.legend(frameon=False)

    return figure(draw)
