"""Hardware: parts, servers and clusters from data files, wired into machines with routes."""

from typing import TYPE_CHECKING

from simperf.public_names import public_names

if TYPE_CHECKING:
    from simperf.hardware.blueprint import Blueprint, Edge, Node, Route
    from simperf.hardware.catalog import Catalog, build_machine
    from simperf.hardware.check import check_machine
    from simperf.hardware.cluster import build_cluster
    from simperf.hardware.devices import LinkPart, NicPart, StoragePart, SwitchPart
    from simperf.hardware.fabric import Fabric, Port, ServerSlot
    from simperf.hardware.frontend import FrontendPart
    from simperf.hardware.kinds import PART_KINDS
    from simperf.hardware.machine import Machine
    from simperf.hardware.matrix import connection, connectivity
    from simperf.hardware.netstack import NetworkStackPart
    from simperf.hardware.part import Part
    from simperf.hardware.part_catalog import KINDS, read_part
    from simperf.hardware.processors import ArchitecturePart, CacheLevel, CpuPart, GpuPart, MemoryPart
    from simperf.hardware.profile import ProfilePart
    from simperf.hardware.regular import build_topology
    from simperf.hardware.rings import Ring, find_rings
    from simperf.hardware.topology import Topology
else:
    __getattr__, __dir__ = public_names(
        __name__,
        {
            "blueprint": ("Blueprint", "Edge", "Node", "Route"),
            "catalog": ("Catalog", "build_machine"),
            "check": ("check_machine",),
            "cluster": ("build_cluster",),
            "fabric": ("Fabric", "Port", "ServerSlot"),
            "machine": ("Machine",),
            "matrix": ("connection", "connectivity"),
            "kinds": ("PART_KINDS",),
            "part_catalog": ("KINDS", "read_part"),
            "devices": ("LinkPart", "NicPart", "StoragePart", "SwitchPart"),
            "frontend": ("FrontendPart",),
            "netstack": ("NetworkStackPart",),
            "part": ("Part",),
            "processors": ("ArchitecturePart", "CacheLevel", "CpuPart", "GpuPart", "MemoryPart"),
            "profile": ("ProfilePart",),
            "regular": ("build_topology",),
            "rings": ("Ring", "find_rings"),
            "topology": ("Topology",),
        },
    )

__all__ = [
    "KINDS",
    "PART_KINDS",
    "ArchitecturePart",
    "Blueprint",
    "CacheLevel",
    "Catalog",
    "CpuPart",
    "Edge",
    "Fabric",
    "FrontendPart",
    "GpuPart",
    "LinkPart",
    "Machine",
    "MemoryPart",
    "NetworkStackPart",
    "NicPart",
    "Node",
    "Part",
    "Port",
    "ProfilePart",
    "Ring",
    "Route",
    "ServerSlot",
    "StoragePart",
    "SwitchPart",
    "Topology",
    "build_cluster",
    "build_machine",
    "build_topology",
    "check_machine",
    "connection",
    "connectivity",
    "find_rings",
    "read_part",
]
