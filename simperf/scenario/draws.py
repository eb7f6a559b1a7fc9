"""A scenario at one joint draw of everything that was fitted to measurements."""

from __future__ import annotations

from simperf.scenario.calibration import unseen
from simperf.scenario.load import redraw
from simperf.scenario.settings import Scenario

__all__ = ["draw"]


def draw(scenario: Scenario, index: int) -> Scenario:
    """The same scenario with joint draw `index` (from 0) of all fitted constants.

    Draws repeat after the last of the profile, and what is expected or measured is left out. Kernels of GPUs that
    no profile is of take as long as draw `index` of GPUs that were left out has them.
    """
    made = redraw(scenario, index % scenario.draws + 1) if scenario.draws else scenario
    return unseen(made, index)
