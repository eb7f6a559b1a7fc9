"""GPUs of the catalogue by the names that their drivers give them."""

from __future__ import annotations

import re

from simperf.hardware.part_catalog import PartCatalog
from simperf.hardware.processors import GpuPart

__all__ = ["gpu_of_driver"]

#: names by which drivers call GPUs that do not say the part -> the part; product names as torch's profiler writes them
_NAMES = {
    "a100-pg509-200": "a100-sxm4-40gb",
    "a100-sxm-80gb": "a100-sxm4-80gb",
    "h100-80gb-hbm3": "h100-sxm5-80gb",
    "h100-pcie": "h100-pcie-80gb",
    "h200": "h200-sxm-141gb",
    "b200": "b200-sxm-180gb",
    "h800": "h800-sxm5-80gb",
}


def gpu_of_driver(name: str, catalog: PartCatalog) -> GpuPart | None:
    """GPU of the catalogue by the name that its driver gives it; None if there is none.

    Examples
    --------
    >>> from simperf.hardware import Catalog
    >>> gpu_of_driver("Tesla V100-SXM2-32GB", Catalog.load()).name
    'v100-sxm2-32gb'
    """
    plain = re.sub(r"[^a-z0-9]+", "-", re.sub(r"nvidia|tesla|geforce|amd|instinct", "", name.lower())).strip("-")
    known = _NAMES.get(plain, plain)
    return catalog.gpu(known) if known in catalog.names("gpu") else None
