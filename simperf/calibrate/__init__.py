"""Calibration: `measure` this machine, `fit` constants to what was measured, `validate` them against measurements.

The three functions are what the commands of the same names call; each is loaded when it is first used. Only `measure`
loads torch, only `fit` lmfit and SciPy.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from simperf.calibrate.dataset import Dataset, Measurement
    from simperf.calibrate.fitting import FittedProfile, fit
    from simperf.calibrate.measuring import measure
    from simperf.calibrate.validation import validate

__all__ = ["Dataset", "FittedProfile", "Measurement", "fit", "measure", "validate"]

#: public name -> module that holds it
_PUBLIC = {
    "Dataset": "dataset",
    "FittedProfile": "fitting",
    "Measurement": "dataset",
    "fit": "fitting",
    "measure": "measuring",
    "validate": "validation",
}


def __getattr__(name: str) -> Any:
    """Load a public name on its first use."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no name {name!r}; it has {', '.join(__all__)}")
    found = getattr(import_module(f"{__name__}.{_PUBLIC[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(ModuleType):
    """Keeps ``fit``, ``measure`` and ``validate`` functions: modules of the same names would replace them."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _PUBLIC or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
