"""The class of a published figure: whether it restates what was given, is nearly linear, or needs a prediction.

The class follows from the scenario, from what was measured and from the list of fitted constants
(`simperf.accuracy.fitted_constants`). The prediction has no part in it, so that no change of the model moves a figure
from one class to another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from simperf.errors import InputError, Problem

__all__ = ["FigureBasis", "FigureClass", "figure_class"]

FigureClass = Literal["fitted", "nearly linear", "predicted"]

#: distance from linear scaling up to which a measured figure is nearly linear [1]
_NEAR_LINEAR = 0.03


@dataclass(frozen=True, slots=True)
class FigureBasis:
    """Basis from which a published figure can be derived without a prediction.

    Parameters
    ----------
    low, high : float
        What was measured; equal unless the source gives a range.
    linear : float
        The same quantity by linear scaling from the given speed of one GPU, above 0; NaN where none was given.
    workers : int
        GPUs that share the work; 0 where no speed of one GPU was given.
    constants : tuple of str
        Constants that were read off this figure or off its family.

    Raises
    ------
    InputError
        `linear` is 0 or less, from which no figure has a distance.
    """

    low: float
    high: float
    linear: float = math.nan
    workers: int = 0
    constants: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.linear <= 0.0:  # False of NaN
            message = "linear scaling gives a quantity above 0"
            expected = "a number above 0, or NaN where no speed of one GPU was given"
            raise InputError(Problem(message, key="linear", value=f"{self.linear:g}", expected=expected))


def figure_class(basis: FigureBasis) -> FigureClass:
    """The class of a figure, by three rules in this order.

    *fitted*: one GPU whose speed was given, or a figure that a listed constant was read off. *nearly linear*: all that
    was measured lies within 3 % of linear scaling from the given speed. *predicted*: every other figure.

    Parameters
    ----------
    basis : FigureBasis

    Examples
    --------
    >>> figure_class(FigureBasis(100.0, 100.0, linear=100.0, workers=1))
    'fitted'
    >>> figure_class(FigureBasis(390.0, 390.0, linear=400.0, workers=4))
    'nearly linear'
    >>> figure_class(FigureBasis(380.0, 380.0, linear=400.0, workers=4))
    'predicted'
    """
    if basis.workers == 1 or basis.constants:
        return "fitted"
    near = _NEAR_LINEAR + 1e-9  # figures are printed in few digits: 0.103 of 0.1 is 3 %
    if all(abs(value / basis.linear - 1) <= near for value in (basis.low, basis.high)):  # False of NaN
        return "nearly linear"
    return "predicted"
