"""What `simperf.run` says of a measured point of a boxed cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from simperf.calibrate.cluster.scenarios import CORES, Compute, scenario
from simperf.calibrate.dataset import Measurement
from simperf.results import Result
from simperf.run import run
from simperf.scenario import make_scenario

__all__ = ["Prediction", "predict"]

#: runs of a scenario that chance has a part in
DRAWS = 9


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the simulator says of a point.

    Parameters
    ----------
    value : float
        In the unit of the point.
    load : float
        Share of the cores' time that was asked for, 0 to 1.
    """

    value: float
    load: float


def predict(
    point: Measurement,
    stack: Mapping[str, float],
    compute: Mapping[str, Compute] | None = None,
    *,
    cores: float = CORES,
) -> Prediction:
    """Simulate the scenario of a point.

    Parameters
    ----------
    point : Measurement
        Its conditions are read, not its readings.
    stack : mapping of str to float
        Constants of the network stack that stand for the catalogue's.
    compute : mapping of str to Compute
        For training, see `simperf.calibrate.cluster.scenarios.compute_of`.
    cores : float
        That all hosts share.
    """
    tables = scenario(point, stack, compute or {}, cores=cores)
    # workers that do not wait for each other differ from repeat to repeat, and a point is the median of its repeats
    seeds = range(DRAWS if point.series == "server/asynchronous" else 1)
    results = [run(make_scenario({**tables, "run": {"seed": seed}}), record=False) for seed in seeds]
    values = [_value(point, result) for result in results]
    return Prediction(median(values), median(result.floors["host"] / result.time for result in results))


def _value(point: Measurement, result: Result) -> float:
    """In the unit of the point: a time [s], or updates a second."""
    if point.series == "ddp":
        return result.metrics["time per step"].value
    if point.series.startswith("server/"):
        return float(point.at["ranks"]) * float(point.at["steps"]) / result.time
    return result.time
