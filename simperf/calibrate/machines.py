"""GPU of the catalogue that a data set was measured on."""

from __future__ import annotations

from simperf.calibrate.dataset import Dataset
from simperf.errors import UnknownNameError
from simperf.hardware import Catalog, GpuPart
from simperf.hardware.gpu_names import gpu_of_driver

__all__ = ["find_gpu"]


def find_gpu(dataset: Dataset, name: str = "") -> GpuPart | None:
    """The part called `name`; without a name, the one that its driver calls so.

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
    return gpu_of_driver(str(dataset.machine.get("gpu", "")), catalog)
