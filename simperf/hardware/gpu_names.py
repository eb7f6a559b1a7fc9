"""GPUs of the catalogue by the names that drivers and publications give them."""

from __future__ import annotations

import re

from simperf.hardware.part_catalog import PartCatalog
from simperf.hardware.processors import GpuPart

__all__ = ["gpu_of_driver", "gpus_meant"]

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
#: words of a name that make it another product than the one without
_OTHER = {"ti", "super", "d", "nvl", "3e", "q", "max", "mobile", "laptop"}
#: words of a part of a GPU: an instance, a virtual function, a virtual GPU with so much memory
_PART = re.compile(r"mig|vf|\d+[abcq]")
_FORM = re.compile(r"sxm\d*|oam")
_MEMORY = re.compile(r"\d+gb")


def gpu_of_driver(name: str, catalog: PartCatalog) -> GpuPart | None:
    """GPU of the catalogue by the name that its driver gives it; None if there is none, or several.

    Examples
    --------
    >>> from simperf.hardware import Catalog
    >>> catalog = Catalog.load()
    >>> [gpu_of_driver(name, catalog).name for name in ("Tesla V100-SXM2-32GB", "NVIDIA A100 80GB PCIe")]
    ['v100-sxm2-32gb', 'a100-pcie-80gb']
    >>> gpu_of_driver("NVIDIA GeForce RTX 3090 Ti", catalog)
    """
    plain = re.sub(r"[^a-z0-9]+", "-", re.sub(r"nvidia|tesla|geforce|amd|instinct", "", name.lower())).strip("-")
    known = _NAMES.get(plain, plain)
    if known in catalog.names("gpu"):
        return catalog.gpu(known)
    said = _words(name)
    if any(map(_PART.fullmatch, said)):
        return None
    found = [part for part in gpus_meant(name, catalog) if not (said - _words(part.name)) & _OTHER]
    found = [part for part in found if _words(part.name) <= said] or found
    return found[0] if len(found) == 1 else None


def gpus_meant(name: str, catalog: PartCatalog) -> list[GpuPart]:
    """GPUs of the catalogue that a name may mean.

    The chip has to be the same, and of board and memory what the name says; a part with a kind of memory in its name is
    meant by names with that alone.

    Examples
    --------
    >>> from simperf.hardware import Catalog
    >>> [part.name for part in gpus_meant("A100-SXM4", Catalog.load())]
    ['a100-sxm4-40gb', 'a100-sxm4-80gb']
    """
    said = _words(name)
    return [part for each in catalog.names("gpu") if _means(part := catalog.gpu(each), said)]


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", name.lower().replace("-sxm", " sxm")))


def _means(part: GpuPart, said: set[str]) -> bool:
    chip, *rest = part.name.split("-")
    forms, sizes = _forms(said), {word for word in said if _MEMORY.fullmatch(word)}
    own_forms, own_sizes = _forms(rest), {word for word in rest if _MEMORY.fullmatch(word)}
    if chip not in said or (forms and own_forms and forms != own_forms):
        return False
    others = {word for word in rest if not _FORM.fullmatch(word) and word != "pcie"} - own_sizes
    return others <= said and (not sizes or not own_sizes or sizes == own_sizes)


def _forms(words: set[str] | list[str]) -> set[str]:
    return {"sxm" if _FORM.fullmatch(word) else word for word in words if _FORM.fullmatch(word) or word == "pcie"}
