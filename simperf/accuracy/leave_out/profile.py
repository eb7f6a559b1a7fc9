"""The profile of GPUs without measurements: errors of kernels and whole steps, as standard deviations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from simperf.accuracy.kernel_tables import kernel_cases
from simperf.accuracy.leave_out.kernels import catalogue_misses, unseen_models
from simperf.accuracy.leave_out.measured_steps import MeasuredStep
from simperf.accuracy.leave_out.steps import StepMiss, step_figures, step_misses
from simperf.analysis.chance import NORMAL
from simperf.calibrate.dataset import Dataset
from simperf.calibrate.profile import models_text
from simperf.hardware.profile import FittedConstant, FittedModel

__all__ = ["step_models", "unseen_text"]

_TITLE = "training steps beside their kernels, matrix products in {}"
_WORDS = {"half": "16 bits or fewer"}


def step_models(misses: Sequence[StepMiss]) -> dict[str, FittedModel]:
    """Models ``unseen.step-SORT`` with ``middle``, ``common`` and ``own``; standard errors leave out architectures.

    Parameters
    ----------
    misses : sequence of StepMiss
    """
    best = step_figures(misses)
    names = sorted({one.architecture for one in misses})
    without = [step_figures([one for one in misses if one.architecture != name]) for name in names]
    found = {}
    for sort, figures in best.items():
        these = [one for one in misses if one.sort == sort]
        constants = {}
        for name in ("middle", "common", "own"):
            others = [getattr(known[sort], name) for known in without if sort in known]
            value = float(getattr(figures, name))
            stderr = math.sqrt((len(others) - 1) * float(np.var(others))) if others else 0.0
            low, high = value - NORMAL * stderr, value + NORMAL * stderr
            constants[name] = FittedConstant(
                value=value, low=low if name == "middle" else max(0.0, low), high=high, stderr=stderr
            )
        away = np.array([one.missed for one in these])
        found[f"unseen.step-{sort}"] = FittedModel(
            title=_TITLE.format(_WORDS.get(sort, sort)),
            series=", ".join(sorted({one.architecture for one in these})),
            points=len(these),
            error=float(np.abs(np.expm1(-away)).mean()),
            scatter=float(away.std()),
            constant=constants,
        )
    return found


def unseen_text(cases: Sequence[Mapping[str, Any]], steps: Sequence[MeasuredStep] = ()) -> str:
    """The file of the profile that `simperf run --samples` draws from for GPUs without a profile of their own.

    Parameters
    ----------
    cases : sequence of mapping
        Of ``cases.json``: published kernels.
    steps : sequence of MeasuredStep
        Whole steps.
    """
    misses = catalogue_misses(cases)
    models = unseen_models(misses)
    sources = {f"{case['source'].get('repo', '')}".strip() for case, _, _ in kernel_cases(cases)}
    names = sorted({name for boards in misses.values() for name in boards})
    title = f"kernel times of GPUs of {len(names)} architectures"
    points = models["unseen.gpu"].points
    made = {"sources": ", ".join(sorted(sources)), "architectures": ", ".join(names)}
    whole = step_models(step_misses(cases, steps))
    if whole:
        architectures = {step.part.architecture for step in steps}
        title += f" and {len(steps)} training steps of {len(architectures)}"
        made["steps"] = "the measured scenarios, one GPU alone"
    data = Dataset(f"{title}, each left out and predicted from the others", made=made)
    command = {"command": "simperf calibrate leave-out FOLDER"}
    return models_text(
        data, {**models, **whole}, points=points + len(steps), made=command, command="simperf calibrate leave-out"
    )
