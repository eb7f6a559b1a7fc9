"""V-Half: half of the activations of 1F1B (Qi et al., "Controllable Memory", NeurIPS 2024)."""

from __future__ import annotations

from simperf.schedules.registry import schedule
from simperf.schedules.schedule import Schedule
from simperf.schedules.v_shape import Offsets, v_shaped

__all__ = ["v_half"]


@schedule("v-half")
def v_half(stages: int, microbatches: int) -> Schedule:
    """Two chunks a stage; activations live for six units a stage in all; half of the bubble of 1F1B."""
    return v_shaped("v-half", stages, microbatches, Offsets(2, 1, 2, 1))
