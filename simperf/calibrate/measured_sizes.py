"""Measured times of a collective, and what is predicted at their sizes, with a profile and without."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from simperf.calibrate.dataset import Dataset
from simperf.calibrate.fit.sizes import size_data
from simperf.calibrate.importers import import_file, kind_of
from simperf.calibrate.importers.imported import read_measurements
from simperf.collectives.bench import MOST_SIZES
from simperf.errors import InputError, Problem

__all__ = ["MeasuredSizes", "SizeRow", "read_measured", "spread_sizes", "summary"]


@dataclass(frozen=True, slots=True)
class MeasuredSizes:
    """Times of one collective among a number of GPUs.

    Parameters
    ----------
    file : str
    ranks : int
    times : mapping of int to float
        By payload [B], rising [s].
    """

    file: str
    ranks: int
    times: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class SizeRow:
    """One size: measured, predicted by NCCL's constants, and with a profile.

    Parameters
    ----------
    nbytes : float
        Payload [B].
    measured, predicted : float
        [s]
    fitted : float, optional
        Predicted with the profile [s]; None without one.
    """

    nbytes: float
    measured: float
    predicted: float
    fitted: float | None = None

    @property
    def error(self) -> float:
        """Of the prediction, signed [1]."""
        return self.predicted / self.measured - 1.0

    @property
    def fitted_error(self) -> float | None:
        """Of the prediction with the profile, signed [1]."""
        return None if self.fitted is None else self.fitted / self.measured - 1.0


def read_measured(path: str | Path, collective: str, *, ranks: int = 0) -> MeasuredSizes:
    """Times of a log of nccl-tests, or of a table with sizes and times.

    Parameters
    ----------
    path : path
    collective : str
        Which one the log must be of, and a table is taken for.
    ranks : int
        Among how many; 0 for what the file says.

    Raises
    ------
    InputError
        The file cannot be read, is of another collective, or of other numbers of ranks.
    """
    name = str(path)
    dataset = _imported(path, collective, ranks)
    points = dataset.select(f"{collective}/nccl")
    if not points:
        found = ", ".join(one.removesuffix("/nccl") for one in dataset.series)
        raise InputError(Problem("times of another collective", file=name, value=found, expected=collective))
    counts = sorted({int(point.number("ranks")) for point in points})
    if (ranks and ranks not in counts) or (not ranks and len(counts) > 1):
        told = ", ".join(map(str, counts))
        expected = f"--ranks {counts[0]}" if len(counts) == 1 else f"--ranks, one of {told}"
        message = f"times among {told} ranks"
        raise InputError(Problem(message, file=name, key="--ranks", value=str(ranks or ""), expected=expected))
    count = ranks or counts[0]
    data = size_data([point for point in points if int(point.number("ranks")) == count])
    times = zip(data.columns["nbytes"].tolist(), data.measured.tolist(), strict=True)
    return MeasuredSizes(name, count, {int(size): time for size, time in times})


def _imported(path: str | Path, collective: str, ranks: int) -> Dataset:
    """What the file holds; only what it does not say itself is taken from the caller."""
    if kind_of(read_measurements(path)) != "csv":
        try:
            found = import_file(path).dataset
            if all(point.at.get("ranks") for point in found):
                return found
        except InputError:
            pass  # a log that does not say which collective it is of
    return import_file(path, collective=collective, ranks=ranks).dataset


def spread_sizes(sizes: Sequence[int], *, most: int = MOST_SIZES) -> list[int]:
    """All of some rising sizes, or of more than `most` those that lie evenly by their logarithm.

    Examples
    --------
    >>> spread_sizes([1, 2, 3, 4, 5, 6, 7, 8], most=4)
    [1, 2, 4, 8]
    """
    if len(sizes) <= most:
        return list(sizes)
    low, high = math.log(max(sizes[0], 1)), math.log(sizes[-1])
    wanted = [low + (high - low) * index / (most - 1) for index in range(most)]
    return sorted({min(sizes, key=lambda size: abs(math.log(max(size, 1)) - at)) for at in wanted})


def summary(rows: Sequence[SizeRow]) -> str:
    """Mean, median and largest size of the errors, in words."""

    def told(errors: Sequence[float]) -> str:
        sizes = [abs(one) for one in errors]
        worst = max(errors, key=abs)
        return f"mean {sum(sizes) / len(sizes):.1%}, median {median(sizes):.1%}, worst {worst:+.1%}"

    text = f"predicted: {told([row.error for row in rows])}"
    fitted = [row.fitted_error for row in rows if row.fitted_error is not None]
    return f"{text}; with the profile: {told(fitted)}" if fitted else text
