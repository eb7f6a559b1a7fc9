"""What a profile's fitted constants change in a scenario: its parts, its frontend and its costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from simperf.execution import FREE, FrontendPart
from simperf.hardware import Part, ProfilePart
from simperf.scenario.schema import CostTable
from simperf.scenario.settings import CostSettings

__all__ = ["adjusted", "cost_settings", "free"]


def adjusted(part: Part, profiles: Sequence[ProfilePart], draw: int) -> Part:
    """`part` with the constants of all `profiles`, the later ones last."""
    for profile in profiles:
        part = profile.adjusted(part, draw)
    return part


def free(profiles: Sequence[ProfilePart], draw: int) -> FrontendPart:
    """The frontend of a scenario that names none: one that costs nothing, but for what was fitted."""
    return cast(FrontendPart, adjusted(FREE, profiles, draw))


def cost_settings(cost: CostTable, profiles: Sequence[ProfilePart], draw: int) -> CostSettings:
    """How operations are costed: an efficiency that the file gives goes before fitted constants of its family."""
    kernels: dict[str, Mapping[str, float]] = {}
    measured = ""
    for profile in profiles:
        found: Mapping[str, Mapping[str, float]] = profile.kernels(draw)
        if found:  # what was fitted to another GPU says nothing about this one
            kernels = {**(kernels if profile.gpu == measured else {}), **found}
            measured = profile.gpu
    said = set(cost.efficiency)
    kept = {
        name: values for name, values in kernels.items() if not {name.partition(":")[0], name.partition("-")[0]} & said
    }
    return CostSettings(cost.corner == "sharp", dict(cost.efficiency), kept, measured)
