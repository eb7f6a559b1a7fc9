"""Rows of the tables of fits: how well each model meets published measurements that it was, and was not, fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simperf.calibrate.fit import DRAWS, Data, Fit, Model
from simperf.calibrate.fit.model import Array
from simperf.calibrate.fit.solve import best_of

__all__ = ["FitRow", "best_fit", "row_of", "two_constants"]


@dataclass(frozen=True, slots=True)
class FitRow:
    """One fit and its errors.

    Parameters
    ----------
    section : str
        Heading under which it is shown.
    name, what : str
        The case, and what was fitted and predicted.
    points, predicted : int
        That were fitted, and that were not.
    inside, outside : float
        Mean sizes of the relative errors of points that were fitted, and that were not (NaN without any) [1].
    worst : float
        Signed error of largest size among those that were not fitted, or, without any, among those that were.
    coverage : float
        Share of the points in their 90 % interval: of those not fitted, if there are any.
    plain : float
        Mean error of a model of two constants on the same points [1]; NaN if there is none.
    goal : float
        The mean error that was to be met [1]; NaN if none was set.
    note : str
        The model, or why there is no fit.
    source : str
    width : float
        Half of the 90 % interval of a point, as a factor less 1: the median of the points that `coverage` counts [1].
    """

    section: str
    name: str
    what: str
    points: int
    predicted: int
    inside: float
    outside: float
    worst: float
    coverage: float
    plain: float = float("nan")
    goal: float = float("nan")
    note: str = ""
    source: str = ""
    width: float = float("nan")

    @property
    def reached(self) -> float:
        """The error that the goal is compared with: of points not fitted, if there are any."""
        return self.outside if self.predicted else self.inside

    @property
    def met(self) -> bool | None:
        """Whether the goal was met; None without a goal."""
        return None if np.isnan(self.goal) else bool(self.reached <= self.goal)


def best_fit(models: Sequence[Model], data: Data, *, strict: bool = False, draws: int = DRAWS) -> Fit:
    """The best of several models by `Fit.criterion`, of those with fewer constants than points."""
    allowed = [model for model in models if len(data) >= len(model.constants) + 2]
    return best_of(allowed or models[:1], data, strict=strict, draws=draws)


def row_of(
    section: str,
    name: str,
    what: str,
    found: Sequence[tuple[Fit, Data | None]],
    *,
    plain: float = float("nan"),
    goal: float = float("nan"),
    note: str = "",
    source: str = "",
) -> FitRow:
    """A row of several fits and the points that each was compared with."""
    inside = np.concatenate([one.errors() for one, _ in found])
    away = [(one, data) for one, data in found if data is not None and len(data)]
    outside = np.concatenate([one.errors(data) for one, data in away]) if away else np.zeros(0)
    held, wide = [], []
    for one, data in away or [(one, one.data) for one, _ in found]:
        low, high = one.interval(data)
        held.append((low <= data.measured) & (data.measured <= high))
        wide.append(np.sqrt(high / low) - 1.0)
    errors = outside if len(outside) else inside
    return FitRow(
        section,
        name,
        what,
        len(inside),
        len(outside),
        float(np.abs(inside).mean()),
        float(np.abs(outside).mean()) if len(outside) else float("nan"),
        float(errors[np.abs(errors).argmax()]),
        float(np.concatenate(held).mean()),
        plain,
        goal,
        note,
        source,
        float(np.median(np.concatenate(wide))),
    )


def two_constants(known: Data, away: Data, *, column: str = "nbytes") -> Array:
    """Errors on `away` of a fixed time and one rate that meet `known` best (least squares of relative errors)."""
    design = np.stack((np.ones(len(known)), known.columns[column]), axis=1) / known.measured[:, None]
    fixed, slope = np.linalg.lstsq(design, np.ones(len(known)), rcond=None)[0]
    return np.asarray((fixed + slope * away.columns[column]) / away.measured - 1.0)
