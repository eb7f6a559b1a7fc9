"""Predicted beside measured, for every point of a boxed cluster that was not fitted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from simperf.calibrate.cluster.baseline import TwoConstants
from simperf.calibrate.cluster.fitting import draws, fit_constants, fitted_points
from simperf.calibrate.cluster.scenarios import compute_of, predict, predictable
from simperf.calibrate.dataset import Dataset, Measurement, Value
from simperf.calibrate.measure.steal_time import taken_away

__all__ = ["SMALL", "GroupErrors", "PredictedPoint", "calm", "conditions", "hold_against", "summaries"]

#: load of the cores from which on they are called saturated
_SATURATED = 0.75
#: payloads below this are bound by what a message costs, not by the links [B]
SMALL = 256 * 1024.0


@dataclass(frozen=True, slots=True)
class PredictedPoint:
    """One measured point and its prediction.

    Parameters
    ----------
    point : Measurement
    predicted : float
        In the point's unit.
    load : float
        Share of the cores' time that the simulator saw asked for.
    fitted : bool
        Whether constants were fitted to it.
    interval : tuple of float, optional
        In which nine of ten predictions lie, if constants were drawn.
    plain : float, optional
        What a model of two constants says, in the point's unit; see `simperf.calibrate.cluster.baseline`.
    """

    point: Measurement
    predicted: float
    load: float
    fitted: bool
    interval: tuple[float, float] | None = None
    plain: float | None = None

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted / self.point.median - 1.0

    @property
    def plain_error(self) -> float | None:
        """The same of the model of two constants."""
        return None if self.plain is None else self.plain / self.point.median - 1.0

    @property
    def covered(self) -> bool:
        """Whether what was measured lies in the interval."""
        return self.interval is not None and self.interval[0] <= self.point.median <= self.interval[1]

    @property
    def group(self) -> str:
        """Group that it is reported with."""
        at = self.point.at
        if self.fitted:
            return "fitted sends"
        name = self.point.series.removeprefix("all-reduce/")
        if any(key.startswith("rate_of_") for key in at):
            return f"{name}, one slow host"
        if float(at.get("nbytes", SMALL)) < SMALL:
            return f"{name}, below 256 KiB"
        collective = self.point.series.startswith("all-reduce/")
        return f"{name}, cores saturated" if collective and self.load >= _SATURATED else name


@dataclass(frozen=True, slots=True)
class GroupErrors:
    """Errors of a group: how many points, mean size, mean signed and worst; share of points in their intervals [1].

    `plain` is the mean size of the errors of a model of two constants [1].
    """

    group: str
    points: int
    mape: float
    bias: float
    worst: float
    coverage: float | None = None
    plain: float | None = None


def hold_against(
    data: Dataset, stack: Mapping[str, float] | None = None, *, samples: int = 0
) -> tuple[PredictedPoint, ...]:
    """Predict every point that there is a scenario of, by `simperf.run`.

    Parameters
    ----------
    data : Dataset
    stack : mapping of str to float, optional
        Constants of the network stack; fitted to the sends of the data set itself if left out.
    samples : int
        So many times constants are fitted to readings drawn again, for the intervals; none are given if 0.
    """
    if stack is None:
        stack = fit_constants(data).stack
    sends = fitted_points(data)
    seen, plain = {point.key for point in sends}, TwoConstants.of(sends)
    compute = compute_of(data)
    drawn = draws(data, samples)
    rows = []
    for point in data:
        if predictable(point, compute):
            found = predict(point, stack, compute)
            every = [predict(point, draw.stack, draw.compute).value for draw in drawn]
            beside = plain.predict(point, compute) if plain is not None else None
            rows.append(PredictedPoint(point, found.value, found.load, point.key in seen, _interval(every), beside))
    return tuple(rows)


def _interval(values: Sequence[float]) -> tuple[float, float] | None:
    """From the 5th to the 95th hundredth, once there are enough values for it."""
    if len(values) < 2:
        return None
    low, high = np.quantile(values, (0.05, 0.95))
    return float(low), float(high)


def summaries(rows: Iterable[PredictedPoint]) -> tuple[GroupErrors, ...]:
    """One line a group, in the order of first appearance."""
    groups: dict[str, list[PredictedPoint]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    return tuple(_summary(name, group) for name, group in groups.items())


def _summary(name: str, rows: Sequence[PredictedPoint]) -> GroupErrors:
    errors = [row.error for row in rows]
    inside = sum(row.covered for row in rows) / len(rows) if all(row.interval for row in rows) else None
    mape = sum(abs(error) for error in errors) / len(errors)
    plain = [abs(row.plain_error) for row in rows if row.plain_error is not None]
    beside = sum(plain) / len(plain) if len(plain) == len(rows) else None
    return GroupErrors(name, len(errors), mape, sum(errors) / len(errors), max(errors, key=abs), inside, beside)


def calm(rows: Sequence[PredictedPoint]) -> tuple[PredictedPoint, ...]:
    """Those during which the host of the machine took nothing away; none if that is all of them, or not known."""
    left = tuple(row for row in rows if not taken_away(row.point.stolen))
    return left if len(left) < len(rows) else ()


def conditions(point: Measurement) -> str:
    """The conditions of a point in short."""
    words = []
    hidden = {"burst", "queue", "threads", "steps"}
    for key, value in point.at.items():
        if key not in hidden:
            words.append(f"{key}={_short(key, value)}")
    return " ".join(words)


def _short(key: str, value: Value) -> str:
    if key.startswith("rate"):
        return f"{float(value) * 8e-6:g}Mbit/s"
    if key in ("nbytes", "bucket"):
        size = float(value)
        return f"{size / 2**20:g}MiB" if size >= 2**20 else f"{size / 1024:g}KiB" if size >= 1024 else f"{size:g}B"
    return str(value)
