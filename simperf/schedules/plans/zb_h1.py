"""ZB-H1: 1F1B whose gradients of weights fill the end of the pipeline (Qi et al., "Zero Bubble", ICLR 2024)."""

from __future__ import annotations

from simperf.schedules.plans.one_f_one_b import alternating
from simperf.schedules.registry import schedule
from simperf.schedules.schedule import Pass, Schedule

__all__ = ["zb_h1"]


@schedule("zb-h1")
def zb_h1(stages: int, microbatches: int) -> Schedule:
    """Every stage keeps the activations of as many micro-batches as there are stages, as the first one of 1F1B does.

    Stage s does the gradients of weights of a micro-batch s backward passes later. With T_F, T_B and T_W the times of
    the passes, the bubble is (p - 1) (T_F + T_B - T_W).
    """
    forward = [Pass("F", batch) for batch in range(microbatches)]
    backward = [Pass("B", batch) for batch in range(microbatches)]
    plans = []
    for stage in range(stages):
        passes: list[Pass] = []
        for one in alternating(forward, backward, min(stages - 1 - stage, microbatches)):
            passes.append(one)
            if one.kind == "B" and one.microbatch >= stage:
                passes.append(Pass("W", one.microbatch - stage))
        passes += [Pass("W", batch) for batch in range(max(0, microbatches - stage), microbatches)]
        plans.append(tuple(passes))
    path = tuple((stage, 0) for stage in range(stages))
    return Schedule("zb-h1", microbatches, tuple(plans), path, (min(stages, microbatches),) * stages)
