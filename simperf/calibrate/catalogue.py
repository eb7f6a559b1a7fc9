"""The catalogue against measurements: what it says of every operation and step of a GPU that nobody fitted to it."""

from __future__ import annotations

import math
from dataclasses import replace

from simperf.calibrate.dataset import Dataset, Measurement
from simperf.calibrate.measure.conditions import op_of
from simperf.calibrate.steps import STEP_CONDITIONS, measured_scenario
from simperf.calibrate.validate import Checked, Validation
from simperf.cost import Roofline
from simperf.errors import InputError, Problem
from simperf.hardware import GpuPart, ProfilePart
from simperf.programs import PROGRAMS
from simperf.run import run
from simperf.workload.op import Op

__all__ = ["check_catalogue"]

_SKIPPED = "the catalogue predicts operations, and time and memory of whole steps"


def check_catalogue(part: GpuPart, dataset: Dataset) -> Validation:
    """Predict operations, and time and memory of steps, from a GPU's data sheet and its architecture's efficiencies.

    Parameters
    ----------
    part : GpuPart
    dataset : Dataset
        Measured on such a GPU.

    Returns
    -------
    Validation
        No point is fitted, and none has an interval.

    Raises
    ------
    InputError
        The data set has no operation and no step of a GPU.
    """
    roofline = Roofline(part, efficiency=part.efficiency)
    points: list[Checked] = []
    skipped: dict[str, str] = {}
    for point in dataset:
        family = point.series.partition("/")[0]
        if point.at.get("device") != "cuda":
            skipped.setdefault(point.series, "not measured on a GPU")
            continue
        if family == "op":
            found = roofline.cost(_as_run(point)).time
        elif family == "step":
            found = _step_time(part, point)
        elif family == "memory":
            found = _memory(point)
        else:
            skipped.setdefault(point.series, _SKIPPED)
            continue
        between = (math.nan, math.nan)  # no interval is known
        points.append(
            Checked(point.key, point.series, part.name, point.median, found, *between, fitted=False, unit=point.unit)
        )
    if not points:
        message = f"no operation and no step of a GPU was measured that {part.name} could be compared with"
        raise InputError(Problem(message, value=dataset.title, expected="data of `measure --device cuda:0`"))
    return Validation(tuple(points), skipped)


def _as_run(point: Measurement) -> Op:
    """The operation of a point: in a short loop its operands may stay in a cache; the flash kernel is torch's own."""
    op = op_of(point)
    if point.at.get("cache") == "warm" and op.nbytes:
        op = replace(op, reuse=op.nbytes)
    return replace(op, library="flash-attention-2") if point.at.get("backend") == "flash" else op


def _step_time(part: GpuPart, point: Measurement) -> float:
    """Time of a step of a zoo model, or of a part of it, on a GPU that the catalogue's PyTorch drives [s]."""
    given = {key: point.at[key] for key in STEP_CONDITIONS if key in point.at}
    empty = ProfilePart(name="", title="", sources={})
    scenario = measured_scenario(empty, PROGRAMS["training-step"], given, part=part)
    return run(replace(scenario, profiles=()), record=False).time


def _memory(point: Measurement) -> float:
    """Memory that a step of a zoo model holds when it needs most [B]."""
    from simperf.workload.zoo import load

    at = point.at
    optimizer = str(at.get("optimizer", ""))
    return load(str(at["model"])).memory(int(point.number("batch")), str(at["precision"]), optimizer=optimizer)["total"]
