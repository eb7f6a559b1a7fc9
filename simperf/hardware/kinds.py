"""Kinds of parts, each with its class."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import cast

from simperf.hardware.lazy_mapping import LazyMapping
from simperf.hardware.part import Part

__all__ = ["PART_KINDS"]

#: module of this package and class of each kind of part; only those that are read are imported
_CLASSES = {
    "architecture": ("processors", "ArchitecturePart"),
    "gpu": ("processors", "GpuPart"),
    "cpu": ("processors", "CpuPart"),
    "memory": ("processors", "MemoryPart"),
    "link": ("devices", "LinkPart"),
    "storage": ("devices", "StoragePart"),
    "nic": ("devices", "NicPart"),
    "switch": ("devices", "SwitchPart"),
    "frontend": ("frontend", "FrontendPart"),
    "network-stack": ("netstack", "NetworkStackPart"),
    "profile": ("profile", "ProfilePart"),
}


def _class_of(kind: str) -> type[Part]:
    module, name = _CLASSES[kind]
    return cast("type[Part]", getattr(import_module(f"simperf.hardware.{module}"), name))


#: class of each kind of part
PART_KINDS: Mapping[str, type[Part]] = LazyMapping("kind of part", len(_CLASSES), lambda: iter(_CLASSES), _class_of)
