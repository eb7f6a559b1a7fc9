"""The parts that machines are built of: frozen values in SI units that know their sources.

A part is one TOML file (see `simperf.hardware.schema`); these classes are what the file
becomes. ``UNITS`` names the dimension of every number (a key of `simperf.units.DIMENSIONS`;
``"1"`` for counts and fractions), so that a part can be printed with its units.
"""

from simperf.hardware.devices import LinkPart, NicPart, StoragePart, SwitchPart
from simperf.hardware.frontend import FrontendPart
from simperf.hardware.netstack import Hosting, NetworkStackPart, Shaping
from simperf.hardware.part import Part
from simperf.hardware.processors import ArchitecturePart, CacheLevel, CpuPart, GpuPart, MemoryPart
from simperf.hardware.profile import FittedConstant, FittedModel, ProfilePart

__all__ = [
    "ArchitecturePart",
    "CacheLevel",
    "CpuPart",
    "FittedConstant",
    "FittedModel",
    "FrontendPart",
    "GpuPart",
    "Hosting",
    "LinkPart",
    "MemoryPart",
    "NetworkStackPart",
    "NicPart",
    "Part",
    "ProfilePart",
    "Shaping",
    "StoragePart",
    "SwitchPart",
]
