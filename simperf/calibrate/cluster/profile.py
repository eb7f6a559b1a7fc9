"""The constants of a boxed cluster as a profile: made of one or more recordings, kept in a file, and predicted with.

Three kinds of models stand in it. ``network-stack`` holds the constants, which `simperf.run` applies to machines
whose hosts have a network stack, fitted to the sends of all recordings together; its
joint samples are fits to readings drawn again, of one recording after the other, so that they know how far an hour is
from the next. ``boxed.step.MODEL`` holds the training steps of one process alone, with the same draws.
``boxed.miss.GROUP`` holds what was missed: every recording is predicted from the others (a single one from its own
sends), and the interval of a prediction is what nine of ten points of its group missed, as in
`simperf.calibrate.cluster.conformal`. Where nothing is measured, it is not known how disturbed the machine will be:
recordings are taken as they were, quiet and less quiet ones (``ratio``). A recording that is compared with a profile
tells it by its own sends (``usual``, ``low`` and ``high``, of `simperf.calibrate.cluster.conformal.Scores`).
"""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from multiprocessing import get_context

import numpy as np

from simperf.calibrate.cluster.accuracy import PredictedPoint, hold_against
from simperf.calibrate.cluster.baseline import TwoConstants
from simperf.calibrate.cluster.conformal import Scores, disturbance, span, with_fit_residuals, with_other_recordings
from simperf.calibrate.cluster.experiments import MODEL, Point
from simperf.calibrate.cluster.fitting import Draw, FittedBox, draws, fit_constants, fitted_points
from simperf.calibrate.cluster.scenarios import Compute, compute_of, predict, predictable
from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.sessions import parts, pool
from simperf.calibrate.validate import Checked, Validation
from simperf.errors import InputError, Problem
from simperf.hardware import ProfilePart
from simperf.hardware.netstack import NetworkStackPart
from simperf.hardware.profile import NETWORK_STACK, FittedConstant, FittedModel

__all__ = ["boxed_models", "draw_of", "hold_profile", "hold_recording", "is_box", "predict_points", "validation_of"]

#: model of the constants, and what the names of the others begin with
NAME, STEP, MISS = NETWORK_STACK, "boxed.step.", "boxed.miss."
#: fits to readings drawn anew, of all recordings together
DRAWS = 60


def is_box(data: Dataset) -> bool:
    """Whether a data set is of a boxed cluster."""
    return any("burst" in point.at for point in data)


