"""Published training steps on one GPU beside what its data sheet and the catalogue say, without a measured speed.

Beside a prediction stands what a planner gets without one: the share of the data sheet's peak that steps of the same
family and precision reach on other GPUs (`simperf.accuracy.leave_out.step_grades.share_of_peak`). Both know the GPU's
architecture: the prediction by the efficiencies of its kernels, the share by the steps of other GPUs of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from simperf.accuracy.fitted_constants import constants_behind
from simperf.accuracy.leave_out.measured_steps import MeasuredStep, measured_steps
from simperf.accuracy.leave_out.step_grades import arithmetic_of, share_of_peak
from simperf.accuracy.questions import ONE_GPU
from simperf.accuracy.validation import Track, ValidationRow, untracked
from simperf.run import run

__all__ = ["STEPS_TITLE", "single_step_table"]

_RATE = "samples per second"
#: how titles of such rows begin
STEPS_TITLE = "Steps of one GPU: "


def single_step_table(steps: Iterable[MeasuredStep] | None = None, *, track: Track = untracked) -> list[ValidationRow]:
    """Each measured model, precision and batch on each GPU, without the speed of one GPU that scenarios are given.

    Steps that a scenario of one GPU quotes have a row of their own among what scenarios quote, and none here.

    Parameters
    ----------
    steps : iterable of MeasuredStep, optional
        Those of all shipped scenarios if left out.
    track : callable
        Is given the steps, and passes them on one by one.
    """
    asked = list(measured_steps() if steps is None else steps)
    every = [
        arithmetic_of(step, run(step.scenario, record=False).metrics[_RATE].value)
        for step in track(asked, "steps of one GPU")
    ]
    return [
        ValidationRow(
            f"{STEPS_TITLE}{one.step.part.name}",
            one.step.name,
            f"metrics.{_RATE}",
            "1/s",
            one.step.measured,
            one.step.measured,
            one.predicted,
            case=one.step.scenario.case,
            source=one.step.scenario.source,
            fitted="nothing of a step; efficiencies of kernels by architecture",
            kind="fitted" if _constants(one.step) else "predicted",
            rests_on=", ".join(_constants(one.step, choice=True)),
            question=ONE_GPU,
            simple=share_of_peak(every, one, "part"),
        )
        for one in every
    ]


def _constants(step: MeasuredStep, *, choice: bool = False) -> tuple[str, ...]:
    return constants_behind(step.scenario.case, step.scenario, choice=choice)
