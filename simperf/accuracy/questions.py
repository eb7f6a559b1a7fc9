"""The question of a planner that a published figure answers."""

from __future__ import annotations

from simperf.accuracy.baselines import ScalingBaselines, gradient_bytes
from simperf.analysis.questions import COLLECTIVES, KERNELS, LARGE, ONE_GPU, SCALING, runs_of
from simperf.results import Result
from simperf.scenario import Scenario

__all__ = [
    "COLLECTIVES",
    "KERNELS",
    "LARGE_MEMORY",
    "LARGE_TIME",
    "ONE_GPU",
    "QUESTIONS",
    "SCALING",
    "payload_of",
    "question_of",
]

#: the time of an iteration
LARGE_TIME = LARGE
LARGE_MEMORY = "Memory of large models"

#: in the order in which they are told
QUESTIONS = (ONE_GPU, SCALING, COLLECTIVES, KERNELS, LARGE_TIME, LARGE_MEMORY)


def question_of(scenario: Scenario, scaling: ScalingBaselines | None) -> str:
    """The question that the figures of a scenario answer, by what its runs are (`simperf.analysis.questions.runs_of`).

    Parameters
    ----------
    scenario : Scenario
    scaling : ScalingBaselines, optional
        Of the scenario, where it was given the speed of one GPU.

    Examples
    --------
    >>> from simperf.scenario import load_scenario
    >>> question_of(load_scenario("measured/optcast-ring"), None)
    'Collectives by size'
    >>> question_of(load_scenario("measured/timm-rtx3090"), None)
    'One GPU, from its data sheet'
    """
    runs = runs_of(scenario.program.name, scenario.parameters)
    alone = scenario.machine is not None and len(scenario.machine.gpus) == 1
    if scaling is not None or (runs == "training" and not alone):
        return SCALING
    return {"kernels": KERNELS, "exchange": COLLECTIVES}.get(runs, ONE_GPU)


def payload_of(scenario: Scenario, result: Result) -> float:
    """Payload of one exchange, of programs that only exchange bytes [B].

    Parameters
    ----------
    scenario : Scenario
        One variant whose question is `COLLECTIVES`.
    result : Result
        Of the same variant; only its sizes are read.
    """
    if "nbytes" in scenario.parameters:
        return float(scenario.parameters["nbytes"])
    return gradient_bytes(scenario, result)
