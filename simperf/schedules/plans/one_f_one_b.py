"""1F1B: each stage alternates forward and backward as soon as it can (Narayanan et al., PipeDream-Flush, ICML 2021)."""

from __future__ import annotations

from simperf.schedules.registry import schedule
from simperf.schedules.schedule import Pass, Schedule

__all__ = ["alternating", "one_f_one_b"]


@schedule("1f1b")
def one_f_one_b(stages: int, microbatches: int) -> Schedule:
    """Stage s of p keeps the activations of p - s micro-batches at most; the bubble is that of GPipe."""
    forward = [Pass("F", batch) for batch in range(microbatches)]
    backward = [Pass("B", batch) for batch in range(microbatches)]
    warm = [min(stages - 1 - stage, microbatches) for stage in range(stages)]
    passes = tuple(alternating(forward, backward, warm[stage]) for stage in range(stages))
    path = tuple((stage, 0) for stage in range(stages))
    return Schedule("1f1b", microbatches, passes, path, tuple(min(ahead + 1, microbatches) for ahead in warm))


def alternating(forward: list[Pass], backward: list[Pass], warm: int) -> tuple[Pass, ...]:
    """`warm` forward passes, then one forward and one backward in turn, then the backward passes that are left."""
    steady = [one for pair in zip(forward[warm:], backward, strict=False) for one in pair]
    return (*forward[:warm], *steady, *backward[len(forward) - warm :])
