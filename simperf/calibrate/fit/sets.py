"""Fitting a whole data set: what was fitted, what was held out, and what no model took."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from simperf.calibrate.dataset import Dataset
from simperf.calibrate.fit.choose import ModelChoice, choose
from simperf.calibrate.fit.constants import longer_runs
from simperf.calibrate.fit.model import Data, Model
from simperf.calibrate.fit.solve import DRAWS, Fit, best_of
from simperf.calibrate.uncertainty.variance import ErrorSpread, log_errors, session_spreads
from simperf.cost import GpuRates
from simperf.errors import InputError, Problem, SimperfError

__all__ = ["FitSet", "SeriesFit", "fit_dataset", "split"]


@dataclass(frozen=True)
class SeriesFit:
    """One model fitted to a series, and how it does on points that were held out.

    Parameters
    ----------
    series : str
    fit : Fit
    held_out : Data or None
        Points that were not fitted.
    between : ErrorSpread or None
        How far another session lies from it; None if only one was measured.
    """

    series: str
    fit: Fit
    held_out: Data | None = None
    between: ErrorSpread | None = None

    @property
    def scatter(self) -> float:
        """Deviation of the logarithm of a reading from what was fitted, that of a whole session aside [1]."""
        return self.fit.scatter if self.between is None else self.between.own


@dataclass(frozen=True)
class FitSet:
    """All fits of a data set.

    Parameters
    ----------
    dataset : Dataset
    fits : tuple of SeriesFit
    skipped : tuple of ModelChoice
        Series that were not fitted, with the reason.
    """

    dataset: Dataset
    fits: tuple[SeriesFit, ...]
    skipped: tuple[ModelChoice, ...]

    @property
    def holds_out(self) -> bool:
        """Whether points were held out of any fit."""
        return any(one.held_out is not None for one in self.fits)

    def __getitem__(self, name: str) -> SeriesFit:
        return next(one for one in self.fits if one.fit.model.name == name)

    def report(self) -> str:
        """Reports of all fits, then what was not fitted and why."""
        parts = [one.fit.report() for one in self.fits]
        if self.skipped:
            lines = ["[[Not fitted]]"]
            lines += [f"    {one.series}: {one.reason} ({len(one.keys)} points)" for one in self.skipped]
            parts.append("\n".join(lines))
        return "\n\n".join(parts)


def fit_dataset(
    dataset: Dataset,
    *,
    part: GpuRates | None = None,
    hold_out: int = 0,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
    sessions: Sequence[Dataset] = (),
    draws: int = DRAWS,
) -> FitSet:
    """Fit every series of a data set that a model reads.

    Parameters
    ----------
    dataset : Dataset
    part : GpuRates, optional
        The GPU that was measured, of the catalogue.
    hold_out : int
        Keep every so-many-th point of a series out of the fit (2 is half of them); 0 keeps none.
    seed : int
        Of the bootstrap.
    progress : callable, optional
        Called with the name of each model before it is fitted.
    sessions : sequence of Dataset
        That `dataset` was pooled from: intervals then know how far they are apart.
    draws : int
        Joint samples of each fit; 0 asks for values without intervals.

    Raises
    ------
    InputError
        Nothing in the data set can be fitted.
    """
    fits, skipped = [], []
    choices = [*choose(dataset, part=part), *longer_runs(sessions or (dataset,))]
    out = _held_out(choices, hold_out)
    for choice in choices:
        if choice.model is None or choice.data is None or choice.reason:
            skipped.append(choice)
            continue
        least = len(choice.model.constants) + 1
        data, kept_out = (choice.data, None) if choice.whole else _apart(choice.data, out, least=least)
        if progress is not None:
            progress(choice.model.name)
        try:
            models = [model for model in (choice.model, *choice.others) if _enough(model, data)]
            best = best_of(models or [choice.model], data, strict=choice.strict, seed=seed, draws=draws)
            fits.append(SeriesFit(choice.series, best, kept_out))
        except SimperfError as error:
            if "SciPy" in str(error):
                raise
            skipped.append(replace(choice, model=None, data=None, reason=str(error)))
    if not fits:
        reasons = "; ".join(dict.fromkeys(f"{one.series}: {one.reason}" for one in skipped)) or "it has no points"
        expected = "a recording of `simperf calibrate measure` or `cluster`"
        raise InputError(Problem(f"nothing in this data set can be fitted: {reasons}", expected=expected))
    if len(sessions) > 1:
        tables = [log_errors(one.fit, one.held_out, sessions) for one in fits]
        known = session_spreads({one.fit.model.name: table for one, table in zip(fits, tables, strict=True)})
        fits = [replace(one, between=known[one.fit.model.name]) for one in fits]
    return FitSet(dataset, tuple(fits), tuple(skipped))


def _enough(model: Model, data: Data) -> bool:
    """Whether there are clearly more points than constants."""
    return len(data) >= len(model.constants) + 2


def _held_out(choices: list[ModelChoice], every: int) -> frozenset[str]:
    """Keys of the points that are held out of all models: chosen among the points of the smallest model of each."""
    decided: dict[str, bool] = {}
    for choice in sorted(choices, key=lambda one: len(one.keys)):
        if choice.model is None or choice.data is None or choice.reason or choice.whole:
            continue
        if len(choice.data.keys) != len(choice.data):
            continue
        fresh = np.array([key not in decided for key in choice.data.keys], dtype=bool)
        if fresh.any():
            known, away = split(choice.data.take(fresh), every, least=len(choice.model.constants) + 1)
            decided.update(dict.fromkeys(known.keys, False))
            decided.update(dict.fromkeys(away.keys if away is not None else (), True))
    return frozenset(key for key, out in decided.items() if out)


def _apart(data: Data, out: frozenset[str], *, least: int) -> tuple[Data, Data | None]:
    """Points to fit and points that are held out; all are fitted if too few would be left."""
    where = np.array([key in out for key in data.keys], dtype=bool)
    if len(data.keys) != len(data) or not where.any() or len(data) - where.sum() < least:
        return data, None
    return data.take(~where), data.take(where)


def split(data: Data, every: int, *, least: int = 2) -> tuple[Data, Data | None]:
    """Points to fit, and every `every`-th to hold out, in the order of their sizes; none if too few would be left."""
    if every < 2 or len(data.keys) != len(data) or len(data) - len(data) // every < least:
        return data, None
    by = data.columns.get("nbytes", data.columns.get("flops"))
    order = np.argsort(by, kind="stable") if by is not None else np.arange(len(data))
    out = np.zeros(len(data), dtype=bool)
    out[order[1::every]] = True
    return data.take(~out), data.take(out)
