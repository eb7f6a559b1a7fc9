"""The question of a planner that a published figure answers."""

from __future__ import annotations

from simperf.accuracy.baselines import GivenSpeed
from simperf.scenario import Scenario

__all__ = ["COLLECTIVES", "KERNELS", "ONE_GPU", "QUESTIONS", "SCALING", "question_of"]

ONE_GPU = "One GPU, from its data sheet"
SCALING = "Scaling from a measured GPU"
COLLECTIVES = "Collectives by size"
KERNELS = "Kernels"

#: in the order in which they are told
QUESTIONS = (ONE_GPU, SCALING, COLLECTIVES, KERNELS)

#: programs that train on several GPUs, and those that only exchange bytes
_TRAINING = ("train", "servers-or-ring", "recommender")
_EXCHANGES = ("all-reduce", "parameter-server")


def question_of(scenario: Scenario, speed: GivenSpeed | None) -> str:
    """The question that the figures of a scenario answer, by its program.

    Parameters
    ----------
    scenario : Scenario
    speed : GivenSpeed, optional
        The speed of one GPU that it was given.

    Examples
    --------
    >>> from simperf.scenario import load_scenario
    >>> question_of(load_scenario("measured/optcast-ring"), None)
    'Collectives by size'
    """
    program = scenario.program.name
    if program == "operations":
        return KERNELS
    if speed is not None or program in _TRAINING or scenario.parameters.get("alone"):
        return SCALING
    return COLLECTIVES if program in _EXCHANGES else ONE_GPU
