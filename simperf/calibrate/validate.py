"""Holding a profile against measurements: signed error of each point, and whether the intervals hold them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simperf.analysis.chance import NORMAL
from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.fit.choose import ModelChoice, choose
from simperf.calibrate.fit.model import Array, Data, Model
from simperf.calibrate.fit.solve import NO_INTERVAL
from simperf.calibrate.sessions import parts
from simperf.calibrate.uncertainty.constants import within
from simperf.cost import GpuRates
from simperf.errors import InputError, Problem
from simperf.hardware import ProfilePart
from simperf.hardware.profile import FittedModel
from simperf.outputs import data_frame, drawn, html_table, report_module

__all__ = ["Checked", "Summary", "Validation", "validate"]

#: from a point to (predicted, low, high), or None if it cannot be predicted
Predictor = Callable[[Measurement], tuple[float, float, float] | None]


@dataclass(frozen=True, slots=True)
class Checked:
    """One measured point and what the profile says.

    Parameters
    ----------
    key, series, model : str
    measured, predicted : float
        Median reading and prediction, in the reading's unit.
    low, high : float
        90 % interval of the prediction, the scatter of readings among it; no numbers (NaN) where none is known.
    fitted : bool
        The point was used for the fit.
    unit : str
        Of the reading.
    plain : float, optional
        What a model of two constants says, in the reading's unit; see `simperf.calibrate.baseline`.
    """

    key: str
    series: str
    model: str
    measured: float
    predicted: float
    low: float
    high: float
    fitted: bool
    unit: str = "s"
    plain: float | None = None

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted / self.measured - 1.0

    @property
    def inside(self) -> bool | None:
        """Whether the interval holds the reading; None where no interval is known."""
        return None if math.isnan(self.low) else self.low <= self.measured <= self.high


@dataclass(frozen=True, slots=True)
class Summary:
    """Errors of several points: mean and median size, worst and median signed one (bias), coverage of the intervals.

    `coverage` is of points that have an interval, None without any. `plain` is the mean error of a model of two
    constants, if it says something of all the points.
    """

    name: str
    fitted: bool
    points: int
    mape: float
    median: float
    worst: float
    bias: float
    coverage: float | None
    plain: float | None = None


@dataclass(frozen=True)
class Validation:
    """All points of a data set against a profile.

    Parameters
    ----------
    points : tuple of Checked
    skipped : mapping of str to str
        Series without prediction, and why.
    boxed : bool
        They are of a boxed cluster.
    """

    points: tuple[Checked, ...]
    skipped: Mapping[str, str]
    boxed: bool = False

    def summaries(self) -> list[Summary]:
        """By series and whether points were fitted; then of all fitted ones, and of all others, but for memory."""
        groups: dict[tuple[str, bool], list[Checked]] = {}
        for point in self.points:
            groups.setdefault((point.series, point.fitted), []).append(point)
        for point in _without_memory(self.points):
            groups.setdefault(("all", point.fitted), []).append(point)
        return [_summary(name, fitted, rows) for (name, fitted), rows in groups.items()]

    @property
    def held_out(self) -> Summary | None:
        """Of all points that were not fitted, but for memory; None if there are none."""
        rows = _without_memory([point for point in self.points if not point.fitted])
        return _summary("all", False, rows) if rows else None

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the errors, and write the picture to `path` if there is one.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return drawn(report_module("calibration").draw_validation(self), path)

    def to_pandas(self) -> Any:
        """A row a point, as a `pandas.DataFrame`, which the extra ``tables`` brings."""
        numbers = ("measured", "predicted", "low", "high", "error")
        columns = ("key", "series", "model", *numbers, "inside", "fitted", "unit")
        return data_frame(({name: getattr(one, name) for name in columns} for one in self.points), columns)

    def __repr__(self) -> str:
        out = self.held_out
        told = f"held-out points are off by {out.mape:.1%} on average" if out else "every point was fitted"
        return f"<Validation: {len(self.points)} points, {told}>"

    def _repr_html_(self) -> str:
        header = ["series", "fitted", "points", "mean error", "median error", "inside the interval"]
        rows = []
        for one in self.summaries():
            shares = [f"{share:.1%}" for share in (one.mape, one.median)]
            shares.append("not known" if one.coverage is None else f"{one.coverage:.1%}")
            rows.append([one.name, "yes" if one.fitted else "no", str(one.points), *shares])
        return html_table(header, rows)


def _without_memory(points: Sequence[Checked]) -> Sequence[Checked]:
    """Points of times; those of memory, if there are no others."""
    return [point for point in points if point.unit != "B"] or points


def _summary(name: str, fitted: bool, rows: Sequence[Checked]) -> Summary:
    errors = np.array([row.error for row in rows])
    size = np.abs(errors)
    inside = [row.inside for row in rows if row.inside is not None]
    plain = [abs(row.plain / row.measured - 1.0) for row in rows if row.plain is not None]
    return Summary(
        name,
        fitted,
        len(rows),
        float(size.mean()),
        float(np.median(size)),
        float(errors[size.argmax()]),
        float(np.median(errors)),
        float(np.mean(inside)) if inside else None,
        float(np.mean(plain)) if len(plain) == len(rows) else None,
    )


def validate(
    profile: ProfilePart,
    dataset: Dataset,
    *,
    part: GpuRates | None = None,
    steps: Predictor | None = None,
) -> Validation:
    """Predict every point of a data set that the profile has a model for.

    Parameters
    ----------
    profile : ProfilePart
    dataset : Dataset
        The one that was fitted (its held-out points are distinguished), or another.
    part : GpuRates, optional
        The GPU that was measured.
    steps : callable, optional
        Predicts points of ``step/...`` and ``program/...``, which no model was fitted to.

    Raises
    ------
    InputError
        The profile has a model for none of the points.
    """
    fitted_to = str(profile.made.get("parts", "")).split()
    same = profile.dataset == dataset.title and (not fitted_to or not set(fitted_to).isdisjoint(parts(dataset)))
    units = {point.key: point.unit for point in dataset}
    points: list[Checked] = []
    skipped: dict[str, str] = {}
    seen: set[str] = set()
    # constants of one kind of operation go before those of its family
    choices = choose(dataset, part=part, known=profile.model)
    for choice in sorted(choices, key=lambda one: one.model is None or ":" not in one.model.name):
        if choice.model is None or choice.data is None:
            skipped.setdefault(choice.series, choice.reason)
            continue
        fitted = profile.model.get(choice.model.name)
        if fitted is None:
            skipped.setdefault(choice.series, choice.reason or f"the profile has no {choice.model.name}")
            continue
        fresh = np.array([key not in seen for key in choice.data.keys], dtype=bool)
        if len(choice.data.keys) == len(choice.data):
            data = choice.data.take(fresh)
            seen |= set(choice.data.keys)
        else:
            data = choice.data
        if len(data):
            points += _checked(choice, fitted, data, units, same=same, file=profile.file)
            skipped.pop(choice.series, None)
    if steps is not None:
        points += _steps(steps, dataset, skipped)
    order = {key: index for index, key in enumerate(point.key for point in dataset)}
    points.sort(key=lambda point: order.get(point.key, len(order)))
    if not points:
        raise InputError(
            Problem(
                "the profile has a model for no point of this data set",
                value=dataset.title,
                expected="a profile that was fitted to data of this kind",
            )
        )
    return Validation(tuple(points), skipped)


def _checked(
    choice: ModelChoice, fitted: FittedModel, data: Data, units: Mapping[str, str], *, same: bool, file: str
) -> Iterator[Checked]:
    model = choice.model
    assert model is not None
    kept = set(fitted.held_out)
    try:
        predicted, low, high = predictions(model, fitted, data)
    except (KeyError, TypeError):  # constants of another formula, as those of a GPU for a CPU's measurements
        message = f"the constants of {model.name} are not those of the formula that such measurements are fitted with"
        told = ", ".join(sorted({*fitted.constant, *fitted.fixed}))
        needed = ", ".join(one.name for one in model.constants)
        key = f"model.{model.name}"
        raise InputError(Problem(message, file=file, key=key, value=told, expected=needed)) from None
    single = len(data.keys) != len(data)  # one constant for many readings: their median stands for them
    for i in [int(np.argsort(data.measured)[len(data) // 2])] if single else range(len(data)):
        key = data.keys[0] if single else data.keys[i]
        yield Checked(
            key,
            choice.series,
            model.name,
            float(data.measured[i]),
            float(predicted[i]),
            float(low[i]),
            float(high[i]),
            same and key not in kept,
            units.get(key, "s"),
        )


def predictions(model: Model, fitted: FittedModel, data: Data) -> tuple[Array, Array, Array]:
    """Best prediction and 90 % interval of readings: the draws' spread, and the scatter that the fit left.

    Constants that are single readings have neither: their interval is not known.
    """

    def read(draw: int) -> Array:  # where a constant is nothing, a formula may give one number for all
        return np.broadcast_to(np.asarray(model.function(fitted.at(draw), data.columns), dtype=float), (len(data),))

    best = read(0)
    if all(one.note == NO_INTERVAL for one in fitted.constant.values()) and fitted.constant and not fitted.between:
        unknown = np.full(len(best), np.nan)
        return best, unknown, unknown
    count = max((len(one.draws) for one in fitted.constant.values()), default=0)
    rows = [read(draw + 1) for draw in range(count)]
    if rows:
        middle = np.log(np.maximum(best, 1e-300))
        spread = within(np.log(np.maximum(np.array(rows), 1e-300)), middle).var(axis=0)
    else:  # draws are sessions too
        spread = np.full(len(best), fitted.between**2)
    width = NORMAL * np.sqrt(spread + fitted.scatter**2)
    return best, best * np.exp(-width), best * np.exp(width)


def _steps(steps: Predictor, dataset: Dataset, skipped: dict[str, str]) -> Iterator[Checked]:
    for family, name in (("step/", "whole step"), ("program/", "whole program")):
        for point in dataset.select(family):
            found = steps(point)
            if found is not None:
                skipped.pop(point.series, None)
                yield Checked(point.key, point.series, name, point.median, *found, fitted=False, unit=point.unit)
