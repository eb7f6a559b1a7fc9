"""Which GPU of the catalogue a data set was measured on."""

from __future__ import annotations

import re

from simperf.calibrate.dataset import Dataset
from simperf.errors import UnknownNameError
from simperf.hardware import Catalog, GpuPart

__all__ = ["NOT_ON_HARDWARE", "find_gpu"]

#: said wherever points of a GPU are measured or predicted, until a GPU's file stands in ``calibration/``
NOT_ON_HARDWARE = (
    "points of a GPU: the code that takes and predicts them has run on a pretended GPU only, not on hardware yet"
)


def find_gpu(dataset: Dataset, name: str = "") -> GpuPart | None:
    """The part called `name`; without a name, the one whose words the data set's ``gpu`` has; None if there is none.

    Raises
    ------
    UnknownNameError
        The catalogue has no GPU of that name.
    """
    catalog = Catalog.load()
    if name:
        if name not in catalog.names("gpu"):
            raise UnknownNameError("gpu", name, catalog.names("gpu"))
        return catalog.gpu(name)
    said = set(_words(str(dataset.machine.get("gpu", ""))))
    fits = [known for known in catalog.names("gpu") if said and set(_words(known)) <= said]
    return catalog.gpu(max(fits, key=len)) if fits else None


def _words(text: str) -> list[str]:
    """Words and numbers in small letters: ``"NVIDIA A100-SXM4-40GB"`` gives nvidia, a100, sxm4, 40gb."""
    return re.findall(r"[a-z0-9]+", text.lower())
