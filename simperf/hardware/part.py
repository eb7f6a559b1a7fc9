"""The common base of all parts of a machine: a name, units and sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import inf
from typing import Any, ClassVar

from simperf.hardware.quantity import PRODUCT_CONSTANTS, units_of

__all__ = ["Part"]

_LABELS = ("name", "title", "sources", "architecture", "technology", "memory", "caches")


class _Units:
    """The dimension of each field that has one, by the annotations of the part's class."""

    def __get__(self, part: Part | None, kind: Any) -> Mapping[str, str]:
        return units_of(kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The base of every part: a name, a title for people, and a source for every number.

    Parameters
    ----------
    name : str
        Name in the catalog: the file's name without ``.toml``.
    title : str
        What it is, in words.
    sources : Mapping[str, str]
        Field name (or ``field.key``) to where its number comes from; ``default`` for the others.
    """

    UNITS = _Units()
    KIND: ClassVar[str] = ""

    name: str
    title: str
    sources: Mapping[str, str] = field(repr=False, hash=False, compare=False)

    def source(self, field: str) -> str:
        """Source of the number `field` (such as ``"peak.fp16"`` or ``"l2"``).

        Examples
        --------
        >>> from simperf.hardware import Catalog
        >>> Catalog.load().gpu("v100-sxm2-16gb").source("memory_bandwidth")
        'NVIDIA V100 datasheet, January 2020'
        """
        for key in (field, field.rpartition(".")[0], field.split(".", 1)[0], "default"):
            if key in self.sources:
                return self.sources[key]
        for item in fields(self):
            if item.name == field and getattr(self, field) == item.default:
                return "what a part has unless its file says otherwise"
        return ""

    def numbers(self) -> dict[str, tuple[float, str]]:
        """Every finite number: field (``peak.fp16`` for a table's entry) to (value, dimension)."""
        found: dict[str, tuple[float, str]] = {}
        for item in fields(self):
            value, unit = getattr(self, item.name), self.UNITS.get(item.name, "1")
            if item.name in _LABELS or value is None or isinstance(value, bool | str):
                continue
            if isinstance(value, Mapping):
                units = PRODUCT_CONSTANTS if item.name == "product" else {}
                found |= {f"{item.name}.{key}": (number, units.get(key, unit)) for key, number in value.items()}
            else:
                found[item.name] = (value, unit)
        return {key: row for key, row in found.items() if row[0] != inf}
