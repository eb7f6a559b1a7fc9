"""Parts of a fit: a model with constants in natural units, and points with their raw readings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simperf.calibrate.dataset import Measurement
from simperf.errors import InputError, Problem
from simperf.units import DIMENSIONS, format_quantity

__all__ = ["Array", "Columns", "Data", "FitConstant", "Model", "quantity"]

Array = NDArray[np.float64]
Columns = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class FitConstant:
    """A number that a fit finds.

    Parameters
    ----------
    name : str
    value : float
        Where the search starts, in `unit`.
    low, high : float
        Bounds, in `unit`.
    unit : str
        A key of `simperf.units.DIMENSIONS`, or ``"s/B"``.
    """

    name: str
    value: float
    low: float = 0.0
    high: float = np.inf
    unit: str = "s"


@dataclass(frozen=True, slots=True)
class Model:
    """A formula with constants.

    Parameters
    ----------
    name : str
        Where the constants belong, such as ``"kernel.gemm-fp32"``; with a constant's name behind a dot, it is the name
        in a profile.
    title : str
        For people.
    constants : tuple of FitConstant
    function : callable
        From values by name and columns by name to the predicted readings; works on whole arrays.
    fixed : mapping of str to float
        Constants that are known and not fitted.
    starts : callable, optional
        From the data to further starting values (each a mapping of some constants): the best end is kept.
    columns : tuple of str
        Conditions of a point that the function reads.
    direct : callable, optional
        From the data to the values themselves, where nothing is searched.
    """

    name: str
    title: str
    constants: tuple[FitConstant, ...]
    function: Callable[[Mapping[str, float], Columns], Array]
    fixed: Mapping[str, float] = field(default_factory=dict)
    starts: Callable[[Data], Sequence[Mapping[str, float]]] | None = None
    columns: tuple[str, ...] = ("nbytes",)
    direct: Callable[[Data], Mapping[str, float]] | None = None

    def predict(self, values: Mapping[str, float], columns: Columns) -> Array:
        """Readings for `columns` with the constants at `values`, one a point even where a formula gives one for all."""
        found = np.asarray(self.function({**self.fixed, **values}, columns), dtype=float)
        if found.ndim:
            return found
        return np.full(np.broadcast_shapes(*(np.shape(column) for column in columns.values())), float(found))


@dataclass(frozen=True)
class Data:
    """Points that a model is fitted to, or compared with.

    Parameters
    ----------
    columns : mapping of str to ndarray
        Conditions, one entry a point.
    measured : ndarray
        The reading that stands for each point: the median.
    samples : tuple of ndarray
        Raw readings of each point.
    keys : tuple of str
        `Measurement.key` of each point.
    """

    columns: Columns
    measured: Array
    samples: tuple[Array, ...] = ()
    keys: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.measured)

    @classmethod
    def of(cls, points: Iterable[Measurement], columns: Sequence[str], **derived: Any) -> Data:
        """Read points of a data set; `derived` names further columns, each a function of the point.

        Raises
        ------
        InputError
            A point lacks a condition, or there are no points.
        """
        rows = [point for point in points if point.median > 0]
        if not rows:
            raise InputError(
                Problem("there are no points to fit", expected="one point or more whose median is above 0")
            )
        table = {name: np.array([row.number(name) for row in rows]) for name in columns}
        table |= {name: np.array([float(function(row)) for row in rows]) for name, function in derived.items()}
        samples = tuple(np.array(row.samples) for row in rows)
        return cls(table, np.array([row.median for row in rows]), samples, tuple(row.key for row in rows))

    @classmethod
    def table(cls, measured: Any, **columns: Any) -> Data:
        """Plain arrays, one reading a point."""
        size = len(measured)
        known = {key: np.broadcast_to(np.asarray(value, dtype=float), (size,)) for key, value in columns.items()}
        return cls(known, np.asarray(measured, dtype=float))

    def take(self, index: Any) -> Data:
        """The points that `index` (numbers or a mask) selects."""
        where = np.arange(len(self))[index]
        return Data(
            {key: column[where] for key, column in self.columns.items()},
            self.measured[where],
            tuple(self.samples[i] for i in where) if self.samples else (),
            tuple(self.keys[i] for i in where) if self.keys else (),
        )


def quantity(value: float, unit: str) -> str:
    """A value with its unit, for people.

    Examples
    --------
    >>> quantity(5.25e-6, "s"), quantity(8.1e-11, "s/B"), quantity(0.5, "1")
    ('5.250 us', '8.1e-11 s/B', '0.5')
    """
    if unit == "1":
        return f"{value:.4g}"
    return format_quantity(value, unit) if unit in DIMENSIONS else f"{value:.4g} {unit}"