def boxed_models(recordings: Sequence[Dataset], *, samples: int = DRAWS, seed: int = 0) -> dict[str, FittedModel]:
    """Fit the constants of a boxed cluster, and see what predictions miss.

    Parameters
    ----------
    recordings : sequence of Dataset
        Of one machine, at least one.
    samples : int
        Fits to readings drawn again.
    seed : int

    Raises
    ------
    InputError
        A recording lacks what is needed, or they are of different machines.
    """
    together = pool(recordings)
    best = _best(together)
    each = -(-samples // len(recordings))
    seeds = range(seed, seed + len(recordings))
    drawn = [draws(one, each, seed=number) for one, number in zip(recordings, seeds, strict=True)]
    mixed = [one[index] for index in range(each) for one in drawn][:samples]
    points = fitted_points(together)
    logs = np.log([predict(point, best.stack, best.compute).value / point.median for point in points])
    scatter = 1.4826 * float(np.median(np.abs(logs - np.median(logs))))
    error = float(np.mean(np.abs(np.expm1(logs))))
    found = {
        NAME: FittedModel(
            title="sends between two hosts and work of one, simulated",
            series="send",
            points=len(points),
            error=error,
            scatter=scatter,
            constant={
                name: _constant(value, [one.stack[name] for one in mixed], NetworkStackPart.UNITS[name])
                for name, value in best.stack.items()
            },
        )
    }
    for name, compute in best.compute.items():
        every = [one.compute[name] for one in mixed if name in one.compute]
        constants = {
            part: _constant(getattr(compute, part), [getattr(one, part) for one in every], "s")
            for part in ("forward", "backward", "update")
        }
        title = f"a training step of {name}, one process alone"
        found[STEP + name] = FittedModel(
            title=title, series="step", points=3, error=0.0, scatter=0.0, constant=constants
        )
    return {**found, **_missed(recordings)}


def _constant(value: float, drawn: Sequence[float], unit: str) -> FittedConstant:
    if not drawn:
        return FittedConstant(value=value, low=value, high=value, stderr=0.0, unit=unit)
    low, high = (float(one) for one in np.quantile(drawn, (0.05, 0.95)))
    low = low if low > 1e-6 * value else 0.0  # a fit stops short of a bound
    factors = tuple(one / value for one in drawn) if value else ()
    return FittedConstant(
        value=value, low=min(low, value), high=max(high, value), stderr=float(np.std(drawn)), unit=unit, draws=factors
    )


# What was missed -----------------------------------------------------------------------


def _missed(recordings: Sequence[Dataset]) -> dict[str, FittedModel]:
    """Errors by group, each recording predicted from the others; from its own sends, if there is one only."""
    others = [[one for one in recordings if one is not each] or [each] for each in recordings]
    if len(recordings) == 1:
        found = [_misses(recordings[0], others[0])]
    else:
        workers = min(len(recordings), os.cpu_count() or 1)
        deaf = (signal.SIGINT, signal.SIG_IGN)  # an interrupt ends the pool, and the pool its processes
        with get_context("spawn").Pool(workers, signal.signal, deaf) as every:
            found = every.starmap(_misses, zip(recordings, others, strict=True))
    groups = dict.fromkeys(group for misses, _ in found for group in misses)
    models = {}
    for group in groups:
        known = [(misses[group], disturbed) for misses, disturbed in found if group in misses]
        models[MISS + group] = _band(group, [misses for misses, _ in known], [disturbed for _, disturbed in known])
    return models


def _misses(recording: Dataset, others: Sequence[Dataset]) -> tuple[dict[str, list[float]], float | None]:
    """Of one recording, predicted from others: by group logarithms of measured over predicted, and its disturbance."""
    found: dict[str, list[float]] = {}
    rows = tuple(_rows(_best(pool(others)), recording))
    for row in rows:
        if row.point.median > 0:
            found.setdefault(row.group, []).append(math.log(row.point.median / row.predicted))
    return found, _disturbed(rows, recording)


def _disturbed(rows: Iterable[PredictedPoint], recording: Dataset) -> float | None:
    """How disturbed a recording is, as its own sends tell, whatever constants predict them [1]."""
    sends = {point.key for point in fitted_points(recording)}
    return disturbance(replace(row, fitted=True) for row in rows if row.point.key in sends)


def _band(group: str, misses: Sequence[Sequence[float]], disturbed: Sequence[float | None]) -> FittedModel:
    every = np.concatenate([np.asarray(values) for values in misses])
    middle = float(np.median(every))
    low, high = span(misses) if len(every) > 1 else (middle, middle)
    ratio = FittedConstant(
        value=math.exp(middle), low=math.exp(low), high=math.exp(high), stderr=float(np.exp(every).std())
    )
    fixed: dict[str, float] = {}
    known = [one for one in disturbed if one is not None]
    if len(every) > 1 and len(known) == len(misses):
        scores = Scores.of(misses, known)
        fixed = {"usual": scores.usual, "low": scores.low, "high": scores.high}
    return FittedModel(
        title=f"measured over predicted: {group}",
        series=group,
        points=len(every),
        error=float(np.mean(np.abs(np.expm1(-every)))),
        scatter=float(every.std()),
        constant={"ratio": ratio},
        fixed=fixed,
    )


# Predicting ----------------------------------------------------------------------------


def _best(data: Dataset) -> Draw:
    return Draw(fit_constants(data).stack, compute_of(data))


def draw_of(profile: ProfilePart, draw: int = 0) -> Draw:
    """Constants and training steps of a joint draw, or the best ones for 0.

    Raises
    ------
    InputError
        The profile is of no boxed cluster.
    """
    if NAME not in profile.model:
        message = "this profile is of no boxed cluster"
        expected = f"one that `simperf calibrate fit` made of what `simperf calibrate cluster` measured: model {NAME!r}"
        raise InputError(Problem(message, file=profile.name, expected=expected))
    compute: dict[str, Compute] = {}
    for name, model in profile.model.items():
        short = name.removeprefix(STEP)
        if name.startswith(STEP) and short in MODEL:
            compute[short] = Compute.of(MODEL[short], **model.at(draw))
    return Draw(profile.network_stack(draw), compute)


def hold_profile(profile: ProfilePart, data: Dataset) -> tuple[PredictedPoint, ...]:
    """Predict every point of a recording with a profile's constants.

    Its own sends are not fitted; they only tell how disturbed it is, which its intervals know.

    Parameters
    ----------
    profile : ProfilePart
    data : Dataset
        One that was fitted, whose sends are distinguished then, or another.
    """
    sends = fitted_points(data)
    known = not set(str(profile.made.get("parts", "")).split()).isdisjoint(parts(data))
    seen = {point.key for point in sends} if known else set()
    plain, measured = TwoConstants.of(sends), compute_of(data)
    predicted = tuple(_rows(draw_of(profile), data, seen))
    disturbed = _disturbed(predicted, data)
    rows = []
    for row in predicted:
        beside = plain.predict(row.point, measured) if plain is not None else None
        rows.append(replace(_with_interval(profile, row, disturbed), plain=beside))
    return tuple(rows)


def hold_recording(
    data: Dataset, *, samples: int = 0, others: Sequence[Dataset] = ()
) -> tuple[FittedBox, tuple[PredictedPoint, ...]]:
    """Constants from a recording's own sends, and every point predicted with them.

    Parameters
    ----------
    data : Dataset
    samples : int
        Fits to readings drawn again, for intervals; without effect beside `others`.
    others : sequence of Dataset
        Other recordings, from whose errors intervals are made.
    """
    found = fit_constants(data)
    rows = hold_against(data, found.stack, samples=0 if others else samples)
    if others:
        return found, with_other_recordings(rows, [hold_against(other) for other in others])
    return found, with_fit_residuals(rows) if samples else rows


def predict_points(profile: ProfilePart, points: Iterable[Point]) -> tuple[PredictedPoint, ...]:
    """Predict what has not been measured: rows whose reading is not a number."""
    wanted = [Measurement(point.series, point.conditions, (math.nan,)) for point in points]
    return tuple(_with_interval(profile, row) for row in _rows(draw_of(profile), wanted))


def validation_of(rows: Iterable[PredictedPoint]) -> Validation:
    """Rows as `simperf.calibrate.validate` has them, by their groups."""
    points = []
    for row in rows:
        low, high = row.interval or (row.predicted, row.predicted)
        told = (row.point.key, row.group, NAME, row.point.median, row.predicted, low, high, row.fitted)
        points.append(Checked(*told, unit=row.point.unit, plain=row.plain))
    return Validation(tuple(points), {}, boxed=True)


def _rows(best: Draw, points: Iterable[Measurement], seen: Collection[str] = ()) -> Iterator[PredictedPoint]:
    for point in points:
        if predictable(point, best.compute):
            found = predict(point, best.stack, best.compute)
            yield PredictedPoint(point, found.value, found.load, point.key in seen)


def _with_interval(profile: ProfilePart, row: PredictedPoint, disturbed: float | None = None) -> PredictedPoint:
    """The interval of what was missed of its group, or of the nearest one that is known."""
    for group in (row.group, row.group.partition(",")[0]):
        model = profile.model.get(MISS + group)
        if model is not None:
            ratio = model.constant["ratio"]
            band = ratio.low, ratio.high
            if disturbed is not None and model.fixed:
                low, high = Scores(**model.fixed).band(disturbed)
                band = math.exp(low), math.exp(high)
            return replace(row, interval=(row.predicted * min(band[0], 1.0), row.predicted * max(band[1], 1.0)))
    return row
