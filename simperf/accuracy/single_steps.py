"""Published training steps on one GPU beside what its data sheet and the catalogue say, without a measured speed."""

from __future__ import annotations

from collections.abc import Iterable

from simperf.accuracy.leave_out.measured_steps import MeasuredStep, measured_steps
from simperf.accuracy.questions import ONE_GPU
from simperf.accuracy.validation import ValidationRow
from simperf.run import run

__all__ = ["single_step_table"]

_RATE = "samples per second"


def single_step_table(steps: Iterable[MeasuredStep] | None = None) -> list[ValidationRow]:
    """Each measured model, precision and batch on each GPU, without the speed of one GPU that scenarios are given.

    Parameters
    ----------
    steps : iterable of MeasuredStep, optional
        Those of all shipped scenarios if left out.
    """
    rows = []
    for step in measured_steps() if steps is None else steps:
        predicted = run(step.scenario, record=False).metrics[_RATE].value
        rows.append(
            ValidationRow(
                f"Steps of one GPU: {step.part.name}",
                step.name,
                f"metrics.{_RATE}",
                "1/s",
                step.measured,
                step.measured,
                predicted,
                case=step.scenario.case,
                source=step.scenario.source,
                fitted="nothing of a step; efficiencies of kernels by architecture",
                question=ONE_GPU,
            )
        )
    return rows
