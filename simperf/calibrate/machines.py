"""Which GPU of the catalogue a data set was measured on."""

from __future__ import annotations

import re

from simperf.calibrate.dataset import Dataset
from simperf.errors import UnknownNameError
from simperf.hardware import Catalog, GpuPart
from simperf.hardware.driver_names import gpu_of_driver

__all__ = ["find_gpu"]


def find_gpu(dataset: Dataset, name: str = "") -> GpuPart | None:
    """The part called `name`; without a name, the one that its driver calls so, or whose words that name has.

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
    driver = str(dataset.machine.get("gpu", ""))
    known = gpu_of_driver(driver, catalog)
    if known is not None:
        return known
    said = set(_words(driver))
    fits = [known for known in catalog.names("gpu") if said and set(_words(known)) <= said]
    return catalog.gpu(max(fits, key=len)) if fits else None


def _words(text: str) -> list[str]:
    """Words and numbers in small letters: ``"NVIDIA A100-SXM4-40GB"`` gives nvidia, a100, sxm4, 40gb."""
    return re.findall(r"[a-z0-9]+", text.lower())
