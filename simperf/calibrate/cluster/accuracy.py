"""Predicted beside measured, for every point of a boxed cluster that was not fitted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from simperf.calibrate.cluster.constants import Constants
from simperf.calibrate.cluster.fitting import fit_constants, fitted_points
from simperf.calibrate.cluster.predict import SERIES, compute_of, predict
from simperf.calibrate.dataset import Dataset, Measurement, Value

__all__ = ["SATURATED", "SMALL", "Row", "Summary", "conditions", "hold_against", "summaries"]

#: load of the cores from which on they are called saturated
SATURATED = 0.75
#: payloads below this are bound by what a message costs, not by the links [B]
SMALL = 256 * 1024.0


@dataclass(frozen=True, slots=True)
class Row:
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
    """

    point: Measurement
    predicted: float
    load: float
    fitted: bool

    @property
    def error(self) -> float:
        """Predicted over measured, less 1."""
        return self.predicted / self.point.median - 1.0

    @property
    def group(self) -> str:
        """What it is told together with."""
        at = self.point.at
        if self.fitted:
            return "fitted sends"
        name = self.point.series.removeprefix("all-reduce/")
        if any(key.startswith("rate_of_") for key in at):
            return f"{name}, one slow host"
        if float(at.get("nbytes", SMALL)) < SMALL:
            return f"{name}, below 256 KiB"
        collective = self.point.series.startswith("all-reduce/")
        return f"{name}, cores saturated" if collective and self.load >= SATURATED else name


@dataclass(frozen=True, slots=True)
class Summary:
    """Errors of a group: how many points, mean size, mean signed and worst."""

    group: str
    points: int
    mape: float
    bias: float
    worst: float


def hold_against(data: Dataset, constants: Constants | None = None, *, rate: float | None = None) -> tuple[Row, ...]:
    """Predict every point that there is a simulation of.

    Parameters
    ----------
    data : Dataset
    constants : Constants, optional
        Fitted to the sends of the data set itself if left out.
    rate : float, optional
        Whose sends are (or were) fitted [B/s].
    """
    if rate is None:
        rate = data.select("add")[0].number("rate") if data.select("add") else None
    if constants is None:
        constants = fit_constants(data, rate).constants
    seen = {point.key for point in fitted_points(data, rate)} if rate is not None else set()
    compute = compute_of(data)
    rows = []
    for point in data:
        if point.series in SERIES or any(one.endswith("/") and point.series.startswith(one) for one in SERIES):
            if "model" in point.at and point.at["model"] not in compute:
                continue
            found = predict(point, constants, compute)
            rows.append(Row(point, found.value, found.load, point.key in seen))
    return tuple(rows)


def summaries(rows: Iterable[Row]) -> tuple[Summary, ...]:
    """One line a group, in the order of first appearance."""
    groups: dict[str, list[float]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row.error)
    return tuple(
        Summary(
            name,
            len(errors),
            sum(abs(error) for error in errors) / len(errors),
            sum(errors) / len(errors),
            max(errors, key=abs),
        )
        for name, errors in groups.items()
    )


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
