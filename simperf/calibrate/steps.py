"""Whole training steps and programs: what no constant was fitted to, simulated by `simperf.run` with a profile."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from simperf.analysis.chance import NORMAL
from simperf.calibrate.dataset import Measurement
from simperf.calibrate.played import measured_scenario
from simperf.calibrate.programs import PROGRAMS as MEASURED
from simperf.errors import UnknownNameError
from simperf.hardware import GpuPart, ProfilePart
from simperf.programs import PROGRAMS
from simperf.run import run
from simperf.scenario import Scenario

__all__ = ["DRAWS", "point_scenario", "step_predictor"]

#: joint draws that each point is played with, for its interval
DRAWS = 16
#: conditions of a step that are parameters of the program that plays it
_STEP = ("model", "batch", "precision", "optimizer", "part")


def point_scenario(
    profile: ProfilePart, point: Measurement, *, part: GpuPart | None = None, draw: int = 0
) -> Scenario | None:
    """The scenario of a point of ``step/MODEL`` or ``program/NAME``; None where there is no such program.

    Parameters
    ----------
    profile : ProfilePart
    point : Measurement
    part : GpuPart, optional
        The GPU of the catalogue that was measured.
    draw : int
        Of the profile's constants, from 1; 0 takes the best values.
    """
    head, _, name = point.series.partition("/")
    if point.at.get("device", "cpu") != "cpu" and "frontend.launch" not in profile.model:
        return None  # a GPU waits for its launches
    if head == "step":
        given = {key: point.at[key] for key in _STEP if key in point.at}
        return measured_scenario(profile, PROGRAMS["training-step"], given, part=part, draw=draw)
    if head != "program" or name not in MEASURED:
        return None
    program = MEASURED[name]
    given = {key: value for key, value in point.at.items() if key in program.parameters}
    return measured_scenario(profile, program, given, part=part, draw=draw)


def step_predictor(
    profile: ProfilePart, *, part: GpuPart | None = None
) -> Callable[[Measurement], tuple[float, float, float] | None]:
    """A function that predicts points of ``step/MODEL`` and ``program/NAME``: best, low and high [s].

    Each is a run of `point_scenario`; the interval is the spread of the profile's draws, and the scatter of readings.
    """
    draws = min(profile.draws, DRAWS)
    scatter, between = (_middle(profile, key) for key in ("scatter", "between"))
    known: dict[tuple[object, ...], list[dict[str, float]]] = {}

    def played(point: Measurement) -> list[dict[str, float]] | None:
        """Times with the best constants, then with each draw [s]."""
        whole = point.series.startswith("program/")
        key = (point.series, *sorted((key, value) for key, value in point.at.items() if not (whole and key == "part")))
        if key not in known:
            scenarios = [point_scenario(profile, point, part=part, draw=draw) for draw in range(draws + 1)]
            if scenarios[0] is None:
                return None
            results = [run(one, record=False) for one in scenarios if one is not None]
            known[key] = [
                {"whole": one.time} | {name: metric.value for name, metric in one.metrics.items()} for one in results
            ]
        return known[key]

    def predict(point: Measurement) -> tuple[float, float, float] | None:
        try:
            found = played(point)
        except UnknownNameError:  # a model that is not in the zoo
            return None
        if found is None:
            return None
        asked = str(point.at.get("part", "whole")) if point.series.startswith("program/") else "whole"
        if any(asked not in one for one in found):  # another version's program
            return None
        best, *others = [one[asked] for one in found]
        spread = float(np.log(np.array(others)).std()) if draws > 1 else between
        width = NORMAL * float(np.hypot(spread, scatter))
        return best, best * float(np.exp(-width)), best * float(np.exp(width))

    return predict


def _middle(profile: ProfilePart, key: str) -> float:
    """Median over the models of operations.

    A step repeats few shapes, so that what a model misses at one of them does not average out; and a session is quiet
    or disturbed for all of them.
    """
    found = [getattr(model, key) for name, model in profile.model.items() if name.startswith("kernel.")]
    return float(np.median(found)) if found else 0.0
