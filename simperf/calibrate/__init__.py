"""Calibration: measure, data set, fit, profile, validate. Only here is torch imported to time it."""

from simperf.calibrate.dataset import Dataset, Measurement

__all__ = ["Dataset", "Measurement"]
