"""Calibration: `measure` this machine, `fit` constants to what was measured, `validate` them against measurements.

The three functions are what the commands of the same names call; each is loaded when it is first used. Only `measure`
loads torch, only `fit` SciPy.
"""

from typing import TYPE_CHECKING

from simperf.public_names import public_names

if TYPE_CHECKING:
    from simperf.calibrate.dataset import Dataset, Measurement
    from simperf.calibrate.fitting import FittedProfile, fit
    from simperf.calibrate.measuring import measure
    from simperf.calibrate.validation import validate

__all__ = ["Dataset", "FittedProfile", "Measurement", "fit", "measure", "validate"]

__getattr__, __dir__ = public_names(
    __name__,
    {
        "dataset": ["Dataset", "Measurement"],
        "fitting": ["FittedProfile", "fit"],
        "measuring": ["measure"],
        "validation": ["validate"],
    },
    shared=True,  # packages and a module are called fit, measure and validate, too
)
