"""Whole training steps and programs, which no constant is fitted to, as scenarios of the machine that was measured.

A point is a scenario of one host, one GPU and a link between, and its prediction is a run of it (`simperf.run`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from simperf.analysis.chance import NORMAL
from simperf.calibrate.dataset import Measurement
from simperf.calibrate.programs import PROGRAMS as MEASURED
from simperf.errors import UnknownNameError
from simperf.execution import FREE
from simperf.hardware import Catalog, FrontendPart, GpuPart, ProfilePart, build_machine
from simperf.programs import PROGRAMS, ProgramSpec
from simperf.run import run
from simperf.scenario import Scenario
from simperf.scenario.calibration import adjusted, cost_settings
from simperf.scenario.schema import CostTable

__all__ = ["DRAWS", "STEP_CONDITIONS", "measured_part", "measured_scenario", "point_scenario", "step_predictor"]

#: of a device that is in no catalogue
_NAME = "measured"


def measured_part(profile: ProfilePart) -> GpuPart:
    """A device that is in no catalogue, from what was fitted: the best rates reached stand for its peaks."""
    peak: dict[str, float] = {}
    bandwidth = 1e9
    floors = []
    for name, constants in profile.kernels().items():
        family, _, dtype = name.partition(":")[0].partition("-")
        if "half_k" in constants or family in ("gemm", "conv", "attention"):
            peak[dtype] = max(peak.get(dtype, 0.0), constants["rate"])
        else:
            bandwidth = max(bandwidth, constants.get("rate", constants.get("memory", 0.0)))
        floors.append(constants.get("overhead", 0.0))
    fastest = max(peak.values(), default=1e12)
    every = dict.fromkeys(("fp32", "fp16", "bf16", "fp64"), fastest) | peak
    return GpuPart(
        name=_NAME,
        title="The device that was measured",
        sources={"default": f"profile {profile.name}: the best rates that were reached"},
        architecture="",
        peak=every,
        memory_bandwidth=bandwidth,
        memory_capacity=math.inf,
        l2=math.inf,
        sms=int(profile.machine.get("sms", 1)),
        kernel_floor=float(np.median(floors)) if floors else 0.0,
        copy_engines=2,
        efficiency={},
    )


def measured_scenario(
    profile: ProfilePart,
    program: ProgramSpec,
    parameters: Mapping[str, Any],
    *,
    part: GpuPart | None = None,
    draw: int = 0,
) -> Scenario:
    """A scenario of a program on the machine of a profile, with the constants of a joint draw.

    It is what a file with ``[calibration] use = PROFILE`` makes on a machine of the same kind: a GPU is driven by the
    catalogue's PyTorch, calls on a CPU end with their work.

    Parameters
    ----------
    profile : ProfilePart
    program : ProgramSpec
    parameters : mapping of str to object
        Of the program; the others have their defaults.
    part : GpuPart, optional
        The GPU of the catalogue; without it `measured_part`.
    draw : int
        From 1; 0 takes the best values.
    """
    catalog = Catalog.load()
    device = adjusted(part or measured_part(profile), (profile,), draw)
    rates = [profile.model[name].at(draw)["bandwidth"] for name in _COPIES if name in profile.model]
    host = {"id": "cpu0", "kind": "cpu"}
    link = {"a": "cpu0", "b": "gpu0", "bandwidth": f"{max(rates, default=1e15)!r} B/s", "latency": "0 s"}
    table = {"node": [{"id": "gpu0", "gpu": device.name}, host], "link": [link]}
    front = FREE if profile.calls() else catalog.frontend("pytorch")
    frontend = adjusted(front, (profile,), draw)
    assert isinstance(frontend, FrontendPart)
    return Scenario(
        name=program.name,
        machine=build_machine(table, catalog.with_part(device)),
        frontend=frontend,
        cost=cost_settings(CostTable(), (profile,), draw),
        program=program,
        parameters={name: one.default for name, one in program.parameters.items()} | dict(parameters),
        profiles=(profile,),
    )


_COPIES = ("copy.h2d-pinned", "copy.d2h-pinned")


#: joint draws that each point is played with, for its interval
DRAWS = 16
#: conditions of a step that are parameters of the program that plays it
STEP_CONDITIONS = ("model", "batch", "precision", "optimizer", "part")


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
        given = {key: point.at[key] for key in STEP_CONDITIONS if key in point.at}
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
