"""Kinds of parts, each with its class and the model of its file."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, cast

from simperf.hardware.lazy_mapping import LazyMapping
from simperf.hardware.part import Part

if TYPE_CHECKING:
    from simperf.hardware.schema import TomlTable

__all__ = ["MODELS", "PART_KINDS"]

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


def _model_of(kind: str) -> type[TomlTable]:
    if kind == "profile":  # most runs read no profile
        from simperf.hardware.profile_schema import ProfileFile

        return ProfileFile
    from simperf.hardware.schema import file_model

    return file_model(PART_KINDS[kind])


#: model of the file of each kind of part
MODELS: Mapping[str, type[TomlTable]] = LazyMapping("model", len(PART_KINDS), lambda: iter(PART_KINDS), _model_of)
