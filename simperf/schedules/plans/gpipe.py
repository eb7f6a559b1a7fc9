"""GPipe: all micro-batches forward, then all backward (Huang et al., NeurIPS 2019)."""

from __future__ import annotations

from simperf.schedules.registry import schedule
from simperf.schedules.schedule import Pass, Schedule

__all__ = ["gpipe"]


@schedule("gpipe")
def gpipe(stages: int, microbatches: int) -> Schedule:
    """Every stage keeps the activations of all micro-batches; the last one goes backward first."""
    forward = [Pass("F", batch) for batch in range(microbatches)]
    backward = [Pass("B", batch) for batch in reversed(range(microbatches))]
    path = tuple((stage, 0) for stage in range(stages))
    return Schedule("gpipe", microbatches, (tuple(forward + backward),) * stages, path, (microbatches,) * stages)
