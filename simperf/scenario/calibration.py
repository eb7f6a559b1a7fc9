"""Effects of a profile's fitted constants on a scenario: on its parts, its frontend and its costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from simperf.cost.collectives import MeasuredCollective, MeasuredCollectives
from simperf.cost.settings import ProcessorCalls
from simperf.execution import FREE, FrontendPart
from simperf.hardware import Catalog, Part
from simperf.scenario.schema import CostTable
from simperf.scenario.settings import CostSettings, Scenario

if TYPE_CHECKING:
    from simperf.cost.roofline_draws import Unseen
    from simperf.hardware import ProfilePart

__all__ = [
    "UNSEEN",
    "adjusted",
    "cost_settings",
    "free",
    "measured_collectives",
    "unseen",
    "unseen_draw",
    "unseen_profile",
]

#: the profile that says how far GPUs lie from what is predicted for them while they are left out
UNSEEN = "unseen-gpus"


def adjusted(
    part: Part, profiles: Sequence[ProfilePart], draw: int, *, changed: dict[str, set[str]] | None = None
) -> Part:
    """`part` with the constants of all `profiles`, the later ones last.

    `changed` is called with kind and name of the part by each profile that changes it.
    """
    for profile in profiles:
        before, part = part, profile.adjusted(part, draw)
        if part is not before and changed is not None:
            changed.setdefault(profile.name, set()).add(f"{part.KIND} {part.name}")
    return part


def free(profiles: Sequence[ProfilePart], draw: int) -> FrontendPart:
    """The frontend of a scenario that names none: one that costs nothing, but for what was fitted."""
    return cast(FrontendPart, adjusted(FREE, profiles, draw))


def cost_settings(cost: CostTable, profiles: Sequence[ProfilePart], draw: int) -> CostSettings:
    """Settings of operations' costs: an efficiency that the file gives goes before fitted constants of its family."""
    kernels: dict[str, Mapping[str, float]] = {}
    measured, calls = "", ProcessorCalls()
    for profile in profiles:
        found: Mapping[str, Mapping[str, float]] = profile.kernels(draw)
        if found:  # what was fitted to another GPU says nothing about this one
            kernels = {**(kernels if profile.gpu == measured else {}), **found}
            measured, calls = profile.gpu, ProcessorCalls(**profile.calls(draw))
    said = set(cost.efficiency)
    kept = {
        name: values for name, values in kernels.items() if not {name.partition(":")[0], name.partition("-")[0]} & said
    }
    return CostSettings(
        cost.corner == "sharp",
        dict(cost.efficiency),
        kept,
        measured,
        calls=calls,
        collectives=measured_collectives(profiles, draw),
    )


def measured_collectives(profiles: Sequence[ProfilePart], draw: int = 0) -> MeasuredCollectives:
    """Times of collectives that the profiles hold, at a joint draw."""
    found = [MeasuredCollective(**one) for profile in profiles for one in profile.collectives(draw)]
    return MeasuredCollectives(tuple(found))


@lru_cache(maxsize=1)
def unseen_profile() -> ProfilePart:
    """The profile of leave-one-architecture-out errors."""
    return Catalog.load().profile(UNSEEN)


def unseen_draw(draw: int, *, said: Sequence[str] = ()) -> Unseen:
    """Draw `draw` of how far GPUs without a profile lie from their rooflines; `said` has a stated efficiency."""
    from simperf.cost.roofline_draws import SORTS, STEPS, Miss, Unseen

    models = {name.removeprefix("unseen."): one.at() for name, one in unseen_profile().model.items()}
    alike = models.pop("gpu")["alike"]
    every = {sort: Miss(**known) for sort, known in models.items()}
    misses = {sort: every[sort] for sort in SORTS if sort in every}
    steps = {sort: every[f"step-{sort}"] for sort in STEPS if f"step-{sort}" in every}
    return Unseen(draw=draw, misses=misses, alike=alike, said=tuple(said), steps=steps)


def unseen(scenario: Scenario, draw: int) -> Scenario:
    """`scenario` and its variants with GPUs that no profile is of at draw `draw` of such GPUs."""
    if scenario.cost.sharp or scenario.machine is None:
        return scenario
    found = unseen_draw(draw, said=tuple(scenario.cost.efficiency))
    variants = tuple(unseen(variant, draw) for variant in scenario.variants)
    return replace(scenario, cost=replace(scenario.cost, unseen=found), variants=variants)
