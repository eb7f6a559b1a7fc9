"""Fitting: models of kernels, hosts, links and collectives, one solver for all, and intervals by bootstrap."""

from simperf.calibrate.fit.choose import ModelChoice, choose
from simperf.calibrate.fit.model import Columns, Data, FitConstant, Model
from simperf.calibrate.fit.sets import FitSet, SeriesFit, fit_dataset, split
from simperf.calibrate.fit.solve import DRAWS, Fit, Fitted, fit

__all__ = [
    "DRAWS",
    "Columns",
    "Data",
    "Fit",
    "FitConstant",
    "FitSet",
    "Fitted",
    "Model",
    "ModelChoice",
    "SeriesFit",
    "choose",
    "fit",
    "fit_dataset",
    "split",
]
