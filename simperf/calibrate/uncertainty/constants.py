"""Uncertainty of the constants of a fit: intervals, joint samples, and reasons for doubt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from simperf.analysis.chance import NORMAL
from simperf.calibrate.fit.model import Array, Data, FitConstant, Model
from simperf.calibrate.uncertainty.bootstrap import draw_constants, leverages
from simperf.calibrate.uncertainty.likelihood import LossProfile
from simperf.calibrate.uncertainty.soft_l1 import psi, slope

__all__ = ["Fitted", "Uncertainty", "log_residual", "uncertain", "within"]

#: draws from which intervals are read
_WIDE = 512
_STEP = 1e-6
#: relative steps so small that no model bends
_STRAIGHT = 1e-4
#: logarithm of the factor, 20, by which a draw is off at most: of three points any number could come out
_FARTHEST = 3.0


@dataclass(frozen=True, slots=True)
class Fitted:
    """A fitted constant with its uncertainty.

    Parameters
    ----------
    value, stderr, low, high : float
        Best value, standard error, and the 90 % interval, in `unit`.
    unit : str
    draws : tuple of float
        Joint samples: entry i belongs together in all constants of a fit.
    note : str
        Why it should be doubted, such as that it is at a bound.
    """

    value: float
    stderr: float
    low: float
    high: float
    unit: str
    draws: tuple[float, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """All constants of a fit.

    Parameters
    ----------
    constants : mapping of str to Fitted
    correlations : mapping of (str, str) to float
        Of the draws, above 0.1 in size.
    left_out : float
        Mean size of the log residual that each point would have if it were left out of the fit [1].
    """

    constants: Mapping[str, Fitted]
    correlations: Mapping[tuple[str, str], float]
    left_out: float


def log_residual(model: Model, data: Data, values: Mapping[str, float]) -> Array:
    """Log of predicted over measured."""
    predicted = model.predict(values, data.columns)
    return np.asarray(np.log(np.maximum(predicted, 1e-300) / data.measured))


def within(drawn: Array, middle: Array) -> Array:
    """Logarithms of what draws predict, none farther off from the best prediction than a constant is drawn by factors.

    Constants that are drawn by sums can all be nothing at once, and then a time is, whose logarithm has no end.
    """
    return np.clip(drawn, middle - _FARTHEST, middle + _FARTHEST)


def uncertain(
    model: Model, data: Data, values: Mapping[str, float], *, scale: float, draws: int, rng: np.random.Generator
) -> Uncertainty:
    """Intervals and draws of constants around an optimum.

    Parameters
    ----------
    model, data : Model, Data
    values : mapping of str to float
        The optimum.
    scale : float
        Of the loss.
    draws : int
        Joint samples to keep.
    rng : numpy Generator
    """
    residual = log_residual(model, data, values)
    columns, notes = _columns(model, data, values)
    free = [one for one in model.constants if not notes[one.name]]
    jacobian = np.array([columns[one.name] for one in free]).T if free else np.zeros((len(data), 0))
    steps = draw_constants(jacobian, residual, data, scale=scale, draws=max(_WIDE, draws), rng=rng)
    table = {one.name: np.full(len(steps), values[one.name]) for one in model.constants}
    for i, one in enumerate(free):
        # what cannot be zero, such as a rate, is drawn by factors; what can, such as a latency, by sums
        factor = np.exp(np.clip(steps[:, i], -_FARTHEST, _FARTHEST)) if one.low > 0 else 1.0 + steps[:, i]
        table[one.name] = np.clip(values[one.name] * factor, one.low, one.high)
    stuck = _bend(model, data, values, table, free, notes, jacobian=jacobian, steps=steps, scale=scale)
    constants = {}
    for one in model.constants:
        row = table[one.name]
        low, high = (float(value) for value in np.quantile(row, (0.05, 0.95)))
        if one.name in stuck:
            low, high = sorted((values[one.name], stuck[one.name]))
        kept = tuple(float(value) for value in row[:draws])
        stderr = max(float(row.std()), (high - low) / NORMAL if one.name in stuck else 0.0)
        constants[one.name] = Fitted(values[one.name], stderr, low, high, one.unit, kept, notes[one.name])
    known = [one.name for one in free]
    known = [name for name in known if np.ptp(table[name]) > 0]  # a constant that does not vary has no correlation
    matrix = np.corrcoef(np.array([table[name] for name in known])) if len(known) > 1 else np.eye(len(known))
    pairs = {
        (known[i], known[j]): float(matrix[i, j])
        for i in range(len(known))
        for j in range(i)
        if abs(matrix[i, j]) > 0.1
    }
    left_out = float(np.minimum(np.abs(residual) / (1.0 - leverages(jacobian)), 1.0).mean())
    return Uncertainty(constants, pairs, left_out)


def _columns(model: Model, data: Data, values: Mapping[str, float]) -> tuple[dict[str, Array], dict[str, str]]:
    """Derivatives of the log residuals by relative changes, and what is wrong with a constant."""
    columns, notes = {}, {}
    for one in model.constants:
        value = values[one.name]
        step = _STEP * abs(value) or 1e-12
        above = log_residual(model, data, {**values, one.name: value + step})
        below = log_residual(model, data, {**values, one.name: value - step})
        column = (above - below) / (2.0 * step)
        notes[one.name] = ""
        if value - one.low <= 1e-6 * max(abs(one.low), one.value):
            notes[one.name] = f"at its lower bound {one.low:g}"
        elif np.isfinite(one.high) and one.high - value <= 1e-6 * abs(one.high):
            notes[one.name] = f"at its upper bound {one.high:g}"
        elif float(np.abs(column * value).max(initial=0.0)) < 1e-3:
            notes[one.name] = "these points do not depend on it"
        columns[one.name] = column * value  # relative steps: natural units differ by many orders
    return columns, notes


def _bend(
    model: Model,
    data: Data,
    values: Mapping[str, float],
    table: dict[str, Array],
    free: list[FitConstant],
    notes: Mapping[str, str],
    *,
    jacobian: Array,
    steps: Array,
    scale: float,
) -> dict[str, float]:
    """Move the draws in `table` so that their 5 % and 95 % quantiles are where a profile of the loss has them.

    Returns the other end of the interval of each constant that is at a bound; it has no draws.
    """
    stuck = [one for one in model.constants if notes[one.name].startswith("at its")]
    moving = [*free, *stuck]
    if not moving or not len(data) > len(moving):
        return {}
    unit = np.array([abs(values[one.name] if one in free else one.value) or 1.0 for one in moving])

    def residual(row: Array) -> Array:
        given = dict(zip((one.name for one in moving), row * unit, strict=True))
        return log_residual(model, data, {**values, **given})

    best = np.array([values[one.name] for one in moving]) / unit
    low, high = (np.array([getattr(one, end) for one in moving]) / unit for end in ("low", "high"))
    profile = LossProfile(residual, best, low, high, scale=scale)
    there = residual(best)
    curved = slope(there, scale)
    curvature = np.linalg.pinv(jacobian.T @ (curved[:, None] * jacobian))
    rises = []
    for i, one in enumerate(free):
        value, row = values[one.name], table[one.name]
        ends = []
        for quantile in (0.05, 0.95):
            reach, step = float(np.quantile(row, quantile)) - value, float(np.quantile(steps[:, i], quantile))
            rise = 0.5 * step**2 / max(float(curvature[i, i]), 1e-300)
            rises.append(rise)
            straight = abs(step) < _STRAIGHT or not reach
            ends.append((reach, reach if straight else profile.end(i, reach / unit[i], rise) * unit[i] - value))
        table[one.name] = _stretched(row, value, ends, one)
    scatter = float(np.mean(psi(there, scale) ** 2) / max(float(curved.mean()), 1e-6))
    rise = float(np.median(rises)) if rises else 0.5 * NORMAL**2 * scatter
    found = {}
    for i, one in enumerate(stuck, len(free)):
        side = 1.0 if "lower" in notes[one.name] else -1.0
        found[one.name] = (
            profile.end(i, side * profile.length(i, rise), rise) * float(unit[i]) if rise else values[one.name]
        )
    return found


def _stretched(row: Array, value: float, ends: list[tuple[float, float]], one: FitConstant) -> Array:
    """Draws whose ends are moved from where a straight line has them to where the profile has them."""
    (line_low, low), (line_high, high) = ends
    if one.low > 0:  # by factors
        line_low, low, line_high, high = (float(np.log1p(max(end / value, -0.999999))) for end in (*ends[0], *ends[1]))
        away = np.log(row / value)
    else:
        away = row - value
    below = low / line_low if line_low < 0 else 1.0
    above = high / line_high if line_high > 0 else 1.0
    away = np.where(away < 0, away * below, away * above)
    return np.clip(value * np.exp(away) if one.low > 0 else value + away, one.low, one.high)
