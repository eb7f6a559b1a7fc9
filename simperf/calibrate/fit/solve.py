"""Fit of a model to points: least squares of log residuals with a robust loss, natural units, and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from simperf.analysis.chance import NORMAL
from simperf.calibrate.fit.model import Array, Columns, Data, Model, quantity
from simperf.calibrate.uncertainty.constants import Fitted, log_residual, uncertain, within
from simperf.errors import InputError, Problem, SimperfError

__all__ = ["DRAWS", "NO_INTERVAL", "Fit", "Fitted", "best_of", "fit"]

#: joint draws that are kept of each fit
DRAWS = 64
#: the loss bends at so many standard deviations of the residuals (Huber's constant for 95 % efficiency)
_BEND = 1.345
#: least scale of the loss: models are not held to more than this
_FINEST = 5e-3
#: scale of the loss of the first search: residuals of more than 5 % count less
_FIRST = 0.05
#: searches in which the loss settles
_PASSES = 8
_STEP = 1e-6
#: difference of the strict criterion that says nothing
_EQUAL = 2.0
#: note of constants that are single readings
NO_INTERVAL = "one reading a point, which tells no interval"


@dataclass(frozen=True)
class Fit:
    """Result of a fit.

    Parameters
    ----------
    model : Model
    data : Data
        The points that were fitted.
    constants : mapping of str to Fitted
    scatter : float
        Robust standard deviation of the log residuals [1].
    evaluations : int
    correlations : mapping of (str, str) to float
        Of the draws, above 0.1 in size.
    left_out : float
        Mean size of the log residual that each point would have if it were left out of the fit (residual over one less
        leverage: D. M. Allen's PRESS): of two models of the same points, the one with less predicts better [1].
    """

    model: Model
    data: Data
    constants: Mapping[str, Fitted]
    scatter: float
    evaluations: int
    correlations: Mapping[tuple[str, str], float] = field(default_factory=dict)
    left_out: float = float("inf")

    @property
    def values(self) -> dict[str, float]:
        """Best values by name."""
        return {name: one.value for name, one in self.constants.items()}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Constants that should be doubted, and why."""
        return tuple(f"{name}: {one.note}" for name, one in self.constants.items() if one.note)

    def predict(self, data: Data | Columns) -> Array:
        """Readings that the best values predict."""
        return self.model.predict(self.values, data.columns if isinstance(data, Data) else data)

    def errors(self, data: Data | None = None) -> Array:
        """Signed relative errors, predicted over measured less 1, of `data` or of the points that were fitted."""
        data = self.data if data is None else data
        return np.asarray(self.predict(data) / data.measured - 1.0)

    def mape(self, data: Data | None = None) -> float:
        """Mean of the errors' sizes [1]."""
        return float(np.abs(self.errors(data)).mean())

    def criterion(self, *, strict: bool = False) -> float:
        """Criterion of a model, given its number of constants: of two models of the same points, the lower is better.

        Schwarz's criterion (BIC), with large residuals cut; `strict` is Akaike's for few points (AICc), which allows
        a constant only where the points are several times as many. Strict is right where the constants of a form are
        only one way among many to describe the shapes; the other where the form is known to be there, as a cache is.
        """
        size = np.minimum(np.abs(np.log1p(self.errors())), 1.0)
        # by the upper quartile, as in the loss: constants that meet half of few points make no outliers of the rest
        middle = 0.5864 * float(np.quantile(size, 0.75))
        size = np.minimum(size, 3.0 * max(middle, 1e-3)) if strict else np.minimum(size, 0.5)
        points, unknown = len(size), len(self.constants) + 1
        fit = points * float(np.log(max(float(np.mean(size**2)), 1e-8)))
        if not strict:
            return fit + unknown * float(np.log(points))
        return fit + 2.0 * unknown * points / (points - unknown - 1.0) if points > unknown + 1 else float("inf")

    def interval(self, data: Data | Columns) -> tuple[Array, Array]:
        """90 % interval of a new reading at each point: uncertainty of the constants and scatter."""
        columns = data.columns if isinstance(data, Data) else data
        names, count = list(self.constants), len(next(iter(self.constants.values())).draws)
        rows = [
            self.model.predict({name: self.constants[name].draws[i] for name in names}, columns) for i in range(count)
        ]
        middle = np.log(np.maximum(self.predict(columns), 1e-300))
        table = within(np.log(np.maximum(np.array(rows), 1e-300)), middle)
        width = np.sqrt(table.var(axis=0) + self.scatter**2) * NORMAL  # variances of independent parts add
        return np.exp(middle - width), np.exp(middle + width)

    def report(self) -> str:
        """Statistics, variables with 90 % intervals, correlations and warnings, in the layout of lmfit's reports."""
        errors = self.errors()
        size = np.abs(errors)
        median, worst = np.median(size), errors[size.argmax()]
        lines = [
            f"[[Model]] {self.model.name}",
            f"    {self.model.title}",
            "[[Fit Statistics]]",
            "    # method           = least_squares, loss soft_l1, log residuals",
            f"    # function evals   = {self.evaluations}",
            f"    # data points      = {len(self.data)}",
            f"    # variables        = {len(self.constants)}",
            f"    mean error         = {size.mean():.2%} (median {median:.2%}, worst {worst:+.2%})",
            f"    scatter            = {self.scatter:.2%}",
            "[[Variables]]",
        ]
        width = max(len(name) for name in self.constants)
        unknown = all(one.note == NO_INTERVAL for one in self.constants.values())
        for name, one in self.constants.items():
            share = f" ({one.stderr / abs(one.value):.2%})" if one.value and not one.note else ""
            low, high = quantity(one.low, one.unit), quantity(one.high, one.unit)
            value, spread = quantity(one.value, one.unit), quantity(one.stderr, one.unit)
            text = f"    {name + ':':<{width + 1}} {value} +/- {spread}{share}"
            lines.append(f"    {name + ':':<{width + 1}} {value}" if unknown else f"{text}, 90 %: {low} to {high}")
        strong = sorted(self.correlations.items(), key=lambda row: -abs(row[1]))
        if strong:
            lines.append("[[Correlations]] (unreported correlations are < 0.100)")
            lines += [f"    C({b}, {a}) = {value:+.4f}" for (a, b), value in strong]
        warnings = [f"all: {NO_INTERVAL}"] if unknown else self.warnings
        lines += [f"    ## warning: {text}" for text in warnings]
        return "\n".join(lines)


def fit(model: Model, data: Data, *, seed: int = 0, draws: int = DRAWS) -> Fit:
    """Find the constants of `model` that meet `data` best, in relative terms and unmoved by outliers.

    `scipy.optimize.least_squares` (trust region with bounds, ``x_scale="jac"``, loss ``soft_l1``) minimises the log of
    predicted over measured, first with a wide loss, then with one that bends at 1.345 standard deviations of the
    residuals that are left.

    Parameters
    ----------
    model : Model
    data : Data
    seed : int
        Of the bootstrap.
    draws : int
        Joint samples to keep; 0 asks for the values alone, without intervals.

    Raises
    ------
    InputError
        Fewer points than constants, or readings that are not above zero.
    SimperfError
        SciPy is not installed (extra ``fit``), or the model gives no number.
    """
    _check(model, data)
    if model.direct is not None:
        return _told(model, data, dict(model.direct(data)), seed=seed, draws=draws)
    start = {one.name: one.value for one in model.constants}
    guesses = [{**start, **one} for one in (model.starts(data) if model.starts is not None else ())] or [start]
    try:
        import scipy.optimize  # noqa: F401
    except ImportError:
        raise SimperfError("fitting needs SciPy: pip install scipy") from None
    try:
        ends = (_descend(model, data, guess, scale=_FIRST, tolerance=1e-3) for guess in guesses)
        values, _, _ = min(ends, key=lambda found: found[1])
        before, scale = _FIRST, max(_bend(model, data, values), _FIRST / 4)
        for _ in range(_PASSES):
            if 0.8 < scale / before < 1.25:
                break
            values, _, _ = _descend(model, data, values, scale=scale)
            # by steps: a loss that bends too soon takes points for outliers that are only not met yet
            before, scale = scale, max(_bend(model, data, values), scale / 4)
        values, _, evaluations = _descend(model, data, values, scale=scale, evaluations=200)
    except ValueError as error:
        raise SimperfError(f"{model.name} cannot be fitted: {error}") from None
    return _finish(model, data, values, scale=scale, evaluations=evaluations, seed=seed, draws=draws)


def _told(model: Model, data: Data, values: dict[str, float], *, seed: int, draws: int) -> Fit:
    """Constants that the points say themselves; they are as sure as readings of one point are close."""
    # where there is one reading a point, nothing says how close another one would be
    note = "" if any(len(each) > 1 for each in data.samples) else NO_INTERVAL
    own = [np.log(each / np.median(each)) for each in data.samples if len(each) > 1]
    spread = float(np.sqrt(np.mean(np.concatenate(own) ** 2))) if own else 0.0
    rng = np.random.default_rng([seed, len(data), len(values)])
    constants = {}
    for one in model.constants:
        value, width = values[one.name], float(np.exp(NORMAL * spread))
        factors = np.exp(spread * rng.standard_normal(draws)) if spread else np.ones(0)
        constants[one.name] = Fitted(
            value, spread * value, value / width, value * width, one.unit, tuple(value * factors), note
        )
    return Fit(model, data, constants, _deviation(log_residual(model, data, values)), 1)


def best_of(models: Sequence[Model], data: Data, *, strict: bool = False, seed: int = 0, draws: int = DRAWS) -> Fit:
    """The best of several models of the same points, by `Fit.criterion`.

    By the `strict` one, models that differ by less than 2 are held up equally by the points (K. P. Burnham and D. R.
    Anderson, *Model Selection and Multimodel Inference*, 2002, section 2.6): of them the first is taken, so that the
    plain ones should stand first.
    """
    if len(models) == 1:
        return fit(models[0], data, seed=seed, draws=draws)
    values = [fit(model, data, seed=seed, draws=0).criterion(strict=strict) for model in models]
    least = min(values) + (_EQUAL if strict else 0.0)
    best = next(model for model, value in zip(models, values, strict=True) if value <= least)
    return fit(best, data, seed=seed, draws=draws)


def _check(model: Model, data: Data) -> None:
    if len(data) < len(model.constants):
        message = f"{len(model.constants)} constants of {model.name} cannot be found from {len(data)} points"
        raise InputError(Problem(message, expected="measure more sizes"))
    if not np.all(np.isfinite(data.measured) & (data.measured > 0)):
        raise InputError(Problem(f"readings for {model.name} must be finite and above 0"))


def _deviation(residual: Array, *, unknown: int = 0) -> float:
    """Standard deviation by the median size, which outliers do not move; `unknown` constants shrank the residuals."""
    freedom = max(1, len(residual) - unknown)
    return float(1.4826 * np.median(np.abs(residual)) * np.sqrt(len(residual) / freedom))


def _bend(model: Model, data: Data, values: Mapping[str, float]) -> float:
    """Where the loss bends: in proportion to the residuals that are left.

    Their upper quartile says how large they are, not their median: more than a quarter of points that a model does
    not meet are a defect of the model, which it should share among all points, and no outliers.
    """
    size = np.abs(log_residual(model, data, values))
    freedom = max(1, len(size) - len(model.constants))
    spread = float(np.quantile(size, 0.75)) / 1.1503 * float(np.sqrt(len(size) / freedom))
    return max(_BEND * spread, _FINEST)


def _bounded(model: Model, start: Mapping[str, float]) -> dict[str, float]:
    """Starting values inside their bounds."""
    found = {}
    for one in model.constants:
        value = min(max(start[one.name], one.low), one.high)
        least = one.low + 1e-3 * (min(one.high, max(one.value, 2 * abs(one.low))) - one.low)
        value = max(value, least)  # from a bound, or next to it, a search does not come away
        found[one.name] = value
    return found


def _descend(
    model: Model,
    data: Data,
    start: Mapping[str, float],
    *,
    scale: float,
    tolerance: float = 1e-8,
    evaluations: int = 100,
) -> tuple[dict[str, float], float, int]:
    """Where a search from `start` ends, the cost there, and how many times the model was evaluated."""
    from scipy.optimize import least_squares

    names = [one.name for one in model.constants]
    # in units of the start: SciPy keeps a distance of 1e-10 from bounds, which is much for a time a byte
    begin = _bounded(model, start)
    unit = np.array([abs(begin[name]) or 1.0 for name in names])
    found = least_squares(
        lambda row: log_residual(model, data, dict(zip(names, row * unit, strict=True))),
        np.array([begin[name] for name in names]) / unit,
        bounds=(
            np.array([one.low for one in model.constants]) / unit,
            np.array([one.high for one in model.constants]) / unit,
        ),
        loss="soft_l1",
        f_scale=scale,
        x_scale="jac",
        diff_step=_STEP,
        ftol=tolerance,
        xtol=tolerance,
        max_nfev=evaluations,
    )
    values = {name: float(value) for name, value in zip(names, found.x * unit, strict=True)}
    return values, float(found.cost), int(found.nfev)


def _finish(
    model: Model, data: Data, values: dict[str, float], *, scale: float, evaluations: int, seed: int, draws: int
) -> Fit:
    if draws == 0:
        alone = {
            one.name: Fitted(values[one.name], 0.0, values[one.name], values[one.name], one.unit)
            for one in model.constants
        }
        return Fit(model, data, alone, _deviation(log_residual(model, data, values), unknown=len(values)), evaluations)
    rng = np.random.default_rng([seed, len(data), len(values)])
    try:
        known = uncertain(model, data, values, scale=scale, draws=draws, rng=rng)
    except np.linalg.LinAlgError:  # numbers so far apart that no line goes through them
        message = f"the readings do not determine the constants of {model.title}"
        raise InputError(Problem(message, key=model.name, expected="readings that follow from their sizes")) from None
    scatter = _deviation(log_residual(model, data, values), unknown=len(values))
    return Fit(model, data, known.constants, scatter, evaluations, known.correlations, known.left_out)
