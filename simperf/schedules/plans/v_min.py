"""V-Min: a third of the activations of 1F1B (Qi et al., "Controllable Memory", NeurIPS 2024)."""

from __future__ import annotations

from simperf.schedules.registry import schedule
from simperf.schedules.schedule import Schedule
from simperf.schedules.v_shape import Offsets, v_shaped

__all__ = ["v_min"]


@schedule("v-min")
def v_min(stages: int, microbatches: int) -> Schedule:
    """Two chunks a stage; activations live for four units a stage in all; two thirds of the bubble of 1F1B."""
    return v_shaped("v-min", stages, microbatches, Offsets(1, 1, 1, 1))
