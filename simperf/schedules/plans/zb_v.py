"""ZB-V: no bubble with the activations of 1F1B (Qi et al., "Zero Bubble", ICLR 2024, section 6)."""

from __future__ import annotations

from simperf.schedules.registry import schedule
from simperf.schedules.schedule import Schedule
from simperf.schedules.v_shape import Offsets, v_shaped

__all__ = ["zb_v"]


@schedule("zb-v")
def zb_v(stages: int, microbatches: int) -> Schedule:
    """Two chunks a stage; activations live for twelve units a stage in all; no stage waits if all passes are equal."""
    return v_shaped("zb-v", stages, microbatches, Offsets(4, 2, 4, 2), early=True)
